//! The commands by what they need, each kind a type of its own: nothing ([`Standalone`]), the home's files ([`OfflineCommand`]), the
//! home's settings ([`LocalCommand`]), or its owner over the protocol ([`OwnerCommand`]).
//!
//! What is typed is sorted once, in `From<Command>`; from there on every dispatch is total. Only offline and local commands open a
//! log; those of the owner have nothing but the protocol.

pub(crate) mod local;
pub(crate) mod offline;
pub(crate) mod owner;

use std::path::PathBuf;

use crate::arguments::{
    Bench, Bus, Call, ChangeLog, ChangePolicy, ChangeSession, Chat, Command, Demo, Explain, Ext, Import,
    Init, LocalExt, LocalMcp, Log, Mcp, Model, OfflineExt, OwnerExt, Policy, Questions, ReadLog, ReadSession,
    Replay, Run, Schedule, Schema, Secret, Session, Setup, Up,
};

/// A command, sorted by what it needs.
pub(crate) enum Task {
    Standalone(Standalone),
    Offline(OfflineCommand),
    Local(LocalCommand),
    Owner(OwnerCommand),
}

/// Needs no home.
pub(crate) enum Standalone {
    Schema(Schema),
    Bench(Bench),
    Docs { page: Option<String> },
    Completions { shell: clap_complete::Shell },
}

/// Works on the files of a home, whether a process owns it or not.
pub(crate) enum OfflineCommand {
    Demo(Demo),
    Log(ReadLog),
    Session(ReadSession),
    Ext(OfflineExt),
    Backup { file: PathBuf },
    Restore { file: PathBuf, force: bool },
    Doctor,
}

/// Works with the settings of a home in this process, or with the process that owns it.
pub(crate) enum LocalCommand {
    Init(Init),
    Import(Import),
    Ext(LocalExt),
    Replay(Replay),
    Up(Up),
    Down,
    Status,
    Rpc,
    PolicyShow,
    Policy(ChangePolicy),
    Model(Model),
    Mcp(LocalMcp),
}

/// Asks the owner of a home, which is this process if there is no other.
pub(crate) enum OwnerCommand {
    Chat(Chat),
    Run(Run),
    Call(Call),
    Tools,
    Agents,
    Channels,
    Ext(OwnerExt),
    Setup(Setup),
    Session(ChangeSession),
    PolicyExplain(Explain),
    Log(ChangeLog),
    Bus(Bus),
    Questions(Questions),
    Schedule(Schedule),
    Secret(Secret),
    McpTest { name: String },
}

impl From<Command> for Task {
    fn from(command: Command) -> Self {
        match command {
            Command::Schema(command) => Self::Standalone(Standalone::Schema(command)),
            Command::Bench(command) => Self::Standalone(Standalone::Bench(command)),
            Command::Docs { page } => Self::Standalone(Standalone::Docs { page }),
            Command::Completions { shell } => Self::Standalone(Standalone::Completions { shell }),
            Command::Demo(command) => Self::Offline(OfflineCommand::Demo(command)),
            Command::Log(Log::Read(command)) => Self::Offline(OfflineCommand::Log(command)),
            Command::Session(Session::Read(command)) => Self::Offline(OfflineCommand::Session(command)),
            Command::Ext(Ext::Offline(command)) => Self::Offline(OfflineCommand::Ext(command)),
            Command::Backup { file } => Self::Offline(OfflineCommand::Backup { file }),
            Command::Restore { file, force } => Self::Offline(OfflineCommand::Restore { file, force }),
            Command::Doctor => Self::Offline(OfflineCommand::Doctor),
            Command::Init(command) => Self::Local(LocalCommand::Init(command)),
            Command::Import(command) => Self::Local(LocalCommand::Import(command)),
            Command::Ext(Ext::Local(command)) => Self::Local(LocalCommand::Ext(command)),
            Command::Replay(command) => Self::Local(LocalCommand::Replay(command)),
            Command::Up(command) => Self::Local(LocalCommand::Up(command)),
            Command::Down => Self::Local(LocalCommand::Down),
            Command::Status => Self::Local(LocalCommand::Status),
            Command::Rpc => Self::Local(LocalCommand::Rpc),
            Command::Policy(Policy::Show) => Self::Local(LocalCommand::PolicyShow),
            Command::Policy(Policy::Change(command)) => Self::Local(LocalCommand::Policy(command)),
            Command::Model(command) => Self::Local(LocalCommand::Model(command)),
            Command::Chat(command) => Self::Owner(OwnerCommand::Chat(command)),
            Command::Run(command) => Self::Owner(OwnerCommand::Run(command)),
            Command::Call(command) => Self::Owner(OwnerCommand::Call(command)),
            Command::Tools => Self::Owner(OwnerCommand::Tools),
            Command::Agents => Self::Owner(OwnerCommand::Agents),
            Command::Channels => Self::Owner(OwnerCommand::Channels),
            Command::Ext(Ext::Owner(command)) => Self::Owner(OwnerCommand::Ext(command)),
            Command::Setup(command) => Self::Owner(OwnerCommand::Setup(command)),
            Command::Session(Session::Change(command)) => Self::Owner(OwnerCommand::Session(command)),
            Command::Policy(Policy::Explain(command)) => Self::Owner(OwnerCommand::PolicyExplain(command)),
            Command::Log(Log::Change(command)) => Self::Owner(OwnerCommand::Log(command)),
            Command::Bus(command) => Self::Owner(OwnerCommand::Bus(command)),
            Command::Questions(command) => Self::Owner(OwnerCommand::Questions(command)),
            Command::Schedule(command) => Self::Owner(OwnerCommand::Schedule(command)),
            Command::Mcp(Mcp::Local(command)) => Self::Local(LocalCommand::Mcp(command)),
            Command::Mcp(Mcp::Test { name }) => Self::Owner(OwnerCommand::McpTest { name }),
            Command::Secret(command) => Self::Owner(OwnerCommand::Secret(command)),
        }
    }
}
