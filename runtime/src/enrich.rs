//! A prompt with what context providers have to say before it, for an extension whose own agent takes one text. In a session the
//! kernel asks them; this is outside of any turn.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::ids::{AgentId, StreamId};
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::HookEntry;
use holdfast_contract::wire::{Call, Later, Reply};
use serde::Deserialize;

use crate::calling::{make, within};
use crate::host::SystemHost;
use crate::runtime::Inner;
use crate::services::Asker;

/// What stands between the parts.
const BETWEEN: &str = "\n\n---\n\n";

/// `context.enrich`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Enrich {
    prompt: String,
    #[serde(default)]
    agent: Option<AgentId>,
}

impl Inner {
    /// Asks every context provider, in order, and gives what they say and then the prompt. One that fails has nothing to say.
    pub(crate) fn enrich(self: &Arc<Self>, asker: &Asker, asked: Enrich) -> Later<Result<Content, Fault>> {
        let Enrich { prompt, agent } = asked;
        let turn = Arc::new(TurnContext {
            session: asker.session.clone().unwrap_or_else(StreamId::system),
            turn: 1,
            agent: agent.unwrap_or_else(|| asker.extension.id.as_str().into()),
            origin: Origin { channel: asker.extension.id.to_string(), user: None },
        });
        let registry = self.registry().view.unwrap_or_default();
        let at = |entry: &&HookEntry| entry.spec.point == HookPoint::Context;
        let applies = |entry: &&HookEntry| entry.spec.matcher.applies(None, &turn.origin.channel);
        let providers: Vec<HookEntry> = registry.hooks.iter().filter(at).filter(applies).cloned().collect();
        let inner = self.clone();
        Box::pin(async move {
            let mut parts = Vec::new();
            for HookEntry { id, extension, spec } in providers {
                let subject = Some(Content::text(prompt.as_str()));
                let input = HookInput {
                    hook: id,
                    point: HookPoint::Context,
                    call: None,
                    subject,
                    turn: turn.clone(),
                };
                let instance = inner.instance(&extension)?;
                let instance = instance.fresh().unwrap_or(instance);
                let host = Arc::new(SystemHost::new(&inner, extension, None));
                let made = make(&instance, Call::Hook(input), host);
                let answer = within(made, spec.timeout, Code::HookFault, inner.clock.clone()).await;
                if let Ok(Reply::Decision(Decision::Inject { content })) = answer {
                    parts.push(content.to_text());
                }
            }
            parts.push(prompt);
            Ok(Content::text(parts.join(BETWEEN)))
        })
    }
}
