//! The command line: renders frames and verdicts for a person or as JSON, and decides nothing.
//!
//! [`run`] takes the arguments and gives the exit code: 0 done, 1 the thing itself failed, 2 bad usage or configuration, 3 denied
//! by policy, 130 interrupted, 141 the reader of the output has closed it. `arguments.rs` has every command as it is typed,
//! `commands.rs` sorts them by what they need: nothing, the home's files, its settings, or its owner, which is this process if
//! there is no other. `client/` is the link to the owner, `chat/` the conversation in the terminal.

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
use holdfast_home::{Home, LogLevelSetting, named_profile};

use arguments::{Arguments, Chat, Command};
use client::link::{ClientOrigin, Link};
use commands::local::ext;
use commands::{LocalCommand, OwnerCommand, Task};
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
    let left = match Link::over(connection, "chat", &ClientOrigin::default()).await {
        Ok(mut link) => chat::chat(&mut link, options, None).await,
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
        Err(_) if output::reader_gone() => Exit::ReaderGone.into(),
        Err(problem) => {
            output::report(&problem);
            ExitCode::from(exit_code(problem.code))
        }
    }
}

fn carry_out(program: ProgramParts, arguments: Arguments) -> Result<Exit, Problem> {
    let Arguments { home: asked, profile, json, quiet, verbose, command } = arguments;
    let output = Output { json, quiet, verbose };
    let log_level = match (quiet, verbose) {
        (true, _) => Some(LogLevelSetting::Error),
        (false, true) => Some(LogLevelSetting::Trace),
        (false, false) => None,
    };
    let located = || -> Result<Home, Problem> {
        let home = Home::locate(asked, &|name: &str| std::env::var_os(name))?;
        home.check()?;
        home.irregular().iter().for_each(output::report);
        Ok(home)
    };
    match Task::from(command.unwrap_or(Command::Chat(Chat::default()))) {
        Task::Standalone(command) => command.run(&output),
        Task::Offline(command) => command.run(&output, &located()?, program.examine),
        Task::Local(command) => {
            // An owner in the background has nowhere to write.
            let silent = matches!(&command, LocalCommand::Up(up) if up.while_used);
            let shown: LogLine =
                if matches!(command, LocalCommand::Up(_)) { ext::logged_with_time } else { ext::logged };
            let logged = (!silent).then_some(shown);
            let origin = client_origin(profile.as_deref())?;
            // That of a client is for its sessions, not for the home.
            let profile = profile.filter(|_| !matches!(command, LocalCommand::Rpc));
            let plan = configuration(program, located()?, profile, (logged, log_level))?;
            block_on(command.run(&output, &plan, &origin))
        }
        Task::Owner(command) => {
            // A chat has the screen to itself.
            let logged: Option<LogLine> =
                if matches!(command, OwnerCommand::Chat(_)) { None } else { Some(ext::logged) };
            let origin = client_origin(profile.as_deref())?;
            let plan = configuration(program, located()?, None, (logged, log_level))?;
            block_on(command.run(&output, &plan, &origin))
        }
    }
}

/// Where a client is started, and the profile that it asks for.
fn client_origin(profile: Option<&str>) -> Result<ClientOrigin, Problem> {
    Ok(ClientOrigin {
        folder: std::env::current_dir().ok(),
        profile: profile.map(named_profile).transpose()?,
    })
}

/// Where a line of an extension's log goes.
type LogLine = fn(&ExtensionId, LogLevel, &str);

fn configuration(
    program: ProgramParts,
    home: Home,
    profile: Option<String>,
    (log, log_level): (Option<LogLine>, Option<LogLevelSetting>),
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
        log_level,
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

/// Help and version are not failures; anything else is bad usage, in our own form.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return left_with(output::write_text(&error.to_string()).map(|()| Exit::Done));
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
            Code::BackupInside | Code::BackupInvalid | Code::BackupDamaged => 2,
            Code::ModelUnknown | Code::ProviderUnknown | Code::ProviderSettings => 2,
            Code::ScriptInvalid | Code::TapeUnreadable => 2,
            Code::ToolDenied => 3,
            Code::TurnCancelled => 130,
            _ => 1,
        },
    }
}
