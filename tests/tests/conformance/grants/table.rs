//! The table of host calls, as the runtime serves it: every call, in every lane, under every profile, with and without its grant. Each
//! lane runs the conformance extension as it is written for that lane. A new host call does not compile until it is in [`arguments`].

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use holdfast_contract::host_call::{Capability, GrantRule, HostCallKind};
use holdfast_contract::manifest::{Grants, Profile};
use holdfast_contract::problem::Code;
use serde_json::{Value, json};

use super::asks::{Asked, Grounds, Made, everything, folder};
use crate::conformance::lanes::{self, ConformingLane, MANIFEST};

/// What stands above the table.
const HEAD: &str = "\
# Every host call, in every lane, with and without the grants that it needs, under the profiles named.
#
# served            it was served
# HF-…              it was refused with this code, which is recorded
# HF-3114, HF-9001  it was made: there is no such result, and no such parameter
# HF-4103 at load   the component imports the function, and is not loaded without the grant
# asked             a person was asked first; nobody is there, so that it was refused with HF-3103
# none              components have no function for it
# gateway           the gateway of a process makes it, or its worker when a port is bound: not made by its name here
#
# Outcomes that are alike have the same frames. Native plugins, which `trusted` alone loads, have those of a process.
# Native code is the program's own and has no bundle: nobody can grant it hosts, folders and variables (HF-3103).
";

/// What each call is made with, as a component's call has it. The folder is granted.
pub fn arguments(kind: HostCallKind, folder: &Path) -> Value {
    use HostCallKind as K;
    let file = |name: &str| json!({ "path": folder.join(name) });
    match kind {
        K::Clock => Value::Null,
        K::ChannelList | K::CapabilitiesList | K::SetupOpen => json!({}),
        K::AgentList | K::ProjectList | K::NetworkConnected => json!({}),
        K::SystemRestart | K::SystemShutdown => json!({ "reason": "why not" }),
        K::Random => json!({ "bytes": 1 }),
        K::StateGet => json!({ "key": "k" }),
        K::StateSet => json!({ "key": "k", "value": 1 }),
        K::Inject => json!({ "text": "by the way" }),
        K::Ui => json!({ "confirm": { "prompt": "really?" } }),
        K::ApiCall => json!({ "extension": "office", "method": "m", "arguments": {} }),
        K::ServiceGet => json!({ "key": "office/desk", "arguments": {} }),
        K::ServiceCall => json!({ "key": "office/desk", "method": "m", "arguments": {} }),
        K::EventPublish => json!({ "topic": "news.weather", "payload": 1, "key": null }),
        K::EventSubscribe | K::EventUnsubscribe => json!({ "topic": "news.sport" }),
        K::UserNotify => json!({ "text": "hello", "channel": null, "user": null }),
        K::AgentTask | K::AgentBackground => {
            json!({ "agent": "idle", "task": "rest", "channel": null, "user": null, "correlation": null })
        }
        K::AgentInvoke => json!({ "agent": "idle", "task": "rest" }),
        K::ToolInvoke => json!({ "tool": "hum", "arguments": { "n": 1 } }),
        K::ModelInvoke => json!({ "prompt": "a line", "instructions": "be brief", "agent": "idle" }),
        K::AgentDescribe => json!({ "agent": "idle" }),
        K::ThreadList => json!({ "thread": null, "channel": null, "project": null, "archived": false }),
        K::ThreadUpdate => json!({ "thread": "t1", "title": "Plans" }),
        K::ThreadHistory => json!("nothing"),
        K::ProjectUpdate => json!({ "project": null, "fields": { "name": "Garden" } }),
        K::ProjectRemove => json!("project-0001020304050607"),
        K::ContextEnrich => json!({ "prompt": "hello", "agent": null }),
        K::ScheduleNext => json!({ "when": "every 1h", "timezone": null }),
        K::ScheduleWait => json!({ "until": 0 }),
        K::SecretReference => json!("TOKEN"),
        K::SecretGet => json!("KEY"),
        K::SecretKeep => json!({ "name": "OTHER", "value": "another value" }),
        K::NetworkConnect => json!({ "host": "127.0.0.1", "port": 9 }),
        K::NetworkListen => json!({ "port": 8080 }),
        K::HttpRequest => json!({ "method": "GET", "url": "http://127.0.0.1:10/", "headers": [] }),
        K::FileRead | K::FileStat => file("note.txt"),
        K::FileList => json!({ "path": folder }),
        K::FileWrite => json!({ "path": folder.join("new.txt"), "content": "text" }),
        K::FileRemove => file("new.txt"),
        K::FileMakeFolder => file("made"),
        K::EnvironmentGet => json!("LANG"),
        K::ResultRead => json!({ "call": "1.1", "offset": 0, "limit": 1 }),
        K::ToolsFind => json!({ "query": "mail", "limit": 3 }),
        K::SetupShow => json!("office"),
        K::SetupApply => json!({ "extension": "office", "name": "x", "value": 1 }),
        K::ExtensionDoctor => json!({ "extension": "office" }),
    }
}

