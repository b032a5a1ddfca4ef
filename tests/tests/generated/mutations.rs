//! Changes that somebody might make to a recorded session, each with the frame at which replay must notice.
//!
//! A change is made in two flavours. *Raw*: the frame is changed where it stands, and its hashes no longer fit; replay must stop at
//! that very frame. *Sealed*: everything from there on is hashed again, so that the chain is valid, and replay must stop at the first
//! frame that no longer follows. That frame is worked out here from the recorded frames alone, without the kernel: a decision
//! cannot be changed at all; a fact that is made again (the policy, a schema check, a replayable hook or tool) neither; any other
//! fact shows at the first decision that speaks of it. A fact that no decision speaks of makes another history, just as valid,
//! and is not changed here: what an observer answered, who typed the input, what an input said that no hook was shown.

use holdfast_contract::body::{FrameKind, FrameOrigin};
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Frame, FrameSource};
use holdfast_contract::hook::{HookPoint, Order};
use holdfast_contract::ids::{Millis, Seq};
use serde_json::{Value, json};

/// What a mutation does to the recorded frames.
type Change<'a> = Box<dyn Fn(&mut Vec<Frame>) + 'a>;

/// A change to a session.
pub struct Mutation<'a> {
    /// What is changed, in the words of the tally.
    pub what: &'static str,
    /// The first changed frame.
    pub place: usize,
    /// Where replay must notice once everything is hashed again; nothing if that is another valid history.
    pub sealed: Option<Seq>,
    change: Change<'a>,
}

impl Mutation<'_> {
    /// The changed frames, with the hashes they had.
    pub fn raw(&self, frames: &[Frame]) -> Vec<Frame> {
        let mut frames = frames.to_vec();
        (self.change)(&mut frames);
        frames
    }

    /// The changed frames with an intact chain; where one is gone, those after it have moved up.
    pub fn seal(&self, frames: &[Frame]) -> Vec<Frame> {
        let mut frames = self.raw(frames);
        for place in self.place..frames.len() {
            let prev = place.checked_sub(1).map(|before| frames[before].hash).unwrap_or_default();
            let frame = &mut frames[place];
            let envelope = &mut frame.envelope;
            let moved = envelope.seq.0 - place as u64;
            envelope.seq.0 -= moved;
            envelope.cause = envelope
                .cause
                .map(|cause| if cause.0 > self.place as u64 { Seq(cause.0 - moved) } else { cause });
            envelope.prev = prev;
            envelope.body_digest = Digest::of_json(&frame.body).unwrap();
            frame.hash = frame.envelope.hash().unwrap();
        }
        frames
    }
}

/// A recorded session, and what can be read off its frames.
pub struct Session<'a> {
    pub frames: &'a [Frame],
}

