//! How a scenario is run: driven, compared with its golden file, verified, replayed here and elsewhere.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;

use holdfast_contract::ids::StreamId;
use holdfast_replay::{Mode, replay};
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::{Lab, LabBuilder};

/// A scenario: the lab it happens in, and what happens.
pub struct Scenario {
    /// The lab.
    pub lab: LabBuilder,
    /// What happens.
    pub drive: Drive,
}

type Drive = Box<dyn FnOnce(Lab) -> Pin<Box<dyn Future<Output = Lab> + Send>> + Send>;

impl Scenario {
    /// A scenario.
    pub fn new<F>(lab: LabBuilder, drive: impl FnOnce(Lab) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Lab> + Send + 'static,
    {
        Self { lab, drive: Box::new(move |lab| Box::pin(drive(lab))) }
    }
}

/// Drives a scenario and checks everything that must hold of any.
pub async fn run(name: &str, scenario: impl Fn() -> Scenario) {
    let Scenario { lab, drive } = scenario();
    let lab = drive(lab.start().await).await;
    lab.runtime.settled().await.unwrap();

    let mut streams = lab.runtime.store().streams().unwrap();
    streams.sort_by(|a, b| a.id.cmp(&b.id));
    let sessions: Vec<_> = streams.into_iter().map(|info| info.id).filter(StreamId::is_session).collect();
    let stories = sessions
        .iter()
        .map(|id| format!("== {id} ==\n{}", holdfast_testkit::story::story(&lab.frames_of(id.as_str()))));
    golden(name, &stories.collect::<Vec<_>>().join("\n"));
    assert_eq!(lab.findings(), Vec::new(), "the log verifies");

    for id in sessions.iter().map(|id| id.as_str()).chain(["system"]) {
        let verdict = lab.replay(id);
        assert!(verdict.identical && verdict.snapshot_identical, "{id} replays here: {verdict:#?}");
    }
    let path = lab.path().to_owned();
    let _directory = lab.stop().await;
    for id in &sessions {
        replays_elsewhere(name, &path, id.as_str());
    }
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Replays in another process, which knows nothing but the database and the scenario's extensions.
fn replays_elsewhere(name: &str, database: &Path, session: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "replays_for_its_parent", "--ignored", "--nocapture"])
        .env("HOLDFAST_REPLAY", format!("{name}\n{session}\n{}", database.display()))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict =
        printed.lines().find_map(|line| line.split_once("verdict ").map(|(_, json)| json.to_owned()));
    let verdict: serde_json::Value =
        serde_json::from_str(&verdict.unwrap_or_else(|| panic!("{printed}"))).unwrap();
    let same = verdict["identical"] == true && verdict["snapshot_identical"] == true;
    assert!(same, "{session} replays elsewhere: {verdict:#}");
}

/// The other process.
pub fn replay_for_parent(lab_of: impl Fn(&str) -> Option<LabBuilder>) {
    let Ok(wanted) = std::env::var("HOLDFAST_REPLAY") else { return };
    let parts: Vec<&str> = wanted.splitn(3, '\n').collect();
    let lanes = lab_of(parts[0]).unwrap().lanes();
    let store = Store::open(Path::new(parts[2]), StoreOptions::default()).unwrap();
    let verdict = replay(&store, &parts[1].into(), Mode::Strict, &lanes).unwrap();
    println!("verdict {}", serde_json::to_string(&verdict).unwrap());
}
