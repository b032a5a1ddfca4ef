//! What a person is shown before an answer is judged: the text as it is written, the model's reasoning, the progress of tools.
//!
//! The sanitizers of answers are asked first, so that nothing is shown that the answer will not have. A sanitizer that works on streams
//! is asked about the text so far, again and again, and what it makes of it is shown as far as the rest can no longer change it
//! (`settled_until` in `stream_windows.rs`). With one that does not, the text is held until it is complete, and with a guardrail that
//! judges answers and no chunks nothing is shown before the answer. What is asked here decides nothing but what is shown: the turn
//! asks all of them about the whole answer, and that is recorded. Therefore they make no host calls here. How often they are asked here,
//! and what they make of it, is recorded in one frame at the end of the turn.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{HookId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AskedHooks, HookEntry, Registry};
use holdfast_contract::session_frames::{PreviewAsked, PreviewedBy};
use holdfast_contract::wire::{Call, Host, Instance, Later};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::calls::{chunk_guards, chunk_instance, decision_of, settled_until, wait_timeout};
use crate::host::failed;
use crate::runtime::Inner;

/// Bytes that are added to a text before its sanitizers are asked again; more of them where the text is long, so that asking about all
/// of it each time does not take longer and longer.
const MIN_STEP: usize = 16;
/// The share of a text that is added before its sanitizers are asked again.
const STEP_SHARE: usize = 16;

/// What the guardrails on answers mean for what is shown before the answer.
#[derive(Clone)]
pub(super) enum Preview {
    /// There are none: everything is shown as it comes.
    Open,
    /// All of them are sanitizers that work on streams.
    Streamed(Arc<Sanitizers>),
    /// One of the sanitizers needs the whole text.
    Whole(Arc<Sanitizers>),
    /// A guardrail judges answers and no chunks. Nothing is shown.
    Hidden,
}

impl Preview {
    /// What applies in a turn.
    pub(super) fn of(
        inner: &Arc<Inner>,
        registry: &Registry,
        turn: &TurnView,
        asked: &Arc<Mutex<AskedTexts>>,
    ) -> Self {
        // All of them: a point whose hooks are asked one after the other has them in this order.
        let at = |point| {
            let applies = |hook: &&HookEntry| hook.spec.matcher.applies(None, &turn.origin.channel);
            let hooks: Vec<_> = registry.hooks_at(point).iter().filter(applies).cloned().collect();
            (!hooks.is_empty()).then(|| AskedHooks::new(hooks.into()))
        };
        if let Some(judges) = at(HookPoint::GuardOutput) {
            let chunks = chunk_guards(registry, turn);
            let covered: BTreeSet<_> =
                chunks.iter().flat_map(|hooks| hooks.entries.iter()).map(|hook| &hook.extension.id).collect();
            if judges.entries.iter().any(|hook| !covered.contains(&hook.extension.id)) {
                return Self::Hidden;
            }
        }
        let Some(hooks) = at(HookPoint::SanitizeOutput) else { return Self::Open };
        let streams = hooks.entries.iter().all(|hook| hook.spec.streams);
        let (inner, asked) = (Arc::downgrade(inner), asked.clone());
        let sanitizers = Arc::new(Sanitizers { inner, hooks, turn: turn.clone(), asked });
        if streams { Self::Streamed(sanitizers) } else { Self::Whole(sanitizers) }
    }
}

/// The sanitizers of a turn's answer.
pub(super) struct Sanitizers {
    /// Extensions may keep the host of a call, and with it what shows its progress.
    inner: Weak<Inner>,
    hooks: AskedHooks,
    turn: TurnView,
    asked: Arc<Mutex<AskedTexts>>,
}

/// What the sanitizers of a turn were asked, as far as the log has it.
#[derive(Default)]
pub(super) struct AskedTexts {
    hooks: Vec<PreviewedBy>,
    texts: blake3::Hasher,
}

impl AskedTexts {
    /// The record of it; none if they were not asked.
    pub(super) fn take(&mut self) -> Option<PreviewAsked> {
        let Self { hooks, texts } = std::mem::take(self);
        let digest = Digest::from_bytes(*texts.finalize().as_bytes());
        (!hooks.is_empty()).then_some(PreviewAsked { hooks, digest })
    }

    /// Counts one question to a sanitizer.
    fn add(&mut self, hook: &HookId, text: &str, answer: &Result<Decision, Fault>) {
        let place = match self.hooks.iter().position(|it| it.hook == *hook) {
            Some(place) => place,
            None => {
                let hook = hook.clone();
                self.hooks.push(PreviewedBy {
                    hook,
                    asked: 0,
                    replaced: 0,
                    blocked: 0,
                    failed: 0,
                    fault: None,
                });
                self.hooks.len() - 1
            }
        };
        let counts = &mut self.hooks[place];
        counts.asked += 1;
        let made = match answer {
            Ok(Decision::Replace { content }) => {
                counts.replaced += 1;
                content.to_text()
            }
            Ok(Decision::Block { .. }) => {
                counts.blocked += 1;
                String::new()
            }
            Ok(_) => text.to_owned(),
            Err(fault) => {
                counts.failed += 1;
                counts.fault.get_or_insert_with(|| fault.clone());
                String::new()
            }
        };
        for text in [text, &made] {
            self.texts.update(text.as_bytes()).update(&[0]);
        }
    }
}

/// For each sanitizer the instance that is loaded and the one of a text; none where one of them cannot be asked.
type TextInstances = Option<Vec<[Arc<dyn Instance>; 2]>>;

