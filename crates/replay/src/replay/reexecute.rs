//! What strict replay runs again, and the host that answers it from the record.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::context::ContextBudget;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::{Act, CallAct, HookAct, Input, ModelAct};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::{HostCall, HostCallKind, Redaction};
use holdfast_contract::ids::{CallId, ExtensionId, HookId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::manifest::Scope;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, Registry};
use holdfast_contract::session_frames::{
    ChunkSaid, ChunkVerdict, HookAgreed, HookDecided, HookFaulted, StreamGuarded, ToolChecked, ToolReturned,
    UiQuestion,
};
use holdfast_contract::tool::{EffectClass, ToolOutcome};
use holdfast_contract::wire::{Call, Host, Instance, Lane, Later, Reply, UpdateSink};
use holdfast_policy::{Policy, PolicyRequest};
use holdfast_runtime::calls::{
    CallEnd, CallKey, ContextTokenBudget, Instances, SchemaChecks, chunk_guards, chunk_input, chunk_instance,
    chunk_verdict, decision_of, result_of, start_call, windows,
};
use holdfast_store::Store;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::answers::{RecordedAnswer, RecordedAnswers, told_again};
use super::json_of;

/// Who asks the host: the frame that the call is under, the extension, and the hook if it is one.
pub(super) type RecordedCaller = (Seq, ExtensionId, Option<HookId>);

/// A model that was asked.
struct Asked {
    model: ModelName,
    registry: Arc<Registry>,
    turn: TurnView,
}

/// What can run again.
pub(super) struct Reexecution<'a> {
    store: &'a Store,
    lanes: &'a [Arc<dyn Lane>],
    loaded: HashMap<Digest, Option<Arc<dyn Instance>>>,
    /// Answers of hooks that ran before their facts came up.
    early: HashMap<(Seq, HookId), Result<Reply, Fault>>,
    instances: Instances,
    policies: HashMap<Digest, Policy>,
    checks: SchemaChecks,
    hooks: HashMap<(Seq, HookId), HookAct>,
    /// How much context providers may add, and what is left of it in each round.
    context: ContextBudget,
    context_budgets: HashMap<Seq, ContextTokenBudget>,
    calls: HashMap<(Seq, CallId), CallAct>,
    models: HashMap<Seq, Asked>,
    answers: BTreeMap<RecordedCaller, RecordedAnswers>,
    /// Questions to the user that have not been answered yet, with the call that asks.
    questions: HashMap<Seq, (RecordedCaller, UiQuestion)>,
    pub mocked: BTreeSet<ExtensionId>,
}

impl<'a> Reexecution<'a> {
    pub(super) fn new(store: &'a Store, lanes: &'a [Arc<dyn Lane>]) -> Self {
        Self {
            store,
            lanes,
            loaded: HashMap::new(),
            early: HashMap::new(),
            instances: Instances::default(),
            policies: HashMap::new(),
            checks: SchemaChecks::default(),
            hooks: HashMap::new(),
            context: ContextBudget::default(),
            context_budgets: HashMap::new(),
            calls: HashMap::new(),
            models: HashMap::new(),
            answers: BTreeMap::new(),
            questions: HashMap::new(),
            mocked: BTreeSet::new(),
        }
    }

    /// Keeps an act until the fact that it led to comes up.
    pub(super) fn remember(&mut self, act: Act) -> Result<(), Problem> {
        match act {
            Act::CallHooks(round) => {
                for act in round.each() {
                    if act.outage.is_some() {
                        self.hooks.insert((act.decided_by, act.input.hook.clone()), act);
                        continue;
                    }
                    let begun = CallKey::Hook(act.decided_by, act.input.hook.clone());
                    match self
                        .loaded(&act.extension)?
                        .filter(|loaded| loaded.capabilities().synchronous_hooks)
                    {
                        Some(loaded) => self.hook_at_once(&act, &loaded),
                        None => self.begin(&act.extension, begun)?,
                    }
                    self.hooks.insert((act.decided_by, act.input.hook.clone()), act);
                }
            }
            Act::Dispatch(act) => {
                self.begin(&act.extension, CallKey::Tool(act.decided_by, act.call))?;
                self.calls.insert((act.decided_by, act.call), *act);
            }
            Act::EvaluatePolicy(act) | Act::CheckArguments(act) => {
                self.calls.insert((act.decided_by, act.call), *act);
            }
            Act::Abort { begun_by } => self.instances.give_up(begun_by),
            Act::CallModel(act) => {
                let ModelAct { decided_by, model, registry, turn, .. } = *act;
                self.models.insert(decided_by, Asked { model, registry, turn });
            }
            _ => {}
        }
        Ok(())
    }

