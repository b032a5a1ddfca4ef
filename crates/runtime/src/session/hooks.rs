//! How the hooks of a round are asked. Those that are answered at once and agree are one fact; every other answer is one of its own.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, HookAct, Input, RoundAct};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::ids::{CallId, HookId, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AskedHooks, ExtensionRef, HookEntry};
use holdfast_contract::session_frames::{HookAgreed, HookDecided, HookFaulted};
use holdfast_contract::wire::{Call, Instance};
use rustc_hash::FxHashSet;
use tokio::task::JoinSet;

use super::SessionActor;
use crate::calls::{CallKey, CallState, ContextTokenBudget, accepted, decision_of, try_now, wait_timeout};

/// Rounds that are asked together at most: their subjects have to stay in the caches too.
const MAX_BATCHED_ROUNDS: usize = 32;

impl SessionActor {
    pub(super) fn call_hooks(&mut self, mut act: RoundAct) {
        if act.input.point == HookPoint::Context {
            return self.call_providers(act);
        }
        if self.answered_rounds.front().is_none_or(|answered_rounds| answered_rounds.round != act.decided_by)
        {
            self.answered_rounds = self.ask_rounds(&mut act);
        }
        let others = self
            .answered_rounds
            .pop_front()
            .map(|answered_rounds| answered_rounds.others)
            .unwrap_or_default();
        let RoundAct { decided_by, mut input, hooks } = act;
        let AskedHooks { entries, ids } = hooks;
        let mut agreed = 0;
        for (place, answer) in others {
            let Some(hook) = entries.get(place) else { continue };
            input.hook.clone_from(&hook.id);
            self.say_agreed(decided_by, &input, &ids, agreed..place);
            agreed = place + 1;
            let extension = hook.extension.clone();
            match answer {
                Some(answer) => {
                    let answer = answer.and_then(|decision| accepted(decision, input.point));
                    let source = FrameSource::Extension(extension);
                    let input = HookQuestion::of(&input).fact(self, source, decided_by, answer);
                    self.queue.push_back(input);
                }
                None => {
                    let (timeout, tokens, outage) = (hook.spec.timeout, hook.spec.tokens, None);
                    let input = input.clone();
                    self.call_hook(HookAct { decided_by, extension, timeout, tokens, input, outage });
                }
            }
        }
        self.say_agreed(decided_by, &input, &ids, agreed..ids.len());
    }

    /// Asks the hooks of a round that are answered at once, and with it those of the rounds behind it that ask the same hooks, as the
    /// calls of one answer of a model do: each hook is asked about all of them before the next one is, while its memory is in the
    /// caches. What they say becomes facts round by round.
    fn ask_rounds(&mut self, first: &mut RoundAct) -> VecDeque<RoundAnswers> {
        let entries = first.hooks.entries.clone();
        let mut acts = std::mem::take(&mut self.acts);
        let behind = acts.iter_mut().map_while(|act| match act {
            Act::CallHooks(round) => {
                Arc::ptr_eq(&round.hooks.entries, &entries).then_some(Some(&mut **round))
            }
            Act::EvaluatePolicy(_) => Some(None),
            _ => None,
        });
        let mut rounds: Vec<_> =
            std::iter::once(first).chain(behind.flatten()).take(MAX_BATCHED_ROUNDS).collect();
        if rounds.len() > 1 && !of_one_extension_each(&entries) {
            rounds.truncate(1);
        }
        let quiet = |round: &&mut RoundAct| RoundAnswers { round: round.decided_by, others: Vec::new() };
        let mut answered_rounds: VecDeque<_> = rounds.iter().map(quiet).collect();
        for (place, hook) in entries.iter().enumerate() {
            for (round, answered_rounds) in rounds.iter_mut().zip(&mut answered_rounds) {
                let input = &mut round.input;
                input.hook.clone_from(&hook.id);
                let answer = match &hook.outage {
                    Some(outage) => Some(Err(outage.fault.clone())),
                    None => self.hook_at_once(&hook.extension, input),
                };
                if !matches!(&answer, Some(Ok(decision)) if decision == input.point.consent()) {
                    answered_rounds.others.push((place, answer));
                }
            }
        }
        self.acts = acts;
        answered_rounds
    }

