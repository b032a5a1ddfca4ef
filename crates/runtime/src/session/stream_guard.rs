//! Guardrails on what a model writes, before anybody is shown it.
//!
//! The text is cut into windows (`stream_windows.rs`), and all guardrails are asked about each of them together while the model writes on. What they
//! let pass is shown, but for its end, which waits for the window after it. What one of them stops, or fails to judge, is not shown, nor is
//! anything after it: the model is not read any further, and the fact that says so ends the turn. Each guardrail has an instance of its own for
//! each stream, so that a replay has the same.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::join_all;
use holdfast_contract::content::Content;
use holdfast_contract::effect::ModelAct;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AskedHooks, HookEntry};
use holdfast_contract::session_frames::{ChunkVerdict, StreamGuarded};
use holdfast_contract::system_frames::ExtensionFaulted;
use holdfast_contract::wire::{Call, Instance, Later};
use holdfast_model::{Delta, Model, ModelRequest};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use super::effects::FactSender;
use super::redacted_output::{ModelOutcome, RedactedOutput};
use super::{ProgressOutput, SessionActor, SessionCommand};
use crate::calls::{
    chunk_guards, chunk_input, chunk_instance, chunk_verdict, decision_of, releasable_until, wait_timeout,
    window_end,
};
use crate::host::SessionHost;
use crate::runtime::Inner;

/// Bytes that may wait to be judged before the model is read no further.
const MAX_UNJUDGED_BYTES: usize = 64 << 10;

/// The guardrails of a stream.
pub(super) struct Guards {
    inner: Arc<Inner>,
    inbox: mpsc::UnboundedSender<SessionCommand>,
    progress: Arc<ProgressOutput>,
    under: holdfast_contract::ids::Seq,
    hooks: AskedHooks,
    turn: TurnView,
}

/// A guardrail with the instance that judges one text.
struct Guard<'a> {
    hook: &'a HookEntry,
    instances: Result<[Arc<dyn Instance>; 2], Fault>,
    host: Arc<SessionHost>,
}

/// The text so far.
#[derive(Default)]
struct StreamBuffer {
    text: String,
    /// How much of it was streamed, and not only returned at the end.
    streamed: usize,
    shown: usize,
    judged: usize,
    windows: u32,
    words: Vec<ChunkVerdict>,
}

/// A text that comes in while it is judged.
#[derive(Default)]
struct SharedBuffer {
    held: Mutex<StreamBuffer>,
    stirred: Notify,
}

impl SharedBuffer {
    fn held(&self) -> MutexGuard<'_, StreamBuffer> {
        self.held.lock()
    }

    fn push(&self, text: &str) {
        let mut held = self.held();
        held.text.push_str(text);
        held.streamed = held.text.len();
        drop(held);
        self.stirred.notify_one();
    }
}

impl StreamBuffer {
    /// The next window, if it is complete, or if nothing more comes.
    fn next(&self, whole: bool) -> Option<Range<usize>> {
        let rest = || (whole && self.judged < self.text.len()).then_some(self.text.len());
        Some(self.judged..window_end(&self.text, self.judged).or_else(rest)?)
    }

    /// What can be shown now, and was not before.
    fn clear(&mut self, whole: bool) -> String {
        let end = if whole && self.judged == self.text.len() {
            self.judged
        } else {
            releasable_until(&self.text, self.judged)
        };
        let end = end.min(self.streamed).max(self.shown);
        let clear = self.text.get(self.shown..end).unwrap_or_default().to_owned();
        self.shown = end;
        clear
    }
}

impl Guards {
    /// The guardrails of a request, if there are any.
    pub(super) fn of(actor: &SessionActor, act: &ModelAct) -> Option<Self> {
        let hooks = chunk_guards(&act.registry, &act.turn)?;
        Some(Self {
            inner: actor.inner.clone(),
            inbox: actor.inbox.clone(),
            progress: actor.progress.clone(),
            under: act.decided_by,
            hooks,
            turn: act.turn.clone(),
        })
    }