/// Whether a component has a function for a call.
pub fn is_for_components(kind: HostCallKind) -> bool {
    !kind.wit_functions().is_empty()
}

/// Whether a component that imports a call's function is loaded without a grant. Where it is, the call is checked.
pub fn is_linked_without_a_grant(kind: HostCallKind) -> bool {
    use GrantRule as G;
    matches!(kind.capability().grant(), G::Everyone | G::EachFolder | G::EachSecret)
}

/// Whether what a call names is granted one by one: a host, a folder, a variable.
fn has_grants_by_name(kind: HostCallKind) -> bool {
    use GrantRule as G;
    matches!(kind.capability().grant(), G::EachHost | G::EachFolder | G::EachVariable)
}

/// The calls that a lane's extension can be told to make.
pub fn askable(lane: &dyn ConformingLane, is_granted: bool) -> impl Iterator<Item = HostCallKind> {
    let name = lane.name();
    HostCallKind::ALL.iter().copied().filter(move |kind| match name {
        "native" => true,
        "wasm" => is_for_components(*kind) && (is_granted || is_linked_without_a_grant(*kind)),
        _ => kind.capability() != Capability::Network,
    })
}

/// What a lane's calls come to, by the call.
type Column = BTreeMap<HostCallKind, Made>;

/// A lane under a profile.
struct Columns<'a> {
    lane: &'a dyn ConformingLane,
    with: Column,
    without: Column,
}

impl Columns<'_> {
    async fn of(lane: &dyn ConformingLane, profile: Profile) -> Columns<'_> {
        let with = column(lane, profile, true).await;
        Columns { lane, with, without: column(lane, profile, false).await }
    }

    fn column(&self, is_granted: bool) -> &Column {
        if is_granted { &self.with } else { &self.without }
    }
}

/// Makes every call that a lane's extension can make.
async fn column(lane: &dyn ConformingLane, profile: Profile, is_granted: bool) -> Column {
    let place = tempfile::tempdir().unwrap();
    let folder = folder(place.path());
    let calls: Vec<Asked> = askable(lane, is_granted).map(|kind| (kind, arguments(kind, &folder))).collect();
    let grounds = Grounds { lane, profile, is_granted, place: place.path() };
    let mut made = grounds.make(&calls).await;
    let place = place.path().display().to_string();
    for made in &mut made {
        made.why = made.why.replace(&place, "PLACE");
        for (_, body) in &mut made.frames {
            *body = serde_json::from_str(&body.to_string().replace(&place, "PLACE")).unwrap();
            // The key of a digest is the home's own, and a component without grants asks less before its question.
            for own in ["keyed_digest", "request"] {
                if let Some(value) = body.get_mut(own) {
                    value.take();
                }
            }
        }
    }
    calls.into_iter().map(|(kind, _)| kind).zip(made).collect()
}

/// A component that lacks the grant for one of its imports is not loaded, whichever that is.
async fn check_links(lane: &dyn ConformingLane) {
    let needed = |it: &&Capability| {
        HostCallKind::ALL.iter().any(|kind| kind.capability() == **it && !is_linked_without_a_grant(*kind))
            && **it != Capability::Network
            && **it != Capability::Shutdown
    };
    for lacking in Capability::ALL.iter().filter(needed) {
        let place = tempfile::tempdir().unwrap();
        let mut grants = everything(place.path());
        let option = match lacking {
            Capability::Http => {
                grants.network.clear();
                grants.interfaces.retain(|name| name != "network");
                "--network HOST".to_owned()
            }
            Capability::Environment => {
                grants.environment.clear();
                "--environment NAME".to_owned()
            }
            _ => format!("--interface {lacking}"),
        };
        grants.interfaces.retain(|name| name != lacking.name());
        let (wasm, reference) = lane.alone(MANIFEST, grants);
        let fault = wasm.load(&reference).await.err().unwrap_or_else(|| panic!("`{lacking}` was not needed"));
        assert_eq!(fault.code, Code::ComponentImport, "{lacking}: {fault}");
        assert!(fault.message.contains(&format!("`holdfast ext grant conformance {option}`")), "{fault}");
    }
    let (wasm, reference) = lane.alone(MANIFEST, Grants::default());
    assert!(wasm.load(&reference).await.is_ok(), "what needs no grant is linked without one");
}

fn cell(lane: &dyn ConformingLane, kind: HostCallKind, column: &Column) -> String {
    match column.get(&kind) {
        Some(made) if made.is_asked => {
            assert_eq!(made.outcome, Code::ToolDenied.to_string(), "{kind}: nobody is there to answer");
            "asked".to_owned()
        }
        Some(made) => made.outcome.clone(),
        None => match lane.name() {
            "wasm" if is_for_components(kind) => format!("{} at load", Code::ComponentImport),
            "wasm" => "none".to_owned(),
            _ => "gateway".to_owned(),
        },
    }
}

