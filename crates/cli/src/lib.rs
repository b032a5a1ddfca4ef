//! The command line: renders frames and verdicts for a person or as JSON, and decides nothing.
//!
//! [`run`] takes the arguments and gives the exit code: 0 done, 1 the thing itself failed, 2 bad usage or configuration, 3 denied
//! by policy, 130 interrupted. `arguments.rs` has every command; each has a file of its own. Commands that only read open the
//! log; all others go over a link to the home's owner, which is this process if nobody else is.

/// Says something on standard error. Unlike the standard library's, it does not end the program when nobody listens there.
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::output::tell(format_args!($($words)*)) };
}

mod arguments;
mod attach;
mod backup;
mod bench;
mod bus;
mod call;
mod chat;
mod demo;
mod doctor;
mod exit;
mod ext;
mod home;
mod init;
mod link;
mod list;
mod log;
mod models;
mod output;
mod policy;
mod questions;
mod replay;
mod rpc;
mod run;
mod schema;
mod session;
mod setup;
mod status;
mod time;
mod turn;
mod up;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use holdfast_app::{ApplicationConfig, MakeBuiltIns, ModelCatalog};
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::{Home, Settings};

use arguments::{Arguments, Chat, Command, Ext, Log, Model, Policy};
use exit::Exit;
use holdfast_rpc::COMMAND;
use link::{Link, OwnerConnection};
use output::Output;

pub use doctor::Examine;

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

/// A chat over a connection to an owner, as `holdfast chat` has it: for trying it without a home.
#[doc(hidden)]
pub async fn chat_over(
    connection: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
    store: &holdfast_store::Store,
    session: Option<holdfast_contract::ids::StreamId>,
    history: std::path::PathBuf,
) -> ExitCode {
    let options = chat::ChatOptions { session, model: None, color: colors(), history, quiet: false };
    let left = match Link::over(connection, std::path::PathBuf::new(), "chat").await {
        Ok(link) => chat::chat(link, store, options).await,
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
    let command = command.unwrap_or(Command::Chat(Chat::default()));
    let command = match without_home(&output, command)? {
        Done::Here(exit) => return Ok(exit),
        Done::NotYet(command) => command,
    };
    let variable = |name: &str| std::env::var_os(name);
    let home = Home::locate(asked, &variable)?;
    let command = match here(&output, &home, program, command)? {
        Done::Here(exit) => return Ok(exit),
        Done::NotYet(command) => command,
    };
    let current = std::env::current_dir()
        .map_err(|error| Problem::new(Code::UsageInvalid, format!("there is no current folder: {error}")))?;
    let plan = ApplicationConfig {
        home,
        profile,
        built_ins: program.built_ins,
        environment: |name| std::env::var_os(name),
        current,
        progress: ext::progress,
        // A chat has the screen to itself.
        log: (!matches!(command, Command::Chat(_))).then_some(ext::logged),
    };
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Code::Internal, format!("no threads can be started: {error}")))?;
    let exit = threads.block_on(linked(&output, &plan, command));
    // A thread that still waits for the terminal's input must not keep the program.
    threads.shutdown_background();
    exit
}

/// Whether a command needed no owner.
enum Done {
    Here(Exit),
    NotYet(Command),
}

/// Carries out what needs no home.
fn without_home(output: &Output, command: Command) -> Result<Done, Problem> {
    let exit = match command {
        Command::Schema(command) => schema::schema(output, &command)?.into(),
        Command::Bench(command) => bench::bench(output, &command)?,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut self::command(), "holdfast", &mut std::io::stdout());
            Exit::Done
        }
        command => return Ok(Done::NotYet(command)),
    };
    Ok(Done::Here(exit))
}

/// Carries out what needs a home and no owner.
fn here(output: &Output, home: &Home, program: ProgramParts, command: Command) -> Result<Done, Problem> {
    let exit = match command {
        Command::Demo(command) => demo::demo(output, home, command)?.into(),
        Command::Log(command) if !matches!(command, Log::Gc(_) | Log::Erase { .. }) => {
            log::log(output, home, command)?.into()
        }
        Command::Session(command) => {
            let store = home::open(home)?;
            match session::read(output, &store, &command)? {
                Some(exit) => exit,
                None => return Ok(Done::NotYet(Command::Session(command))),
            }
        }
        Command::Ext(Ext::New(command)) => ext::new(output, home, &command)?,
        Command::Ext(Ext::Build { subject }) => ext::build(output, home, subject.as_deref())?,
        Command::Backup { file } => backup::backup(output, home, &file)?,
        Command::Restore { file, force } => backup::restore(output, home, &file, force)?,
        Command::Doctor => doctor::doctor(output, home, program.examine)?,
        command => return Ok(Done::NotYet(command)),
    };
    Ok(Done::Here(exit))
}

