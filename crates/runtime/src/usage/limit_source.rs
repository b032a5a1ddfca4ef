//! Where the limit is set that ended a turn. A frame says which limit it was; whose settings it comes from is found here, in the log, the
//! settings, the policy and the registry. What a day may use up is kept in `daily_usage.rs`.

use std::ops::ControlFlow;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{AgentId, ExtensionId, Seq, StreamId};
use holdfast_contract::message::{LimitKind, Limits, Spent};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::Registry;
use holdfast_contract::session_frames::{Parent, TurnOutcome};
use holdfast_kernel::limits::{TimeLimit, within};
use holdfast_store::Store;

use crate::history::{find_last_before, session_start};
use crate::runtime::Inner;

/// What a session was bounded by when a turn of it ended or asked an agent.
struct EffectiveLimits {
    /// Whose session it is.
    agent: AgentId,
    /// Who had the conversation, if that was another one.
    speaker: Option<AgentId>,
    /// What the session began with.
    limits: Limits,
    /// Who asked for it.
    parent: Option<Parent>,
}

impl EffectiveLimits {
    fn read(store: &Store, session: &StreamId, until: Seq) -> Result<Self, Problem> {
        let missing = || Problem::new(Code::StoreCorrupt, format!("`{session}` has no beginning"));
        let fact = session_start(store, session)?.ok_or_else(missing)?;
        let (agent, limits, parent) = (fact.agent, fact.settings.limits, fact.parent);
        let speaker = speaker(store, session, until)?.filter(|speaker| *speaker != agent);
        Ok(Self { agent, speaker, limits, parent })
    }

    /// The limits of the agent that has the conversation, if it has its own.
    fn speakers(&self, registry: &Registry) -> Option<(&AgentId, Limits)> {
        let speaker = self.speaker.as_ref()?;
        Some((speaker, registry.agent(speaker)?.limits))
    }

    /// Which limit it is that ends a turn in time.
    fn time(&self, registry: &Registry, earlier: &Spent) -> LimitKind {
        let all = self.limits;
        let own = self.speakers(registry);
        let limits = own.map_or(all, |(_, own)| within(own, &all));
        TimeLimit::of(&limits, earlier).kind
    }
}

/// The agent that had the conversation, if it was handed over.
fn speaker(store: &Store, session: &StreamId, until: Seq) -> Result<Option<AgentId>, Problem> {
    let changed = match store.last_of_kind(session, FrameKind::AgentChanged)? {
        Some(frame) if frame.envelope.seq >= until => {
            let changed = |frame: &Frame| frame.envelope.kind == FrameKind::AgentChanged;
            find_last_before(store, session, until, changed)?
        }
        changed => changed,
    };
    Ok(match changed.map(|frame| store.body(&frame)).transpose()? {
        Some(Body::AgentChanged(fact)) => Some(fact.agent),
        _ => None,
    })
}

