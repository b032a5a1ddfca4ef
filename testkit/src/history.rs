//! A recorded history of about ten thousand frames, committed under `tests/histories/`: every build replays it, and benches
//! measure on it. The extensions that made it live here, so that strict replay can run them again.

use std::path::{Path, PathBuf};

use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::matcher::Matcher;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::Extension;
use holdfast_model::script::Step;
use holdfast_store::Options;
use serde_json::json;

use crate::lab::{Lab, LabBuilder, SESSION};
use crate::pieces::{echo, gate, hook, set_field, tool, write};

/// How many turns were recorded.
const TURNS: usize = 120;

/// A history unpacked into a folder of its own.
pub struct History {
    /// The folder, which goes when this is dropped.
    pub folder: tempfile::TempDir,
    /// The database in it.
    pub path: PathBuf,
    /// The session.
    pub session: &'static str,
}

/// Where the packed history is kept.
pub fn packed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories/ten_thousand.db.zst")
}

/// The lab that the history was recorded in.
pub fn lab() -> LabBuilder {
    let picky = HookSpec {
        matcher: Matcher { tools: vec!["write".into()], ..Matcher::default() },
        ..HookSpec::at(HookPoint::ToolGate)
    };
    let picky = hook(picky, |input| match input.call.as_ref().is_some_and(|call| call.id.index % 5 == 0) {
        true => Decision::Deny { reason: "every fifth is one too many".to_owned() },
        false => Decision::Allow,
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
        .extension(Extension::new("kit", "1.0.0").tool(echo()).tool(write()).tool(look).replayable())
        .extension(Extension::new("watch", "1.0.0").hook(gate(Decision::Allow)).hook(picky).replayable())
        .extension(
            Extension::new("scribe", "1.0.0")
                .hook(set_field(10, "by", json!("scribe")))
                .hook(context)
                .replayable(),
        )
}

fn turn(number: usize) -> [Step; 2] {
    let call = |index: usize| {
        let name = ["echo", "write", "look", "missing"][(number + index) % 4 * usize::from(index < 7)];
        (name.to_owned(), json!({ "turn": number, "index": index }))
    };
    [Step::Calls((0..8).map(call).collect()), Step::says("That was turn number so and so.")]
}

/// Records the history anew and packs it.
pub async fn record() {
    let lab = lab().start().await;
    for number in 0..TURNS {
        lab.say(&format!("turn {number}")).await;
    }
    let path = lab.path().to_owned();
    let folder = lab.stop().await;
    let copy = folder.path().join("copy.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("VACUUM INTO ?", [copy.to_str().unwrap()]).unwrap();
    let bytes = std::fs::read(copy).unwrap();
    std::fs::create_dir_all(packed().parent().unwrap()).unwrap();
    std::fs::write(packed(), zstd::encode_all(bytes.as_slice(), 19).unwrap()).unwrap();
}

/// Unpacks the history.
pub fn open() -> History {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let bytes = zstd::decode_all(std::fs::File::open(packed()).unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    History { folder, path, session: SESSION }
}

impl History {
    /// Opens its store.
    pub fn store(&self) -> holdfast_store::Store {
        holdfast_store::Store::open(&self.path, Options::default()).unwrap()
    }
}
