//! A session's actor: notes in, facts to the machine, frames to the log.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::host_call::topic::{TURN_ANSWER, TURN_MESSAGE};
use holdfast_contract::ids::{Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::{Origin, Spent};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, Registry};
use holdfast_contract::session_frames::{
    Answer, ApprovalAnswered, ApprovalScope, CommandRun, CompactionRequested, InputReceived,
    SessionCancelled, SessionEnded, SessionResumed, SessionSet, TurnOutcome, UiAnswered,
};
use holdfast_contract::system_frames::HeadAnchored;
use holdfast_kernel::{Pending, Session, barrier};
use holdfast_model::direct::NAME as DIRECT;
use holdfast_store::StreamLog;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::hooks::RoundAnswers;
use super::tasks::Tasks;
use super::{ProgressOutput, ReplySender, SessionCommand, SessionHandle, TurnReport, UserInput};
use crate::calls::{CallEnd, Instances};
use crate::clock::SteadyTime;
use crate::extensions::{PINNED_WAIT, START_WAIT, StartWait, crash_in, named_in};
use crate::history::Machine;
use crate::history::artifacts;
use crate::messaging::{OutputStream, QuestionEnd, told_answer};
use crate::parts::SessionEvent;
use crate::runtime::Inner;

/// Frames between snapshots: at least this many, and enough to pay for writing the state.
const SNAPSHOT_EVERY: u64 = 1024;

/// A session under way.
pub(crate) struct SessionActor {
    pub(super) session: Session,
    pub(super) log: StreamLog,
    pub(super) inner: Arc<Inner>,
    /// The time of its facts. While a turn runs it passes steadily, so that limits on time count what has passed and not how the
    /// machine's clock was set.
    pub(super) time: Arc<SteadyTime>,
    pub(super) inbox: mpsc::UnboundedSender<SessionCommand>,
    notes: mpsc::UnboundedReceiver<SessionCommand>,
    /// Facts that came at once and wait for their turn.
    pub(super) queue: VecDeque<Input>,
    /// Frames that the log has not been given yet, step by step.
    unlogged: Vec<Vec<Draft>>,
    /// Acts that wait until the facts before them are taken.
    pub(super) acts: VecDeque<Act>,
    /// What hooks have said in the rounds that are the next of these acts.
    pub(super) answered_rounds: VecDeque<RoundAnswers>,
    pub(super) tasks: Tasks,
    /// What the calls of the running turn run on.
    pub(super) instances: Instances,
    waiting: VecDeque<Box<UserInput>>,
    /// Until when the first of those who wait does so for gates and guardrails that are on their way up.
    held_until: Option<Millis>,
    /// Who waits for the running turn to end.
    answering: Vec<ReplySender<TurnReport>>,
    /// Who waits for the end of the turn that is held.
    awaiting_held: Vec<ReplySender<TurnReport>>,
    /// Where the running turn is shown, besides the surfaces.
    pub(super) output: Option<Arc<OutputStream>>,
    /// Where the progress of the running turn's calls is shown.
    pub(super) progress: Arc<ProgressOutput>,
    /// Whether a turn's end is being written and reported.
    pub(super) delivering: bool,
    /// The calls that wait for a person, by the frame that asks.
    pub(super) approvals: HashMap<Seq, Pending>,
    /// The extensions that wait for a person, by the frame that asks.
    pub(super) asked: HashMap<Seq, oneshot::Sender<Result<Content, Fault>>>,
    /// The questions whose answers are not written down.
    pub(super) unsaid: HashSet<Seq>,
    /// The models without a price that the user was told of.
    pub(super) unpriced: HashSet<ModelName>,
    /// The children that run for this session, by the frame that opened them.
    pub(super) children: HashMap<Seq, StreamId>,
    /// How many searches for tools there were, as far as they are not kept in the session.
    pub(super) searched: u64,
    /// The model call in which an agent's code was asked last.
    pub(super) code_asked: Option<Seq>,
    /// Host calls that were followed while they were served.
    pub(super) streamed_calls: u32,
    /// Which attempt at its model call is the last one.
    pub(super) attempt: u32,
    /// Whether events are raised about the running turn.
    watched: bool,
    /// Whether the running turn may have made files.
    made: bool,
    broken: Option<Problem>,
    snapshot_at: Seq,
    /// Whether the session was used since it was last asked whether it is.
    used: bool,
    /// Whether the session has ended for good, so that nobody will use it.
    over: bool,
    released: Arc<AtomicBool>,
}