    /// A hook that is answered at once runs where it ran: before everything else the same step led to.
    fn hook_at_once(&mut self, act: &HookAct, loaded: &Arc<dyn Instance>) {
        let digest = act.extension.digest;
        let instance = self.instances.at_once(digest, loaded);
        let host = Arc::new(Recorded(Mutex::default()));
        let answer = start_call(&instance, Call::Hook(act.input.clone()), host).run_through();
        if matches!(answer, Some(Err(_))) {
            self.instances.discard(digest);
        }
        if let Some(answer) = answer {
            self.early.insert((act.decided_by, act.input.hook.clone()), answer);
        }
    }

    /// A call begins, on the instance that it had when it was recorded.
    fn begin(&mut self, extension: &ExtensionRef, begun: CallKey) -> Result<(), Problem> {
        if let Some(loaded) = self.loaded(extension)? {
            self.instances.begin(extension.digest, || begun, &loaded);
        }
        Ok(())
    }

    /// The session has nothing more to do.
    pub(super) fn rest(&mut self) {
        self.instances.clear();
        self.context_budgets.clear();
    }

    /// Runs again what led to this fact, and looks whether it comes from whom it should. Gives what it should have been if it is
    /// something else.
    pub(super) fn judge(&mut self, seq: Seq, input: &Input) -> Result<Option<Value>, Problem> {
        match &input.body {
            Body::SessionStarted(fact) => self.context = fact.settings.context.clone(),
            Body::SessionResumed(_) => {
                // Calls in progress are gone; their questions are asked again.
                self.answers.clear();
                self.questions.clear();
                self.instances.clear();
                self.context_budgets.clear();
            }
            _ => {}
        }
        let judged = self.run_again(seq, input)?;
        if let Some(ending) = CallEnd::of(input) {
            self.instances.end(&ending);
        }
        Ok(judged)
    }

    fn run_again(&mut self, seq: Seq, input: &Input) -> Result<Option<Value>, Problem> {
        let Some(cause) = input.cause else { return Ok(None) };
        let (source, body) = match &input.body {
            Body::HookDecided(fact) if fact.hook.is_policy() => {
                let Some(act) = fact.call.and_then(|call| self.calls.remove(&(cause, call))) else {
                    return Ok(None);
                };
                (act.registry.policy.map(FrameSource::Policy), Some(self.policy_again(&act, fact)?.into()))
            }
            Body::HookAgreed(fact) => (Some(FrameSource::Host), self.agreed_again(cause, fact)?),
            Body::HookDecided(fact) => self.hook_again(cause, &fact.hook, &input.body)?,
            Body::HookFaulted(fact) => self.hook_again(cause, &fact.hook, &input.body)?,
            Body::ToolChecked(fact) => {
                let Some(act) = self.calls.remove(&(cause, fact.call)) else { return Ok(None) };
                let outcome = self.checks.arguments(&act.spec, &act.arguments);
                (Some(FrameSource::Host), Some(ToolChecked { call: fact.call, outcome }.into()))
            }
            Body::ToolReturned(fact) => {
                let the_hosts = matches!(&fact.outcome, ToolOutcome::Failure(fault) if is_the_hosts(fault));
                let Some(act) = self.calls.remove(&(cause, fact.call)) else { return Ok(None) };
                let body = if the_hosts { None } else { self.tool_again(&act)? };
                (Some(FrameSource::Extension(act.extension)), body)
            }
            Body::ModelReturned(_) | Body::ModelFailed(_) => {
                (self.models.remove(&cause).map(|asked| FrameSource::Model(asked.model)), None)
            }
            Body::StreamGuarded(fact) => (Some(FrameSource::Host), self.guarded_again(cause, fact)?),
            body => {
                noted(&mut self.answers, &mut self.questions, seq, cause, &input.source, body);
                return Ok(None);
            }
        };
        Ok(match (source, body) {
            (_, Some(body)) if body != input.body => {
                Some(json!({ "kind": body.kind(), "body": json_of(&body) }))
            }
            (Some(source), _) if source != input.source => Some(json!({ "source": source })),
            _ => None,
        })
    }

