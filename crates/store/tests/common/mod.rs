//! What the scenarios share: a log in a temporary folder, short ways to make frames, and a second connection to tamper with.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::frame::{Draft, FrameSource, Tombstone};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::session_frames::{MessageInjected, SessionEnded};
use holdfast_contract::system_frames::{HeadAnchored, LogCheckpointed, LogErased};
use holdfast_store::{LogFinding, Store, StoreOptions, StreamLog};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A log of its own for one test.
pub struct Home {
    pub folder: TempDir,
    pub store: Store,
}

impl Home {
    pub fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    pub fn within(folder: TempDir) -> Self {
        let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
        Self { folder, store }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("holdfast.db")
    }

    /// Closes the log and opens it again, as a new process would.
    pub fn reopen(self) -> Self {
        let Self { folder, store } = self;
        store.close();
        let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
        Self { folder, store }
    }

    pub fn stream(&self, name: &str) -> StreamLog {
        self.store.stream(&name.into()).unwrap()
    }

    /// Appends frames that follow the stream's head, and waits for them.
    pub fn record(&self, name: &str, bodies: Vec<Body>) -> Seq {
        let log = self.stream(name);
        let first = log.head().map_or(0, |head| head.seq.0 + 1);
        let drafts: Vec<_> = (first..).zip(bodies).map(|(seq, body)| draft(seq, body)).collect();
        let last = drafts.last().unwrap().seq;
        log.append(drafts).unwrap();
        log.wait_durable(last).unwrap();
        last
    }

    /// Anchors a stream's head in the system stream.
    pub fn anchor(&self, name: &str) {
        let head = self.store.head(&name.into()).unwrap().unwrap();
        self.record(
            "system",
            vec![HeadAnchored { stream: name.into(), seq: head.seq, hash: head.hash }.into()],
        );
    }

    /// Records that a stream is about to be collected up to a frame.
    pub fn checkpoint(&self, name: &str, up_to: u64) {
        let frame = self.store.frames(&name.into(), Seq(up_to)..=Seq(up_to)).unwrap().remove(0);
        let body = LogCheckpointed { stream: name.into(), seq: Seq(up_to), hash: frame.hash };
        self.record("system", vec![body.into()]);
    }

    /// Records an erasure and carries it out.
    pub fn erase(&self, name: &str, from: u64, to: u64, reason: &str) -> u64 {
        let (from, to) = (Seq(from), Seq(to));
        let body = LogErased { stream: name.into(), from, to, reason: reason.to_owned() };
        self.record("system", vec![body.into()]);
        let tombstone = Tombstone { at: at(0), reason: reason.to_owned() };
        self.store.erase(&name.into(), from, to, tombstone).unwrap()
    }

    /// A second connection, for tampering.
    pub fn intruder(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection
    }

    pub fn tamper(&self, sql: &str) {
        let changed = self.intruder().execute(sql, []).unwrap();
        assert!(changed > 0, "nothing to tamper with: {sql}");
    }

    pub fn findings(&self) -> Vec<LogFinding> {
        self.store.verify(None).unwrap()
    }

    /// The findings in short: `stream/seq kind`.
    pub fn named(&self) -> Vec<String> {
        let place = |finding: &LogFinding| finding.seq.map_or_else(String::new, |seq| format!("/{seq}"));
        let findings = self.findings();
        findings
            .iter()
            .map(|found| format!("{}{} {}", found.stream, place(found), found.kind.as_str()))
            .collect()
    }

    pub fn count(&self, table: &str) -> u64 {
        let select = format!("SELECT count(*) FROM {table}");
        self.intruder().query_row(&select, [], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    /// The database and its write-ahead log, byte for byte.
    pub fn bytes(&self) -> Vec<u8> {
        let read = |name| std::fs::read(self.folder.path().join(name)).unwrap_or_default();
        [read("holdfast.db"), read("holdfast.db-wal")].concat()
    }

    /// Whether a text stands anywhere in them.
    pub fn file_contains(&self, needle: &str) -> bool {
        self.bytes().windows(needle.len()).any(|window| window == needle.as_bytes())
    }
}

/// The time that a frame of this place is recorded at.
pub fn at(seq: u64) -> Millis {
    Millis(1_763_000_000_000 + seq)
}

pub fn draft(seq: u64, body: impl Into<Body>) -> Draft {
    let cause = seq.checked_sub(1).map(Seq);
    Draft { seq: Seq(seq), at: at(seq), source: FrameSource::Host, cause, body: body.into() }
}

/// A small frame.
pub fn small(text: &str) -> Body {
    SessionEnded { reason: text.to_owned() }.into()
}

/// A frame with one piece of content, which past the limit becomes a blob of its own.
pub fn said(text: impl Into<String>) -> Body {
    MessageInjected { extension: "memory".into(), hook: None, text: Content::text(text) }.into()
}

/// A frame whose body itself is too large to be kept in its row.
pub fn bulky(text: &str) -> Body {
    small(&text.repeat(10_000 / text.len()))
}

/// A text too long to be kept in place, and different for each name.
pub fn long(name: &str) -> String {
    format!("{name} ").repeat(20_000 / (name.len() + 1))
}

pub fn id(name: &str) -> StreamId {
    StreamId::from(name)
}

/// A snapshot's state in canonical JSON.
pub fn state(value: Value) -> Vec<u8> {
    holdfast_contract::digest::canonical(&json!({ "state": value })).unwrap()
}
