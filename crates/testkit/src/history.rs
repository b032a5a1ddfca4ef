//! Recorded histories, committed under `tests/histories/`: every build replays them. Benches measure on the one of ten thousand
//! frames; the extensions that made it live here, so that strict replay can run them again.
//!
//! A history is packed without its hashes, which are most of its weight and can be computed: only the last of each stream is
//! kept, and unpacking must arrive at it.

use std::path::{Path, PathBuf};

use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Envelope;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::matcher::Matcher;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_model::script::ScriptStep;
use holdfast_store::StoreOptions;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::lab::{Lab, LabBuilder, SESSION};
use crate::pieces::{echo, gate, hook, set_field, tool, write};

/// How many turns were recorded.
const TURNS: usize = 128;

/// A history unpacked into a folder of its own.
pub struct History {
    /// The folder, which goes when this is dropped.
    pub folder: tempfile::TempDir,
    /// The database in it.
    pub path: PathBuf,
    /// The session.
    pub session: &'static str,
}

/// The history of one long session.
const TEN_THOUSAND: &str = "ten_thousand";

/// Where a packed history is kept.
fn packed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/histories/{name}.db.zst"))
}

/// The lab that the history of ten thousand frames was recorded in.
pub fn lab() -> LabBuilder {
    let picky = HookSpec {
        matcher: Matcher { tools: vec!["write".into()], ..Matcher::default() },
        ..HookSpec::at(HookPoint::ToolGate)
    };
    let picky = hook(picky, |input| {
        if input.call.as_ref().is_some_and(|call| call.id.index % 5 == 0) {
            Decision::Deny { reason: "every fifth is one too many".to_owned() }
        } else {
            Decision::Allow
        }
    });
    let context =
        hook(HookSpec::at(HookPoint::Context), |_| Decision::Inject { content: "It is quiet.".into() });
    let look = tool(
        "look",
        EffectClass::Read,
        |arguments| json!({ "seen": arguments, "text": "a line of text ".repeat(20) }),
    );
    Lab::build()
        .script((0..TURNS).flat_map(turn))
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write()).tool(look).replayable())
        .extension(
            NativeExtension::new("watch", "1.0.0").hook(gate(Decision::Allow)).hook(picky).replayable(),
        )
        .extension(
            NativeExtension::new("scribe", "1.0.0")
                .hook(set_field(10, "by", json!("scribe")))
                .hook(context)
                .replayable(),
        )
}

fn turn(number: usize) -> [ScriptStep; 2] {
    let call = |index: usize| {
        let name = ["echo", "write", "look", "missing"][(number + index) % 4 * usize::from(index < 7)];
        (name.to_owned(), json!({ "turn": number, "index": index }))
    };
    [ScriptStep::Calls((0..8).map(call).collect()), ScriptStep::says("That was turn number so and so.")]
}

/// Records the history of ten thousand frames again and packs it.
pub async fn record() {
    let lab = lab().start().await;
    for number in 0..TURNS {
        lab.say(&format!("turn {number}")).await;
    }
    let path = lab.path().to_owned();
    let _folder = lab.stop().await;
    pack(&path, TEN_THOUSAND);
}

/// Packs a database that nobody is writing under this name.
pub fn pack(database: &Path, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    Connection::open(database).unwrap().execute("VACUUM INTO ?", [copy.to_str().unwrap()]).unwrap();
    strip(&Connection::open(&copy).unwrap());
    let bytes = std::fs::read(copy).unwrap();
    std::fs::write(packed(name), zstd::encode_all(bytes.as_slice(), 19).unwrap()).unwrap();
}

/// Takes out what [`seal`] puts back.
fn strip(connection: &Connection) {
    connection
        .execute_batch(
            "UPDATE frames SET prev = x'',
                hash = iif(seq = (SELECT max(seq) FROM frames AS it WHERE it.stream = frames.stream), hash, x''),
                body_digest = iif(body IS NULL, body_digest, x'');
             VACUUM;",
        )
        .unwrap();
}

/// Computes every hash from the frames, and compares the last of each stream with the one that was kept.
fn seal(connection: &mut Connection) {
    let transaction = connection.transaction().unwrap();
    let streams: Vec<(i64, String)> = {
        let mut select = transaction.prepare("SELECT id, name FROM streams").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for (key, name) in streams {
        seal_stream(&transaction, key, &StreamId::from(name));
    }
    transaction.commit().unwrap();
}

fn seal_stream(connection: &Connection, key: i64, stream: &StreamId) {
    let select = "SELECT seq, at, kind, source, cause, body, body_digest, hash FROM frames WHERE stream = ? ORDER BY seq";
    let update = "UPDATE frames SET prev = ?, hash = ?, body_digest = ? WHERE stream = ? AND seq = ?";
    let (mut select, mut update) = (connection.prepare(select).unwrap(), connection.prepare(update).unwrap());
    let mut rows = select.query([key]).unwrap();
    let (mut prev, mut kept) = (Digest::ZERO, Vec::new());
    while let Some(row) = rows.next().unwrap() {
        let seq: i64 = row.get(0).unwrap();
        let body_digest = match row.get::<_, Option<Vec<u8>>>(5).unwrap() {
            Some(body) => Digest::of(&body),
            None => Digest::from_bytes(row.get(6).unwrap()),
        };
        let envelope = Envelope {
            stream: stream.clone(),
            seq: Seq(seq as u64),
            at: Millis(row.get::<_, i64>(1).unwrap() as u64),
            kind: FrameKind::parse(&row.get::<_, String>(2).unwrap()).unwrap(),
            source: serde_json::from_str(&row.get::<_, String>(3).unwrap()).unwrap(),
            cause: row.get::<_, Option<i64>>(4).unwrap().map(|cause| Seq(cause as u64)),
            body_digest,
            prev,
        };
        let hash = envelope.hash().unwrap();
        update.execute(params![prev.as_bytes(), hash.as_bytes(), body_digest.as_bytes(), key, seq]).unwrap();
        (prev, kept) = (hash, row.get(7).unwrap());
    }
    assert_eq!(kept, prev.as_bytes(), "the history of {stream} is not the one that was recorded");
}

/// Unpacks the history of ten thousand frames.
pub fn open() -> History {
    let (folder, path) = unpack(TEN_THOUSAND);
    History { folder, path, session: SESSION }
}

/// Unpacks the history of this name into a folder of its own, and gives the folder and the database in it.
pub fn unpack(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let bytes = zstd::decode_all(std::fs::File::open(packed(name)).unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    seal(&mut connection);
    (folder, path)
}

impl History {
    /// Opens its store.
    pub fn store(&self) -> holdfast_store::Store {
        holdfast_store::Store::open(&self.path, StoreOptions::default()).unwrap()
    }
}