    fn policy_again(&mut self, act: &CallAct, recorded: &HookDecided) -> Result<HookDecided, Problem> {
        let missing = || Problem::new(Code::ReplayMissing, "the policy that decided is not in the store");
        let digest = act.registry.policy.ok_or_else(missing)?;
        if !self.policies.contains_key(&digest) {
            let bytes = self.store.object(digest)?.ok_or_else(missing)?;
            self.policies.insert(digest, Policy::from_document(&bytes)?);
        }
        let policy = self.policies.get(&digest).ok_or_else(missing)?;
        let verdict = policy.evaluate(&PolicyRequest {
            tool: &act.spec,
            extension: &act.extension,
            arguments: &act.arguments,
            turn: &act.turn,
        });
        Ok(HookDecided {
            subject: Some((&act.arguments).into()),
            decision: verdict.decision,
            rule: Some(verdict.rule),
            ..recorded.clone()
        })
    }

    /// What hooks that agreed must say: the same, or what the first one says that does not agree.
    fn agreed_again(&mut self, asked: Seq, recorded: &HookAgreed) -> Result<Option<Body>, Problem> {
        let mut expected = None;
        for hook in recorded.hooks.iter() {
            let agrees = HookDecided {
                hook: hook.clone(),
                point: recorded.point,
                call: recorded.call,
                subject: recorded.subject.clone(),
                decision: recorded.point.consent().clone(),
                rule: None,
            };
            let agrees = agrees.into();
            let (_, again) = self.hook_again(asked, hook, &agrees)?;
            expected = expected.or(again.filter(|again| *again != agrees));
        }
        Ok(expected)
    }

    /// Whose word it is, and what it must say. A hook that does not run again must still have been asked about this.
    fn hook_again(
        &mut self,
        asked: Seq,
        hook: &HookId,
        recorded: &Body,
    ) -> Result<(Option<FrameSource>, Option<Body>), Problem> {
        let Some(act) = self.hooks.remove(&(asked, hook.clone())) else { return Ok((None, None)) };
        let HookAct { extension, input, tokens, outage, .. } = act;
        let (hook, point) = (input.hook.clone(), input.point);
        let call = input.call.as_ref().map(|call| call.id);
        let subject = input.subject.as_ref().map(Into::into);
        let the_hosts = matches!(recorded, Body::HookFaulted(fact) if is_the_hosts(&fact.fault));
        let begun = CallKey::Hook(asked, hook.clone());
        let early = self.early.remove(&(asked, hook.clone()));
        let answer = match early {
            _ if the_hosts => None,
            _ if outage.is_some() => outage.map(|outage| Err(outage.fault)),
            Some(answer) => Some(answer),
            None => self.run(&begun, &extension, Call::Hook(input))?,
        };
        let body = match (answer.map(|answer| answer.and_then(|reply| decision_of(reply, point))), recorded) {
            (Some(Ok(decision)), _) => {
                let (decision, rule) = match point {
                    HookPoint::Context => {
                        self.context_budgets(asked).allocate(&extension.id, tokens, decision)
                    }
                    _ => (decision, None),
                };
                HookDecided { hook, point, call, subject, decision, rule }.into()
            }
            (Some(Err(fault)), _) => HookFaulted { hook, point, call, subject, fault }.into(),
            (None, Body::HookDecided(fact)) => {
                if point == HookPoint::Context {
                    self.context_budgets(asked).charge(&fact.decision);
                }
                HookDecided { hook, point, call, subject, ..fact.clone() }.into()
            }
            (None, Body::HookFaulted(fact)) => {
                HookFaulted { hook, point, call, subject, ..fact.clone() }.into()
            }
            (None, other) => other.clone(),
        };
        Ok((Some(FrameSource::Extension(extension)), Some(body)))
    }

