//! What can be said on the command line. The help texts are the reference: `docs/reference/cli.md` is generated from them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// An AI-agent runtime in one binary: a nano-kernel decides, everything else is an extension.
#[derive(Parser)]
#[command(name = "holdfast", version, max_term_width = 110)]
pub(crate) struct Arguments {
    /// The home folder [default: $HOLDFAST_HOME, an existing ./sandbox, else the user's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print JSON: one document, or one object per line for streams
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record a small session, show its frames, verify and replay it. Needs no key and no network
    Demo(Demo),
    /// The frame log
    #[command(subcommand)]
    Log(Log),
    /// Run a recorded session again and compare every frame
    Replay(Replay),
    /// Print a JSON Schema, generated from the code
    Schema(Schema),
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
    /// The session
    pub id: String,
    /// Run again whatever is reproducible (the default)
    #[arg(long, conflicts_with = "mock")]
    pub strict: bool,
    /// Take every answer from the log
    #[arg(long)]
    pub mock: bool,
}

#[derive(Args)]
pub(crate) struct Schema {
    /// frames, manifest, policy or settings
    pub name: String,
}
