//! Schedules that a conversation creates: reminders, events and tasks for later, persisted in the extension's data folder.
//!
//! [`extension`] is the entry point. `store` is the file, `runner` fires due entries, and the tools are here. Due times are computed by
//! the host, through the host calls `schedule.next` and `schedule.wait`.

mod runner;

#[cfg(test)]
mod scheduler_tests;
mod store;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::{TurnContext, TurnView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{NativeExtension, Tool, on_thread};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::runner::{ScheduleRunner, ask};
use crate::store::{Action, AskedIn, Entry, ScheduleStore};

/// The extension, with its data folder. The folder is created with the first schedule.
pub fn extension(data_dir: PathBuf) -> NativeExtension {
    let runner = ScheduleRunner::new(ScheduleStore::new(data_dir));
    let tool = |kind| ScheduleTool { kind, runner: runner.clone() };
    NativeExtension::new("scheduler", env!("CARGO_PKG_VERSION"))
        .lifecycle(runner.clone())
        .tool(tool(Kind::Once))
        .tool(tool(Kind::Recurring))
        .tool(tool(Kind::List))
        .tool(tool(Kind::Cancel))
        .tool(tool(Kind::Update))
}

#[derive(Clone, Copy)]
enum Kind {
    Once,
    Recurring,
    List,
    Cancel,
    Update,
}

struct ScheduleTool {
    kind: Kind,
    runner: ScheduleRunner,
}

impl Tool for ScheduleTool {
    fn spec(&self) -> ToolSpec {
        let (name, description, fields, required) = match self.kind {
            Kind::Once => (
                "schedule_once",
                "Does something once: `at` a moment or `in` some time. Name one of `text` (tell the user), `topic` (publish an event) and `task` (give it to the agent).",
                [moment_fields(), action_fields()].concat(),
                vec![],
            ),
            Kind::Recurring => (
                "schedule_recurring",
                "Does something again and again, by `cron` or at an `interval`. Name one of `text` (tell the user), `topic` (publish an event) and `task` (give it to the agent).",
                [repeat_fields(), action_fields()].concat(),
                vec![],
            ),
            Kind::List => (
                "list_schedules",
                "The schedules, when each is next due, and the outcome of its last run.",
                vec![],
                vec![],
            ),
            Kind::Cancel => ("cancel_schedule", "Removes a schedule.", vec![id_field()], vec!["id"]),
            Kind::Update => (
                "update_schedule",
                "Changes when a schedule is due, or what it does; what is not named stays.",
                [vec![id_field()], moment_fields(), repeat_fields(), action_fields()].concat(),
                vec!["id"],
            ),
        };
        let properties: Map<String, Value> =
            fields.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        let effects = if matches!(self.kind, Kind::List) { EffectClass::Read } else { EffectClass::Write };
        ToolSpec {
            effects,
            input_schema: Content::new(json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            })),
            ..ToolSpec::named(name, description)
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let (kind, runner) = (self.kind, self.runner.clone());
        Box::pin(async move {
            let arguments = arguments.value().clone();
            let result = carry_out(kind, &runner, &arguments, &turn, &host).await?;
            if !matches!(kind, Kind::List) {
                runner.changed.notify_one();
            }
            Ok(Content::new(result))
        })
    }
}

async fn carry_out(
    kind: Kind,
    runner: &ScheduleRunner,
    arguments: &Value,
    turn: &TurnContext,
    host: &Arc<dyn Host>,
) -> Result<Value, Fault> {
    let store = runner.store.clone();
    let id = || arguments["id"].as_str().map(str::to_owned).ok_or_else(|| wrong("`id` is missing"));
    match kind {
        Kind::Once | Kind::Recurring => {
            let (when, next) = due(arguments, host).await?.ok_or_else(|| wrong("name when it is due"))?;
            if when.is_some() != matches!(kind, Kind::Recurring) {
                let fields = if when.is_some() { "`at` or `in`" } else { "`cron` or `interval`" };
                return Err(wrong(&format!("name {fields}")));
            }
            let action = action(arguments)?.ok_or_else(|| wrong("name a `text`, a `topic` or a `task`"))?;
            let timezone = arguments["timezone"].as_str().map(str::to_owned);
            let user = turn.origin.user.clone().map(|user| (turn.origin.channel.clone(), user));
            let asked_in = Some(AskedIn { session: turn.session.to_string(), user });
            let next = Some(next);
            let entry = Entry { when, timezone, action, asked_in, next, firing: None, fired: None };
            let id = on_thread(move || store.add(entry)).await?;
            Ok(json!({ "id": id, "next": next.map(moment) }))
        }
        Kind::List => {
            let entries = on_thread(move || store.entries()).await?;
            let listed = entries.into_iter().map(|(id, entry)| {
                let (next, firing, fired) = (entry.next, entry.firing, entry.fired.clone());
                let mut shown = serde_json::to_value(entry).unwrap_or_default();
                shown["id"] = id.into();
                shown["next"] = json!(next.map(moment));
                if let Some(due) = firing {
                    shown["firing"] = moment(due).into();
                }
                if let Some((due, outcome)) = fired {
                    shown["fired"] = json!([moment(due), outcome]);
                }
                shown
            });
            Ok(json!({ "schedules": listed.collect::<Vec<_>>() }))
        }
        Kind::Cancel => {
            let id = id()?;
            let key = id.clone();
            on_thread(move || store.edit(&key, |_| Ok(None))).await?;
            Ok(json!({ "cancelled": id }))
        }
        Kind::Update => {
            let (id, due, action) = (id()?, due(arguments, host).await?, action(arguments)?);
            if due.is_none() && action.is_none() {
                return Err(wrong("name what is to change"));
            }
            let timezone = arguments["timezone"].as_str().map(str::to_owned);
            let key = id.clone();
            let edit = move |entry: Entry| {
                let mut entry = Entry { action: action.unwrap_or(entry.action.clone()), ..entry };
                if let Some((when, next)) = due {
                    (entry.when, entry.next, entry.timezone) = (when, Some(next), timezone);
                }
                Ok(Some(entry))
            };
            on_thread(move || store.edit(&key, edit)).await?;
            Ok(json!({ "updated": id }))
        }
    }
}