impl SessionActor {
    /// Starts an actor on a machine whose frames so far are in the log.
    pub(crate) fn start(
        inner: Arc<Inner>,
        session: Session,
        log: StreamLog,
        first: Vec<Input>,
    ) -> SessionHandle {
        let (inbox, notes) = mpsc::unbounded_channel();
        let released = Arc::new(AtomicBool::new(false));
        let handle = SessionHandle {
            id: session.id().clone(),
            inbox: inbox.clone(),
            released: released.clone(),
            inner: Arc::downgrade(&inner),
            settings: None,
        };
        let actor = Self {
            progress: ProgressOutput::new(&inner, session.id(), None),
            snapshot_at: session.next_seq(),
            made: session.is_busy(),
            session,
            log,
            time: Arc::new(SteadyTime::new(inner.clock.clone())),
            inner,
            inbox,
            notes,
            queue: first.into(),
            unlogged: Vec::new(),
            acts: VecDeque::new(),
            answered_rounds: VecDeque::new(),
            tasks: Tasks::default(),
            instances: Instances::default(),
            waiting: VecDeque::new(),
            held_until: None,
            answering: Vec::new(),
            awaiting_held: Vec::new(),
            output: None,
            delivering: false,
            approvals: HashMap::new(),
            asked: HashMap::new(),
            unsaid: HashSet::new(),
            unpriced: HashSet::new(),
            children: HashMap::new(),
            searched: 0,
            code_asked: None,
            streamed_calls: 0,
            attempt: 1,
            watched: false,
            broken: None,
            used: true,
            over: false,
            released,
        };
        tokio::spawn(actor.run());
        handle
    }

    /// The fact that a session was resumed.
    pub(crate) fn resumed(inner: &Inner) -> Input {
        let body = SessionResumed { reason: "restart".to_owned() }.into();
        Input { at: inner.clock.now(), source: FrameSource::Host, cause: None, body }
    }

    async fn run(mut self) {
        // Resumed in the middle of a turn, which finishes on the code that it began with: that may not be up again yet.
        let mut resuming = self.session.is_busy().then(|| self.pinned());
        let resumed_by = self.inner.clock.steady().plus(PINNED_WAIT);
        if resuming.is_none() {
            self.drain();
        }
        loop {
            let note = tokio::select! {
                biased;
                note = self.notes.recv() => match note {
                    Some(note) => note,
                    None => return,
                },
                () = pinned_ready(&self.inner, resuming.as_ref(), resumed_by), if resuming.is_some() => {
                    self.go_on(resuming.take()).await;
                    continue;
                }
                () = turn_ready(&self.inner, self.held_until), if self.held_until.is_some() => {
                    if let Some(registry) = self.next_registry() {
                        self.inner.extensions.prepare(&registry).await;
                    }
                    self.drain();
                    continue;
                }
            };
            if let SessionCommand::Close(reply) = note {
                self.tasks.abort_all();
                self.snapshot();
                let closed = match self.session.next_seq().0.checked_sub(1) {
                    Some(last) if self.broken.is_none() => self.log.durable(Seq(last)).await,
                    _ => self.broken.clone().map_or(Ok(()), Err),
                };
                self.inner.sessions.forget(self.session.id(), &self.inbox);
                self.inner.messaging.questions.forget(self.session.id());
                drop(reply.send(closed));
                return;
            }
            if let SessionCommand::Release { unused, reply } = note {
                let used = unused && std::mem::take(&mut self.used);
                if used || !self.is_idle() {
                    drop(reply.send(Ok(false)));
                    continue;
                }
                let left = self.leave().await;
                return drop(reply.send(left.map(|()| true)));
            }
            self.used = true;
            // What is said meanwhile is for the next turn. Anything else does not wait.
            if resuming.is_some() && matches!(note, SessionCommand::Say(_) | SessionCommand::Await(_)) {
                self.take(note);
                continue;
            }
            self.go_on(resuming.take()).await;
            self.take(note);
            if let Some(registry) = self.next_registry() {
                self.inner.extensions.prepare(&registry).await;
            }
            self.drain();
            if self.over && self.is_idle() {
                // What keeps it from leaving keeps nothing else from going on; the next owner finds the session as it is.
                let _left = self.leave().await;
                return;
            }
        }
    }

    /// The generations that the running turn is pinned to.
    fn pinned(&mut self) -> BTreeSet<Arc<ExtensionRef>> {
        named_in(&self.session.pins().filter_map(|pin| pin.view.clone()).collect::<Vec<_>>())
    }

