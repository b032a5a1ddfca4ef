//! What must hold of a home after it was killed or used for long.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::shared::bodies;
use crate::traffic::{Sent, Traffic, message};

/// What was found, for the report.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "printed as a whole")]
pub struct Findings {
    pub messages: usize,
    pub answers: usize,
    pub repeats: usize,
    pub failed: usize,
    pub effects: usize,
    pub unknown: usize,
    pub calls: usize,
    pub frames: usize,
    pub sessions: usize,
    /// Calls that were denied because the gate's process was killed while it judged.
    pub gate_killed: usize,
    /// Runs of the schedule that the log has, those that ended well, and those that the task itself counted.
    pub ticks_fired: usize,
    pub ticks_ended: usize,
    pub ticks: usize,
    /// What should not be.
    pub anomalies: Vec<String>,
}

/// Examines a home that is down: nothing lost, nothing twice unreported, order kept, no call refused that should have run, no gate
/// skipped, no extension kept down; the log verifies and every session replays.
pub fn examine(traffic: &Traffic) -> Findings {
    let scene = &traffic.scene;
    let mut findings = Findings { messages: traffic.messages, ..Findings::default() };
    let sent = traffic.sent();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    let mut answered = BTreeSet::new();
    for answer in &sent {
        findings.answers += 1;
        if named_message(answer, traffic.messages).is_none() {
            findings.failed += 1;
            if !answer.text.contains("HF-50") {
                findings.anomalies.push(format!("a turn failed without a model's fault: {answer:?}"));
            }
        }
        let number = message_of(answer, traffic.messages, &answered);
        let Some(number) = number else { panic!("an answer to nothing: {answer:?}") };
        if !answered.insert(number) {
            assert!(answer.repeat, "answered twice without saying so: {answer:?}");
            findings.repeats += 1;
            continue;
        }
        let before = last.insert(answer.to.clone(), number);
        assert!(before.is_none_or(|before| before < number), "out of order: {answer:?} after {before:?}");
    }
    let missing: Vec<usize> = (0..traffic.messages).filter(|number| !answered.contains(number)).collect();
    assert_eq!(missing, Vec::<usize>::new(), "messages without an answer");

    let effects = traffic.effects();
    for (id, times) in &effects {
        assert_eq!(*times, 1, "`{id}` had its effect more than once");
        assert!(!id.ends_with("forbidden"), "`{id}` passed the gate");
    }
    findings.effects = effects.len();
    let wanted =
        (0..traffic.messages).filter(|number| ["book", "note"].contains(&message(*number).1)).count();
    assert!(findings.effects * 3 > wanted, "{} of {wanted} effects: the tools hardly ran", findings.effects);

    scene.verifies();
    let listed = scene.run(&["session", "list", "--json"]).ok();
    let sessions: Vec<String> =
        listed.lines().iter().filter_map(|session| Some(session["session"].as_str()?.to_owned())).collect();
    assert!(sessions.len() >= 3, "{listed:#?}");
    let mut done = BTreeSet::new();
    for session in &sessions {
        let frames = scene.frames(session);
        findings.frames += frames.len();
        examine_calls(&frames, &effects, &mut findings, &mut done);
        scene.run(&["replay", session]).ok();
    }
    findings.sessions = sessions.len();
    // What has an effect was decided: the ledger has nothing that the log does not have.
    let unrecorded = effects.keys().filter(|id| !done.contains(*id));
    findings.anomalies.extend(unrecorded.map(|id| format!("{id} had an effect that no log has")));
    let system = scene.frames("system");
    for state in bodies(&system, "extension.state") {
        if state["fault"]["code"] == "HF-4006" {
            findings.anomalies.push(format!("kept down without a reason: {state}"));
        }
    }
    examine_ticks(&system, traffic.ticks(), &mut findings);
    if let (false, Ok(folder)) = (findings.anomalies.is_empty(), std::env::var("HOLDFAST_KEEP")) {
        // To be looked at: the scene is removed with the test.
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(scene.home().join("holdfast.db"), format!("{folder}/holdfast.db")).unwrap();
    }
    assert!(findings.anomalies.is_empty(), "{findings:#?}");
    findings
}