/// A moment for a model and a person: `2026-11-18T10:02:17Z`.
fn moment(millis: u64) -> String {
    let at = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

/// When something is due by the arguments: its recurrence, if it has one, and its first due time.
async fn due(arguments: &Value, host: &Arc<dyn Host>) -> Result<Option<(Option<String>, u64)>, Fault> {
    let text = |name: &str| arguments[name].as_str().map(str::to_owned);
    let given: Vec<&str> =
        ["at", "in", "cron", "interval"].into_iter().filter(|name| !arguments[*name].is_null()).collect();
    let (asked, when) = match given[..] {
        [] => return Ok(None),
        ["in"] => (json!({ "in": text("in") }), None),
        ["at"] => (json!({ "when": text("at"), "timezone": text("timezone") }), None),
        ["cron"] => (json!({ "when": text("cron"), "timezone": text("timezone") }), text("cron")),
        ["interval"] => {
            let every = text("interval").map(|span| {
                if span.starts_with(['P', 'p']) {
                    span
                } else {
                    format!("every {}", span.trim_start_matches("every "))
                }
            });
            (json!({ "when": every }), every)
        }
        _ => return Err(wrong("name one of `at`, `in`, `cron` and `interval`")),
    };
    let next = ask(host, HostCallKind::ScheduleNext, asked).await?;
    let next = next["next"].as_u64().ok_or_else(|| wrong("this moment is over"))?;
    Ok(Some((when, next)))
}

fn action(arguments: &Value) -> Result<Option<Action>, Fault> {
    let text = |name: &str| arguments[name].as_str().map(str::to_owned);
    Ok(match (text("text"), text("topic"), text("task")) {
        (None, None, None) => None,
        (Some(text), None, None) => Some(Action::Text(text)),
        (None, Some(topic), None) => Some(Action::Event { topic, payload: arguments["payload"].clone() }),
        (None, None, Some(task)) => Some(Action::Task(task)),
        _ => return Err(wrong("name one of `text`, `topic` and `task`")),
    })
}

fn wrong(what: &str) -> Fault {
    Fault::new(Code::ToolArguments, what)
}

type Fields = Vec<(&'static str, Value)>;

fn id_field() -> (&'static str, Value) {
    ("id", json!({ "type": "string", "description": "The schedule's id." }))
}

fn moment_fields() -> Fields {
    vec![
        (
            "at",
            json!({ "type": "string", "description": "A moment: `2027-01-31T09:00`, or with an offset." }),
        ),
        ("in", json!({ "type": "string", "description": "After so long: `2h`, `1h30m`." })),
        zone_field(),
    ]
}

fn repeat_fields() -> Fields {
    vec![
        ("cron", json!({ "type": "string", "description": "A cron expression: `0 9 * * MON-FRI`." })),
        ("interval", json!({ "type": "string", "description": "Every so often: `15m`, `2h`." })),
        zone_field(),
    ]
}

fn zone_field() -> (&'static str, Value) {
    (
        "timezone",
        json!({ "type": "string", "description": "Such as `Europe/Vienna`; the host's if left out." }),
    )
}

fn action_fields() -> Fields {
    vec![
        ("text", json!({ "type": "string", "description": "What the user is told." })),
        ("topic", json!({ "type": "string", "description": "The topic of an event." })),
        ("payload", json!({ "description": "What the event says." })),
        ("task", json!({ "type": "string", "description": "What the agent is to do." })),
    ]
}
