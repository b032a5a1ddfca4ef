//! The figures of whole turns: from a user's text to the turn's durable end, with a model that answers at once, on a real log that is
//! really synced. Beside each turn, in the same run: how many syncs the log made for it, and what one sync of the same disk takes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, TurnOutcome};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::Later;
use holdfast_lane_native::{FnTool, NativeExtension, NativeLane};
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_store::{Store, StoreOptions};
use serde_json::json;

use holdfast_runtime::Runtime;

use crate::sandbox::{opened, started};
use crate::timing::Timing;

/// Turns of each kind in a session, and those before the first one that counts.
const TURNS: usize = 100;
const WARM: usize = 5;
/// Sessions of each kind.
const PASSES: usize = 10;

/// What happens in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// The model answers.
    NoTool,
    /// The model calls a tool that only computes, and answers.
    OneTool,
    /// The model calls a tool that changes something, and answers.
    OneEffect,
    /// The model calls ten tools that only compute, all at once, and answers.
    TenTools,
}

impl TurnKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NoTool, Self::OneTool, Self::OneEffect, Self::TenTools];

    fn name(self) -> &'static str {
        match self {
            Self::NoTool => "none",
            Self::OneTool => "one",
            Self::OneEffect => "effect",
            Self::TenTools => "ten",
        }
    }

    fn calls(self) -> (&'static str, usize) {
        match self {
            Self::NoTool => ("compute", 0),
            Self::OneTool => ("compute", 1),
            Self::OneEffect => ("change", 1),
            Self::TenTools => ("compute", 10),
        }
    }
}

/// What turns of one kind cost here.
pub struct Turns {
    /// Which.
    pub kind: TurnKind,
    /// The whole turn, from the text to its durable end.
    pub whole: Timing,
    /// The same without its syncs: each turn less what so many syncs of the same disk took at the time.
    pub beyond: Timing,
    /// How many syncs a turn waits for.
    pub syncs: u32,
    /// One sync of the same disk in the same run.
    pub sync: Timing,
}

/// Takes the figures, in this empty folder.
pub async fn turns(folder: &Path) -> Result<Vec<Turns>, Problem> {
    let native = NativeLane::default();
    let tool = |name: &str, effects| {
        let spec = ToolSpec { effects, ..ToolSpec::named(name, "Does nothing.") };
        FnTool(spec, |_: &Content| Ok(Content::default()))
    };
    let kit = NativeExtension::new("kit", "1.0.0");
    let kit = kit.tool(tool("compute", EffectClass::Pure)).tool(tool("change", EffectClass::Write));
    let kit = native.add(kit);
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default())?;
    let runtime = started(store, Arc::new(Asker), vec![Arc::new(native)], vec![kit]).await?;
    let mut disk = DiskTimes::new(folder).map_err(failed)?;
    let mut all = TurnKind::ALL.map(|kind| (kind, Vec::new()));
    // In turns, so that what the machine does meanwhile falls on all of them alike.
    for pass in 0..PASSES {
        for (kind, timed) in &mut all {
            timed.push(session(&runtime, *kind, pass, &mut disk).await?);
        }
    }
    runtime.stop("measured").await?;
    Ok(all.map(|(kind, passes)| measured(kind, passes)).into())
}

/// The turns of one session: how long each took and how many syncs it had, and what a sync took beside each.
#[derive(Default)]
struct Timed {
    turns: Vec<(Duration, u64)>,
    syncs: Vec<Duration>,
}

/// A session of its own for every pass, so that how long a conversation has become is the same for all kinds.
async fn session(
    runtime: &Runtime,
    kind: TurnKind,
    pass: usize,
    disk: &mut DiskTimes,
) -> Result<Timed, Problem> {
    let session = opened(runtime, &format!("bench-{}-{pass}", kind.name()), Some(kind.name()))?;
    let mut timed = Timed::default();
    for turn in 0..WARM + TURNS {
        let before = synced(runtime);
        let began = Instant::now();
        let report = session.say("bench", "go").await?;
        let took = began.elapsed();
        if !matches!(report.outcome, TurnOutcome::Answered) {
            return Err(failed(format!("a turn ended with {:?}", report.outcome)));
        }
        let syncs = synced(runtime) - before;
        let sync = disk.sync().map_err(failed)?;
        if turn >= WARM {
            timed.turns.push((took, syncs));
            timed.syncs.push(sync);
        }
    }
    session.close().await?;
    Ok(timed)
}

/// Transactions that were synced; those that keep a snapshot are not.
fn synced(runtime: &Runtime) -> u64 {
    let stats = runtime.store().stats();
    stats.commits.saturating_sub(stats.snapshots)
}

fn measured(kind: TurnKind, passes: Vec<Timed>) -> Turns {
    // The log also syncs frames without a waiter after a delay; the median is what every turn waits for.
    let mut counts: Vec<u64> =
        passes.iter().flat_map(|timed| &timed.turns).map(|(_, syncs)| *syncs).collect();
    counts.sort_unstable();
    let syncs = counts.get(counts.len() / 2).and_then(|count| u32::try_from(*count).ok()).unwrap_or_default();
    let (mut whole, mut beyond, mut sync) = (Vec::new(), Vec::new(), Vec::new());
    for timed in passes {
        // A session is short, so that its middle sync is what a sync took at the time.
        let here = Timing::new("", timed.syncs.clone()).at(50);
        for (took, _) in timed.turns {
            whole.push(took);
            beyond.push(took.saturating_sub(here * syncs));
        }
        sync.extend(timed.syncs);
    }
    let figure = |times| Timing::new("", times);
    Turns { kind, whole: figure(whole), beyond: figure(beyond), syncs, sync: figure(sync) }
}

fn failed(what: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("a figure of turns could not be taken: {what}"))
}

/// The disk by itself: one more page to a file and a sync, as a write-ahead log does it.
pub struct DiskTimes {
    file: File,
    page: u64,
}

impl DiskTimes {
    /// On a new file in this folder.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        let mut options = File::options();
        let file = options.create(true).truncate(true).read(true).write(true).open(folder.join("sync"))?;
        Ok(Self { file, page: 0 })
    }

    /// What the next sync takes.
    pub fn sync(&mut self) -> std::io::Result<Duration> {
        self.file.write_all_at(&[self.page as u8; 4096], self.page * 4096)?;
        self.page += 1;
        let began = Instant::now();
        self.file.sync_data()?;
        Ok(began.elapsed())
    }
}

/// A model that answers at once: with the calls that the user's kind of turn has, and then with a word.
struct Asker;

impl Model for Asker {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let kind =
            TurnKind::ALL.into_iter().find(|kind| ask.turn.origin.user.as_deref() == Some(kind.name()));
        let fresh = matches!(ask.messages.last(), Some(Message::User { .. }));
        let (tool, count) = kind.filter(|_| fresh).unwrap_or(TurnKind::NoTool).calls();
        let asked = |number: usize| AskedCall {
            model_id: number.to_string().into(),
            tool: tool.into(),
            arguments: Content::new(json!({ "number": number })),
        };
        let calls: Vec<_> = (0..count).map(asked).collect();
        let text = if calls.is_empty() { "done" } else { "" }.into();
        let returned = ModelReturned { text, reasoning: None, calls, usage: Usage::default() };
        Box::pin(std::future::ready(Ok(returned)))
    }
}