    /// What guardrails must have said about a streamed text. It is split into windows again, and those that run again judge each window, each on an instance
    /// of its own as when it was recorded.
    fn guarded_again(&mut self, cause: Seq, recorded: &StreamGuarded) -> Result<Option<Body>, Problem> {
        let Some(Asked { registry, turn, .. }) = self.models.get(&cause) else { return Ok(None) };
        let Some(guards) = chunk_guards(registry, turn) else { return Ok(None) };
        let (turn, text) = (turn.clone(), recorded.text.to_text());
        let all: Vec<_> = windows(&text).collect();
        let mut words: Vec<ChunkVerdict> = Vec::new();
        for guard in guards.entries.iter() {
            if let Some(outage) = &guard.outage {
                let faulted = |number| chunk_verdict(number, &guard.id, Err(outage.fault.clone()));
                words.extend((0..).zip(&all).filter_map(|(number, _)| faulted(number)));
                continue;
            }
            let asker = (cause, guard.extension.id.clone(), Some(guard.id.clone()));
            let host = Arc::new(Recorded(Mutex::new(self.answers.remove(&asker).unwrap_or_default())));
            let loaded = self.loaded(&guard.extension)?;
            let mut own = loaded.map(|loaded| (loaded.fresh().unwrap_or_else(|| loaded.clone()), loaded));
            for (number, window) in (0..).zip(&all) {
                let of_it = |word: &&ChunkVerdict| word.window == number && word.hook == guard.id;
                let said = recorded.words.iter().find(of_it);
                let the_hosts = said.is_some_and(
                    |word| matches!(&word.said, ChunkSaid::Faulted(fault) if is_the_hosts(fault)),
                );
                let input = chunk_input(&guard.id, &text, window.clone(), &turn);
                let answer = own.as_ref().filter(|_| !the_hosts).and_then(|(own, loaded)| {
                    start_call(&chunk_instance(loaded, own), Call::Hook(input), host.clone()).run_through()
                });
                match answer {
                    Some(answer) => {
                        let said = answer.and_then(|reply| decision_of(reply, HookPoint::GuardChunk));
                        words.extend(chunk_verdict(number, &guard.id, said));
                    }
                    None => {
                        words.extend(said.cloned());
                        own = None;
                    }
                }
            }
            if own.is_none() {
                self.mocked.insert(guard.extension.id.clone());
            }
        }
        words.sort_by_key(|word| word.window);
        let (hooks, windows) = (guards.ids, u32::try_from(all.len()).unwrap_or(u32::MAX));
        Ok(Some(StreamGuarded { hooks, windows, words, text: recorded.text.clone() }.into()))
    }

    /// What is left for the context providers of a round.
    fn context_budgets(&mut self, asked: Seq) -> &mut ContextTokenBudget {
        let budget = &self.context;
        self.context_budgets.entry(asked).or_insert_with(|| ContextTokenBudget::new(budget))
    }

    /// A tool runs again if it computes from its arguments alone, or in a sandbox that has nothing but the host's answers.
    fn tool_again(&mut self, act: &CallAct) -> Result<Option<Body>, Problem> {
        let loaded = self.loaded(&act.extension)?;
        if loaded.is_none() {
            self.mocked.insert(act.extension.id.clone());
        }
        let sandboxed = loaded.is_some_and(|instance| instance.capabilities().scope != Scope::Shared);
        if act.spec.effects != EffectClass::Pure && !sandboxed {
            return Ok(None);
        }
        let asked = Call::Tool {
            call: act.call,
            tool: act.spec.name.clone(),
            arguments: act.arguments.clone(),
            turn: act.turn.clone(),
        };
        let begun = CallKey::Tool(act.decided_by, act.call);
        let Some(answer) = self.run(&begun, &act.extension, asked)? else { return Ok(None) };
        let outcome = match answer.and_then(result_of) {
            Ok(result) => self.checks.result(&act.spec, result),
            Err(fault) => ToolOutcome::Failure(fault),
        };
        Ok(Some(ToolReturned { call: act.call, outcome }.into()))
    }