    /// Goes on with a turn that was resumed, if there is one.
    async fn go_on(&mut self, resuming: Option<BTreeSet<Arc<ExtensionRef>>>) {
        let Some(pinned) = resuming else { return };
        self.inner.extensions.load_pinned(&pinned).await;
        let registries: Vec<_> = self.session.pins().filter_map(|pin| pin.view.clone()).collect();
        for registry in &registries {
            self.inner.extensions.prepare(registry).await;
        }
        self.drain();
    }

    /// Whether nothing is under way and nobody waits for anything.
    fn is_idle(&self) -> bool {
        let asks_nobody = self.approvals.is_empty() && self.asked.is_empty() && self.answering.is_empty();
        let runs = self.session.is_busy() || self.delivering || self.broken.is_some();
        asks_nobody && !runs && self.waiting.is_empty() && self.children.is_empty()
    }

    /// Releases the session. What was sent meanwhile goes to the actor that resumes it.
    async fn leave(&mut self) -> Result<(), Problem> {
        self.snapshot();
        if let Some(last) = self.session.next_seq().0.checked_sub(1) {
            self.log.durable(Seq(last)).await?;
        }
        self.tasks.abort_all();
        self.released.store(true, Ordering::Release);
        self.inner.sessions.forget(self.session.id(), &self.inbox);
        self.notes.close();
        let mut successor = None;
        while let Ok(note) = self.notes.try_recv() {
            if let SessionCommand::Release { reply, .. } = note {
                drop(reply.send(Ok(true)));
                continue;
            }
            if successor.is_none() {
                successor = self.inner.resume(self.session.id()).ok();
            }
            // Without a successor the note is dropped, and who waits for its answer learns that the session is not open.
            if let Some(handle) = &successor {
                drop(handle.inbox.send(note));
            }
        }
        Ok(())
    }

    /// The registry that the next turn begins on, if one can begin. The code of its hooks is brought in first.
    fn next_registry(&self) -> Option<Arc<Registry>> {
        let say = self.waiting.front().filter(|_| !self.session.is_busy())?;
        let pin = say.pin.clone().unwrap_or_else(|| self.inner.registry.pin());
        Some(pin.view.unwrap_or_default())
    }

    /// Whether the next turn has to wait for extensions that are starting: for gates and guardrails until they judge, for others until
    /// they have had time to start. A turn that is pinned has its registry.
    fn is_held(&mut self) -> bool {
        let now = self.inner.clock.steady();
        let starting = self.inner.extensions.startup().holds_turns(now);
        let judges = self.inner.registry.awaits_judges();
        if self.waiting.front().is_none_or(|say| say.pin.is_some()) || !(starting || judges) {
            self.held_until = None;
            return false;
        }
        let until = *self.held_until.get_or_insert(now.plus(START_WAIT));
        let held = starting || now < until;
        if !held {
            self.held_until = None;
        }
        held
    }