    /// What a hook says that is always answered at once; none if it is another.
    fn hook_at_once(
        &mut self,
        extension: &ExtensionRef,
        input: &HookInput,
    ) -> Option<Result<Decision, Fault>> {
        let answer = match self.instances.ready(extension.digest) {
            Some(instance) => try_now(instance, input)?,
            None => {
                let is_synchronous = |loaded: &Arc<dyn Instance>| {
                    let capabilities = loaded.capabilities();
                    capabilities.synchronous_hooks && !capabilities.exclusive
                };
                let loaded = self.inner.extensions.instance(extension).ok().filter(is_synchronous)?;
                try_now(&self.instances.at_once(extension.digest, &loaded), input)?
            }
        };
        if answer.is_err() {
            self.instances.discard(extension.digest);
        }
        Some(answer)
    }

    /// Hooks one after another that have agreed are one fact.
    fn say_agreed(&mut self, cause: Seq, input: &HookInput, asked: &Arc<[HookId]>, agreed: Range<usize>) {
        let hooks = match asked.get(agreed) {
            None | Some([]) => return,
            Some(all) if all.len() == asked.len() => Arc::clone(asked),
            Some(some) => some.into(),
        };
        let HookInput { point, call, subject, .. } = input;
        let (point, call) = (*point, call.as_ref().map(|call| call.id));
        let subject = subject.as_ref().map(Into::into);
        let fact = self.fact(FrameSource::Host, Some(cause), HookAgreed { point, call, subject, hooks });
        self.queue.push_back(fact);
    }

    /// Makes a call to a hook that may take its time.
    fn make_hook(&mut self, decided_by: Seq, extension: &Arc<ExtensionRef>, input: HookInput) -> CallState {
        match self.inner.extensions.instance(extension) {
            Ok(loaded) => {
                let begun = || CallKey::Hook(decided_by, input.hook.clone());
                let instance = self.instances.begin(extension.digest, begun, &loaded);
                let host = Arc::new(self.session_host(extension, decided_by, Some(input.hook.clone())));
                self.inner.make_pinned(extension, &instance, Call::Hook(input), host)
            }
            Err(fault) => CallState::Answered(Err(fault)),
        }
    }

    /// Asks the context providers, all at once. What they say becomes facts in their order when the last one has answered, because
    /// each has its portion of what those before it have left.
    fn call_providers(&mut self, act: RoundAct) {
        let RoundAct { decided_by, input, hooks } = act;
        let mut answered = Vec::with_capacity(hooks.entries.len());
        let mut under_way = JoinSet::new();
        for (place, HookEntry { id, extension, spec, .. }) in hooks.entries.iter().enumerate() {
            let input = HookInput { hook: id.clone(), ..input.clone() };
            let about = HookQuestion::of(&input);
            let at_once = self.hook_at_once(extension, &input);
            let is_at_once = at_once.is_some();
            let answer = match at_once {
                Some(answer) => Some(answer.and_then(|decision| accepted(decision, about.point))),
                None => match self.make_hook(decided_by, extension, input) {
                    CallState::Answered(answer) => {
                        Some(answer.and_then(|reply| decision_of(reply, about.point)))
                    }
                    made => {
                        let (limit, clock) = (spec.timeout, self.inner.clock.clone());
                        under_way.spawn(async move {
                            (place, wait_timeout(made, limit, Code::HookTimeout, clock).await)
                        });
                        None
                    }
                },
            };
            let (extension, tokens) = (extension.clone(), spec.tokens);
            answered.push(ContextAnswer { about, extension, tokens, at_once: is_at_once, answer });
        }
        let mut budget = ContextTokenBudget::new(&self.session.settings().context);
        if under_way.is_empty() {
            for (source, body) in facts(answered, &mut budget) {
                let input = self.fact(source, Some(decided_by), body);
                self.queue.push_back(input);
            }
            return;
        }
        let back = self.back(FrameSource::Host, decided_by);
        self.tasks.begin(decided_by, async move {
            while let Some(joined) = under_way.join_next().await {
                if let Ok((place, answer)) = joined
                    && let Some(provided) = answered.get_mut(place)
                {
                    provided.answer = Some(answer.and_then(|reply| decision_of(reply, provided.about.point)));
                }
            }
            for (source, body) in facts(answered, &mut budget) {
                back.tell(source, body);
            }
        });
    }

