//! The command line: renders frames and verdicts for a person or as JSON, and decides nothing.
//!
//! [`run`] takes the arguments and gives the exit code: 0 done, 1 the thing itself failed, 2 bad usage or configuration, 3 denied
//! by policy, 130 interrupted. `arguments.rs` has every command as it is typed, `commands.rs` sorts them by what they need: nothing,
//! the home's files, its settings, or its owner, which is this process if there is no other. `client/` is the link to the owner,
//! `chat/` the conversation in the terminal.

/// Prints a line on standard error. Unlike the standard library's macro, it does not panic when standard error is closed.
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::output::tell(format_args!($($words)*)) };
}

mod arguments;
mod chat;
mod client;
mod commands;
mod exit;
mod output;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use holdfast_app::{ApplicationConfig, MakeBuiltIns};
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;

use arguments::{Arguments, Chat, Command};
use client::link::Link;
use commands::local::ext;
use commands::{OwnerCommand, Task};
use exit::Exit;
use output::Output;

pub use commands::offline::doctor::Examine;

/// What the program brings along.
#[derive(Clone, Copy)]
pub struct ProgramParts {
    /// The extensions that are built in.
    pub built_ins: MakeBuiltIns,
    /// What `doctor` has to say about the platform.
    pub examine: Examine,
}

/// Everything that can be said on the command line, for its reference and for shell completions.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs a command.
pub fn run(program: ProgramParts, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    left_with(carry_out(program, arguments))
}

/// A chat over a connection to an owner, as `holdfast chat` has it: for tests without a home.
#[doc(hidden)]
pub async fn chat_over(
    connection: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
    session: Option<holdfast_contract::ids::StreamId>,
    history: std::path::PathBuf,
) -> ExitCode {
    let options = chat::ChatOptions { session, model: None, color: colors(), history, quiet: false };
    let left = match Link::over(connection, "chat").await {
        Ok(mut link) => chat::chat(&mut link, options).await,
        Err(problem) => Err(problem),
    };
    left_with(left.map(Exit::from))
}

/// Whether the user wants colours.
fn colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn left_with(done: Result<Exit, Problem>) -> ExitCode {
    match done {
        Ok(exit) => exit.into(),
        Err(problem) => {
            output::report(&problem);
            ExitCode::from(exit_code(problem.code))
        }
    }
}

fn carry_out(program: ProgramParts, arguments: Arguments) -> Result<Exit, Problem> {
    let Arguments { home: asked, profile, json, quiet, verbose, command } = arguments;
    let output = Output { json, quiet, verbose };
    let located = || Home::locate(asked, &|name: &str| std::env::var_os(name));
    match Task::from(command.unwrap_or(Command::Chat(Chat::default()))) {
        Task::Standalone(command) => command.run(&output),
        Task::Offline(command) => command.run(&output, &located()?, program.examine),
        Task::Local(command) => {
            let plan = configuration(program, located()?, profile, Some(ext::logged))?;
            block_on(command.run(&output, &plan))
        }
        Task::Owner(command) => {
            // A chat has the screen to itself.
            let logged: Option<LogLine> =
                if matches!(command, OwnerCommand::Chat(_)) { None } else { Some(ext::logged) };
            let plan = configuration(program, located()?, profile, logged)?;
            block_on(command.run(&output, &plan))
        }
    }
}

/// Where a line of an extension's log goes.
type LogLine = fn(&ExtensionId, LogLevel, &str);

fn configuration(
    program: ProgramParts,
    home: Home,
    profile: Option<String>,
    log: Option<LogLine>,
) -> Result<ApplicationConfig, Problem> {
    let current = std::env::current_dir()
        .map_err(|error| Problem::new(Code::UsageInvalid, format!("there is no current folder: {error}")))?;
    Ok(ApplicationConfig {
        home,
        profile,
        built_ins: program.built_ins,
        environment: |name| std::env::var_os(name),
        current,
        progress: ext::progress,
        log,
    })
}

fn block_on(command: impl Future<Output = Result<Exit, Problem>>) -> Result<Exit, Problem> {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Code::Internal, format!("no threads can be started: {error}")))?;
    let exit = threads.block_on(command);
    // A thread that still waits for the terminal's input must not keep the program.
    threads.shutdown_background();
    exit
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
    output::report(&Problem::new(Code::UsageInvalid, what).help(help));
    ExitCode::from(2)
}

fn exit_code(code: Code) -> u8 {
    match code.as_str().as_bytes().get(3) {
        Some(b'1' | b'9') => 2,
        _ => match code {
            Code::StoreUnavailable | Code::StoreNewer | Code::StoreLocked | Code::StoreMissing => 2,
            Code::BackupInside | Code::BackupInvalid => 2,
            Code::ModelUnknown | Code::ProviderUnknown | Code::ProviderSettings => 2,
            Code::ScriptInvalid | Code::TapeUnreadable => 2,
            Code::ToolDenied => 3,
            Code::TurnCancelled => 130,
            _ => 1,
        },
    }
}
