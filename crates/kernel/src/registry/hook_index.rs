//! Which hooks of a registry are asked at a point. Nearly always that is all of them, so the lists are made once per registry and
//! shared by everybody who asks.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::HookId;
use holdfast_contract::matcher::MatchedCall;
use holdfast_contract::registry::{AskedHooks, HookEntry, PointHooks, Registry};

use crate::hook_round::HookRound;

/// The hooks that are asked at a point about this call from this channel: those whose matchers apply, and at a gate the policy before
/// them. None if there are none.
pub(crate) fn matching_hooks(
    registry: &Registry,
    point: HookPoint,
    call: Option<MatchedCall<'_>>,
    channel: &str,
) -> Option<Arc<[HookId]>> {
    let all = at(registry, point);
    if all.ids.is_empty() {
        return None;
    }
    let applies = |hook: &&HookEntry| hook.spec.matcher.applies(call, channel);
    if all.match_all || all.hooks.entries.iter().all(|hook| applies(&hook)) {
        return Some(all.ids.clone());
    }
    let some = with_policy(point, all.hooks.entries.iter().filter(applies));
    Some(some).filter(|some| !some.is_empty())
}

/// The hooks of a round that are asked now, without the policy, which is evaluated by the host.
pub(crate) fn open_hooks(registry: &Registry, round: &HookRound) -> AskedHooks {
    let all = at(registry, round.point);
    if Arc::ptr_eq(&all.ids, &round.hooks) && round.asks_everyone() {
        return all.hooks.clone();
    }
    let mut ids = round.open().map(|(_, hook)| hook).filter(|hook| !hook.is_policy()).peekable();
    let asked = |hook: &&HookEntry| ids.next_if(|id| **id == hook.id).is_some();
    AskedHooks::new(all.hooks.entries.iter().filter(asked).cloned().collect())
}

/// The hooks of a point that are asked without a call, for points that the host asks itself. None if there are none.
pub fn hooks_without_call(registry: &Registry, point: HookPoint, channel: &str) -> Option<AskedHooks> {
    let hooks = matching_hooks(registry, point, None, channel)?;
    Some(open_hooks(registry, &HookRound::new(point, None, hooks)))
}

fn at(registry: &Registry, point: HookPoint) -> &PointHooks {
    let index = registry.hook_index.get_or_init(|| {
        let points: BTreeSet<_> = HookPoint::ALL.iter().copied().collect();
        points.into_iter().map(|point| point_hooks(point, registry.hooks_at(point))).collect()
    });
    &index[point as usize]
}

fn point_hooks(point: HookPoint, hooks: &[HookEntry]) -> PointHooks {
    PointHooks {
        match_all: hooks.iter().all(|hook| hook.spec.matcher.is_any()),
        ids: with_policy(point, hooks.iter()),
        hooks: AskedHooks::new(hooks.into()),
    }
}

/// A gate always has the policy, which is asked first.
fn with_policy<'a>(point: HookPoint, hooks: impl Iterator<Item = &'a HookEntry>) -> Arc<[HookId]> {
    let policy = (point == HookPoint::ToolGate).then(HookId::policy);
    policy.into_iter().chain(hooks.map(|hook| hook.id.clone())).collect()
}