/// The frames without what native code lacks: its own words for why it has no grant.
fn comparable(made: &Made, is_native: bool) -> Vec<(String, Value)> {
    let mut frames = made.frames.clone();
    if is_native {
        for (_, body) in &mut frames {
            if let Some(failure) = body["outcome"].get_mut("failure") {
                failure["message"] = Value::Null;
            }
        }
    }
    frames
}

/// What differs between lanes and should not.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn note(&mut self, is_as_expected: bool, what: impl FnOnce() -> String) {
        if !is_as_expected {
            self.0.push(what());
        }
    }

    /// Lanes that come to the same leave the same frames.
    fn in_frames(&mut self, kind: HostCallKind, one: (&str, &Column), two: (&str, &Column)) {
        let (Some(first), Some(second)) = (one.1.get(&kind), two.1.get(&kind)) else { return };
        if first.outcome == second.outcome && first.is_asked == second.is_asked {
            let is_native = one.0 == "native" && first.outcome != "served";
            let [first, second] = [first, second].map(|made| comparable(made, is_native));
            self.note(first == second, || {
                format!("{kind}: {} against {}\n  {first:?}\n  {second:?}", one.0, two.0)
            });
        }
    }

    /// What a grant does, and does not do, in any lane.
    fn in_row(&mut self, kind: HostCallKind, lanes: &[Columns<'_>]) {
        let last = &lanes[lanes.len() - 1];
        for Columns { lane, with, without } in lanes {
            let name = lane.name();
            self.in_frames(kind, (name, with), (last.lane.name(), &last.with));
            self.in_frames(kind, (name, without), (last.lane.name(), &last.without));
            let Some(granted) = with.get(&kind) else { continue };
            if let (false, Some(expected)) =
                (name == "native" && has_grants_by_name(kind), last.with.get(&kind))
            {
                self.note(granted.outcome == expected.outcome, || {
                    format!("{kind}: a grant does not mean the same for {name}: {granted:?} {expected:?}")
                });
            }
            if let Some(ungranted) = without.get(&kind) {
                let refused = [Code::ComponentImport, Code::ToolDenied].map(|code| code.to_string());
                let is_plain = ungranted.outcome == granted.outcome || refused.contains(&ungranted.outcome);
                self.note(is_plain, || format!("{kind}: {name} without the grant: {ungranted:?}"));
            }
        }
    }

    /// The native plugins are served and refused as a process is.
    async fn in_plugins(&mut self, process: &Columns<'_>) {
        for plugin in lanes::of_trusted() {
            let columns = Columns::of(&*plugin, Profile::Trusted).await;
            for is_granted in [true, false] {
                let (name, process) = (plugin.name(), process.column(is_granted));
                for (kind, made) in columns.column(is_granted) {
                    let expected = &process[kind];
                    self.note(made == expected, || {
                        format!("{kind}: {name} against a process\n  {made:?}\n  {expected:?}")
                    });
                }
            }
        }
    }
}

/// Compares all of it with the golden table.
pub async fn compare() {
    let lanes = lanes::of_every_profile();
    let wasm = lanes.iter().find(|lane| lane.name() == "wasm").unwrap();
    check_links(&**wasm).await;
    let mut differences = Differences::default();
    let mut rows: BTreeMap<(usize, &str), BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for profile in Profile::ALL {
        let mut columns = Vec::new();
        for lane in &lanes {
            columns.push(Columns::of(&**lane, *profile).await);
        }
        let name = match profile {
            Profile::Safe => "safe",
            Profile::Standard => "standard",
            Profile::FullAuto => "full-auto",
            Profile::Trusted => "trusted",
        };
        for (place, kind) in HostCallKind::ALL.iter().enumerate() {
            differences.in_row(*kind, &columns);
            for (is_granted, granted) in [(true, "with"), (false, "without")] {
                let told = columns
                    .iter()
                    .map(|it| format!("{} {}", it.lane.name(), cell(it.lane, *kind, it.column(is_granted))));
                let outcomes = told.collect::<Vec<_>>().join(", ");
                rows.entry((place, granted)).or_default().entry(outcomes).or_default().push(name);
            }
        }
        if *profile == Profile::Trusted {
            let process = columns.iter().find(|it| it.lane.name() == "process").unwrap();
            differences.in_plugins(process).await;
        }
    }
    assert!(differences.0.is_empty(), "{}", differences.0.join("\n"));
    let mut golden = HEAD.to_owned();
    for ((place, granted), outcomes) in rows {
        for (outcome, profiles) in outcomes {
            let profiles = if profiles.len() == Profile::ALL.len() {
                "every profile".to_owned()
            } else {
                profiles.join(" ")
            };
            let call = HostCallKind::ALL[place].name();
            writeln!(golden, "{call:<18} {granted:<8} {profiles:<19} {outcome}").unwrap();
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../golden/conformance");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("host_call_table", golden));
}
