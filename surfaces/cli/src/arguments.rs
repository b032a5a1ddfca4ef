//! What can be said on the command line. The help texts are the reference: `docs/reference/cli.md` is generated from them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_authoring::{Language, TemplateRole};

/// An AI-agent runtime in one binary: a nano-kernel decides, everything else is an extension.
#[derive(Parser)]
#[command(name = "holdfast", version, max_term_width = 110)]
pub(crate) struct Arguments {
    /// The home folder [default: $HOLDFAST_HOME, an existing ./sandbox, else the user's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// The policy profile, in place of the one in config/policy.yaml: safe, standard, full-auto or trusted
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Print JSON: one document, or one object per line for streams
    #[arg(long, global = true)]
    pub json: bool,
    /// Nothing but the result
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// What happens on the way, too
    #[arg(short, long, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a home: find keys and local model servers, write commented settings
    Init(Init),
    /// Talk in the terminal: streaming, history, slash commands, approvals inline [what `holdfast` alone does]
    Chat(Chat),
    /// One turn: prints the answer; with --json every frame of the turn
    Run(Run),
    /// Bring the home up and keep it up: channels, schedules, services, events
    Up(Up),
    /// Stop what is up, in order
    Down,
    /// How the home is: what is up, what is down and why
    Status,
    /// JSON-RPC over standard input and output, for automation
    Rpc,
    /// Call one tool through the whole pipeline: schema, hooks, policy, dispatch, frames
    Call(Call),
    /// The tools that are active, from which extension, lane and generation
    Tools,
    /// The agents that are active
    Agents,
    /// Extensions
    #[command(subcommand)]
    Ext(Ext),
    /// Set an extension up: shows what it needs, asks for it, and says what is missing
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
    /// What is allowed, and which rule says so
    #[command(subcommand)]
    Policy(Policy),
    /// Events that last, who is told of them, and what could not be delivered
    #[command(subcommand)]
    Bus(Bus),
    /// Language models
    #[command(subcommand)]
    Model(Model),
    /// Print a JSON Schema, generated from the code
    Schema(Schema),
    /// A consistent copy of the home, also of one that is in use
    Backup {
        /// The file to write; it must not exist
        file: PathBuf,
    },
    /// Bring a backup back into a home that is empty, or replace one with --force
    Restore {
        /// The backup
        file: PathBuf,
        /// Put the home that is there aside, under a new name
        #[arg(long)]
        force: bool,
    },
    /// Is everything fine on this machine, and if not, what to do
    Doctor,
    /// The published figures, measured here
    Bench(Bench),
    /// Shell completions
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct Init {
    /// Ask nothing; take what was found
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Args)]
pub(crate) struct Up {
    /// Without a supervisor: where something else starts it again when it dies
    #[arg(long)]
    pub unsupervised: bool,
}

#[derive(Args, Default)]
pub(crate) struct Chat {
    /// Take up this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The model, in place of the configured one, for a new session
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Args)]
pub(crate) struct Run {
    /// What to say; `-` reads standard input
    pub prompt: String,
    /// The session to go on with; it is made if it is not there
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The model, in place of the configured one, for a new session
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A file that goes with it; can be given again
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// The folder to save the files in that tools make
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
    /// List the extensions
    List,
    /// One extension: state, tools, hooks, faults
    Show {
        /// Its id
        id: String,
    },
    /// What went wrong with extensions of late: phase, reason, what to do
    Doctor {
        /// One extension's id [default: all]
        id: Option<String>,
    },
    /// Send an extension up again that is down, whatever has happened to it
    Restart {
        /// Its id
        id: String,
    },
    /// Would it load, and what would it be: manifest, component, roles, grants
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
    /// Build, check and test it whenever a file of it changes
    Dev {
        /// Its id, or its folder [default: the current folder]
        #[arg(value_name = "ID|PATH", default_value = ".")]
        extension: PathBuf,
        /// Give it what its manifest asks for, for as long as it is in this folder
        #[arg(long)]
        grant: bool,
    },
    /// Give it what its manifest asks for; everything, if nothing is named
    Grant(GrantCommand),
    /// Take back everything that it was given
    Revoke {
        /// Its id
        id: String,
    },
    /// Begin an extension: a folder with a manifest, source and tests
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

#[derive(Args)]
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
    /// For whatever is in its folder from now on, not only for what is there now; for writing an extension
    #[arg(long)]
    pub folder: bool,
}

