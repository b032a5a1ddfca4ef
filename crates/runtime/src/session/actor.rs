//! A session's actor: notes in, facts to the machine, frames to the log.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::{ExtensionId, HookId, Millis, Seq, StreamId};
use holdfast_contract::message::Spent;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, Registry};
use holdfast_contract::session_frames::{
    Answer, ApprovalAnswered, ApprovalScope, ClockRead, CommandRun, CompactionRequested, HostCalled,
    InputReceived, MessageInjected, RandomDrawn, SessionCancelled, SessionEnded, SessionResumed, SessionSet,
    StateWritten, TurnOutcome, UiAnswered, UiQuestion, UiRequested,
};
use holdfast_contract::system_frames::HeadAnchored;
use holdfast_contract::tool::ToolOutcome;
use holdfast_kernel::{Pending, Session, barrier};
use holdfast_store::StreamLog;
use tokio::sync::{mpsc, oneshot};

use super::hooks::RoundAnswers;
use super::tasks::Tasks;
use super::{HostAnswer, ReplySender, SessionCommand, SessionHandle, TurnReport, UserInput};
use crate::calls::{CallEnd, Instances};
use crate::extensions::{START_WAIT, crash_in};
use crate::history::Machine;
use crate::history::artifacts;
use crate::host::{Caller, SessionHost};
use crate::messaging::OutputStream;
use crate::parts::{OutputDelta, OutputKind, SessionEvent};
use crate::runtime::Inner;
use crate::usage::DelegatedBudget;

/// Frames between snapshots: at least this many, and enough to pay for writing the state.
const SNAPSHOT_EVERY: u64 = 1024;