    /// Asks a hook that may take its time.
    fn call_hook(&mut self, act: HookAct) {
        let HookAct { decided_by, extension, timeout, input, .. } = act;
        let about = HookQuestion::of(&input);
        let source = FrameSource::Extension(extension.clone());
        match self.make_hook(decided_by, &extension, input) {
            CallState::Answered(answer) => {
                let answer = answer.and_then(|reply| decision_of(reply, about.point));
                let input = about.fact(self, source, decided_by, answer);
                self.queue.push_back(input);
            }
            under_way => {
                let back = self.back(source, decided_by);
                let clock = self.inner.clock.clone();
                self.tasks.begin(decided_by, async move {
                    let answer = wait_timeout(under_way, timeout, Code::HookTimeout, clock).await;
                    match about.body(answer.and_then(|reply| decision_of(reply, about.point))) {
                        Ok(decided) => back.send(decided),
                        Err(faulted) => back.send(faulted),
                    }
                });
            }
        }
    }
}

/// Whether no two are of the same extension, whose instance would then hear them in another order than the frames have.
fn of_one_extension_each(hooks: &[HookEntry]) -> bool {
    let mut seen = FxHashSet::default();
    hooks.iter().all(|hook| seen.insert(hook.extension.digest))
}

/// What was said in a round.
pub(super) struct RoundAnswers {
    /// The `hook.called` frame.
    round: Seq,
    /// Everything but consent, by the hook's place; none where the hook is yet to be asked, because it takes its time.
    others: Vec<(usize, Option<Result<Decision, Fault>>)>,
}

/// A context provider, and what it said.
struct ContextAnswer {
    about: HookQuestion,
    extension: Arc<ExtensionRef>,
    tokens: Option<u32>,
    at_once: bool,
    /// None while it is under way.
    answer: Option<Result<Decision, Fault>>,
}

/// What providers said, as facts in their order. Those one after another that said nothing at once are one fact.
fn facts(provided: Vec<ContextAnswer>, budget: &mut ContextTokenBudget) -> Vec<(FrameSource, Body)> {
    let mut facts: Vec<(FrameSource, Body)> = Vec::with_capacity(provided.len());
    for ContextAnswer { about, extension, tokens, at_once, answer } in provided {
        let lost = || Err(Fault::new(Code::Internal, "its call was lost"));
        let body = match about.body(answer.unwrap_or_else(lost)) {
            Ok(HookDecided { decision, hook, point, call, subject, .. })
                if at_once && decision == *point.consent() =>
            {
                if let Some((_, Body::HookAgreed(agreed))) = facts.last_mut() {
                    agreed.hooks = agreed.hooks.iter().cloned().chain([hook]).collect();
                    continue;
                }
                facts.push((
                    FrameSource::Host,
                    HookAgreed { point, call, subject, hooks: [hook].into() }.into(),
                ));
                continue;
            }
            Ok(decided) => {
                let (decision, rule) = budget.allocate(&extension.id, tokens, decided.decision);
                HookDecided { decision, rule, ..decided }.into()
            }
            Err(faulted) => faulted.into(),
        };
        facts.push((FrameSource::Extension(extension), body));
    }
    facts
}

/// What a hook was asked about.
struct HookQuestion {
    hook: HookId,
    point: HookPoint,
    call: Option<CallId>,
    subject: Option<Content>,
}

impl HookQuestion {
    fn of(input: &HookInput) -> Self {
        Self {
            hook: input.hook.clone(),
            point: input.point,
            call: input.call.as_ref().map(|call| call.id),
            subject: input.subject.clone(),
        }
    }

    fn body(&self, answer: Result<Decision, Fault>) -> Result<HookDecided, HookFaulted> {
        let Self { hook, point, call, subject } = self;
        let (hook, point, call) = (hook.clone(), *point, *call);
        let subject = subject.as_ref().map(Into::into);
        match answer {
            Ok(decision) => Ok(HookDecided { hook, point, call, subject, decision, rule: None }),
            Err(fault) => Err(HookFaulted { hook, point, call, subject, fault }),
        }
    }

    fn fact(
        &self,
        actor: &SessionActor,
        source: FrameSource,
        cause: Seq,
        answer: Result<Decision, Fault>,
    ) -> Input {
        match self.body(answer) {
            Ok(decided) => actor.fact(source, Some(cause), decided),
            Err(faulted) => actor.fact(source, Some(cause), faulted),
        }
    }
}