impl<'a> Session<'a> {
    /// Every change that this page knows for this frame.
    pub fn mutations(&self, place: usize) -> Vec<Mutation<'a>> {
        let mut found = self.envelope(place);
        found.extend(self.dropped(place));
        found.extend(self.swapped(place));
        found.extend(self.body(place));
        found
    }

    fn changed(
        &self,
        what: &'static str,
        place: usize,
        sealed: Option<usize>,
        change: impl Fn(&mut Frame) + 'a,
    ) -> Mutation<'a> {
        let change = Box::new(move |frames: &mut Vec<Frame>| change(&mut frames[place]));
        Mutation { what, place, sealed: sealed.map(|place| Seq(place as u64)), change }
    }

    fn kind(&self, place: usize) -> FrameKind {
        self.frames[place].envelope.kind
    }

    fn json(&self, place: usize) -> &Value {
        self.frames[place].body.as_ref().unwrap()
    }

    fn is_decision(&self, place: usize) -> bool {
        self.kind(place).origin() == FrameOrigin::Decision
    }

    /// The frame after, if there is one.
    fn next(&self, place: usize) -> Option<usize> {
        (place + 1 < self.frames.len()).then_some(place + 1)
    }

    /// The first frame after this one of which it is true.
    fn find(&self, place: usize, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        (place + 1..self.frames.len()).find(|later| is(*later))
    }

    fn caused_by(&self, place: usize, cause: usize) -> bool {
        self.frames[place].envelope.cause == Some(Seq(cause as u64))
    }

    fn same_cause(&self, place: usize, other: usize) -> bool {
        self.frames[place].envelope.cause == self.frames[other].envelope.cause
    }

    fn is_hooks_word(&self, place: usize) -> bool {
        matches!(self.kind(place), FrameKind::HookAgreed | FrameKind::HookDecided | FrameKind::HookFaulted)
    }

    /// Whether strict replay produces a fact again. One that was late, or whose code was not available, is taken from the log.
    fn runs_again(&self, place: usize) -> bool {
        let body = self.json(place);
        let fault = body["fault"]["code"].as_str().or(body["outcome"]["failure"]["code"].as_str());
        if matches!(fault, Some("HF-3104" | "HF-3201" | "HF-4005")) {
            return false;
        }
        match (self.kind(place), &self.frames[place].envelope.source) {
            (FrameKind::ToolChecked, _) | (FrameKind::HookDecided, FrameSource::Policy(_)) => true,
            (FrameKind::HookDecided | FrameKind::HookFaulted, FrameSource::Extension(it)) => {
                it.id.as_str().starts_with("steady")
            }
            (FrameKind::ToolReturned, FrameSource::Extension(_)) => self.would_run_again(place),
            _ => false,
        }
    }

    /// Whether a call would run again if it were said to have answered: `drowsy` does, and never ends.
    fn would_run_again(&self, place: usize) -> bool {
        let dispatched = self.frames[place].envelope.cause.unwrap().0 as usize;
        let body = self.json(dispatched);
        body["effects"] == "pure" && body["tool"] != "drowsy"
    }

    /// Where a changed answer of a hook shows: at once if the hook runs again; else where its round goes on, or where it ends.
    fn word(&self, place: usize, ends: Option<usize>) -> Option<usize> {
        if self.runs_again(place) { Some(place) } else { ends }
    }

    /// The next hook of a sequence was asked about what this one made of it; after the last, the kernel goes on with it.
    fn handed_on(&self, place: usize) -> Option<usize> {
        let next = self.find(place, |later| self.is_hooks_word(later) && self.same_cause(later, place));
        next.or_else(|| self.next(place).filter(|next| self.caused_by(*next, place)))
    }

    /// Another moment, another author, another cause.
    fn envelope(&self, place: usize) -> Vec<Mutation<'a>> {
        let decision = self.is_decision(place).then_some(place);
        let kind = self.kind(place);
        let attributed = self.is_hooks_word(place)
            || matches!(
                kind,
                FrameKind::ToolChecked
                    | FrameKind::ToolReturned
                    | FrameKind::ModelReturned
                    | FrameKind::ModelFailed
            );
        let answers = attributed || matches!(kind, FrameKind::ChildEnded | FrameKind::CompactionProvided);
        let mut found = vec![
            // The frames of a step, and those after it, are never earlier than its fact.
            self.changed("clock: later", place, decision.or(self.next(place)), |frame| {
                frame.envelope.at = Millis(frame.envelope.at.0 + 1_000_000_000);
            }),
            self.changed("source", place, decision.or(attributed.then_some(place)), |frame| {
                frame.envelope.source = FrameSource::Surface("mallory".into());
            }),
            // Nothing ever answers the session's start.
            self.changed("cause", place, decision.or(answers.then_some(place)), |frame| {
                frame.envelope.cause = if frame.envelope.cause == Some(Seq(0)) { None } else { Some(Seq(0)) };
            }),
        ];
        if place > 0 {
            found.push(
                self.changed("clock: earlier", place, Some(place), |frame| frame.envelope.at = Millis(1)),
            );
        }
        found
    }

    /// A frame is gone, and those after it move up. A fact at the very end leaves a shorter history that is as valid: only the
    /// anchor in the system stream tells.
    fn dropped(&self, place: usize) -> Option<Mutation<'a>> {
        let shows = self.is_decision(place)
            || self.next(place).is_some_and(|next| self.caused_by(next, place) && self.is_decision(next));
        if self.next(place).is_none() && !self.is_decision(place) {
            return None;
        }
        let change = Box::new(move |frames: &mut Vec<Frame>| drop(frames.remove(place)));
        Some(Mutation { what: "dropped frame", place, sealed: shows.then_some(Seq(place as u64)), change })
    }

    /// Two answers of one round change places. In a sequence the second was not asked yet; where all are asked together the order
    /// is the outside's, and only shows if the second had the last word or came later.
    fn swapped(&self, place: usize) -> Option<Mutation<'a>> {
        let next = self.next(place)?;
        if !(self.is_hooks_word(place) && self.is_hooks_word(next) && self.same_cause(place, next)) {
            return None;
        }
        let point: HookPoint = serde_json::from_value(self.json(place)["point"].clone()).unwrap();
        let (first, second) = (&self.frames[place], &self.frames[next]);
        let closes =
            self.find(next, |_| true).is_some_and(|after| self.is_decision(after)) && self.closes(next);
        let sealed = match point.rules().order {
            Order::Sequence => Some(place),
            Order::Together if closes || second.envelope.at > first.envelope.at => Some(next),
            Order::Together => None,
        };
        let change = Box::new(move |frames: &mut Vec<Frame>| {
            frames.swap(place, next);
            frames[place].envelope.seq = Seq(place as u64);
            frames[next].envelope.seq = Seq(next as u64);
        });
        let sealed = sealed.map(|place| Seq(place as u64));
        Some(Mutation { what: "hook order: answers", place, sealed, change })
    }

    /// Whether a hook's word closes its round.
    fn closes(&self, place: usize) -> bool {
        let body = self.json(place);
        let decision = &body["decision"];
        let point: HookPoint = serde_json::from_value(body["point"].clone()).unwrap();
        let on_fault = point.rules().on_fault == holdfast_contract::hook::OnFault::Close;
        !decision["deny"].is_null()
            || !decision["block"].is_null()
            || (self.kind(place) == FrameKind::HookFaulted && on_fault)
    }

    fn body(&self, place: usize) -> Vec<Mutation<'a>> {
        match self.kind(place) {
            FrameKind::ModelReturned => self.model_returned(place),
            FrameKind::HookAgreed => self.hook_agreed(place),
            FrameKind::HookDecided => self.hook_decided(place),
            FrameKind::ApprovalAnswered => self.approval_answered(place),
            FrameKind::ToolReturned | FrameKind::ChildEnded => {
                let shows = if self.would_run_again(place) { Some(place) } else { self.next(place) };
                vec![self.set(
                    "answer: result",
                    place,
                    shows,
                    "/outcome",
                    json!({ "result": { "json": "mutated" } }),
                )]
            }
            FrameKind::UiAnswered => {
                let request = self.json(place)["request"].as_u64().unwrap() as usize;
                // A tool that fails in the end repeats nothing.
                let shows = self.told(place, self.frames[request].envelope.cause, "\"told\"");
                vec![self.set("answer: user", place, shows, "/answer", json!({ "json": "mutated" }))]
            }
            FrameKind::ClockRead => {
                let value = self.json(place)["value"].as_u64().unwrap();
                let shows = self.told(place, self.frames[place].envelope.cause, &value.to_string());
                vec![self.set("clock: value", place, shows, "/value", json!(value + 1))]
            }
            FrameKind::RandomDrawn => {
                let bytes = self.json(place)["bytes"].as_str().unwrap();
                let long = bytes.len() > 4;
                let shows = self.told(place, self.frames[place].envelope.cause, bytes).filter(|_| long);
                let other: String = bytes.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
                vec![self.set("random", place, shows, "/bytes", json!(other))]
            }
            FrameKind::InputReceived => {
                let shown = |later: usize| {
                    let point = self.json(later)["point"].as_str().unwrap_or_default();
                    self.kind(later) == FrameKind::TurnEnded
                        || ["input_normalise", "sanitize_input", "guard_input", "context", "model_route"]
                            .contains(&point)
                };
                let shows =
                    self.find(place, shown).filter(|shows| self.kind(*shows) == FrameKind::HookCalled);
                vec![self.set("argument: input", place, shows, "/text", json!({ "json": "mutated" }))]
            }
            _ if self.is_decision(place) => self.decided(place),
            _ => Vec::new(),
        }
    }

    /// One place of a body set to something else.
    fn set(
        &self,
        what: &'static str,
        place: usize,
        sealed: Option<usize>,
        pointer: &str,
        value: Value,
    ) -> Mutation<'a> {
        let pointer = pointer.to_owned();
        self.changed(what, place, sealed, move |frame| {
            let (body, value) = (frame.body.as_mut().unwrap(), value.clone());
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = body.pointer_mut(parent).unwrap();
            match parent {
                Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
                parent => parent[field] = value,
            }
        })
    }

    /// Where an extension that was told something repeats it, if it runs again and answers before a restart. `repeated` is what
    /// must stand in its answer.
    fn told(&self, place: usize, under: Option<Seq>, repeated: &str) -> Option<usize> {
        let answered = |later: usize| {
            let kind = self.kind(later);
            let answers = self.is_hooks_word(later) || kind == FrameKind::ToolReturned;
            kind == FrameKind::SessionResumed
                || (answers && self.frames[later].envelope.cause == under && self.asked(later, place))
        };
        let answer = self.find(place, answered)?;
        let runs = self.kind(answer) != FrameKind::SessionResumed && self.runs_again(answer);
        let text = self.json(answer).to_string();
        (runs && text.contains(repeated)).then_some(answer)
    }

    /// Whether this answer is given by the extension that was told, and by the same hook of it.
    fn asked(&self, answer: usize, told: usize) -> bool {
        match &self.frames[told].envelope.source {
            FrameSource::Extension(_) => {
                self.frames[answer].envelope.source == self.frames[told].envelope.source
                    && self.json(answer)["hook"] == self.json(told)["hook"]
            }
            _ => true,
        }
    }

    fn model_returned(&self, place: usize) -> Vec<Mutation<'a>> {
        let calls = self.json(place)["calls"].as_array().map_or(0, Vec::len);
        if calls == 0 {
            // The first hook of the answer is shown it, or the turn ends with it.
            return vec![self.set(
                "answer: model",
                place,
                self.next(place),
                "/text",
                json!({ "json": "mutated" }),
            )];
        }
        let taken: Vec<usize> = (0..self.frames.len())
            .filter(|it| self.kind(*it) == FrameKind::ToolCalled && self.caused_by(*it, place))
            .collect();
        let changed = |index: usize| {
            let pointer = format!("/calls/{index}/arguments");
            self.set(
                "argument: model",
                place,
                taken.get(index).copied(),
                &pointer,
                json!({ "json": { "mutated": 1 } }),
            )
        };
        (0..calls).map(changed).collect()
    }

    /// Where a call's changed arguments show: the gates are asked about them, unless a schema turns them down first.
    fn gated(&self, place: usize) -> Option<usize> {
        let checked = self.find(place, |later| {
            self.kind(later) == FrameKind::ToolChecked && self.caused_by(later, place)
        })?;
        let called = self.find(checked, |later| {
            self.kind(later) == FrameKind::HookCalled && self.caused_by(later, checked)
        })?;
        (self.json(checked)["outcome"] == "valid").then_some(called)
    }

    fn approval_answered(&self, place: usize) -> Vec<Mutation<'a>> {
        let answer = &self.json(place)["answer"];
        let deny = json!({ "deny": { "reason": "mutated" } });
        let approve = json!({ "approve": { "scope": "once" } });
        if !answer["edit"].is_null() {
            let arguments = json!({ "json": { "n": 1, "count": 77_777 } });
            return vec![
                self.set("argument: edit", place, self.gated(place), "/answer/edit/arguments", arguments),
                self.set("answer: approval", place, self.next(place), "/answer", deny),
            ];
        }
        let other = if answer["deny"].is_null() { deny } else { approve };
        vec![self.set("answer: approval", place, self.next(place), "/answer", other)]
    }

    fn hook_agreed(&self, place: usize) -> Vec<Mutation<'a>> {
        let body = self.json(place);
        let hooks = body["hooks"].as_array().unwrap();
        let with = |hook: &str| json!(hooks.iter().cloned().chain([json!(hook)]).collect::<Vec<_>>());
        let twice = with(hooks[0].as_str().unwrap());
        let mut mutations = vec![
            self.set("agreed: a stranger", place, Some(place), "/hooks", with("stranger/0")),
            self.set("agreed: one twice", place, Some(place), "/hooks", twice),
        ];
        // What the last answer of a round leads to does not come about when one is missing.
        let leads_on = self.next(place).filter(|next| self.caused_by(*next, place));
        if let (Some(next), [fewer @ .., _]) = (leads_on, &hooks[..]) {
            let shows = if fewer.is_empty() { place } else { next };
            mutations.push(self.set("agreed: one fewer", place, Some(shows), "/hooks", json!(fewer)));
        }
        mutations
    }

    fn hook_decided(&self, place: usize) -> Vec<Mutation<'a>> {
        let body = self.json(place);
        let point: HookPoint = serde_json::from_value(body["point"].clone()).unwrap();
        let decision = &body["decision"];
        let word =
            decision.as_str().or_else(|| decision.as_object()?.keys().next().map(String::as_str)).unwrap();
        let reason = json!({ "reason": "mutated" });
        let set = |what, ends, value| self.set(what, place, self.word(place, ends), "/decision", value);
        let mutated = json!({ "json": "mutated" });
        // A round that closes, or no longer does, goes on differently at once.
        let at_once = self.next(place);
        match (point, word) {
            (HookPoint::ToolGate, "deny") => vec![set("decision: gate", at_once, json!("allow"))],
            (HookPoint::ToolGate, _) => vec![set("decision: gate", at_once, json!({ "deny": reason }))],
            (HookPoint::GuardInput | HookPoint::GuardOutput | HookPoint::GuardResult, "block") => {
                vec![set("decision: guard", at_once, json!("allow"))]
            }
            (HookPoint::GuardInput | HookPoint::GuardOutput | HookPoint::GuardResult, _) => {
                vec![set("decision: guard", at_once, json!({ "block": reason }))]
            }
            (HookPoint::ToolModify, "modify") if body["decision"]["modify"]["arguments"].is_object() => {
                let next =
                    self.find(place, |later| self.is_hooks_word(later) && self.same_cause(later, place));
                let value = json!({ "modify": { "arguments": { "json": { "count": 88_888 } } } });
                vec![set("argument: modifier", next.or_else(|| self.gated(place)), value)]
            }
            (HookPoint::ToolAfter, "enrich") => {
                vec![set(
                    "argument: result",
                    self.handed_on(place),
                    json!({ "enrich": { "result": mutated } }),
                )]
            }
            (HookPoint::CompactionProvide, _) => Vec::new(),
            (_, "replace") => vec![set(
                "argument: text",
                self.handed_on(place),
                json!({ "replace": { "content": mutated } }),
            )],
            (HookPoint::Context, "inject") => {
                let ends = self.round_shows(place, FrameKind::ContextInjected);
                vec![set("argument: context", ends, json!({ "inject": { "content": mutated } }))]
            }
            (HookPoint::ModelRoute, "route") => {
                let ends = self.round_shows(place, FrameKind::ModelRouted);
                vec![set(
                    "decision: route",
                    ends,
                    json!({ "route": { "model": "elsewhere", "authoritative": false, "reason": "" } }),
                )]
            }
            _ => Vec::new(),
        }
    }

    /// The frame in which the kernel says what a round came to, if the turn got that far.
    fn round_shows(&self, place: usize, kind: FrameKind) -> Option<usize> {
        let ends = |later: usize| {
            [kind, FrameKind::TurnEnded, FrameKind::SessionCancelled, FrameKind::TimerFired]
                .contains(&self.kind(later))
        };
        self.find(place, ends).filter(|ends| self.kind(*ends) == kind)
    }

    /// What the kernel decided cannot be otherwise.
    fn decided(&self, place: usize) -> Vec<Mutation<'a>> {
        let set = |what, pointer: &str, value| vec![self.set(what, place, Some(place), pointer, value)];
        let body = self.json(place);
        match self.kind(place) {
            FrameKind::HookCalled => {
                let mut hooks = body["hooks"].as_array().cloned().unwrap();
                match hooks.len() {
                    1 => set("decision: hooks", "/hooks", json!(["mallory/0"])),
                    _ => {
                        hooks.reverse();
                        set("hook order: list", "/hooks", json!(hooks))
                    }
                }
            }
            FrameKind::ToolDecided if body["verdict"] == "allowed" => set(
                "decision: verdict",
                "/verdict",
                json!({ "denied": { "by": "policy", "reason": "mutated" } }),
            ),
            FrameKind::ToolDecided => set("decision: verdict", "/verdict", json!("allowed")),
            FrameKind::ToolSettled if body["status"] == "done" => {
                set("decision: status", "/status", json!("denied"))
            }
            FrameKind::ToolSettled => set("decision: status", "/status", json!("done")),
            FrameKind::TurnEnded if body["answer"].is_null() => {
                set("decision: outcome", "/outcome", json!("answered"))
            }
            FrameKind::TurnEnded => set("answer: turn", "/answer", json!({ "json": "mutated" })),
            FrameKind::GuardVerdict => {
                set("decision: verdict", "/blocked", json!(!body["blocked"].as_bool().unwrap()))
            }
            FrameKind::ToolCalled => set("argument: call", "/arguments", json!(Digest::of(b"mutated"))),
            FrameKind::ToolDispatched => {
                set("argument: dispatch", "/arguments", json!(Digest::of(b"mutated")))
            }
            FrameKind::ModelRouted => set("decision: route", "/model", json!("elsewhere")),
            FrameKind::ModelRequested => {
                set("decision: request", "/messages", json!(body["messages"].as_u64().unwrap() + 1))
            }
            FrameKind::LimitReached => {
                set("decision: limit", "/used", json!(body["used"].as_u64().unwrap() + 1))
            }
            FrameKind::InputNormalised => set("argument: text", "/text", json!({ "json": "mutated" })),
            _ => Vec::new(),
        }
    }
}