/// A session under way.
pub(crate) struct SessionActor {
    pub(super) session: Session,
    pub(super) log: StreamLog,
    pub(super) inner: Arc<Inner>,
    pub(super) inbox: mpsc::UnboundedSender<SessionCommand>,
    notes: mpsc::UnboundedReceiver<SessionCommand>,
    /// Facts that came at once and wait for their turn.
    pub(super) queue: VecDeque<Input>,
    /// Frames that the log has not been given yet, step by step.
    unlogged: Vec<Vec<Draft>>,
    /// Acts that wait until the facts before them are taken.
    pub(super) acts: VecDeque<Act>,
    /// What hooks have said in the rounds that are the next of these acts.
    pub(super) heard: VecDeque<RoundAnswers>,
    pub(super) tasks: Tasks,
    /// What the calls of the running turn run on.
    pub(super) instances: Instances,
    waiting: VecDeque<Box<UserInput>>,
    /// Until when the first of those who wait does so for gates and guardrails that are on their way up.
    held_until: Option<Millis>,
    /// Who waits for the running turn to end.
    answering: Vec<ReplySender<TurnReport>>,
    /// Where the running turn is shown, besides the surfaces.
    pub(super) feed: Option<Arc<OutputStream>>,
    /// Whether a turn's end is being written and reported.
    pub(super) delivering: bool,
    /// The calls that wait for a person, by the frame that asks.
    pub(super) approvals: HashMap<Seq, Pending>,
    /// The extensions that wait for a person, by the frame that asks.
    asked: HashMap<Seq, oneshot::Sender<Result<Content, Fault>>>,
    /// The questions whose answers are not written down.
    unsaid: HashSet<Seq>,
    /// The children that run for this session, by the frame that opened them.
    pub(super) children: HashMap<Seq, StreamId>,
    /// What agents have used that extensions asked.
    /// The time of the session's turns before this one.
    time_before: Millis,
    /// How many searches for tools there were, as far as they are not kept in the session.
    pub(super) searched: u64,
    /// Whether the running turn may have made files.
    made: bool,
    broken: Option<Problem>,
    snapshot_at: Seq,
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
        let handle = SessionHandle { id: session.id().clone(), inbox: inbox.clone() };
        // Of a turn that is resumed, all the time of the session counts.
        let time_before = if session.is_busy() { Millis(0) } else { session.spent().time };
        let actor = Self {
            snapshot_at: session.next_seq(),
            made: session.is_busy(),
            session,
            log,
            inner,
            inbox,
            notes,
            queue: first.into(),
            unlogged: Vec::new(),
            acts: VecDeque::new(),
            heard: VecDeque::new(),
            tasks: Tasks::default(),
            instances: Instances::default(),
            waiting: VecDeque::new(),
            held_until: None,
            answering: Vec::new(),
            feed: None,
            delivering: false,
            approvals: HashMap::new(),
            asked: HashMap::new(),
            unsaid: HashSet::new(),
            children: HashMap::new(),
            time_before,
            searched: 0,
            broken: None,
        };
        tokio::spawn(actor.run());
        handle
    }

    /// The fact that a session was taken up again.
    pub(crate) fn resumed(inner: &Inner) -> Input {
        Self::fact_at(inner, FrameSource::Host, None, SessionResumed { reason: "restart".to_owned() })
    }

    async fn run(mut self) {
        if self.session.is_busy() {
            // Taken up in the middle of a turn, which finishes on the code that it began with.
            let pinned: Vec<_> = self.session.pins().filter_map(|pin| pin.view.clone()).collect();
            self.inner.extensions.load_pinned(&pinned).await;
            for registry in &pinned {
                self.inner.extensions.prepare(registry).await;
            }
        }
        self.drain();
        loop {
            let note = tokio::select! {
                biased;
                note = self.notes.recv() => match note {
                    Some(note) => note,
                    None => return,
                },
                () = self.inner.registry.judges_ready(self.held_until.unwrap_or_default(), &*self.inner.clock), if self.held_until.is_some() => {
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
                drop(reply.send(closed));
                return;
            }
            self.take(note);
            if let Some(registry) = self.next_registry() {
                self.inner.extensions.prepare(&registry).await;
            }
            self.drain();
        }
    }

    /// The registry that the next turn begins on, if one can begin. The code of its hooks is brought in first.
    fn next_registry(&self) -> Option<Arc<Registry>> {
        let say = self.waiting.front().filter(|_| !self.session.is_busy())?;
        let pin = say.pin.clone().unwrap_or_else(|| self.inner.registry.pin());
        Some(pin.view.unwrap_or_default())
    }

    /// Whether the next turn has to wait for gates and guardrails that are on their way up. A turn that is pinned has its registry.
    fn is_held(&mut self) -> bool {
        if self.waiting.front().is_none_or(|say| say.pin.is_some()) || !self.inner.registry.awaits_judges() {
            self.held_until = None;
            return false;
        }
        let now = self.inner.clock.now();
        let until = *self.held_until.get_or_insert(now.plus(START_WAIT));
        if now >= until {
            self.held_until = None;
        }
        now < until
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
                None => drop(reply.send(Err(Self::no_turn()))),
            },
            SessionCommand::Fact(input) => self.queue.push_back(*input),
            SessionCommand::Returned(returned) => self.returned(*returned),
            // The caller has stopped waiting meanwhile.
            SessionCommand::HostCall { reply, .. } if reply.is_closed() => {}
            SessionCommand::Answered(answered) => self.answered(*answered),
            SessionCommand::Progress { extension, under, text } => {
                let text = self.inner.home.hide_in_text(text);
                if let Some(feed) = &self.feed {
                    feed.progress(&extension, &text);
                }
                let delta = OutputDelta { after: under, kind: OutputKind::Progress { extension }, text };
                self.inner.surface.show(self.session.id(), SessionEvent::Output(delta));
            }
            SessionCommand::HostCall { extension, under, hook, call, timeout, reply } => {
                self.host_call(&extension, (under, hook), (call, timeout), reply);
            }
            SessionCommand::Command { command, arguments, output, reply } => {
                let source = FrameSource::Surface("command".into());
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
                if let Some(say) = self.waiting.pop_front() {
                    let cancelled =
                        Problem::new(Code::TurnCancelled, "the turn was cancelled before it began");
                    drop(say.reply.send(Err(cancelled)));
                }
                drop(reply.send(Ok(())));
            }
            SessionCommand::Cancel { reason, reply } => {
                self.answer_with(reply, FrameSource::Host, SessionCancelled { reason })
            }
            SessionCommand::End { reason, reply } => {
                self.answer_with(reply, FrameSource::Host, SessionEnded { reason })
            }
            SessionCommand::Approval { approval, reply } => {
                let missing = || Self::not_asked("approval", approval);
                drop(reply.send(self.approvals.get(&approval).cloned().ok_or_else(missing)));
            }
            SessionCommand::Approve { approval, mut answer, reply } => {
                if let Answer::Approve { scope } = &mut answer
                    && !self.inner.policy_in_force().is_ok_and(|policy| policy.remembers_answers())
                {
                    *scope = ApprovalScope::Once;
                }
                let source = FrameSource::Surface("approval".into());
                let input = self.fact(source, Some(approval), ApprovalAnswered { approval, answer });
                self.answer_step(reply, input);
            }
            SessionCommand::AnswerUi { request, reply, .. } if !self.asked.contains_key(&request) => {
                drop(reply.send(Err(Self::not_asked("question", request))));
            }
            SessionCommand::AnswerUi { request, answer, reply } => {
                let value = answer.clone();
                // What must not be shown is not written down either.
                let hidden = self.unsaid.remove(&request);
                let answer = answer.map(|answer| if hidden { Content::text("[secret]") } else { answer });
                let source = FrameSource::Surface("ui".into());
                let input = self.fact(source, Some(request), UiAnswered { request, answer });
                self.answer_step(reply, input);
                if let Some(asked) = self.asked.remove(&request) {
                    drop(asked.send(Ok(value.unwrap_or_else(|| Content::new(Default::default())))));
                }
            }
            SessionCommand::Ended { ended, outcome, answer } => self.ended(ended, outcome, answer),
            SessionCommand::Broken(problem) => self.break_down(problem),
            SessionCommand::Close(reply) => drop(reply.send(Ok(()))),
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
            // What was awaited was no turn but a compaction or the session's end.
            for reply in self.answering.drain(..) {
                drop(reply.send(Err(Self::no_turn())));
            }
            if self.is_held() {
                return;
            }
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
            // A fact that nobody waits for any more came too late; it was never recorded.
            let _late = self.advance(input, ending);
        }
    }

    /// Performs the acts that wait. What comes of them at once waits in its turn.
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
        let UserInput { surface, text, attachments, message_id, pin, feed, reply } = say;
        if message_id.is_some() && reply.is_closed() {
            return;
        }
        let registry = pin.unwrap_or_else(|| self.inner.registry.pin());
        let body = InputReceived { text, attachments, message_id, registry };
        let input = self.fact(FrameSource::Surface(surface), None, body);
        self.made = false;
        self.feed = feed.inspect(|feed| feed.begins(self.inbox.clone()));
        match self.step(input) {
            Ok(()) => self.answering.push(reply),
            Err(problem) => {
                self.feed = None;
                drop(reply.send(Err(problem)));
            }
        }
    }

    /// One step of the machine, whose frames are with the log when it returns.
    fn step(&mut self, input: Input) -> Result<(), Problem> {
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
        self.inner.home.hide(&mut input.body);
        let faulted = crash_in(&input);
        let answered = match &input.body {
            Body::ApprovalAnswered(fact) => Some(fact.approval),
            _ => None,
        };
        let Effects { frames, acts } = self.session.step(input)?;
        if let Some(approval) = answered {
            self.approvals.remove(&approval);
        }
        if let Some(ending) = ending {
            self.instances.end(&ending);
        }
        if let Some(faulted) = faulted {
            self.inner.system.tell(faulted);
        }
        if let Some(feed) = &self.feed {
            feed.see(&frames);
        }
        self.made |= artifacts::may_be_in(&frames);
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
        Self::fact_at(&self.inner, source, cause, body)
    }

    fn fact_at(inner: &Inner, source: FrameSource, cause: Option<Seq>, body: impl Into<Body>) -> Input {
        Input { at: inner.clock.now(), source, cause, body: body.into() }
    }

    fn answer_with(&mut self, reply: ReplySender<()>, source: FrameSource, body: impl Into<Body>) {
        let input = self.fact(source, None, body);
        self.answer_step(reply, input);
    }

    fn answer_step(&mut self, reply: ReplySender<()>, input: Input) {
        drop(reply.send(self.step(input)));
    }

    fn ended(&mut self, ended: Seq, outcome: TurnOutcome, answer: Option<Content>) {
        self.delivering = false;
        self.feed = None;
        let limit_set_in = self.inner.limit_set_in(&outcome, self.session.id(), ended);
        self.approvals.clear();
        // A call that has ended no longer waits for the answer to its question.
        self.asked.retain(|_, reply| !reply.is_closed());
        if let Some(head) = self.log.head() {
            let stream = self.session.id().clone();
            self.inner.system.tell(HeadAnchored { stream, seq: head.seq, hash: head.hash });
        }
        let files = match self.made {
            true => self.inner.turn_artifacts(self.session.id(), ended, &outcome),
            false => Ok(Vec::new()),
        };
        let spent = self.session.spent();
        let report = files.map(|files| TurnReport { ended, outcome, answer, files, spent, limit_set_in });
        let time = spent.time.since(self.time_before);
        let (agent, registry) = (self.session.agent(), self.inner.registry.view());
        let entry = Spent { time, ..Spent::default() };
        self.inner.usage.daily().enter(self.inner.clock.now(), registry.owner(agent), entry);
        self.time_before = spent.time;
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
        for reply in self.answering.drain(..).chain(self.waiting.drain(..).map(|say| say.reply)) {
            drop(reply.send(Err(problem.clone())));
        }
        self.inner.sessions.forget(self.session.id(), &self.inbox);
        self.broken = Some(problem);
    }

    /// Serves a host call. Call and answer are recorded before the extension has the answer.
    fn host_call(
        &mut self,
        extension: &Arc<ExtensionRef>,
        (under, hook): (Seq, Option<HookId>),
        (call, timeout): (HostCall, Option<Millis>),
        reply: oneshot::Sender<Result<Content, Fault>>,
    ) {
        let id: ExtensionId = extension.id.clone();
        let clock = self.inner.clock.now();
        let (body, value): (Body, Content) = match call {
            HostCall::Clock => {
                let body = ClockRead { extension: id, hook, value: clock };
                (body.into(), Content::of(&clock))
            }
            HostCall::Random { bytes } => {
                let bytes = self.inner.entropy.draw_hex(bytes);
                (RandomDrawn { extension: id, hook, bytes: bytes.clone() }.into(), Content::text(bytes))
            }
            HostCall::StateGet { key } => {
                let value = self.session.state(&id, &key).cloned();
                let value = value.unwrap_or_else(|| Content::new(Default::default()));
                let (arguments, outcome) = (Content::text(key), ToolOutcome::Result(value.clone()));
                (
                    HostCalled {
                        extension: id,
                        hook,
                        ask: HostCallKind::StateGet.name().to_owned(),
                        arguments,
                        outcome,
                        spent: None,
                    }
                    .into(),
                    value,
                )
            }
            HostCall::StateSet { key, value } => {
                (StateWritten { extension: id, hook, key, value }.into(), Content::new(Default::default()))
            }
            HostCall::Inject { text } => {
                (MessageInjected { extension: id, hook, text }.into(), Content::new(Default::default()))
            }
            HostCall::Ui(question) => {
                let request = self.session.next_seq();
                if matches!(question, UiQuestion::Input { secret: true, .. }) {
                    self.unsaid.insert(request);
                }
                let body = UiRequested { extension: id, hook, question };
                let input = self.fact(FrameSource::Extension(extension.clone()), Some(under), body);
                match self.step(input) {
                    Ok(()) => drop(self.asked.insert(request, reply)),
                    Err(problem) => drop(reply.send(Err(problem.to_fault()))),
                }
                return;
            }
            call => return self.serve_call(extension, (under, hook), (call, timeout), reply),
        };
        let input = self.fact(FrameSource::Extension(extension.clone()), Some(under), body);
        drop(reply.send(self.step(input).map(|()| value).map_err(|problem| problem.to_fault())));
    }

    /// Serves a host call that is recorded by its name.
    fn serve_call(
        &mut self,
        extension: &Arc<ExtensionRef>,
        (under, hook): (Seq, Option<HookId>),
        (call, timeout): (HostCall, Option<Millis>),
        mut reply: oneshot::Sender<Result<Content, Fault>>,
    ) {
        if hook.is_some() && call.kind().is_some_and(|kind| !kind.is_for_hooks()) {
            let message = format!("a hook may not call `{}`", call.name());
            return drop(reply.send(Err(Fault::new(Code::ToolDenied, message))));
        }
        let budget = DelegatedBudget::new(self.session.left());
        let caller = self.caller(extension, (under, hook.clone()), budget.clone());
        let (extension, record) = (extension.clone(), call.record());
        let is_invocation = matches!(call, HostCall::AgentInvoke(_));
        let mut answer = match call {
            HostCall::ToolsFind(it) => self.tools_find(&caller, &it.read),
            HostCall::CapabilitiesList(_) => self.capabilities_list(&caller),
            call => self.inner.serve(caller, call, timeout),
        };
        // An answer that is ready is recorded at once: answers keep the order of the calls.
        if let Some(answer) = (&mut answer).now_or_never() {
            let spent = budget.used();
            return self.answered(HostAnswer { extension, under, hook, call: record, answer, spent, reply });
        }
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let answer = match is_invocation {
                // An agent is cancelled when its caller has stopped waiting.
                true => tokio::select! {
                    biased;
                    answer = answer => answer,
                    () = reply.closed() => Err(Fault::new(Code::TurnCancelled, "the caller has stopped waiting")),
                },
                false => answer.await,
            };
            let spent = budget.used();
            let answered = HostAnswer { extension, under, hook, call: record, answer, spent, reply };
            drop(inbox.send(SessionCommand::Answered(Box::new(answered))));
        });
    }

    /// An extension that makes a host call in this session.
    fn caller(
        &self,
        extension: &Arc<ExtensionRef>,
        (under, hook): (Seq, Option<HookId>),
        budget: DelegatedBudget,
    ) -> Caller {
        let (inbox, extension) = (self.inbox.clone(), extension.clone());
        let user = SessionHost { inbox, extension: extension.clone(), under, hook };
        Caller {
            grants: self.inner.grants_of(&extension),
            extension,
            session: Some(self.session.id().clone()),
            under: Some(under),
            budget: Some(budget),
            user: Some(Arc::new(user)),
        }
    }

    /// Records a host call and its answer, and then sends the answer.
    fn answered(&mut self, answered: HostAnswer) {
        let HostAnswer { extension, under, hook, call, answer, spent, reply } = answered;
        let mut body = self.inner.host_called(&extension, hook, call, &answer);
        if let Body::HostCalled(fact) = &mut body {
            fact.spent = spent;
        }
        let input = self.fact(FrameSource::Extension(extension), Some(under), body);
        let recorded = self.step(input).map_err(|problem| problem.to_fault());
        drop(reply.send(recorded.and(answer)));
    }
}