    /// Makes the call again, or gives nothing where the code is not available, not replayable, or waits for the outside.
    fn run(
        &mut self,
        begun: &CallKey,
        extension: &ExtensionRef,
        call: Call,
    ) -> Result<Option<Result<Reply, Fault>>, Problem> {
        let hook = if let Call::Hook(input) = &call { Some(input.hook.clone()) } else { None };
        let answers = self.answers.remove(&(begun.by(), extension.id.clone(), hook)).unwrap_or_default();
        let loaded = self.loaded(extension)?;
        let instance = self.instances.of(extension.digest, begun).or_else(|| {
            let loaded = loaded?;
            Some(loaded.fresh().unwrap_or(loaded))
        });
        let answer = instance.and_then(|instance| {
            start_call(&instance, call, Arc::new(Recorded(Mutex::new(answers)))).run_through()
        });
        if answer.is_none() {
            self.mocked.insert(extension.id.clone());
        }
        Ok(answer)
    }

    /// The recorded code, if it is available and replayable. Code that is there but not what was recorded is a problem.
    fn loaded(&mut self, extension: &ExtensionRef) -> Result<Option<Arc<dyn Instance>>, Problem> {
        if let Some(loaded) = self.loaded.get(&extension.digest) {
            return Ok(loaded.clone());
        }
        let mut found = None;
        for lane in self.lanes {
            match wait_for(lane.load(extension)) {
                Ok(instance) => found = found.or(Some(instance)),
                Err(fault) if fault.code == Code::ExtensionUnknown => {}
                Err(fault) => return Err(Problem::new(Code::ReplayMissing, fault.to_string())),
            }
        }
        if found.is_none() {
            self.check_gone(extension)?;
        }
        let found = found.filter(|instance| instance.capabilities().replayable);
        if let Some(preparing) = found.as_ref().and_then(|instance| instance.prepare()) {
            wait_for(preparing);
        }
        self.loaded.insert(extension.digest, found.clone());
        Ok(found)
    }
}