    fn take(&mut self, note: SessionCommand) {
        match note {
            SessionCommand::Say(say) => match &self.broken {
                Some(problem) => drop(say.reply.send(Err(problem.clone()))),
                None => self.waiting.push_back(say),
            },
            SessionCommand::Await(reply) => match &self.broken {
                Some(problem) => drop(reply.send(Err(problem.clone()))),
                None if self.session.is_busy() || self.delivering => self.answering.push(reply),
                None if self.held_until.is_some() => self.awaiting_held.push(reply),
                None => drop(reply.send(Err(Self::no_turn()))),
            },
            SessionCommand::Fact(input) => self.queue.push_back(*input),
            SessionCommand::Returned(returned) => self.returned(*returned),
            // The caller has stopped waiting meanwhile.
            SessionCommand::HostCall(call) if call.reply.is_closed() => {}
            SessionCommand::Answered(answered) => self.answered(*answered),
            SessionCommand::HostCall(call) => self.host_call(*call),
            SessionCommand::Question { reply, .. } if reply.is_closed() => {}
            SessionCommand::Question { extension, under, hook, question, reply } => {
                self.ask_user(&extension, (under, hook), question, reply);
            }
            SessionCommand::Command { command, arguments, output, reply } => {
                let source = FrameSource::Surface("command".into());
                let arguments = self.inner.home.redact_text(arguments);
                self.answer_with(reply, source, CommandRun { command, arguments, output });
            }
            SessionCommand::Choose { models, reply } => {
                self.answer_with(reply, FrameSource::Surface("command".into()), SessionSet { models });
            }
            SessionCommand::Compact { reason, reply } => {
                let registry = self.inner.registry.pin();
                self.answer_with(reply, FrameSource::Host, CompactionRequested { reason, registry });
            }
            SessionCommand::Cancel { reply, .. } if self.held_until.take().is_some() => {
                let held = self.waiting.pop_front().map(|say| say.reply);
                for waiting in held.into_iter().chain(self.awaiting_held.drain(..)) {
                    let cancelled =
                        Problem::new(Code::TurnCancelled, "the turn was cancelled before it began");
                    drop(waiting.send(Err(cancelled)));
                }
                drop(reply.send(Ok(())));
            }
            SessionCommand::Cancel { reason, reply } => {
                self.answer_with(reply, FrameSource::Host, SessionCancelled { reason })
            }
            SessionCommand::End { reason, reply } => {
                let input = self.fact(FrameSource::Host, None, SessionEnded { reason });
                let ended = self.step(input);
                self.over |= ended.is_ok();
                drop(reply.send(ended));
            }
            SessionCommand::Approval { approval, reply } => {
                let missing = || Self::not_asked("approval", approval);
                drop(reply.send(self.approvals.get(&approval).cloned().ok_or_else(missing)));
            }
            SessionCommand::Approve { approval, mut answer, by, reply } => {
                if let Answer::Approve { scope } = &mut answer
                    && !self.inner.policy_in_force().is_ok_and(|policy| {
                        policy.under(self.session.settings().pinned_profile).remembers_answers()
                    })
                {
                    *scope = ApprovalScope::Once;
                }
                let source = FrameSource::Surface(by);
                let input = self.fact(source, Some(approval), ApprovalAnswered { approval, answer });
                self.answer_step(reply, input);
            }
            SessionCommand::AnswerUi { request, reply, .. } if !self.asked.contains_key(&request) => {
                drop(reply.send(Err(Self::not_asked("question", request))));
            }
            SessionCommand::AnswerUi { request, answer, by, reply } => {
                let value = answer.clone();
                // What must not be shown is not written down either.
                let hidden = self.unsaid.remove(&request);
                let answer = answer.map(|answer| if hidden { Content::text("[secret]") } else { answer });
                let source = FrameSource::Surface(by);
                let input = self.fact(source, Some(request), UiAnswered { request, answer });
                self.answer_step(reply, input);
                if let Some(asked) = self.asked.remove(&request) {
                    drop(asked.send(Ok(value.unwrap_or_else(|| Content::new(Default::default())))));
                }
            }
            SessionCommand::Ended { ended, outcome, answer, spent } => {
                self.ended(ended, outcome, answer, spent);
            }
            SessionCommand::Broken(problem) => self.break_down(problem),
            SessionCommand::Close(reply) => drop(reply.send(Ok(()))),
            SessionCommand::Release { reply, .. } => drop(reply.send(Ok(false))),
        }
    }

    /// Steps until nothing is left that is there at once.
    fn drain(&mut self) {
        loop {
            while !(self.queue.is_empty() && self.acts.is_empty()) {
                self.take_facts();
                self.act();
            }
            // A log that cannot be written has broken the session down.
            let _broken = self.hand_over();
            if self.session.is_busy() || self.delivering {
                return;
            }
            // What was awaited was not a turn but a compaction or the session's end.
            for reply in self.answering.drain(..) {
                drop(reply.send(Err(Self::no_turn())));
            }
            if self.is_held() {
                return;
            }
            self.answering.append(&mut self.awaiting_held);
            let Some(say) = self.waiting.pop_front() else { return };
            self.begin_turn(*say);
        }
    }

    /// Steps over what waits, and only then acts: many calls that are at the same place are all decided, and then all made, and
    /// the code of the one does not drive the other's out of the caches. A fact that ends a call waits for the acts before it, because
    /// what runs on which instance follows from the order of the frames.
    fn take_facts(&mut self) {
        while let Some(input) = self.queue.pop_front() {
            let ending = CallEnd::of(&input);
            if ending.is_some() {
                self.act();
            }
            // A fact that is no longer awaited came too late; it is not recorded.
            let _late = self.advance(input, ending);
        }
    }

