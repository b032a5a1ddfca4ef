//! The command line: renders frames and verdicts for a person or as JSON, and decides nothing.
//!
//! [`run`] takes the arguments and gives the exit code: 0 done, 1 the thing itself failed, 2 bad usage or configuration,
//! 130 interrupted.
//! `arguments.rs` has every command; each has a file of its own.

mod arguments;
mod chat;
mod demo;
mod home;
mod link;
mod log;
mod output;
mod replay;
mod schema;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use holdfast_contract::problem::{Code, Problem};

use arguments::{Arguments, Command};
use output::Output;

/// Everything that can be said on the command line, for its reference and for shell completions.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs a command.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let output = Output::new(arguments.json);
    let done = match arguments.command {
        Command::Demo(command) => demo::demo(&output, arguments.home, command),
        Command::Log(command) => log::log(&output, arguments.home, command),
        Command::Replay(command) => replay::replay(&output, arguments.home, &command),
        Command::Schema(command) => schema::schema(&output, &command),
    };
    exit(done)
}

/// A chat over a connection to an owner, as `holdfast chat` has it: for trying it without a home.
#[doc(hidden)]
pub async fn chat_over(
    connection: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
    store: &holdfast_store::Store,
    session: Option<holdfast_contract::ids::StreamId>,
    history: std::path::PathBuf,
) -> ExitCode {
    let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let options = chat::ChatOptions { session, color, history, quiet: false };
    let left = match link::Link::over(connection).await {
        Ok(link) => chat::chat(link, store, options).await,
        Err(problem) => Err(problem),
    };
    exit(left)
}

fn exit(done: Result<bool, Problem>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(exit_code(problem.code))
        }
    }
}

/// Help and version are no failure; anything else is bad usage, in our own form.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        print!("{error}");
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let what =
        text.trim_start_matches("error: ").lines().next().unwrap_or("the command cannot be understood");
    let more: Vec<&str> = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty()).collect();
    let help = more.join("\n        ");
    eprintln!("{}", Problem::new(Code::UsageInvalid, what).help(help));
    ExitCode::from(2)
}

fn exit_code(code: Code) -> u8 {
    match code.as_str().as_bytes().get(3) {
        Some(b'1' | b'9') => 2,
        _ => match code {
            // The user left in the middle of a turn.
            Code::TurnCancelled => 130,
            Code::StoreUnavailable | Code::StoreNewer | Code::StoreLocked | Code::StoreMissing => 2,
            _ => 1,
        },
    }
}
