//! Cases as data: what the model does, what the user does, and the resulting frames, which are the same in every lane.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::Profile;
use holdfast_contract::session_frames::Answer;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_policy::Policy;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::story::story;
use holdfast_testkit::{Lab, Script};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lanes::{ConformingLane, MANIFEST};

/// One file of cases.
pub struct Group {
    name: String,
    file: PathBuf,
    cases: Vec<Case>,
}

/// One case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Lines for the manifest: configuration, hints.
    #[serde(default)]
    manifest: String,
    /// The profile that it runs under; every call is allowed if it names none.
    #[serde(default)]
    profile: Option<Profile>,
    /// Rules for the policy, as `policy.yaml` has them.
    #[serde(default)]
    policy: Option<String>,
    /// Nobody is there to answer.
    #[serde(default)]
    unattended: bool,
    /// What the model does, as scripts have it.
    #[serde(default)]
    model: Option<Value>,
    /// What happens from outside, in order. Without any, the user says `go`.
    #[serde(default = "says_go")]
    happens: Vec<Event>,
    /// The lanes that can do this at all; every lane if it names none.
    #[serde(default)]
    lanes: Vec<String>,
}

/// Something that happens from outside.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    /// The user says something, and the turn ends.
    Say(String),
    /// The user says something that will take more to end.
    Begin(String),
    /// The user answers the question that is asked.
    Answer(Value),
    /// The user does not answer it.
    Dismiss,
    /// The user answers an approval.
    Approval(Answer),
    /// The user cancels once there is a frame of this kind.
    CancelAt(String),
    /// Time passes once a hook or tool waits.
    Pass(u64),
    /// The turn ends.
    Ended,
    /// The conversation is compacted.
    Compact,
    /// The session ends.
    End,
}

fn says_go() -> Vec<Event> {
    vec![Event::Say("go".to_owned())]
}

/// Every file of cases.
pub fn groups() -> Vec<Group> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files.into_iter().map(Group::read).collect()
}

impl Group {
    fn read(file: PathBuf) -> Self {
        let text = std::fs::read_to_string(&file).unwrap();
        let cases =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self { name: file.file_stem().unwrap().to_string_lossy().into_owned(), file, cases }
    }

    /// Runs every case in every lane that can do it, and holds the frames against each other and against the golden file.
    pub async fn run(&self, lanes: &[Box<dyn ConformingLane>], points: &mut Points) {
        let mut golden = String::new();
        for case in &self.cases {
            let able = lanes
                .iter()
                .filter(|lane| case.lanes.is_empty() || case.lanes.iter().any(|name| name == lane.name()));
            let mut first: Option<(&str, String)> = None;
            for lane in able {
                let place = format!("{}: {} ({})", self.name, case.name, lane.name());
                let lab = case.run(&**lane, &self.file).await;
                points.note(&lab.frames());
                let frames = lab.told(&place, lane.runs_again()).await;
                lab.lab.stop().await;
                let story = story(&frames);
                match &first {
                    None => {
                        golden.push_str(&format!("== {} ==\n{}\n", case.name, telling(&frames)));
                        first = Some((lane.name(), story));
                    }
                    Some((other, expected)) => assert!(
                        story == *expected,
                        "{place}: other frames than in the {other} lane.\n{other}:\n{expected}\n{}:\n{story}",
                        lane.name()
                    ),
                }
            }
            assert!(first.is_some(), "{}: {} has no lane", self.name, case.name);
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../golden/conformance");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(self.name.as_str(), golden));
    }
}

/// A lab in which a case has happened, and the digest that is its lane's own.
struct Ran {
    lab: Lab,
    digest: Digest,
}

impl std::ops::Deref for Ran {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Case {
    async fn run(&self, lane: &dyn ConformingLane, file: &Path) -> Ran {
        let spare = tool("act", EffectClass::Pure, |arguments| json!({ "spare": arguments }));
        let mut lab = Lab::build()
            .extension(NativeExtension::new("spare", "1.0.0").tool(spare).priority(-1).replayable())
            .model("other", Script::new([]))
            .settings(|settings| settings.authoritative_routing = true);
        let script = match &self.model {
            Some(steps) => {
                Script::parse(file, &steps.to_string()).unwrap_or_else(|wrong| panic!("{wrong:#?}"))
            }
            None => Script::new([]),
        };
        lab = lab.model("script", script);
        if let Some(profile) = self.profile {
            lab = lab.profile(profile);
        }
        if let Some(policy) = &self.policy {
            lab = lab.policy(Policy::parse(file, policy).unwrap());
        }
        if self.unattended {
            lab = lab.unattended();
        }
        let manifest = format!("{MANIFEST}{}", self.manifest);
        let (lab, installed) = lane.install(lab, &manifest, lane.least());
        let digest = installed.digest;
        let lab = lab.start().await;
        lab.runtime.settled().await.unwrap();
        self.drive(&lab).await;
        Ran { lab, digest }
    }

