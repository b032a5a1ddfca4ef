//! The instances that the calls of a turn run on.
//!
//! A sandboxed instance remembers what it did earlier in its turn, so which call runs on which instance must be the same when the
//! turn is replayed. It follows from the frames alone: a call begins where the frame that decides it stands and ends where its
//! answer does. A call that begins while another one to the same extension has not ended gets the next instance; one that
//! failed or was given up takes its instance with it; all go when the session has nothing more to do. Hooks that are always
//! answered at once end where they begin, and one instance serves them all.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{CallId, HookId, Seq};
use holdfast_contract::manifest::Scope;
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::Instance;
use rustc_hash::FxHashMap;

/// A call, by the frame that decided it and whom it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallKey {
    /// A hook.
    Hook(Seq, HookId),
    /// A tool.
    Tool(Seq, CallId),
}

impl CallKey {
    /// The call that a fact is the answer to, and whether the answer is a failure.
    fn ended_by(input: &Input) -> Option<(Self, bool)> {
        let cause = input.cause?;
        match &input.body {
            Body::HookDecided(fact) => Some((Self::Hook(cause, fact.hook.clone()), false)),
            Body::HookFaulted(fact) => Some((Self::Hook(cause, fact.hook.clone()), true)),
            Body::ToolReturned(fact) => {
                let failed = matches!(fact.outcome, ToolOutcome::Failure(_));
                Some((Self::Tool(cause, fact.call), failed))
            }
            _ => None,
        }
    }

    /// The frame that decided it.
    pub fn by(&self) -> Seq {
        match self {
            Self::Hook(seq, _) | Self::Tool(seq, _) => *seq,
        }
    }
}

/// An answer on its way into the machine: whose it is, and what becomes of the instance that gave it.
pub struct CallEnd {
    extension: Digest,
    begun: CallKey,
    failed: bool,
}

impl CallEnd {
    /// What taking this fact will end.
    pub fn of(input: &Input) -> Option<Self> {
        let FrameSource::Extension(extension) = &input.source else { return None };
        let (begun, failed) = CallKey::ended_by(input)?;
        Some(Self { extension: extension.digest, begun, failed })
    }
}

struct Slot {
    instance: Arc<dyn Instance>,
    taken: Option<CallKey>,
    /// Whether it serves hooks that are answered at once.
    at_once: bool,
}

/// The instances of a turn, by extension.
#[derive(Default)]
pub struct Instances(FxHashMap<Digest, Vec<Slot>>);

impl Instances {
    /// The instance for a hook that is answered at once, if there is one already.
    pub fn ready(&self, extension: Digest) -> Option<&Arc<dyn Instance>> {
        let slot = self.0.get(&extension)?.iter().find(|slot| slot.taken.is_none())?;
        slot.at_once.then_some(&slot.instance)
    }

    /// The instance for a hook that is answered at once.
    pub fn at_once(&mut self, extension: Digest, loaded: &Arc<dyn Instance>) -> Arc<dyn Instance> {
        let place = self.free(extension, loaded);
        match self.0.get_mut(&extension).and_then(|slots| slots.get_mut(place)) {
            Some(slot) => {
                slot.at_once = true;
                slot.instance.clone()
            }
            None => loaded.clone(),
        }
    }

    /// A call that was answered at once, on the first free slot, has failed.
    pub fn discard(&mut self, extension: Digest) {
        if let Some(slots) = self.0.get_mut(&extension)
            && let Some(place) = slots.iter().position(|slot| slot.taken.is_none())
        {
            slots.remove(place);
        }
    }

    /// The first free slot.
    fn free(&mut self, extension: Digest, loaded: &Arc<dyn Instance>) -> usize {
        let slots = self.0.entry(extension).or_default();
        slots.iter().position(|slot| slot.taken.is_none()).unwrap_or_else(|| {
            let instance = loaded.fresh().unwrap_or_else(|| loaded.clone());
            slots.push(Slot { instance, taken: None, at_once: false });
            slots.len() - 1
        })
    }

    /// The instance for a call that begins now.
    pub fn begin(
        &mut self,
        extension: Digest,
        begun: impl FnOnce() -> CallKey,
        loaded: &Arc<dyn Instance>,
    ) -> Arc<dyn Instance> {
        match loaded.capabilities().scope {
            Scope::Shared => loaded.clone(),
            Scope::Call => loaded.fresh().unwrap_or_else(|| loaded.clone()),
            Scope::Turn => {
                let place = self.free(extension, loaded);
                let Some(slot) = self.0.get_mut(&extension).and_then(|slots| slots.get_mut(place)) else {
                    return loaded.clone();
                };
                slot.taken = Some(begun());
                slot.instance.clone()
            }
        }
    }

    /// The instance that a call began on, where it has one of its own.
    pub fn of(&self, extension: Digest, begun: &CallKey) -> Option<Arc<dyn Instance>> {
        let slots = self.0.get(&extension)?;
        let slot = slots.iter().find(|slot| slot.taken.as_ref() == Some(begun))?;
        Some(slot.instance.clone())
    }

    /// A call has ended; what failed is not used again.
    pub fn end(&mut self, ending: &CallEnd) {
        let Some(slots) = self.0.get_mut(&ending.extension) else { return };
        let Some(place) = slots.iter().position(|slot| slot.taken.as_ref() == Some(&ending.begun)) else {
            return;
        };
        if ending.failed { drop(slots.remove(place)) } else { slots[place].taken = None }
    }

    /// Abandons what this frame began.
    pub fn give_up(&mut self, begun_by: Seq) {
        for slots in self.0.values_mut() {
            slots.retain(|slot| slot.taken.as_ref().is_none_or(|begun| begun.by() != begun_by));
        }
    }

    /// The session has nothing more to do.
    pub fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}
