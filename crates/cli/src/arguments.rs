//! The command line's arguments. The help texts are the reference: `docs/reference/cli.md` is generated from them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_authoring::{Language, TemplateRole};

/// An AI-agent runtime in one binary: a small kernel decides, everything else is an extension.
#[derive(Parser)]
#[command(name = "holdfast", version, max_term_width = 110)]
pub(crate) struct Arguments {
    /// The home folder [default: $HOLDFAST_HOME, else the user's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// The policy profile, in place of the one in config/policy.yaml: safe, standard, full-auto or trusted
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Print JSON: one document, or one object per line for streams
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only the result
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print progress, too; of the frames of `run` without what models and tools returned
    #[arg(short, long, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a home: detect keys and local model servers, write commented settings
    Init(Init),
    /// Take over what you have in another program: extensions, settings, secrets, data, MCP servers
    #[command(subcommand)]
    Import(Import),
    /// Chat in the terminal: streaming, history, slash commands, inline approvals [the default command]
    Chat(Chat),
    /// Run one turn and print the answer; with --json every frame of the turn
    Run(Run),
    /// Start the home and keep it running: channels, schedules, services, events
    Up(Up),
    /// Stop the running home gracefully
    Down,
    /// Show the state of the home: what is up, what is down and why
    Status,
    /// JSON-RPC over standard input and output, for automation
    Rpc,
    /// Call one tool through the whole pipeline: schema, hooks, policy, dispatch, frames
    Call(Call),
    /// List the active tools, with extension, lane and generation
    Tools,
    /// List the active agents
    Agents,
    /// List the active channels: what each can do, which one is the default, users and sessions
    Channels,
    /// Extensions
    #[command(subcommand)]
    Ext(Ext),
    /// Set up an extension: show what it needs, ask for it, report what is missing
    Setup(Setup),
    /// Conversations
    #[command(subcommand)]
    Session(Session),
    /// Record a small session, show its frames, verify and replay it. Needs no key and no network
    Demo(Demo),
    /// The frame log
    #[command(subcommand)]
    Log(Log),
    /// Run a recorded session again and compare every frame
    Replay(Replay),
    /// Show what is allowed, and which rule decides
    #[command(subcommand)]
    Policy(Policy),
    /// Durable events, their subscribers, and what could not be delivered
    #[command(subcommand)]
    Bus(Bus),
    /// Approvals and questions that wait for a person, in any session
    #[command(subcommand)]
    Questions(Questions),
    /// What extensions do at certain times
    #[command(subcommand)]
    Schedule(Schedule),
    /// MCP servers
    #[command(subcommand)]
    Mcp(Mcp),
    /// Keys, tokens and passwords that extensions and models use
    #[command(subcommand)]
    Secret(Secret),
    /// Language models
    #[command(subcommand)]
    Model(Model),
    /// Print a JSON Schema, generated from the code
    Schema(Schema),
    /// Write a consistent copy of the home, also while it is in use
    Backup {
        /// The file to write, outside of the home; it must not exist
        file: PathBuf,
    },
    /// Restore a backup into an empty home, or replace a home with --force
    Restore {
        /// The backup
        file: PathBuf,
        /// Rename the existing home, and restore in its place
        #[arg(long)]
        force: bool,
    },
    /// Check this machine and the home, and say what to do
    Doctor,
    /// Print a page of the documentation; without a name, list the pages
    Docs {
        /// The page, such as `models` or `policy`
        page: Option<String>,
    },
    /// Take the published measurements on this machine
    Bench(Bench),
    /// Shell completions
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct Init {
    /// Ask nothing; use what was detected
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Subcommand)]
pub(crate) enum Import {
    /// From assistant4 (yodoca): the folder of the whole project
    Yodoca(ImportSource),
    /// From pith: the folder with its `config.yaml`
    Pith(ImportSource),
    /// Add the servers of a JSON file with `mcpServers` to the settings; keys in it go to the secret store
    Mcp {
        /// The file, such as `.mcp.json`
        file: PathBuf,
        /// Show what would be imported, and write nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
pub(crate) struct ImportSource {
    /// The other program's folder; nothing in it is changed
    pub path: PathBuf,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Up {
    /// Run without a supervisor, where something else restarts it when it dies
    #[arg(long)]
    pub unsupervised: bool,
    /// Run in the background for chats, and end with the last of them
    #[arg(long, hide = true, requires = "unsupervised")]
    pub while_used: bool,
}

#[derive(Args, Default)]
pub(crate) struct Chat {
    /// Resume this session; the beginning of its id is enough if no other begins so
    #[arg(long, value_name = "ID", visible_alias = "resume")]
    pub session: Option<String>,
    /// Resume the last chat
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub last: bool,
    /// The model, in place of the configured one, for a new session
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Args)]
pub(crate) struct Run {
    /// The message; `-` reads standard input
    pub prompt: String,
    /// The session to continue; it is created if it does not exist
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The model, in place of the configured one, for a new session
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A file to attach; can be repeated
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// The folder in which to save the files that tools create
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Call {
    /// The tool
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
}

#[derive(Subcommand)]
pub(crate) enum Ext {
    #[command(flatten)]
    Owner(OwnerExt),
    #[command(flatten)]
    Local(LocalExt),
    #[command(flatten)]
    Offline(OfflineExt),
}

/// Those about extensions that run.
#[derive(Subcommand)]
pub(crate) enum OwnerExt {
    /// List the extensions
    List,
    /// Show one extension: state, tools, hooks, faults
    Show {
        /// Its id
        id: String,
    },
    /// Show recent faults of extensions: phase, reason, what to do
    Doctor {
        /// One extension's id [default: all]
        id: Option<String>,
    },
    /// Start an extension again that is down, also a quarantined one
    Restart {
        /// Its id
        id: String,
    },
    /// Enable an extension: `extensions.ID.enabled: true` in the settings
    Enable {
        /// Its id
        id: String,
    },
    /// Disable an extension, also a built-in one: `extensions.ID.enabled: false` in the settings
    Disable {
        /// Its id
        id: String,
    },
    /// Read an extension's folder again and start a new generation, also if nothing has changed
    Reload {
        /// Its id
        id: String,
    },
    /// Remove an extension's folder or file, and its grants. Its data and settings stay
    Remove(ExtRemove),
}

#[derive(Args)]
pub(crate) struct ExtRemove {
    /// Its id
    pub id: String,
    /// Remove its data too, `data/ID` in the home
    #[arg(long)]
    pub data: bool,
    /// Do not ask; needed without a terminal
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Those about one extension, which is loaded here.
#[derive(Subcommand)]
pub(crate) enum LocalExt {
    /// Check whether it would load, and what it would register: manifest, component, roles, grants
    Check {
        /// Its id, or its folder [default: the current folder]
        #[arg(value_name = "ID|PATH", default_value = ".")]
        extension: PathBuf,
    },
    /// Run the cases in its `tests.yaml`
    Test {
        /// Its id, or its folder [default: the current folder]
        #[arg(value_name = "ID|PATH", default_value = ".")]
        extension: PathBuf,
    },
    /// Build, check and test it whenever one of its files changes
    Dev {
        /// Its id, or its folder [default: the current folder]
        #[arg(value_name = "ID|PATH", default_value = ".")]
        extension: PathBuf,
        /// Grant what its manifest requests, as long as it is in this folder
        #[arg(long)]
        grant: bool,
    },
    /// Grant what its manifest requests; everything, if nothing is named
    Grant(GrantCommand),
    /// Revoke everything that it was granted
    Revoke {
        /// Its id
        id: String,
    },
}

/// Those that write an extension's files.
#[derive(Subcommand)]
pub(crate) enum OfflineExt {
    /// Create an extension: a folder with a manifest, source and tests
    New(ExtNew),
    /// Build an extension's component from its source
    Build {
        /// Its id, or its folder [default: the current folder]
        #[arg(value_name = "ID|PATH")]
        subject: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct Setup {
    /// The extension's id
    pub id: String,
    /// Set this and ask nothing; the value is JSON, or else a text
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Read this secret from standard input, one line for each, and ask nothing
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
}

#[derive(Args, Default)]
pub(crate) struct GrantCommand {
    /// Its id
    pub id: String,
    /// An interface of the host, such as `ui`
    #[arg(long, value_name = "NAME")]
    pub interface: Vec<String>,
    /// A secret, by its name
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    /// A host to connect to
    #[arg(long, value_name = "HOST")]
    pub network: Vec<String>,
    /// A port of this machine's loopback to listen on
    #[arg(long, value_name = "PORT")]
    pub listen: Vec<String>,
    /// A folder or file to read, as its manifest names it
    #[arg(long, value_name = "PATH")]
    pub read: Vec<String>,
    /// A folder or file to read and change, as its manifest names it
    #[arg(long, value_name = "PATH")]
    pub write: Vec<String>,
    /// An environment variable of the host
    #[arg(long, value_name = "NAME")]
    pub environment: Vec<String>,
    /// For any future content of its folder, not only the current content; for development
    #[arg(long)]
    pub folder: bool,
}

#[derive(Args)]
pub(crate) struct ExtNew {
    /// Its id: lower-case letters, digits, `-` and `_`
    pub id: String,
    /// rust, python, javascript or c
    #[arg(long = "lang", value_name = "LANGUAGE", default_value = "rust")]
    pub language: Language,
    /// Its first role: tool, gate or guardrail
    #[arg(long, value_name = "ROLE", default_value = "tool")]
    pub role: TemplateRole,
    /// The folder to create [default: extensions/ID in the home]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Session {
    #[command(flatten)]
    Read(ReadSession),
    #[command(flatten)]
    Change(ChangeSession),
}

/// Those that read conversations, also without their owner.
#[derive(Subcommand)]
pub(crate) enum ReadSession {
    /// List the conversations, the latest first
    List {
        /// Include sessions of agents that were called by others, empty and erased ones
        #[arg(long)]
        all: bool,
    },
    /// Show a conversation as the user had it: what sanitizers and guardrails took out is not shown
    Show {
        /// The session
        id: String,
    },
}

/// Those that change conversations, which are the owner's.
#[derive(Subcommand)]
pub(crate) enum ChangeSession {
    /// Give a conversation a name
    Rename {
        /// The session
        id: String,
        /// The name
        name: String,
    },
    /// Erase a conversation's content permanently. Its frames stay, with tombstones
    Delete {
        /// The session
        id: String,
        /// Why; kept in the tombstones
        #[arg(long, default_value = "deleted by the user")]
        reason: String,
        /// Do not ask; needed without a terminal
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Continue from an earlier point in a copy
    Fork {
        /// The session
        id: String,
        /// The last frame to copy [default: the last turn's end]
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Policy {
    /// Show the active profile and rules
    Show,
    /// Show which rule decides about a call, and why the others do not
    Explain(Explain),
    #[command(flatten)]
    Change(ChangePolicy),
}

/// Those that list and change what `config/policy.yaml` says.
#[derive(Subcommand)]
pub(crate) enum ChangePolicy {
    /// List the rules of `config/policy.yaml`, yours and those of answers, with their numbers and lines
    Rules,
    /// Grant an extension what its manifest requests; everything, if nothing is named. The same as `ext grant`
    Grant(GrantCommand),
    /// Revoke everything that an extension was granted, as `ext revoke` does, or remove a rule
    Revoke(PolicyRevoke),
}

#[derive(Args)]
pub(crate) struct PolicyRevoke {
    /// The extension's id
    #[arg(value_name = "EXT", required_unless_present = "rule")]
    pub id: Option<String>,
    /// Remove the rule of this number, as `policy rules` lists it
    #[arg(long, value_name = "N", conflicts_with = "id")]
    pub rule: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// The tool; or the extension, followed by the tool
    #[arg(value_name = "EXT|TOOL")]
    pub subject: String,
    /// The tool, if an extension was named first
    pub tool: Option<String>,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
    /// Where the call would come from, such as `chat`
    #[arg(long, value_name = "CHANNEL")]
    pub from: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Questions {
    /// List what waits for an answer, the oldest first
    List,
    /// Answer one
    Answer {
        /// Its id, as `questions list` shows it: SESSION/FRAME
        id: String,
        /// yes, session, always or no, which a reason may follow; for an extension's question what it asks for. Asked for in the terminal if left out
        answer: Vec<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Schedule {
    /// List the schedules of active extensions, with their next and last runs
    List,
    /// Run a schedule now, in the same way as when it is due, and wait for its end
    Run {
        /// Its name, or EXTENSION/NAME
        name: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum Mcp {
    #[command(flatten)]
    Local(LocalMcp),
    /// Start a server, list what it offers, and compare that with what was approved
    Test {
        /// Its name in the settings, or the id of its extension
        name: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum LocalMcp {
    /// List the servers: how each is reached, how many tools it has, what waits for approval, what is wrong
    List,
    /// List the tools of a server as they were approved, and what has changed since
    Tools {
        /// The server
        name: String,
    },
    /// Approve definitions of tools that are new or have changed; without names all of them
    Approve {
        /// The server
        name: String,
        /// The tools, by the server's names for them
        tools: Vec<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Secret {
    /// List the names, and where each secret comes from; never a value
    List,
    /// Store a secret. Its value is typed without echo, or read from standard input
    Set {
        /// Its name, such as `SEARCH_KEY`; an extension's own is `extension.NAME`
        name: String,
    },
    /// Remove a secret from every store that has it
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum Model {
    /// List the configured, detected and built-in models
    List,
    /// Test a model with one small request
    Test {
        /// The model [default: the one that new sessions use]
        name: Option<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Bus {
    /// Show the subscribers, their queues, and what went wrong
    Status,
    /// List the topics that have events, with their open and dead deliveries and their subscribers
    List,
    /// Show the last events of a topic, with their state for each subscriber
    Show {
        /// The topic, such as `reminder.due`
        topic: String,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u64,
    },
    /// Dead letters: events that a subscriber failed on permanently
    #[command(subcommand)]
    Dead(Dead),
    /// Publish an event; returns when it is on disk
    Publish(Publish),
}

#[derive(Subcommand)]
pub(crate) enum Dead {
    /// List them
    List {
        /// Only those of one subscriber
        #[arg(long, value_name = "NAME")]
        subscriber: Option<String>,
    },
    /// Show one of them, with its payload
    Show(DeadLetter),
    /// Retry them with all their attempts
    Retry {
        /// The events, such as `bus.03/17`
        #[arg(value_name = "ID", required_unless_present = "all")]
        events: Vec<String>,
        /// All dead letters, or all of one subscriber
        #[arg(long, conflicts_with = "events")]
        all: bool,
        /// Whose; needed where several have failed on one event
        #[arg(long, value_name = "NAME")]
        subscriber: Option<String>,
    },
    /// Discard one
    Discard {
        #[command(flatten)]
        letter: DeadLetter,
        /// Why; it is recorded
        #[arg(long, default_value = "discarded by the user")]
        reason: String,
    },
}

#[derive(Args)]
pub(crate) struct DeadLetter {
    /// The event, such as `bus.03/17`
    #[arg(value_name = "ID")]
    pub event: String,
    /// The subscriber, if several failed on it
    #[arg(long, value_name = "NAME")]
    pub subscriber: Option<String>,
}

#[derive(Args)]
pub(crate) struct Publish {
    /// The topic, such as `reminder.due`
    pub topic: String,
    /// The event's payload
    #[arg(value_name = "JSON", default_value = "null")]
    pub payload: String,
    /// The key within which events keep their order
    #[arg(long)]
    pub key: Option<String>,
    /// An idempotency key: an event with the same key is not published twice
    #[arg(long, value_name = "KEY")]
    pub once: Option<String>,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// The session's id [default: the first of demo-1, demo-2, … that is free]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Log {
    #[command(flatten)]
    Read(ReadLog),
    #[command(flatten)]
    Change(ChangeLog),
}

/// Those that read the log, also without its owner.
#[derive(Subcommand)]
pub(crate) enum ReadLog {
    /// List the streams
    List,
    /// Show a stream's frames as they were recorded, for auditors: also what guardrails kept from the user
    Show(Show),
    /// Verify the log: chain, blobs, anchors, snapshots, causes, gate coverage
    Verify {
        /// One stream; all if none is named
        id: Option<String>,
    },
    /// Print a stream's frames exactly as they are stored, one JSON object per line
    Export {
        /// The stream
        id: String,
    },
}

/// Those that change the log, which is the owner's.
#[derive(Subcommand)]
pub(crate) enum ChangeLog {
    /// Collect frames past their retention. The chain stays verifiable from its checkpoint on
    Gc(Gc),
    /// Erase a session's content. Its frames stay, with tombstones
    Erase {
        /// The session
        id: String,
        /// Why; kept in the tombstones
        #[arg(long)]
        reason: String,
    },
}

#[derive(Args)]
pub(crate) struct Show {
    /// The stream
    pub id: String,
    /// Only frames of this kind, such as `tool.decided`; can be repeated
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
    /// From this frame on
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub from: u64,
    /// Up to this frame
    #[arg(long, value_name = "SEQ")]
    pub to: Option<u64>,
    /// Continue to show new frames
    #[arg(long)]
    pub follow: bool,
}

#[derive(Args)]
pub(crate) struct Gc {
    /// One session, or `system`; all if none is named
    pub id: Option<String>,
    /// Keep frames of the last DAYS days
    #[arg(long, value_name = "DAYS", required_unless_present = "keep_frames")]
    pub keep_days: Option<u64>,
    /// Keep the last N frames
    #[arg(long, value_name = "N")]
    pub keep_frames: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Replay {
    /// The session; with --with, all of them if none is named
    #[arg(required_unless_present = "with")]
    pub id: Option<String>,
    /// Try another build of an extension (its folder) or another policy (its file) on what was recorded
    #[arg(long, value_name = "PATH", conflicts_with_all = ["strict", "mock"])]
    pub with: Option<PathBuf>,
    /// Run again what is reproducible (the default)
    #[arg(long, conflicts_with = "mock")]
    pub strict: bool,
    /// Take every answer from the log
    #[arg(long)]
    pub mock: bool,
}

#[derive(Args)]
pub(crate) struct Bench {
    /// Which measurements [default: all]
    pub figures: Vec<BenchSuite>,
}

/// Measurements that are taken together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchSuite {
    /// The program, its start and its calls
    Program,
    /// Durable events
    Bus,
    /// Sandboxed components
    Sandbox,
    /// Tools in Python
    Python,
    /// Tools of MCP servers
    Mcp,
    /// Streaming of answers
    Stream,
    /// Whole turns, and idle sessions
    Turn,
    /// Finding a tool among five hundred
    Tools,
}

#[derive(Args)]
pub(crate) struct Schema {
    /// frames, manifest, settings, policy, process (the extension protocol) or rpc (the client protocol)
    pub name: String,
}
