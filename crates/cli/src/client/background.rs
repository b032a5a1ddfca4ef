//! The owner of a home in a process of its own, for chats: whichever of them ends first, the others go on. It has no terminal, says
//! how its start went to the chat that started it, and ends after the last of them.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use holdfast_app::{ApplicationConfig, Purpose};
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::ShutdownRequest;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::signal::unix::SignalKind;

use super::link::OwnerConnection;
use crate::commands::local::{init, up};
use crate::exit::Exit;
use crate::output::{Output, tell};

/// How the line begins that says how the start went. What comes before it is for the user.
const STARTED: &str = "\u{1}owner ";
/// How long the first chat may take to connect, and how long another one is waited for after the last has gone.
const FIRST_CLIENT: Duration = Duration::from_secs(20);
const NEXT_CLIENT: Duration = Duration::from_millis(300);

/// How the start went.
#[derive(Serialize, Deserialize)]
struct Started {
    problem: Option<Problem>,
}

/// Starts an owner in the background, and shows what it has to say until it listens.
pub(crate) async fn start(output: &Output, plan: &ApplicationConfig) -> Result<(), Problem> {
    let failed = |error| Problem::new(Code::Internal, format!("the owner cannot be started: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("--home").arg(plan.home.root());
    if output.quiet {
        command.arg("--quiet");
    }
    command.args(["up", "--unsupervised", "--while-used"]);
    // The folder is that of the sessions' clients; the owner itself keeps none busy.
    command.current_dir(plan.home.root().parent().filter(|parent| parent.is_dir()).unwrap_or(&plan.current));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let mut lines =
        BufReader::new(child.stderr.take().ok_or_else(|| failed(std::io::Error::other("there is no pipe")))?)
            .lines();
    while let Some(line) = lines.next_line().await.map_err(failed)? {
        match line.strip_prefix(STARTED) {
            Some(text) => {
                let started: Result<Started, _> = serde_json::from_str(text);
                return match started.map_err(|error| failed(error.into()))?.problem {
                    None => Ok(()),
                    Some(problem) => Err(problem),
                };
            }
            None => tell(format_args!("{line}")),
        }
    }
    let status = child.wait().await.map_err(failed)?;
    Err(failed(std::io::Error::other(format!("it ended at once ({status})"))))
}

fn say(problem: Option<Problem>) {
    let line = serde_json::to_string(&Started { problem }).unwrap_or_default();
    // A chat that has gone meanwhile does not read it.
    let _unread = writeln!(std::io::stderr().lock(), "{STARTED}{line}");
}

/// Owns the home for as long as chats use it.
pub(crate) async fn own(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    // Without a session of its own, it would end with the terminal of the chat that started it.
    let _leads_already = rustix::process::setsid();
    let mut terminate = up::listen(SignalKind::terminate())?;
    let is_new = !plan.home.database().exists();
    let own = match OwnerConnection::find(plan, Purpose::Run).await {
        Ok(OwnerConnection::Own(own)) => own,
        // Another one was faster.
        Ok(OwnerConnection::Attached(_)) => {
            say(None);
            return Ok(Exit::Done);
        }
        Err(problem) => {
            say(Some(problem));
            return Ok(Exit::Failed);
        }
    };
    if is_new && !output.quiet {
        tell(format_args!("{}", init::greeting(&own.application)));
    }
    say(None);
    let mut wanted = own.application.runtime.shutdown_requests();
    let clients = own.clients().clone();
    let reason = tokio::select! {
        () = clients.unused(FIRST_CLIENT, NEXT_CLIENT) => "the last chat has ended",
        _ = terminate.recv() => "asked to stop by a signal",
        _ = wanted.wait_for(|wanted| *wanted != ShutdownRequest::GoOn) => "requested by a client",
    };
    own.end_now(reason).await?;
    Ok(Exit::Done)
}