    /// Asks a model and shows what it writes as far as the guardrails let it pass. None if they do not: that is a fact already.
    pub(super) async fn follow(
        self,
        shown: Arc<RedactedOutput>,
        model: Arc<dyn Model>,
        request: Box<ModelRequest>,
        back: &FactSender,
    ) -> Option<ModelOutcome> {
        let holding = Arc::new(SharedBuffer::default());
        let (written, output) = (holding.clone(), shown.clone());
        // The model's reasoning is not judged, and is therefore not shown.
        let deltas = Arc::new(move |delta: Delta<'_>| {
            if let Delta::Text(text) = delta {
                written.push(&output.without_secrets(0, text));
            }
        });
        let mut answer: Later<ModelOutcome> = {
            let (shown, asked) = (shown.clone(), model.complete(request, deltas));
            Box::pin(async move { shown.paced(asked).await })
        };
        let guards = self.guards();
        let mut ended: Option<ModelOutcome> = None;
        loop {
            let next = holding.held().next(matches!(ended, Some(Ok(_))));
            match (next, &ended) {
                (Some(window), _) => {
                    let mut judged = self.judge(&guards, &holding, window.clone());
                    let words = loop {
                        let reads =
                            ended.is_none() && holding.held().text.len() < window.end + MAX_UNJUDGED_BYTES;
                        tokio::select! {
                            biased;
                            words = &mut judged => break words,
                            done = &mut answer, if reads => ended = Some(self.whole(&shown, &holding, done)),
                        }
                    };
                    drop(judged);
                    if !self.take(&shown, &holding, window.end, words, matches!(ended, Some(Ok(_)))) {
                        self.say(back, &holding);
                        return None;
                    }
                }
                (None, None) => tokio::select! {
                    biased;
                    done = &mut answer => ended = Some(self.whole(&shown, &holding, done)),
                    () = holding.stirred.notified() => {}
                },
                (None, Some(_)) => break,
            }
        }
        if matches!(ended, Some(Ok(_))) {
            let rest = holding.held().clear(true);
            shown.tell(&rest);
        }
        self.say(back, &holding);
        let ended = ended?;
        if let Ok(returned) = &ended
            && self.inner.home.redact_text(returned.text.to_text()) != holding.held().text
            && !self.judge_returned(&returned.text, back).await
        {
            return None;
        }
        Some(ended)
    }

    /// The model has answered: what was held back for the secrets is there, and so is what it returned without having written it before.
    fn whole(&self, shown: &RedactedOutput, holding: &SharedBuffer, ended: ModelOutcome) -> ModelOutcome {
        let rest = shown.held_back(0);
        let mut held = holding.held();
        held.text.push_str(&rest);
        held.streamed = held.text.len();
        if let Ok(returned) = &ended {
            let text = self.inner.home.redact_text(returned.text.to_text());
            if let Some(more) = text.strip_prefix(held.text.as_str()) {
                held.text.push_str(more);
            }
        }
        ended
    }

    /// A text that is not the one that was streamed is judged as well. Gives whether it passes.
    async fn judge_returned(&self, text: &Content, back: &FactSender) -> bool {
        let guards = self.guards();
        let holding = SharedBuffer::default();
        holding.held().text = self.inner.home.redact_text(text.to_text());
        loop {
            let next = holding.held().next(true);
            let Some(window) = next else { break };
            let words = self.judge(&guards, &holding, window.clone()).await;
            let mut held = holding.held();
            let passes = words.iter().all(|word| word.objection().is_none());
            (held.judged, held.windows) = (window.end, held.windows + 1);
            held.words.extend(words);
            drop(held);
            if !passes {
                self.say(back, &holding);
                return false;
            }
        }
        self.say(back, &holding);
        true
    }

    fn guards(&self) -> Vec<Guard<'_>> {
        let guard = |hook| {
            let HookEntry { id, extension, outage, .. }: &HookEntry = hook;
            let loaded = match outage {
                Some(outage) => Err(outage.fault.clone()),
                None => self.inner.extensions.instance(extension),
            };
            let instances = loaded.map(|loaded| {
                let own = loaded.fresh().unwrap_or_else(|| loaded.clone());
                [loaded, own]
            });
            let host = SessionHost {
                inbox: self.inbox.clone(),
                progress: self.progress.clone(),
                extension: extension.clone(),
                under: self.under,
                hook: Some(id.clone()),
            };
            Guard { hook, instances, host: Arc::new(host) }
        };
        self.hooks.entries.iter().map(guard).collect()
    }

    /// What all guardrails say about a window, in their order, but for those that have no objection.
    fn judge(
        &self,
        guards: &[Guard<'_>],
        holding: &SharedBuffer,
        window: Range<usize>,
    ) -> Later<Vec<ChunkVerdict>> {
        let held = holding.held();
        let (number, input) =
            (held.windows, |hook| chunk_input(hook, &held.text, window.clone(), &self.turn));
        let inputs: Vec<_> = self.hooks.ids.iter().map(input).collect();
        drop(held);
        let asked = guards.iter().zip(inputs).map(|(guard, input)| {
            let HookEntry { extension, spec, .. } = guard.hook;
            let instance = guard.instances.as_ref().map(|[loaded, own]| chunk_instance(loaded, own));
            let made = match instance {
                Ok(instance) => {
                    self.inner.make_pinned(extension, &instance, Call::Hook(input), guard.host.clone())
                }
                Err(fault) => crate::calls::CallState::Answered(Err(fault.clone())),
            };
            let (inner, hook, timeout) = (self.inner.clone(), guard.hook.clone(), spec.timeout);
            let said = async move {
                let answer = wait_timeout(made, timeout, Code::HookTimeout, inner.clock.clone()).await;
                let said = answer.and_then(|reply| decision_of(reply, HookPoint::GuardChunk));
                chunk_verdict(number, &hook.id, said.map_err(|fault| inner.told_of_chunk(&hook, fault)))
            };
            Box::pin(said) as Later<Option<ChunkVerdict>>
        });
        let all = join_all(asked);
        Box::pin(async move { all.await.into_iter().flatten().collect() })
    }

    /// Takes what was said about a window, and shows what can be shown then. Gives whether it passes.
    fn take(
        &self,
        shown: &RedactedOutput,
        holding: &SharedBuffer,
        end: usize,
        words: Vec<ChunkVerdict>,
        whole: bool,
    ) -> bool {
        let mut held = holding.held();
        let passes = words.iter().all(|word| word.objection().is_none());
        (held.judged, held.windows) = (end, held.windows + 1);
        held.words.extend(words);
        let clear = if passes { held.clear(whole) } else { String::new() };
        drop(held);
        shown.tell(&clear);
        passes
    }

    /// Has it recorded what was judged, if anything was.
    fn say(&self, back: &FactSender, holding: &SharedBuffer) {
        let held = holding.held();
        if held.windows > 0 {
            let (hooks, windows, words) = (self.hooks.ids.clone(), held.windows, held.words.clone());
            let text = Content::text(held.text.get(..held.judged).unwrap_or_default());
            back.tell(FrameSource::Host, StreamGuarded { hooks, text, windows, words });
        }
    }
}

impl Inner {
    /// What went wrong with a guardrail, without what is secret. The system is told if it broke.
    fn told_of_chunk(&self, hook: &HookEntry, mut fault: Fault) -> Fault {
        fault.message = self.home.redact_text(fault.message);
        if fault.code.is_crash() {
            let (id, generation) = (hook.extension.id.clone(), hook.extension.generation);
            let phase = format!("hook {}", hook.id);
            self.system.tell(ExtensionFaulted { id, generation, phase, fault: fault.clone() });
        }
        fault
    }
}