    /// Performs the acts that wait. Their immediate results are queued.
    fn act(&mut self) {
        while let Some(act) = self.acts.pop_front() {
            if barrier(&act).is_some() && self.hand_over().is_err() {
                return self.acts.clear();
            }
            self.perform(act);
        }
        if !self.session.is_busy() {
            self.instances.clear();
        }
    }

    fn no_turn() -> Problem {
        Problem::new(Code::TurnUnexpected, "no turn is running")
    }

    fn not_asked(what: &str, request: Seq) -> Problem {
        Problem::new(Code::TurnUnexpected, format!("no {what} waits at frame {request}"))
    }

    fn begin_turn(&mut self, say: UserInput) {
        let UserInput {
            surface,
            text,
            attachments,
            message_id,
            delivered_again,
            pin,
            output,
            watched,
            reply,
        } = say;
        if delivered_again && reply.is_closed() {
            return;
        }
        let registry = pin.unwrap_or_else(|| self.inner.registry.pin());
        let said = watched.then(|| text.clone());
        let body = InputReceived { text, attachments, message_id, registry };
        let input = self.fact(FrameSource::Surface(surface), None, body);
        self.made = false;
        // A call of a tool without a model is not a conversation.
        self.watched = watched && self.session.settings().models.iter().any(|it| it.as_str() != DIRECT);
        self.show_in(output.inspect(|output| output.begins(self.inbox.clone())));
        match self.step(input) {
            Ok(()) => {
                self.answering.push(reply);
                said.into_iter().for_each(|text| self.raise(TURN_MESSAGE, &text));
            }
            Err(problem) => {
                self.show_in(None);
                drop(reply.send(Err(problem)));
            }
        }
    }

    /// Raises an event about the running turn for those who watch it.
    fn raise(&self, topic: &str, text: &Content) {
        if !self.watched {
            return;
        }
        let Origin { channel, user } = self.session.origin();
        self.inner.raise_turn_event(topic, || {
            let text = self.inner.home.redact_text(text.to_text());
            let (session, agent) = (self.session.id(), self.session.agent());
            json!({ "text": text, "user_id": user, "channel_id": channel, "session_id": session, "thread_id": session,
                "agent_id": agent })
        });
    }

    /// Shows the turn in this stream, besides the surfaces.
    fn show_in(&mut self, output: Option<Arc<OutputStream>>) {
        self.progress = ProgressOutput::new(&self.inner, self.session.id(), output.clone());
        self.output = output;
    }

    /// One step of the machine, whose frames are with the log when it returns.
    pub(super) fn step(&mut self, input: Input) -> Result<(), Problem> {
        let ending = CallEnd::of(&input);
        self.advance(input, ending)?;
        self.hand_over()
    }

    /// One step of the machine: its frames are kept for the log, its acts for when all facts are taken. Frames that one input after
    /// the other leads to go to the log together; none is kept back when an act must wait for it.
    fn advance(&mut self, mut input: Input, ending: Option<CallEnd>) -> Result<(), Problem> {
        if let Some(problem) = &self.broken {
            return Err(problem.clone());
        }
        self.inner.home.redact(&mut input.body);
        let faulted = crash_in(&input);
        let answered = match &input.body {
            Body::ApprovalAnswered(fact) => Some((fact.approval, told_answer(&fact.answer))),
            Body::UiAnswered(fact) => Some((fact.request, "answered".to_owned())),
            _ => None,
        };
        let answered = answered.map(|(request, words)| (request, words, input.source.clone()));
        let Effects { frames, acts } = self.session.step(input)?;
        if let Some((request, words, by)) = answered {
            self.approvals.remove(&request);
            self.inner.question_ended(self.session.id(), request, QuestionEnd::Answered { by, words });
        }
        if let Some(ending) = ending {
            self.instances.end(&ending);
        }
        if let Some(faulted) = faulted {
            self.inner.system.tell(faulted);
        }
        if let Some(output) = &self.output {
            output.see(&frames);
        }
        self.made |= artifacts::may_be_in(&frames);
        let mut attempts = frames.iter().rev().filter_map(|frame| match &frame.body {
            Body::ModelRequested(fact) => Some(fact.attempt),
            _ => None,
        });
        self.attempt = attempts.next().unwrap_or(self.attempt);
        self.unlogged.push(frames);
        self.acts.extend(acts);
        let since = self.session.next_seq().0 - self.snapshot_at.0;
        if since >= SNAPSHOT_EVERY.max(self.session.weight()) {
            self.snapshot();
        }
        Ok(())
    }