/// What the turns that had ended by then had used. Each turn's end has its own part of it, so all of them are read: only for a child
/// that was ended by its parent's time.
fn spent_before(store: &Store, session: &StreamId, until: Seq) -> Result<Spent, Problem> {
    let mut spent = Spent::default();
    store.for_each_frame(session, Seq(0), |frame| {
        if frame.envelope.seq >= until {
            return Ok(ControlFlow::Break(()));
        }
        if frame.envelope.kind == FrameKind::TurnEnded
            && let Body::TurnEnded(fact) = store.body(&frame)?
        {
            spent = spent.plus(fact.spent);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(spent)
}

/// Where a bound comes from.
enum LimitSource {
    /// It is set there.
    Place(String),
    /// It is what the caller of the session had left.
    Parent(Parent),
}

impl Inner {
    /// Where the limit is set that ended a turn; none where none did, or where the log does not tell.
    pub(crate) fn limit_set_in(
        &self,
        outcome: &TurnOutcome,
        session: &StreamId,
        ended: Seq,
    ) -> Option<String> {
        let TurnOutcome::Limited(mut limit) = *outcome else { return None };
        let registry = self.registry.view();
        let (mut session, mut until, mut whose) = (session.clone(), ended, "");
        loop {
            let standing = EffectiveLimits::read(&self.store, &session, until).ok()?;
            match self.origin(&registry, &standing, limit) {
                LimitSource::Place(place) => return Some(format!("{whose}{place}")),
                LimitSource::Parent(Parent { stream, seq }) => {
                    whose = "what was left of ";
                    if matches!(limit, LimitKind::Time | LimitKind::SessionTime) {
                        let earlier = spent_before(&self.store, &stream, seq).ok()?;
                        let parent = EffectiveLimits::read(&self.store, &stream, seq).ok()?;
                        limit = parent.time(&registry, &earlier);
                    }
                    (session, until) = (stream, seq);
                }
            }
        }
    }

    fn origin(&self, registry: &Registry, standing: &EffectiveLimits, limit: LimitKind) -> LimitSource {
        let speaker = standing.speaker.as_ref().unwrap_or(&standing.agent);
        let Some(allowed) = standing.limits.bound(limit) else {
            return LimitSource::Place(match standing.speakers(registry) {
                Some((speaker, own)) if own.bound(limit).is_some() => {
                    self.agents_place(registry, speaker, limit)
                }
                _ => cap_place(limit, registry.owner(speaker)),
            });
        };
        if let Some((speaker, own)) = standing.speakers(registry) {
            // An agent that was handed the conversation has its own number of model calls, and its own of the rest where that is less.
            let less = own.bound(limit).is_some_and(|own| own <= allowed);
            if less || limit == LimitKind::Turns {
                return LimitSource::Place(self.agents_place(registry, speaker, limit));
            }
        }
        if let Some(place) = self.sessions_cap(limit, allowed) {
            return LimitSource::Place(place);
        }
        let agent = &standing.agent;
        let (own, place) = match registry.agent(agent) {
            Some(spec) => (spec.limits, self.agents_place(registry, agent, limit)),
            None => (self.main_limits(agent), self.main_place(agent, limit)),
        };
        match (&standing.parent, own.bound(limit) == Some(allowed)) {
            (_, true) => LimitSource::Place(place),
            (Some(parent), false) => LimitSource::Parent(parent.clone()),
            (None, false) => LimitSource::Place("what the session began with".to_owned()),
        }
    }

    /// The policy's bound on a session, if it is this one.
    fn sessions_cap(&self, limit: LimitKind, allowed: u64) -> Option<String> {
        let kinds = [
            LimitKind::SessionTokens,
            LimitKind::SessionCost,
            LimitKind::SessionTime,
            LimitKind::SessionToolCalls,
        ];
        let bounds = self.policy_in_force().ok()?.caps().session.bounds(kinds, &Spent::default());
        let names = ["tokens", "dollars", "time_ms", "tool_calls"];
        let mut named = bounds.into_iter().zip(names);
        let (_, name) = named.find(|((kind, bound, _), _)| *kind == limit && *bound == Some(allowed))?;
        Some(format!("`caps.session.{name}` in the policy"))
    }

    /// What the settings allow an agent that no extension brings.
    fn main_limits(&self, agent: &AgentId) -> Limits {
        let all = self.home.limits().over(Limits::default());
        self.home.agent(agent).map_or(all, |set| set.limits.over(all))
    }

    fn main_place(&self, agent: &AgentId, limit: LimitKind) -> String {
        self.settings_place(agent, limit)
            .unwrap_or_else(|| format!("`{}` in the settings", limit.explain().1))
    }

    /// Where a limit of an agent is set that an extension brings.
    fn agents_place(&self, registry: &Registry, agent: &AgentId, limit: LimitKind) -> String {
        self.settings_place(agent, limit).unwrap_or_else(|| {
            let name = match limit {
                LimitKind::Tokens => "max_tokens_per_invocation",
                LimitKind::Cost => "max_cost_micros",
                other => other.explain().1.trim_start_matches("limits."),
            };
            let owner = registry.owner(agent).map_or(agent.as_str(), ExtensionId::as_str);
            format!("`agent.limits.{name}` in the manifest of `{owner}`")
        })
    }

    /// The place under the agent's name in the settings, if the limit is set there.
    fn settings_place(&self, agent: &AgentId, limit: LimitKind) -> Option<String> {
        self.home.agent(agent)?.limits.bound(limit)?;
        Some(format!("`agents.{agent}.{}` in the settings", limit.explain().1))
    }
}

/// Where the policy bounds a day, of everything or of this extension.
pub(crate) fn cap_place(limit: LimitKind, extension: Option<&ExtensionId>) -> String {
    let id = extension.map_or("<id>", ExtensionId::as_str);
    format!("`{}` in the policy", limit.explain().1.replace("<id>", id))
}
