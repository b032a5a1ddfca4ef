//! The registries that the system stream made, and the gates and guardrails that each of them lacks although they were expected: their
//! extensions were installed and had judged before, or were loaded, and were not up. A turn on such a registry went unjudged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use holdfast_contract::body::{Body, FrameOrigin};
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{HookId, Millis, Seq, StreamId};
use holdfast_contract::registry::RegistryRef;
use holdfast_kernel::System;
use holdfast_runtime::rebuild::input_of;
use holdfast_store::Store;

/// The registries by the frames that made them.
#[derive(Default)]
pub(super) struct Registries {
    made: BTreeMap<Seq, MadeRegistry>,
    /// Whether the whole system stream could be followed.
    whole: bool,
}

struct MadeRegistry {
    digest: Digest,
    /// Periods in which it was current and lacked hooks that judge and were expected.
    unguarded: Vec<Unguarded>,
}

/// A period without expected hooks: since when, until when, and which.
struct Unguarded {
    from: Millis,
    until: Option<Millis>,
    hooks: Vec<HookId>,
}

/// How long a turn may take from choosing its registry to its first frame. A gate that goes down in between does not count as a gap.
const START_TOLERANCE: Millis = Millis(1_000);

impl Registries {
    /// Follows the system stream.
    pub(super) fn read(store: &Store) -> Self {
        let (mut registries, mut system) = (Self { whole: true, ..Self::default() }, System::new());
        let mut current = None;
        // Where its beginning was collected, the machine cannot be followed.
        if store.frames(&StreamId::system(), ..=Seq(0)).is_ok_and(|first| first.is_empty())
            && store.head(&StreamId::system()).is_ok_and(|head| head.is_some())
        {
            return Self { whole: false, ..registries };
        }
        let walked = store.for_each_frame(&StreamId::system(), Seq(0), |frame| {
            let (seq, at) = (frame.envelope.seq, frame.envelope.at);
            let followed = match frame.envelope.kind.origin() {
                FrameOrigin::Fact => {
                    let followed = input_of(store, &frame).is_ok_and(|input| system.step(input).is_ok());
                    registries.note(current, at, system.unlisted());
                    followed
                }
                FrameOrigin::Decision => match store.body(&frame) {
                    Ok(Body::RegistryChanged(fact)) => {
                        registries.note(current.replace(seq), at, Vec::new());
                        let made = MadeRegistry { digest: fact.registry, unguarded: Vec::new() };
                        registries.made.insert(seq, made);
                        registries.note(current, at, system.unlisted());
                        true
                    }
                    read => read.is_ok(),
                },
            };
            registries.whole &= followed;
            Ok(if followed { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        // What is damaged there is reported as such; it keeps nothing else from being verified.
        registries.whole &= walked.is_ok();
        registries
    }

    /// Notes which expected hooks the current registry lacks from now on.
    fn note(&mut self, current: Option<Seq>, at: Millis, hooks: Vec<HookId>) {
        let Some(made) = current.and_then(|seq| self.made.get_mut(&seq)) else { return };
        let open = made.unguarded.last_mut().filter(|period| period.until.is_none());
        if open.as_ref().is_some_and(|period| period.hooks == hooks) {
            return;
        }
        if let Some(period) = open {
            period.until = Some(at);
        }
        if !hooks.is_empty() {
            made.unguarded.push(Unguarded { from: at, until: None, hooks });
        }
    }

    /// What is wrong with a turn that began on this registry at this time, as a stable word and in words.
    pub(super) fn problem(&self, registry: &RegistryRef, at: Millis) -> Option<(&'static str, String)> {
        match self.made.get(&registry.seq).filter(|made| made.digest == registry.digest) {
            Some(made) => {
                let covers = |period: &&Unguarded| {
                    at > period.from.plus(START_TOLERANCE) && period.until.is_none_or(|until| at < until)
                };
                let hooks = &made.unguarded.iter().find(covers)?.hooks;
                let hooks: Vec<&str> = hooks.iter().map(HookId::as_str).collect();
                let detail = format!("the turn ran without {}, which had to judge it", hooks.join(", "));
                Some(("gate_absent", detail))
            }
            None if !self.whole || registry.digest == Digest::ZERO => None,
            None => {
                let detail =
                    format!("the system stream made no registry {} at {}", registry.digest, registry.seq);
                Some(("registry_unknown", detail))
            }
        }
    }
}