    async fn drive(&self, lab: &Lab) {
        let mut turn = None;
        let mut answered = 0;
        for event in self.happens.clone() {
            match event {
                Event::Say(text) => drop(lab.say(&text).await),
                Event::Begin(text) => turn = Some(lab.begin(&text)),
                Event::Answer(answer) => question(lab, &mut answered, Some(Content::new(answer))).await,
                Event::Dismiss => question(lab, &mut answered, None).await,
                Event::Approval(answer) => {
                    let pending = lab.approval().await;
                    lab.session().approve(pending.approval, answer).await.unwrap();
                }
                Event::CancelAt(kind) => {
                    lab.until_kind(&kind).await;
                    lab.session().cancel("the user pressed Ctrl-C").await.unwrap();
                }
                Event::Pass(span) => {
                    lab.until_kind("ui.requested").await;
                    lab.pass(Millis(span), 2).await;
                }
                Event::Ended => drop(turn.take().unwrap().await.unwrap()),
                Event::Compact => {
                    lab.session().compact("it is long").await.unwrap();
                    lab.until_kind("compaction.applied").await;
                }
                Event::End => {
                    lab.session().end("good night").await.unwrap();
                    lab.until("the end", |lab| ended(&lab.frames())).await;
                }
            }
        }
    }
}

/// Whether the session's last hooks have spoken.
fn ended(frames: &[Frame]) -> bool {
    frames.last().is_some_and(|frame| {
        let kind = frame.envelope.kind.as_str();
        ["hook.agreed", "hook.decided", "hook.faulted"].contains(&kind)
            && frame.body.as_ref().is_some_and(|body| body["point"] == "session_end")
    })
}

/// Answers the next question to the user.
async fn question(lab: &Lab, answered: &mut usize, answer: Option<Content>) {
    let asked = |lab: &Lab| {
        let frames = lab.frames();
        let mut asked = frames.iter().filter(|frame| frame.envelope.kind.as_str() == "ui.requested");
        asked.nth(*answered).map(|frame| frame.envelope.seq)
    };
    lab.until("a question", |lab| asked(lab).is_some()).await;
    lab.session().answer(asked(lab).unwrap(), answer).await.unwrap();
    *answered += 1;
}

impl Ran {
    /// What happened, without what is the lane's own. Everything that must hold of any session is checked on the way.
    async fn told(&self, place: &str, runs_again: bool) -> Vec<Frame> {
        self.lab.runtime.settled().await.unwrap();
        assert!(self.lab.findings().is_empty(), "{place}: {:?}", self.lab.findings());
        let verdict = self.lab.replay("s1");
        assert!(verdict.identical && verdict.snapshot_identical, "{place}: {verdict:#?}");
        assert!(verdict.mocked.is_empty() == runs_again, "{place}: {:?} did not run again", verdict.mocked);
        let mut frames = self.lab.frames();
        for body in frames.iter_mut().filter_map(|frame| frame.body.as_mut()) {
            self.without_lane(body);
        }
        frames
    }

    fn without_lane(&self, value: &mut Value) {
        match value {
            Value::String(text) if *text == self.digest.to_string() => "(its lane's)".clone_into(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.without_lane(item)),
            Value::Object(fields) => {
                // A registry's digest covers the extensions' own.
                if let Some(registry) = fields.get_mut("registry") {
                    *registry = "(its lane's)".into();
                }
                fields.values_mut().for_each(|field| self.without_lane(field));
            }
            _ => {}
        }
    }
}

/// The story of the frames that tell something: hooks that were asked and had nothing to say are left out, and so is what every
/// session begins with.
fn telling(frames: &[Frame]) -> String {
    let tells = |frame: &&Frame| {
        let body = frame.body.clone().unwrap_or_default();
        match frame.envelope.kind.as_str() {
            "session.started" | "hook.called" | "hook.agreed" => false,
            "hook.decided" => body["decision"].is_object() || body["hook"] == "policy",
            "guard.verdict" => body["reasons"] != json!([]),
            _ => true,
        }
    };
    story(&frames.iter().filter(tells).cloned().collect::<Vec<_>>())
}

/// The hook points that cases have met with something to say.
#[derive(Default)]
pub struct Points(BTreeSet<String>);

impl Points {
    fn note(&mut self, frames: &[Frame]) {
        for body in frames.iter().filter_map(|frame| frame.body.as_ref()) {
            if body["words"].as_array().is_some_and(|words| !words.is_empty()) {
                self.0.insert("guard_chunk".to_owned());
            }
            let spoke = body["decision"].is_object() || body["fault"].is_object();
            if let (true, Some(point)) = (spoke, body["point"].as_str()) {
                self.0.insert(point.to_owned());
            }
        }
    }

    /// Fails if a point has no case.
    pub fn are_all_met(&self) {
        let unmet: Vec<_> =
            HookPoint::ALL.iter().filter(|point| !self.0.contains(json!(point).as_str().unwrap())).collect();
        assert!(unmet.is_empty(), "no case has these points speak: {unmet:?}");
    }
}
