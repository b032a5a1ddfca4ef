//! Guardrails on streamed text, one window at a time: which are asked, what they are asked, and how an answer is recorded.

use std::ops::Range;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::ids::HookId;
use holdfast_contract::manifest::Scope;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{AskedHooks, Registry};
use holdfast_contract::session_frames::{ChunkSaid, ChunkVerdict};
use holdfast_contract::wire::Instance;
use holdfast_kernel::registry::hooks_without_call;

use super::stream_windows::window_with_overlap;

/// The guardrails that judge streamed text in a turn: those of its registry whose matchers apply.
pub fn chunk_guards(registry: &Registry, turn: &TurnView) -> Option<AskedHooks> {
    hooks_without_call(registry, HookPoint::GuardChunk, &turn.origin.channel)
}

/// The question to a guardrail about a window.
pub fn chunk_input(hook: &HookId, text: &str, window: Range<usize>, turn: &TurnView) -> HookInput {
    let subject = Some(Content::text(window_with_overlap(text, window)));
    HookInput { hook: hook.clone(), point: HookPoint::GuardChunk, call: None, subject, turn: turn.clone() }
}

/// The instance that judges a window: the loaded one, a fresh one, or the one of the stream, by the extension's scope.
pub fn chunk_instance(loaded: &Arc<dyn Instance>, of_stream: &Arc<dyn Instance>) -> Arc<dyn Instance> {
    match loaded.capabilities().scope {
        Scope::Call => loaded.fresh().unwrap_or_else(|| loaded.clone()),
        Scope::Shared => loaded.clone(),
        Scope::Turn => of_stream.clone(),
    }
}

/// What is recorded of a guardrail's answer; consent is not recorded.
pub fn chunk_verdict(window: u32, hook: &HookId, answer: Result<Decision, Fault>) -> Option<ChunkVerdict> {
    let said = match answer {
        Ok(decision) if decision == *HookPoint::GuardChunk.consent() => return None,
        Ok(decision) => ChunkSaid::Decided(decision),
        Err(fault) => ChunkSaid::Faulted(fault),
    };
    Some(ChunkVerdict { window, hook: hook.clone(), said })
}
