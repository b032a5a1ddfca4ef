//! The capability `context`: a prompt with the texts of the context providers before it, for an extension whose own agent takes one text.
//! In a session the kernel asks them; this is outside of any turn, with the same order, timeouts and token budgets.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::context::SEPARATOR;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::host_call::arguments::EnrichArguments;
use holdfast_contract::ids::StreamId;
use holdfast_contract::message::{Origin, TurnContext, TurnView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::HookEntry;
use holdfast_contract::system_frames::ExtensionFaulted;
use holdfast_contract::wire::{Call, Later};
use tokio::task::JoinSet;

use super::{Caller, SystemHost};
use crate::calls::{ContextTokenBudget, decision_of, start_call, wait_timeout};
use crate::runtime::Inner;

impl Inner {
    /// Calls every context provider concurrently and returns their texts, in their order, followed by the prompt. One that fails or times
    /// out contributes nothing, and its fault is recorded.
    pub(super) fn context_enrich(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: EnrichArguments,
    ) -> Later<Result<Content, Fault>> {
        let EnrichArguments { prompt, agent } = arguments;
        let registry = self.registry.view();
        // The agent of a channel answers there.
        let id = &caller.extension.id;
        let is_channel = self.channel(id).is_ok();
        let channel = if is_channel { id.to_string() } else { Origin::extension(id).channel };
        let origin = Origin { channel, user: None };
        let turn = Arc::new(TurnContext {
            session: caller.session.clone().unwrap_or_else(StreamId::system),
            turn: 1,
            agent: agent.unwrap_or_else(|| caller.extension.id.as_str().into()),
            origin,
            ..TurnContext::default()
        });
        let applies = |entry: &&HookEntry| entry.spec.matcher.applies(None, &turn.origin.channel);
        let providers: Vec<HookEntry> =
            registry.hooks_at(HookPoint::Context).iter().filter(applies).cloned().collect();
        let inner = self.clone();
        Box::pin(async move {
            let mut under_way = JoinSet::new();
            for (place, provider) in providers.iter().cloned().enumerate() {
                let (inner, prompt, turn) = (inner.clone(), Content::text(prompt.as_str()), turn.clone());
                under_way.spawn(async move { (place, inner.provided(provider, prompt, turn).await) });
            }
            let mut said: Vec<_> = providers.iter().map(|_| None).collect();
            while let Some(Ok((place, answer))) = under_way.join_next().await {
                said[place] = Some(answer);
            }
            let mut budget = ContextTokenBudget::new(inner.home.context());
            let mut parts = Vec::new();
            for (HookEntry { id, extension, spec, .. }, answer) in providers.into_iter().zip(said) {
                let answer = answer.unwrap_or_else(|| Err(Fault::new(Code::Internal, "its call was lost")));
                inner.routine_checks.enriched(&extension, answer.is_err(), inner.clock.now());
                match answer {
                    Ok(decision) => {
                        let (decision, _) = budget.allocate(&extension.id, spec.tokens, decision);
                        if let Decision::Inject { content } = decision {
                            parts.push(content.to_text());
                        }
                    }
                    Err(fault) if fault.code.is_crash() => {
                        let (generation, phase) = (extension.generation, format!("hook {id}"));
                        let id = extension.id.clone();
                        inner.system.tell(ExtensionFaulted { id, generation, phase, fault });
                    }
                    Err(_) => {}
                }
            }
            parts.retain(|part| !part.trim().is_empty());
            parts.push(prompt);
            Ok(Content::text(parts.join(SEPARATOR)))
        })
    }

    /// What one provider says.
    async fn provided(
        self: Arc<Self>,
        provider: HookEntry,
        prompt: Content,
        turn: TurnView,
    ) -> Result<Decision, Fault> {
        let HookEntry { id: hook, extension, spec, .. } = provider;
        let point = HookPoint::Context;
        let input = HookInput { hook, point, call: None, subject: Some(prompt), turn };
        let instance = self.extensions.instance(&extension)?;
        let instance = instance.fresh().unwrap_or(instance);
        let host = Arc::new(SystemHost::new(&self, extension, None).for_hook(point));
        let made = start_call(&instance, Call::Hook(input), host);
        let answer = wait_timeout(made, spec.timeout, Code::HookTimeout, self.clock.clone()).await?;
        decision_of(answer, point)
    }
}