/// The schedule against the ledger of its task: no due time is run twice, what ended well was done, and nothing was done that the log does
/// not have.
fn examine_ticks(system: &[Value], ticks: usize, findings: &mut Findings) {
    let of = |body: &&Value| body["schedule"] == "notes/tick";
    let mut due = BTreeSet::new();
    let mut latest = 0;
    for fact in bodies(system, "schedule.due").into_iter().filter(of) {
        let (moment, retry) = (fact["due"].as_u64().unwrap(), &fact["retry"]);
        if retry.is_null() && fact["passed"].is_null() {
            if !due.insert(moment) || moment < latest {
                findings.anomalies.push(format!("due twice, or out of order: {fact}"));
            }
            latest = moment;
        }
    }
    let fired: Vec<_> = bodies(system, "schedule.fired").into_iter().filter(of).collect();
    let unplanned = fired.iter().filter(|run| !due.contains(&run["due"].as_u64().unwrap()));
    findings.anomalies.extend(unplanned.map(|run| format!("it was never due: {run}")));
    let ended = bodies(system, "schedule.ended").into_iter().filter(of);
    let ended = ended.filter(|run| run["fault"].is_null()).count();
    (findings.ticks_fired, findings.ticks_ended, findings.ticks) = (fired.len(), ended, ticks);
    if ended > ticks || ticks > fired.len() {
        let what = format!("{} runs, {ended} ended well, and the task counted {ticks}", fired.len());
        findings.anomalies.push(what);
    }
    if ticks == 0 {
        findings.anomalies.push("the schedule never ran".to_owned());
    }
}

/// The messages that have no answer yet.
pub fn unanswered(traffic: &Traffic) -> Vec<usize> {
    let mut answered = BTreeSet::new();
    for answer in traffic.sent() {
        answered.extend(message_of(&answer, traffic.messages, &answered));
    }
    (0..traffic.messages).filter(|number| !answered.contains(number)).collect()
}

/// The message that an answer belongs to. A turn that failed is answered by its error, which does not name the message: it is the user's
/// next one.
fn message_of(answer: &Sent, messages: usize, answered: &BTreeSet<usize>) -> Option<usize> {
    let is_next = |number: &usize| format!("user{}", number % 3) == answer.to && !answered.contains(number);
    named_message(answer, messages).or_else(|| (0..messages).find(is_next))
}

fn named_message(answer: &Sent, messages: usize) -> Option<usize> {
    (0..messages).find(|number| answer.text.contains(&message(*number).0))
}

/// Every call of a session ended as it should have. A call whose process was killed under it may have had its effect; a gate whose
/// process was killed while it judged denies.
fn examine_calls(
    frames: &[Value],
    effects: &BTreeMap<String, usize>,
    findings: &mut Findings,
    done: &mut BTreeSet<String>,
) {
    let gated: BTreeSet<String> = bodies(frames, "hook.called")
        .into_iter()
        .filter(|asked| asked["hooks"].to_string().contains("warden/"))
        .map(|asked| asked["call"].to_string())
        .collect();
    let faulted: BTreeSet<String> =
        bodies(frames, "hook.faulted").into_iter().map(|faulted| faulted["call"].to_string()).collect();
    let (mut id, mut tools) = (String::new(), BTreeMap::new());
    for frame in frames {
        let (body, call) = (&frame["body"], frame["body"]["call"].to_string());
        match frame["kind"].as_str().unwrap_or_default() {
            "input.received" => {
                let text = body["text"]["json"].as_str().unwrap_or_else(|| panic!("{body}"));
                id = text.split(' ').next().unwrap_or_default().to_owned();
            }
            "tool.called" => drop(tools.insert(call, body["tool"].as_str().unwrap_or_default().to_owned())),
            "tool.dispatched" if !gated.contains(&call) => {
                findings.anomalies.push(format!("{id}: the gate was not asked: {body}"));
            }
            "tool.settled" => {
                findings.calls += 1;
                let forbidden = id.ends_with("forbidden");
                let (status, code) = (body["status"].as_str().unwrap_or_default(), &body["fault"]["code"]);
                let unknown = status == "interrupted" || code == "HF-4003";
                match status {
                    "done" if tools[&call] == "look" || effects.contains_key(&id) => {
                        done.insert(id.clone());
                    }
                    "denied" if forbidden => {}
                    "denied" if faulted.contains(&call) => findings.gate_killed += 1,
                    _ if unknown => {
                        findings.unknown += 1;
                        done.insert(id.clone());
                    }
                    _ => findings.anomalies.push(format!("{id} {}: {body}", tools[&call])),
                }
            }
            _ => {}
        }
    }
}