/// Carries out what needs the home's owner.
async fn linked(output: &Output, plan: &ApplicationConfig, command: Command) -> Result<Exit, Problem> {
    if let Command::Init(command) = command {
        return init::init(output, &plan.home, plan.environment, command.yes).await;
    }
    let command = match command {
        Command::Ext(Ext::Check { extension }) => return ext::check(output, plan, &extension).await,
        Command::Ext(Ext::Test { extension }) => return ext::test(output, plan, &extension).await,
        Command::Ext(Ext::Dev { extension, grant }) => {
            return ext::dev(output, plan, &extension, grant).await;
        }
        Command::Ext(Ext::Grant(command)) => return ext::grant(output, plan, &command),
        Command::Ext(Ext::Revoke { id }) => return ext::revoke(output, plan, &id),
        Command::Replay(command) => return replay::replay(output, plan, &command).await,
        Command::Up(arguments::Up { unsupervised: false }) => return up::supervise(output, plan).await,
        Command::Up(arguments::Up { unsupervised: true }) => return up::own(output, plan).await,
        Command::Down => return up::down(output, plan).await,
        Command::Status => return status::status(output, plan).await,
        command => command,
    };
    if let Command::Policy(Policy::Show) = command {
        return policy::show(output, &plan.home.policy(plan.profile.as_deref())?);
    }
    if let Command::Model(command) = command {
        let settings = Settings::load(&plan.home)?.settings;
        let offer = ModelCatalog::read(plan, &settings).await?;
        offer.warnings.iter().for_each(output::report);
        return match command {
            Model::List => models::list(output, &settings, &offer),
            Model::Test { name } => models::test(output, &offer, name).await,
        };
    }
    if let Command::Rpc = command {
        return match OwnerConnection::find(plan).await? {
            OwnerConnection::Own(own) => {
                let exit = rpc::rpc(own.connection()).await;
                own.end("rpc has ended").await?;
                exit
            }
            OwnerConnection::Attached(connection) => rpc::rpc(connection).await,
        };
    }
    // A conversation may last all day; whoever owns the home meanwhile does not wait for its end.
    let client = if matches!(command, Command::Chat(_)) { "chat" } else { COMMAND };
    let fresh = !plan.home.database().exists();
    let (link, own) = OwnerConnection::link(plan, client).await?;
    if let (true, Command::Chat(_), Some(own)) = (fresh && !output.quiet, &command, &own) {
        eprintln!("{}", init::greeting(&own.house));
    }
    let exit = over(output, plan, link, command).await;
    match own {
        Some(own) => {
            let ended = own.end("the command has ended").await;
            let exit = exit?;
            ended.map(|()| exit)
        }
        None => exit,
    }
}

async fn over(
    output: &Output,
    plan: &ApplicationConfig,
    mut link: Link,
    command: Command,
) -> Result<Exit, Problem> {
    let link = match command {
        Command::Chat(command) => return talk(output, plan, link, command).await,
        _ => &mut link,
    };
    match command {
        Command::Run(command) => run::run(output, link, command).await,
        Command::Call(command) => call::call(output, link, command).await,
        Command::Tools => list::tools(output, link).await,
        Command::Agents => list::agents(output, link).await,
        Command::Ext(Ext::List) => list::extensions(output, link).await,
        Command::Ext(Ext::Show { id }) => list::extension(output, link, &id).await,
        Command::Ext(Ext::Doctor { id }) => list::troubles(output, link, id).await,
        Command::Ext(Ext::Restart { id }) => list::restart(output, link, id).await,
        Command::Setup(command) => setup::setup(output, link, command).await,
        Command::Session(command) => session::change(output, link, command).await,
        Command::Policy(Policy::Explain(command)) => policy::explain(output, link, command).await,
        Command::Log(command) => log::change(output, link, command).await,
        Command::Bus(command) => bus::bus(output, link, command).await,
        _ => Err(Problem::new(Code::Internal, "this command needs no owner")),
    }
}

/// A chat; without a terminal and without anything to say, a demonstration.
async fn talk(
    output: &Output,
    plan: &ApplicationConfig,
    mut link: Link,
    command: Chat,
) -> Result<Exit, Problem> {
    let silent =
        !std::io::stdin().is_terminal() && std::io::stdin().lock().fill_buf().is_ok_and(<[u8]>::is_empty);
    if silent {
        return run::demonstrate(output, &mut link).await;
    }
    let store = link.store()?;
    let options = chat::ChatOptions {
        session: command.session.map(Into::into),
        model: command.model.map(Into::into),
        color: colors(),
        history: plan.home.root().join("history"),
        quiet: output.quiet,
    };
    Ok(chat::chat(link, &store, options).await?.into())
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
