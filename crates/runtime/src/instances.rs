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

use crate::identity_hash::IdentityMap;

/// A call, by the frame that decided it and whom it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallKey {
    Hook(Seq, HookId),
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
    pub(crate) fn by(&self) -> Seq {
        match self {
            Self::Hook(seq, _) | Self::Tool(seq, _) => *seq,
        }
    }
}

/// An answer on its way into the machine: whose it is, and what becomes of the instance that gave it.
pub(crate) struct CallEnd {
    extension: Digest,
    begun: CallKey,
    failed: bool,
}

impl CallEnd {
    /// What taking this fact will end.
    pub(crate) fn of(input: &Input) -> Option<Self> {
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
pub(crate) struct Instances(IdentityMap<Digest, Vec<Slot>>);

impl Instances {
    /// The instance for a hook that is answered at once, if there is one already.
    pub(crate) fn ready(&self, extension: Digest) -> Option<&Arc<dyn Instance>> {
        let seat = self.0.get(&extension)?.iter().find(|seat| seat.taken.is_none())?;
        seat.at_once.then_some(&seat.instance)
    }

    /// The instance for a hook that is answered at once.
    pub(crate) fn at_once(&mut self, extension: Digest, loaded: &Arc<dyn Instance>) -> Arc<dyn Instance> {
        let place = self.free(extension, loaded);
        match self.0.get_mut(&extension).and_then(|seats| seats.get_mut(place)) {
            Some(seat) => {
                seat.at_once = true;
                seat.instance.clone()
            }
            None => loaded.clone(),
        }
    }

    /// A call that was answered at once, on the first place that nobody has, has failed.
    pub(crate) fn discard(&mut self, extension: Digest) {
        if let Some(seats) = self.0.get_mut(&extension)
            && let Some(place) = seats.iter().position(|seat| seat.taken.is_none())
        {
            seats.remove(place);
        }
    }

    /// The first place that nobody has.
    fn free(&mut self, extension: Digest, loaded: &Arc<dyn Instance>) -> usize {
        let seats = self.0.entry(extension).or_default();
        seats.iter().position(|seat| seat.taken.is_none()).unwrap_or_else(|| {
            let instance = loaded.fresh().unwrap_or_else(|| loaded.clone());
            seats.push(Slot { instance, taken: None, at_once: false });
            seats.len() - 1
        })
    }

    /// The instance for a call that begins now.
    pub(crate) fn begin(
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
                let Some(seat) = self.0.get_mut(&extension).and_then(|seats| seats.get_mut(place)) else {
                    return loaded.clone();
                };
                seat.taken = Some(begun());
                seat.instance.clone()
            }
        }
    }

    /// The instance that a call began on, where it has one of its own.
    pub(crate) fn of(&self, extension: Digest, begun: &CallKey) -> Option<Arc<dyn Instance>> {
        let seats = self.0.get(&extension)?;
        let seat = seats.iter().find(|seat| seat.taken.as_ref() == Some(begun))?;
        Some(seat.instance.clone())
    }

    /// A call has ended; what failed is not used again.
    pub(crate) fn end(&mut self, ending: &CallEnd) {
        let Some(seats) = self.0.get_mut(&ending.extension) else { return };
        let Some(place) = seats.iter().position(|seat| seat.taken.as_ref() == Some(&ending.begun)) else {
            return;
        };
        match ending.failed {
            true => drop(seats.remove(place)),
            false => seats[place].taken = None,
        }
    }

    /// Whatever this frame began is given up.
    pub(crate) fn give_up(&mut self, begun_by: Seq) {
        for seats in self.0.values_mut() {
            seats.retain(|seat| seat.taken.as_ref().is_none_or(|begun| begun.by() != begun_by));
        }
    }

    /// The session has nothing more to do.
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}
