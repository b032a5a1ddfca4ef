//! `holdfast call TOOL 'JSON'`: one tool through the whole pipeline: schema, hooks, policy, dispatch, frames.

use std::time::Duration;

use holdfast_contract::body::Body;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::tool::ToolOutcome;
use holdfast_home::McpSettings;
use holdfast_rpc::{ExtensionInfo, ExtensionMethod, McpTest, McpTested, NoParams, SessionOpen};
use serde_json::{Value, json};

use crate::arguments::Call;
use crate::client::link::Link;
use crate::client::turn::attended;
use crate::exit::Exit;
use crate::output::{Output, report};

/// The most extensions that are named as a possible reason.
const MAX_NAMED: usize = 3;

/// A tool that is not there, with the extensions that are down: one of them may have it.
async fn unknown_tool(link: &Link, tool: &str, problem: Problem) -> Problem {
    let list = ExtensionMethod::List(NoParams {});
    let Ok(all) = link.client.ask::<Vec<ExtensionInfo>>(&list).await else { return problem };
    let down = all.iter().filter_map(|it| Some((it, it.fault.as_ref()?)));
    let (same, others): (Vec<_>, Vec<_>) = down.partition(|(it, _)| it.id == tool);
    let named = if same.is_empty() { others } else { same };
    if named.is_empty() {
        return problem;
    }
    let reasons = named.iter().take(MAX_NAMED).map(|(it, fault)| format!("`{}`: {fault}", it.id));
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    problem.help(format!("Not loaded: {reasons}. `holdfast ext doctor` shows what to do."))
}

/// How long extensions that are starting are waited for, and how often they are looked at.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL: Duration = Duration::from_millis(200);

/// The model that calls exactly what it is told to.
pub(crate) const DIRECT: &str = "direct";

/// What a call came to.
struct CallEnd {
    session: String,
    result: Option<Value>,
    fault: Option<Fault>,
}

pub(crate) async fn call(output: &Output, link: &mut Link, command: Call) -> Result<Exit, Problem> {
    let mut end = attempt(link, &command).await?;
    let is_unknown = end.fault.as_ref().is_some_and(|fault| fault.code == Code::ToolUnknown);
    // A tool of an MCP server that was never listed is not registered yet.
    // One of an extension that is still starting is not either.
    if is_unknown && (list_server(link, &command.tool).await || have_started(link).await) {
        end = attempt(link, &command).await?;
    }
    show(output, link, &command, end).await
}

/// Has the MCP server listed whose tool this may be.
async fn list_server(link: &Link, tool: &str) -> bool {
    let Some((server, _)) = tool.split_once("__") else { return false };
    let id = McpSettings::extension(server).to_string();
    link.client.ask::<McpTested>(&ExtensionMethod::McpTest(McpTest { id })).await.is_ok()
}

/// Waits for the extensions that are starting. Returns false if no extension is starting.
async fn have_started(link: &Link) -> bool {
    let late = tokio::time::Instant::now() + START_TIMEOUT;
    let mut waited = false;
    loop {
        let list = ExtensionMethod::List(NoParams {});
        let Ok(all) = link.client.ask::<Vec<ExtensionInfo>>(&list).await else { return waited };
        let starting = all.iter().any(|it| it.state == "INACTIVE");
        if !starting || tokio::time::Instant::now() >= late {
            return waited;
        }
        waited = true;
        tokio::time::sleep(START_POLL).await;
    }
}

async fn attempt(link: &mut Link, command: &Call) -> Result<CallEnd, Problem> {
    let arguments: Value = serde_json::from_str(&command.arguments).map_err(|error| {
        Problem::new(Code::UsageInvalid, format!("the arguments are not JSON: {error}"))
            .help(format!("For example: holdfast call {} '{{\"path\": \"notes.txt\"}}'", command.tool))
    })?;
    let opened = link
        .open_session(SessionOpen {
            model: Some(DIRECT.into()),
            channel: "call".to_owned(),
            answers: attended(),
            ..SessionOpen::default()
        })
        .await?;
    let text = format!("/{} {arguments}", command.tool);
    let end = link.turn(&opened.session, (text, Vec::new()), |_| Ok(())).await?;
    let (mut result, mut fault): (Option<Value>, Option<Fault>) = (None, None);
    for frame in link.frames_of_turn(&opened, &end).await? {
        let outcome = match link.client.body(&frame).await? {
            Body::ToolReturned(returned) => returned.outcome,
            // The tool is an agent.
            Body::ChildEnded(ended) => ended.outcome,
            Body::ToolSettled(settled) if settled.fault.is_some() => {
                fault = settled.fault;
                continue;
            }
            _ => continue,
        };
        match outcome {
            ToolOutcome::Result(content) => result = Some(content.value().clone()),
            ToolOutcome::Failure(failure) => fault = Some(failure),
        }
    }
    if result.is_none() && fault.is_none() {
        fault = Some(crate::client::turn::told(&end).to_fault());
    }
    Ok(CallEnd { session: opened.session.to_string(), result, fault })
}

async fn show(output: &Output, link: &Link, command: &Call, end: CallEnd) -> Result<Exit, Problem> {
    let CallEnd { session, result, fault } = end;
    let ok = fault.is_none();
    let exit = match fault.as_ref().map(|fault| fault.code) {
        None => Exit::Done,
        Some(Code::ToolDenied | Code::GuardBlocked) => Exit::Denied,
        Some(Code::ToolCancelled | Code::TurnCancelled) => Exit::Interrupted,
        Some(_) => Exit::Failed,
    };
    if output.json {
        let result = if ok { result } else { None };
        let error = fault.map(|fault| json!({ "code": fault.code, "message": fault.message }));
        output.document(&json!({ "ok": ok, "result": result, "error": error, "session": session }))?;
        return Ok(exit);
    }
    match fault {
        Some(fault) if fault.code == Code::ToolUnknown => {
            report(&unknown_tool(link, &command.tool, Problem::from(fault)).await);
        }
        Some(fault) => report(&Problem::from(fault)),
        None => output.foreign(&match result.unwrap_or_default() {
            Value::String(text) => text,
            value => serde_json::to_string_pretty(&value).unwrap_or_default(),
        })?,
    }
    if !output.quiet {
        eprintln!("session {session}");
    }
    Ok(exit)
}