impl Sanitizers {
    /// Instances for one text, so that what a sanitizer keeps in mind of it has no effect on anything else.
    fn instances(&self) -> TextInstances {
        let inner = self.inner.upgrade()?;
        let instance = |hook: &HookEntry| {
            if hook.outage.is_some() {
                return None;
            }
            let loaded = inner.extensions.instance(&hook.extension).ok()?;
            let own = loaded.fresh().unwrap_or_else(|| loaded.clone());
            Some([loaded, own])
        };
        self.hooks.entries.iter().map(instance).collect()
    }

    /// The text as the sanitizers leave it; none if one of them blocks it or fails.
    async fn sanitized(&self, instances: &TextInstances, text: &str) -> Option<String> {
        let inner = self.inner.upgrade()?;
        let mut text = text.to_owned();
        for (hook, [loaded, own]) in self.hooks.entries.iter().zip(instances.as_ref()?) {
            let input = HookInput {
                hook: hook.id.clone(),
                point: HookPoint::SanitizeOutput,
                call: None,
                subject: Some(Content::text(&text)),
                turn: self.turn.clone(),
            };
            let (instance, host) = (chunk_instance(loaded, own), Arc::new(NoHostCalls));
            let made = inner.make_pinned(&hook.extension, &instance, Call::Hook(input), host);
            let clock = inner.clock.clone();
            let answer = wait_timeout(made, hook.spec.timeout, Code::HookTimeout, clock).await;
            let answer = answer.and_then(|reply| decision_of(reply, HookPoint::SanitizeOutput));
            self.asked.lock().add(&hook.id, &text, &answer);
            match answer {
                Ok(Decision::Replace { content }) => text = content.to_text(),
                Ok(Decision::Block { .. }) | Err(_) => return None,
                Ok(_) => {}
            }
        }
        Some(text)
    }
}

impl Sanitizers {
    /// A whole text as the sanitizers leave it; none if one of them blocks it or fails.
    pub(super) async fn sanitize_line(&self, text: &str) -> Option<String> {
        self.sanitized(&self.instances(), text).await
    }
}

/// The host of a sanitizer that is asked about a text that is not recorded.
struct NoHostCalls;

impl Host for NoHostCalls {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let message = "a sanitizer with `streams` makes no host calls";
        failed(Fault::new(Code::ExtensionFault, message))
    }
}

/// A text on its way through the sanitizers.
pub(super) struct PreviewText {
    sanitizers: Arc<Sanitizers>,
    instances: TextInstances,
    /// Whether it is shown before it is complete.
    streams: bool,
    state: Mutex<TextState>,
    stirred: Notify,
}

#[derive(Default)]
struct TextState {
    /// What was written.
    text: String,
    /// Whether no more comes, and if so, whether the rest is shown.
    ended: Option<bool>,
}

impl PreviewText {
    /// A text of a turn in which this applies; none where it is shown as it comes.
    pub(super) fn of(preview: &Preview) -> Option<Self> {
        let (sanitizers, streams) = match preview {
            Preview::Streamed(sanitizers) => (sanitizers.clone(), true),
            Preview::Whole(sanitizers) => (sanitizers.clone(), false),
            Preview::Open | Preview::Hidden => return None,
        };
        let (instances, state, stirred) = (sanitizers.instances(), Mutex::default(), Notify::new());
        Some(Self { sanitizers, instances, streams, state, stirred })
    }

    /// Whether it is shown before it is complete.
    pub(super) fn streams(&self) -> bool {
        self.streams
    }

    /// More of the text.
    pub(super) fn push(&self, text: &str) {
        self.state.lock().text.push_str(text);
        self.stirred.notify_one();
    }

    /// No more comes. What was not shown is shown if the text is valid so far.
    pub(super) fn end(&self, show_rest: bool) {
        self.state.lock().ended = Some(show_rest);
        self.stirred.notify_one();
    }

    /// Shows the text until its end has come, as far as the sanitizers leave it. Once one of them blocks or fails, nothing more of it.
    pub(super) async fn run(&self, show: impl Fn(&str)) {
        let (mut asked, mut shown) = (0, String::new());
        loop {
            let next = {
                let state = self.state.lock();
                let added = state.text.len() - asked;
                let is_step = self.streams && added >= MIN_STEP.max(asked / STEP_SHARE);
                match state.ended {
                    Some(false) => return,
                    Some(true) if state.text.is_empty() => return,
                    Some(true) => Some((state.text.clone(), true)),
                    None if is_step => Some((state.text.clone(), false)),
                    None => None,
                }
            };
            let Some((text, ended)) = next else {
                self.stirred.notified().await;
                continue;
            };
            asked = text.len();
            let Some(settled) = self.settled(&text, ended).await else { break };
            // Only a sanitizer that does not keep its word about streams changes what was shown already.
            if let Some(more) = settled.strip_prefix(shown.as_str()).filter(|more| !more.is_empty()) {
                show(more);
                shown = settled;
            }
            if ended {
                return;
            }
        }
    }

    /// The sanitized text up to where it no longer changes; none if it is blocked.
    async fn settled(&self, text: &str, ended: bool) -> Option<String> {
        let sanitized = self.sanitizers.sanitized(&self.instances, text).await?;
        if ended {
            return Some(sanitized);
        }
        let beginning = text.get(..settled_until(text))?;
        if sanitized == text {
            return Some(beginning.to_owned());
        }
        // What both have in common is what the text after it has not changed.
        let alone = self.sanitizers.sanitized(&self.instances, beginning).await?;
        let same = alone.char_indices().zip(sanitized.chars()).find(|((_, one), other)| one != other);
        let end = same.map_or(alone.len().min(sanitized.len()), |((place, _), _)| place);
        alone.get(..end).map(str::to_owned)
    }
}
