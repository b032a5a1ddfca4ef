//! The schedules of another program's scheduler, for the built-in one. They are taken over once, when it has none.

use std::error::Error;
use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use serde_json::{Map, Value, json};

use super::database::{has_column, open, rows};
use super::{Importer, Outcome};

/// A schedule that is still to come.
struct Schedule {
    action: Value,
    /// In milliseconds since 1970.
    next: u64,
    /// Its recurrence; none for a one-off.
    when: Option<String>,
    /// Whether it ends at some time.
    ends: bool,
}

impl Importer<'_> {
    /// Takes over the schedules of this database that are still to come.
    pub(super) fn schedules(&mut self, name: &str) -> Result<(), Problem> {
        let Some(database) = self.inside(name) else { return Ok(()) };
        let folder = self.plan.home.data(&ExtensionId::from("scheduler"));
        let file = folder.join("schedules.json");
        if file.exists() {
            self.line("schedule", "all", Outcome::Present, "the scheduler has schedules already");
            return Ok(());
        }
        let schedules = match read(&database) {
            Ok(schedules) => schedules,
            Err(error) => {
                self.line("schedule", "all", Outcome::Left, format!("{name} cannot be read: {error}"));
                return Ok(());
            }
        };
        let mut kept = Map::new();
        for (place, Schedule { action, next, when, ends }) in schedules.into_iter().enumerate() {
            let label = format!("s{}", place + 1);
            if ends {
                let why = "it ends at a set time, which the built-in scheduler does not know";
                self.line("schedule", &label, Outcome::Left, format!("{action}: {why}"));
                continue;
            }
            self.line("schedule", &label, Outcome::Imported, action.to_string());
            let mut entry = json!({ "action": action, "next": next });
            if let Some(when) = when {
                entry["when"] = when.into();
            }
            kept.insert(label, entry);
        }
        if self.dry || kept.is_empty() {
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| {
            Problem::in_file(
                Code::HomeUnavailable,
                &file,
                format!("{} cannot be written: {error}", file.display()),
            )
        };
        let last = kept.keys().filter_map(|label| label.strip_prefix('s')?.parse::<u64>().ok()).max();
        let text = json!({ "last": last, "entries": kept }).to_string();
        std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
        std::fs::write(&file, text).map_err(|error| failed(&error))
    }
}

/// The schedules of a database that are still to come, as the built-in scheduler keeps them.
fn read(database: &Path) -> Result<Vec<Schedule>, Box<dyn Error>> {
    let connection = open(database)?;
    let until = if has_column(&connection, "recurring_schedules", "until_at")? { "until_at" } else { "NULL" };
    let once = "SELECT topic, payload, fire_at, NULL, NULL, NULL FROM one_shot_schedules WHERE status = 'scheduled' ORDER BY id";
    let again = format!(
        "SELECT topic, payload, next_fire_at, cron_expr, every_sec, {until} FROM recurring_schedules WHERE status = 'active' ORDER BY id"
    );
    let mut schedules = Vec::new();
    for query in [once, &again] {
        schedules.extend(rows(&connection, query, |row| {
            let (topic, payload, at): (String, String, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (cron, every): (Option<String>, Option<f64>) = (row.get(3)?, row.get(4)?);
            let when = cron.or_else(|| every.map(|seconds| format!("every {}s", seconds.max(1.0) as u64)));
            let ends = row.get::<_, Option<f64>>(5)?.is_some();
            Ok(Schedule { action: action(topic, &payload), next: (at * 1000.0) as u64, when, ends })
        })?);
    }
    Ok(schedules)
}

/// What a schedule does: tell the user, give the agent a task, or publish an event. What is for a channel is published as the event that
/// names it, because a schedule's text and task have no channel.
fn action(topic: String, payload: &str) -> Value {
    let payload: Value = serde_json::from_str(payload).unwrap_or_default();
    let word = |name: &str| payload[name].as_str().map(str::to_owned);
    let text = word("text").or_else(|| word("prompt")).filter(|_| word("channel_id").is_none());
    match (topic.as_str(), text) {
        ("system.user.notify", Some(text)) => json!({ "text": text }),
        ("system.agent.task", Some(task)) => json!({ "task": task }),
        _ => json!({ "event": { "topic": topic, "payload": payload } }),
    }
}
