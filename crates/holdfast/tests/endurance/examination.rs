//! What must hold of a home after it was killed or used for long.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::extensions::SCHEDULES;
use crate::shared::{Ran, bodies};
use crate::traffic::{Sent, Traffic, message, sender};

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
    /// Calls of turns that began before their class, or the gate, was edited: only one generation of a class runs, so they are told.
    pub replaced: usize,
    /// Events that were published, those that the subscriber got, and how often it got one again.
    pub events: usize,
    pub events_delivered: usize,
    pub events_repeated: usize,
    /// For each schedule, the runs that the log has, those that ended well, and those that the task itself counted.
    pub runs: BTreeMap<String, [usize; 3]>,
    /// Why runs did not end well.
    pub run_faults: BTreeMap<String, usize>,
    /// What should not be.
    pub anomalies: Vec<String>,
}

/// Examines a home that is down: nothing lost, nothing twice unreported, order kept, no call refused that should have run, no gate
/// skipped, no extension kept down, no event lost; the log verifies and every session replays.
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

    // A long log takes long on a busy machine.
    let run = |arguments: &[&str]| Ran::from(scene.command(arguments).output().unwrap()).ok();
    run(&["log", "verify"]);
    let listed = run(&["session", "list", "--json"]);
    let sessions: Vec<String> =
        listed.lines().iter().filter_map(|session| Some(session["session"].as_str()?.to_owned())).collect();
    let senders: BTreeSet<String> = (0..traffic.messages).map(sender).collect();
    assert!(sessions.len() >= senders.len(), "{listed:#?}");
    let mut done = BTreeSet::new();
    for session in &sessions {
        let frames = run(&["log", "export", session]).lines();
        findings.frames += frames.len();
        examine_calls(&frames, traffic, &effects, &mut findings, &mut done);
        run(&["replay", session]);
    }
    findings.sessions = sessions.len();
    // What has an effect was decided: the ledger has nothing that the log does not have.
    let unrecorded = effects.keys().filter(|id| !done.contains(*id));
    findings.anomalies.extend(unrecorded.map(|id| format!("{id} had an effect that no log has")));
    let system = run(&["log", "export", "system"]).lines();
    for state in bodies(&system, "extension.state") {
        if state["fault"]["code"] == "HF-4006" {
            findings.anomalies.push(format!("kept down without a reason: {state}"));
        }
    }
    for (extension, name) in SCHEDULES {
        let schedule = format!("{extension}/{name}");
        examine_runs(&system, &schedule, traffic.runs(extension, name), &mut findings);
    }
    examine_events(traffic, &mut findings);
    assert!(findings.anomalies.is_empty(), "{findings:#?}");
    findings
}

/// A schedule against the ledger of its task: no due time is run twice, what ended well was done, and nothing was done that the log does
/// not have.
fn examine_runs(system: &[Value], schedule: &str, counted: usize, findings: &mut Findings) {
    let of = |body: &&Value| body["schedule"] == schedule;
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
    let ended: Vec<_> = bodies(system, "schedule.ended").into_iter().filter(of).collect();
    for fault in ended.iter().map(|run| &run["fault"]).filter(|fault| !fault.is_null()) {
        *findings.run_faults.entry(format!("{schedule}: {fault}")).or_default() += 1;
    }
    let ended = ended.iter().filter(|run| run["fault"].is_null()).count();
    findings.runs.insert(schedule.to_owned(), [fired.len(), ended, counted]);
    if ended > counted || counted > fired.len() {
        let what = format!("{} runs, {ended} ended well, and the task counted {counted}", fired.len());
        findings.anomalies.push(format!("{schedule}: {what}"));
    }
    if counted == 0 {
        findings.anomalies.push(format!("{schedule} never ran"));
    }
}

/// What was published reached the subscriber, once unless it said so, and in the order of each key.
fn examine_events(traffic: &Traffic, findings: &mut Findings) {
    let (mut delivered, mut last) = (BTreeSet::new(), BTreeMap::new());
    for (number, repeat) in traffic.delivered() {
        if !delivered.insert(number) {
            findings.events_repeated += 1;
            if !repeat {
                findings.anomalies.push(format!("event {number} came again without saying so"));
            }
            continue;
        }
        let before = last.insert(number % 4, number);
        if before.is_some_and(|before| before > number) {
            findings.anomalies.push(format!("event {number} came after {before:?}"));
        }
    }
    let published = traffic.published();
    let lost = published.iter().filter(|number| !delivered.contains(number));
    findings.anomalies.extend(lost.map(|number| format!("event {number} was lost")));
    (findings.events, findings.events_delivered) = (published.len(), delivered.len());
    if published.is_empty() {
        findings.anomalies.push("no event was published".to_owned());
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
    let is_next = |number: &usize| sender(*number) == answer.to && !answered.contains(number);
    named_message(answer, messages).or_else(|| (0..messages).find(is_next))
}

/// The message whose id is in an answer.
fn named_message(answer: &Sent, messages: usize) -> Option<usize> {
    let numbers = answer.text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let numbers = numbers.filter_map(|word| word.strip_prefix('m')?.parse().ok());
    let number = numbers.into_iter().find(|number| *number < messages)?;
    answer.text.contains(&message(number).0).then_some(number)
}

/// Every call of a session ended as it should have. A call whose process was killed under it may have had its effect; a gate whose
/// process was killed while it judged denies.
fn examine_calls(
    frames: &[Value],
    traffic: &Traffic,
    effects: &BTreeMap<String, usize>,
    findings: &mut Findings,
    done: &mut BTreeSet<String>,
) {
    let gated: BTreeSet<String> = bodies(frames, "hook.called")
        .into_iter()
        .filter(|asked| asked["hooks"].to_string().contains("warden/"))
        .map(|asked| asked["call"].to_string())
        .collect();
    let faulted: BTreeMap<String, &Value> = bodies(frames, "hook.faulted")
        .into_iter()
        .map(|faulted| (faulted["call"].to_string(), &faulted["fault"]))
        .collect();
    let is_replaced = |fault: &Value| {
        let message = fault["message"].as_str().unwrap_or_default();
        traffic.edits > 0 && fault["code"] == "HF-4005" && message.contains("has been replaced and stopped")
    };
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
                    "denied" if faulted.get(&call).is_some_and(|fault| is_replaced(fault)) => {
                        findings.replaced += 1
                    }
                    "denied" if faulted.contains_key(&call) => findings.gate_killed += 1,
                    "failed" if is_replaced(&body["fault"]) => findings.replaced += 1,
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