    /// Hands the log what was kept for it.
    fn hand_over(&mut self) -> Result<(), Problem> {
        if self.unlogged.is_empty() {
            return Ok(());
        }
        let handed = self.log.append_steps(std::mem::take(&mut self.unlogged));
        handed.inspect_err(|problem| self.break_down(problem.clone()))
    }

    fn snapshot(&mut self) {
        if self.hand_over().is_err() {
            return;
        }
        let next = self.session.next_seq();
        if self.broken.is_some() || next == self.snapshot_at {
            return;
        }
        self.snapshot_at = next;
        let state = self.session.clone();
        let write = move || {
            canonical(&state)
                .map_err(|error| Problem::new(Code::Internal, format!("a session's state: {error}")))
        };
        self.log.snapshot(Seq(next.0 - 1), Session::STATE_VERSION, Box::new(write));
    }

    pub(super) fn fact(&self, source: FrameSource, cause: Option<Seq>, body: impl Into<Body>) -> Input {
        if !self.session.is_busy() {
            self.time.anchor();
        }
        Input { at: self.time.now(), source, cause, body: body.into() }
    }

    fn answer_with(&mut self, reply: ReplySender<()>, source: FrameSource, body: impl Into<Body>) {
        let input = self.fact(source, None, body);
        self.answer_step(reply, input);
    }

    fn answer_step(&mut self, reply: ReplySender<()>, input: Input) {
        drop(reply.send(self.step(input)));
    }

    fn ended(&mut self, ended: Seq, outcome: TurnOutcome, answer: Option<Content>, spent: Spent) {
        self.delivering = false;
        let asked = self.progress.asked().lock().take();
        if let Some(asked) = asked {
            let input = self.fact(FrameSource::Host, Some(ended), asked);
            self.queue.push_back(input);
        }
        self.show_in(None);
        if let (TurnOutcome::Answered, Some(answer)) = (&outcome, &answer) {
            self.raise(TURN_ANSWER, answer);
        }
        let limit_set_in = self.inner.limit_set_in(&outcome, self.session.id(), ended);
        self.approvals.clear();
        // A call that has ended no longer waits for the answer to its question.
        self.asked.retain(|_, reply| !reply.is_closed());
        self.inner.turn_ended_for(self.session.id(), |request| self.asked.contains_key(&request));
        if let Some(head) = self.log.head() {
            let stream = self.session.id().clone();
            self.inner.system.tell(HeadAnchored { stream, seq: head.seq, hash: head.hash });
        }
        let files = if self.made {
            self.inner.turn_artifacts(self.session.id(), ended, &outcome)
        } else {
            Ok(Vec::new())
        };
        let report = files.map(|files| TurnReport { ended, outcome, answer, files, spent, limit_set_in });
        let (agent, registry) = (self.session.agent(), self.inner.registry.view());
        let entry = Spent { time: spent.time, ..Spent::default() };
        self.inner.usage.daily().enter(self.inner.clock.now(), registry.owner(agent), entry);
        for reply in self.answering.drain(..) {
            drop(reply.send(report.clone()));
        }
    }

    /// The log cannot be written: nothing more is decided here, and everyone who waits is told.
    fn break_down(&mut self, problem: Problem) {
        if self.broken.is_some() {
            return;
        }
        self.tasks.abort_all();
        self.queue.clear();
        self.acts.clear();
        self.inner.surface.show(self.session.id(), SessionEvent::Broken(problem.clone()));
        let answering = self.answering.drain(..).chain(self.awaiting_held.drain(..));
        for reply in answering.chain(self.waiting.drain(..).map(|say| say.reply)) {
            drop(reply.send(Err(problem.clone())));
        }
        self.inner.sessions.forget(self.session.id(), &self.inbox);
        self.inner.messaging.questions.forget(self.session.id());
        self.broken = Some(problem);
    }
}

/// Waits until a turn can begin that waits for gates and guardrails until this time.
async fn turn_ready(inner: &Inner, held_until: Option<Millis>) {
    let clock = &*inner.clock;
    tokio::join!(
        inner.registry.judges_ready(held_until.unwrap_or_default(), clock),
        inner.extensions.startup().ready(StartWait::Start, clock),
    );
}

/// Waits for the content that a resumed turn is pinned to, until this time.
async fn pinned_ready(inner: &Inner, pinned: Option<&BTreeSet<Arc<ExtensionRef>>>, until: Millis) {
    if let Some(pinned) = pinned {
        inner.extensions.pinned_ready(pinned, until).await;
    }
}
