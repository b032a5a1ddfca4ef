//! `holdfast status`: how the home is, in a few lines.

use holdfast_app::ApplicationConfig;
use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{ExtensionProblem, LimitUsage, NoParams, Queues, Status, SystemMethod, UsageInfo};

use crate::chat::{one_line, sanitize_for_terminal};
use crate::commands::local::up::attached;
use crate::exit::Exit;
use crate::output::{Output, table};

/// How the home is.
pub(crate) async fn status(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    let Some(link) = attached(&plan.home).await? else {
        if output.json {
            output.document(&serde_json::json!({ "up": false }))?
        } else {
            output.line("nothing is up; `holdfast up` brings the home up")?
        }
        return Ok(Exit::Failed);
    };
    let status: Status = link.client.ask(&SystemMethod::Status(NoParams {})).await?;
    if output.json {
        output.document(&status)?;
        return Ok(Exit::Done);
    }
    let (welcome, up) = (&link.welcome, span(status.uptime_ms));
    output.line(format!("up: process {}, version {}, for {up}", welcome.process, welcome.program))?;
    output.line(format!("model {}, profile {}", welcome.model, welcome.profile))?;
    for line in lines(&status) {
        // Only a table has several rows, and each is cut.
        if line.contains('\n') { output.lines(line) } else { output.line(line) }?;
    }
    Ok(Exit::Done)
}

/// What a status says beyond who it is.
fn lines(status: &Status) -> Vec<String> {
    let Status {
        active, starting, sessions, stored, failed, degraded, conflicts, queues, spent, today, ..
    } = status;
    let mut lines = vec![
        format!("{active} extensions active, {} down", failed.len()),
        format!("{sessions} sessions open, {stored} stored"),
        format!("bus: {}", waiting(queues)),
        format!("spent since it came up: {}", money(spent)),
    ];
    if !starting.is_empty() {
        lines.insert(1, format!("starting: {}", sanitize_for_terminal(&starting.join(", "))));
    }
    lines.extend(today.iter().map(bounded));
    if let Some(trouble) = &queues.trouble {
        lines.push(format!("nothing moves on the bus at the moment: {}", one_line(trouble)));
    }
    let row = |state: &str, line: &ExtensionProblem| {
        let ExtensionProblem { extension, code, message, fix } = line;
        [extension.clone(), state.to_owned(), code.clone(), message.clone(), fix.clone()]
    };
    let down = failed.iter().map(|line| row("down", line));
    let degraded = degraded.iter().map(|line| row("as it was", line));
    let conflicts = conflicts.iter().map(|line| {
        if line.code == Code::ToolReserved.as_str() {
            row("without the tool", line)
        } else {
            row("yes", line)
        }
    });
    let rows: Vec<_> = down.chain(degraded).chain(conflicts).collect();
    if !rows.is_empty() {
        lines.push(table(["extension", "serves", "code", "why", "what to do"], rows, ""))
    } else if starting.is_empty() {
        lines.push("every extension is healthy".to_owned())
    }
    lines
}

fn waiting(queues: &Queues) -> String {
    let Queues { open, under_way, delayed, dead, .. } = queues;
    let open = match open {
        0 => "nothing waits".to_owned(),
        open => format!("{open} open, of these {under_way} under way and {delayed} delayed"),
    };
    let dead = match dead {
        0 => "no dead letters".to_owned(),
        1 => "1 dead letter (`holdfast bus dead list`)".to_owned(),
        dead => format!("{dead} dead letters (`holdfast bus dead list`)"),
    };
    format!("{open}; {dead}")
}

/// What was used today of something that is bounded.
pub(crate) fn bounded(bound: &LimitUsage) -> String {
    let LimitUsage { extension, limit, used, allowed } = bound;
    let whose = extension.as_ref().map(|id| format!("`{}`: ", one_line(id))).unwrap_or_default();
    let (what, cap) = limit.explain();
    let cap = cap.replace("<id>", extension.as_deref().map_or("<id>", |id| id));
    format!("today: {whose}{used} of {allowed} {what} (`{}`)", one_line(&cap))
}

fn money(spent: &UsageInfo) -> String {
    let UsageInfo { model_calls, tokens, cost_micros } = spent;
    match model_calls {
        0 => "nothing, no model was called".to_owned(),
        calls => {
            let (dollars, rest) = (cost_micros / 1_000_000, cost_micros % 1_000_000);
            format!("{calls} model calls, {tokens} tokens, ${dollars}.{rest:06}")
        }
    }
}

/// A span of time for a person, in its two largest units.
fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