impl Reexecution<'_> {
    /// Code that is built into the program changes with it, and its answers are then taken from the log, as a
    /// program's always are. A component was kept when it was activated: that it is gone is a problem.
    fn check_gone(&self, extension: &ExtensionRef) -> Result<(), Problem> {
        let mut lane = None;
        let mut latest = None;
        self.store.for_each_frame(&StreamId::system(), Seq(0), |frame| {
            if frame.envelope.kind == FrameKind::ExtensionsFound
                && let Body::ExtensionsFound(fact) = self.store.body(&frame)?
            {
                for found in fact.found.into_iter().filter(|found| found.id == extension.id) {
                    latest = Some(found.digest);
                    if found.digest == extension.digest {
                        lane = Some(found.lane);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        match lane.as_deref() {
            None | Some("native" | "process" | "python" | "node" | "plugin" | "remote" | "mcp") => Ok(()),
            Some(lane) => {
                let ExtensionRef { id, version, digest, .. } = extension;
                let now = latest.map(|digest| digest.to_string()).unwrap_or_default();
                let what = format!(
                    "`{id}` {version} ran as {digest} in the {lane} lane, which is no longer stored; the latest is {now}"
                );
                let help = "`--mock` takes its answers from the log; `--with` tries another build on what was recorded.";
                Err(Problem::new(Code::ReplayMissing, what).help(help))
            }
        }
    }
}

/// Keeps what an extension was told in the middle of a call.
pub(super) fn noted(
    answers: &mut BTreeMap<RecordedCaller, RecordedAnswers>,
    questions: &mut HashMap<Seq, (RecordedCaller, UiQuestion)>,
    seq: Seq,
    cause: Seq,
    source: &FrameSource,
    body: &Body,
) {
    if let Body::UiAnswered(fact) = body {
        if let Some((asker, question)) = questions.remove(&fact.request) {
            let answer = fact.answer.clone().unwrap_or_else(nothing);
            answers.entry(asker).or_default().add(HostCall::Ui(question), Ok(answer));
        }
        return;
    }
    let FrameSource::Extension(extension) = source else { return };
    let (hook, (ask, answer)) = match body {
        Body::ClockRead(fact) => (&fact.hook, (HostCall::Clock, Ok(Content::of(&fact.value)))),
        Body::RandomDrawn(fact) => {
            let ask = HostCall::Random { bytes: (fact.bytes.len() / 2) as u32 };
            (&fact.hook, (ask, Ok(Content::text(fact.bytes.clone()))))
        }
        Body::HostCalled(fact) => {
            let answer = match &fact.outcome {
                ToolOutcome::Result(value) => Ok(value.clone()),
                ToolOutcome::Failure(fault) => Err(fault.clone()),
            };
            let call = match HostCallKind::from_name(&fact.ask) {
                Some(HostCallKind::StateGet) => HostCall::StateGet { key: fact.arguments.to_text() },
                _ => HostCall::named(&fact.ask, fact.arguments.clone()),
            };
            let (asker, streamed) = ((cause, extension.id.clone(), fact.hook.clone()), fact.streamed.clone());
            answers.entry(asker).or_default().add_recorded(RecordedAnswer { call, answer, streamed });
            return;
        }
        Body::StateWritten(fact) => {
            let ask = HostCall::StateSet { key: fact.key.clone(), value: fact.value.clone() };
            (&fact.hook, (ask, Ok(nothing())))
        }
        Body::MessageInjected(fact) => {
            (&fact.hook, (HostCall::Inject { text: fact.text.clone() }, Ok(nothing())))
        }
        Body::UiRequested(fact) => {
            let asker = (cause, extension.id.clone(), fact.hook.clone());
            questions.insert(seq, (asker, fact.question.clone()));
            return;
        }
        _ => return,
    };
    let asker = (cause, extension.id.clone(), hook.clone());
    answers.entry(asker).or_default().add(ask, answer);
}

fn nothing() -> Content {
    Content::new(Default::default())
}

/// Whether a fault is the host's word, not the extension's: it was late, its code was not available, its stack or the host's
/// room ran out. None of it can be reproduced.
fn is_the_hosts(fault: &Fault) -> bool {
    matches!(
        fault.code,
        Code::HookTimeout
            | Code::ToolTimeout
            | Code::ToolSuspended
            | Code::ToolBusy
            | Code::ExtensionUnknown
            | Code::ComponentLate
            | Code::StackExhausted
            | Code::SlotsExhausted
    )
}

/// Waits for something that another thread may be busy with.
fn wait_for<T>(mut later: Later<T>) -> T {
    struct Thread(std::thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Thread(std::thread::current())));
    loop {
        match Pin::new(&mut later).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A host that answers from the record, in order, and knows nothing else.
struct Recorded(Mutex<RecordedAnswers>);

impl Host for Recorded {
    // The timeout is not recorded.
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        // A secret's value is nowhere in the record, so a call that needs one is not run again.
        if call.kind().is_some_and(|kind| kind.redaction() == Redaction::Answer) {
            return Box::pin(std::future::pending());
        }
        let next = self.0.lock().next(&call);
        let answer = match next {
            Some(recorded) if recorded.call == call => recorded.answer,
            Some(RecordedAnswer { call: recorded, .. }) => {
                let message = format!("the host call {call:?} was made where {recorded:?} was recorded");
                Err(Fault::new(Code::ReplayDiverged, message))
            }
            None => Err(Fault::new(Code::ReplayDiverged, format!("the host call {call:?} is not recorded"))),
        };
        Box::pin(std::future::ready(answer))
    }
    fn call_streamed(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        let recorded = self.0.lock().next_streamed(&call);
        match recorded {
            Some((streamed, recorded)) => told_again(streamed, recorded.answer, updates),
            None => self.call_within(call, timeout),
        }
    }
}
