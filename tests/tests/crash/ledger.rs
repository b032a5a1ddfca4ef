//! The outside ledger of the crash tests: what really happened in the world, whatever the log says afterwards.
//!
//! A tool notes that it ran, a model that it was asked, a surface that a person was asked or told. Each note rests on a frame, and
//! that frame must outlive every crash that comes after the note.
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use holdfast_contract::body::FrameKind;
use holdfast_contract::ids::{CallId, Seq, StreamId, ToolName};
use holdfast_testkit::disk::SimulatedDisk;

/// Something that happened outside the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A tool ran. If it has effects, its `tool.dispatched` frame must be there.
    Ran { session: StreamId, call: CallId, tool: ToolName },
    /// A model or a person was asked, or the user was told how a turn ended, on the strength of this frame.
    Told { session: StreamId, seq: Seq, kind: FrameKind },
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran { session, call, tool } => write!(f, "ran {session} {call} {tool}"),
            Self::Told { session, seq, kind } => write!(f, "told {session} {seq} {kind}"),
        }
    }
}

impl Noted {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ran", session, call, tool] => {
                let (turn, index) = call.split_once('.')?;
                let call = CallId { turn: turn.parse().ok()?, index: index.parse().ok()? };
                Some(Self::Ran { session: session.into(), call, tool: tool.into() })
            }
            ["told", session, seq, kind] => Some(Self::Told {
                session: session.into(),
                seq: Seq(seq.parse().ok()?),
                kind: FrameKind::parse(kind)?,
            }),
            _ => None,
        }
    }
}

/// Where things that happen are noted.
pub trait Outside: Send + Sync {
    /// Notes it, so that it outlives the process that did it.
    fn note(&self, noted: Noted);
}

/// Nobody looks: for replays, where nothing happens.
pub struct Nobody;

impl Outside for Nobody {
    fn note(&self, _: Noted) {}
}

/// Notes with the step of a simulated disk at which they were made.
pub struct DiskLedger {
    disk: SimulatedDisk,
    notes: Mutex<Vec<(usize, Noted)>>,
}

impl DiskLedger {
    pub fn of(disk: &SimulatedDisk) -> Self {
        Self { disk: disk.clone(), notes: Mutex::default() }
    }

    /// What had happened when the disk had carried out so many operations.
    pub fn until(&self, step: usize) -> Vec<Noted> {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|(at, _)| *at <= step).map(|(_, noted)| noted.clone()).collect()
    }

    /// The steps at which something was noted.
    pub fn steps(&self) -> Vec<usize> {
        self.notes.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }
}

impl Outside for DiskLedger {
    fn note(&self, noted: Noted) {
        let step = self.disk.step();
        self.notes.lock().unwrap().push((step, noted));
    }
}

/// Notes as lines of a file, each there as soon as it is written: killing the process takes none back.
pub struct FileLedger(File);

impl FileLedger {
    pub fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    /// What a file holds.
    pub fn read(path: &Path) -> Vec<Noted> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| Noted::parse(line).unwrap_or_else(|| panic!("a ledger's line: {line}")))
            .collect()
    }
}

impl Outside for FileLedger {
    fn note(&self, noted: Noted) {
        // One write to a file that is opened for appending: whole lines, in whatever order they are made.
        (&self.0).write_all(format!("{noted}\n").as_bytes()).unwrap();
    }
}