#[derive(Args)]
pub(crate) struct ExtNew {
    /// Its id: small letters, digits, `-` and `_`
    pub id: String,
    /// rust, python, javascript or c
    #[arg(long = "lang", value_name = "LANGUAGE", default_value = "rust")]
    pub language: Language,
    /// What it begins as: tool, gate or guardrail
    #[arg(long, value_name = "ROLE", default_value = "tool")]
    pub role: TemplateRole,
    /// The folder to make [default: extensions/ID in the home]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Session {
    /// List the conversations, the latest first
    List {
        /// Those of agents that others called, too
        #[arg(long)]
        all: bool,
    },
    /// Show a conversation as it was had
    Show {
        /// The session
        id: String,
    },
    /// Give a conversation a name
    Rename {
        /// The session
        id: String,
        /// The name
        name: String,
    },
    /// Erase a conversation's content for good. Its frames stay, with tombstones
    Delete {
        /// The session
        id: String,
        /// Why; kept in the tombstones
        #[arg(long, default_value = "deleted by the user")]
        reason: String,
    },
    /// Go on from an earlier point in a copy
    Fork {
        /// The session
        id: String,
        /// The last frame to take over [default: the last turn's end]
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Policy {
    /// The profile and the rules in force
    Show,
    /// Which rule decides about a call, and why the others do not
    Explain(Explain),
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
pub(crate) enum Model {
    /// The models that are configured, found and built in
    List,
    /// A live check: one small question
    Test {
        /// The model [default: the one that new sessions use]
        name: Option<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Bus {
    /// Who subscribes, how much waits for them, and what went wrong
    Status,
    /// Dead letters: events that a subscriber failed on for good
    #[command(subcommand)]
    Dead(Dead),
    /// Publish an event; done when it is on disk
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
    /// One of them, with what it says
    Show(DeadLetter),
    /// Give one all its attempts again
    Retry(DeadLetter),
    /// Throw one away
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
    /// Whose, where several failed on it
    #[arg(long, value_name = "NAME")]
    pub subscriber: Option<String>,
}

#[derive(Args)]
pub(crate) struct Publish {
    /// The topic, such as `reminder.due`
    pub topic: String,
    /// What the event says
    #[arg(value_name = "JSON", default_value = "null")]
    pub payload: String,
    /// The key within which events keep their order
    #[arg(long)]
    pub key: Option<String>,
    /// Published again under the same one, it is not published twice
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
    /// List the streams
    List,
    /// Show a stream's frames
    Show(Show),
    /// Prove that the log is whole and complete: chain, blobs, anchors, snapshots, causes, gate coverage
    Verify {
        /// One stream; all if none is named
        id: Option<String>,
    },
    /// Print a stream's frames exactly as they are stored, one JSON object per line
    Export {
        /// The stream
        id: String,
    },
    /// Collect frames past their retention. The chain stays provable from its checkpoint on
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
    /// Go on showing frames as they come
    #[arg(long)]
    pub follow: bool,
}

#[derive(Args)]
pub(crate) struct Gc {
    /// One session; all if none is named
    pub id: Option<String>,
    /// Keep frames of the last so many days
    #[arg(long, value_name = "DAYS", required_unless_present = "keep_frames")]
    pub keep_days: Option<u64>,
    /// Keep the last so many frames
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
    /// Run again whatever is reproducible (the default)
    #[arg(long, conflicts_with = "mock")]
    pub strict: bool,
    /// Take every answer from the log
    #[arg(long)]
    pub mock: bool,
}

#[derive(Args)]
pub(crate) struct Bench {
    /// Which figures; all of them if none is named
    pub figures: Vec<Figures>,
}

/// Figures that are taken together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Figures {
    /// The program, its starts and its calls
    Program,
    /// Durable events
    Bus,
    /// Sandboxed components
    Sandbox,
    /// Tools in Python
    Python,
    /// Answers while they are written
    Stream,
    /// Whole turns, and idle sessions
    Turn,
    /// Finding a tool among five hundred
    Tools,
}

#[derive(Args)]
pub(crate) struct Schema {
    /// frames, manifest, settings, policy, process (what programs speak) or protocol (what clients speak)
    pub name: String,
}
