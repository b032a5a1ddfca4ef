//! What models have used in this process, and since when it runs. What a home has used before is in its log, by session.

use holdfast_contract::body::Body;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::Usage;
use parking_lot::Mutex;

use crate::runtime::Runtime;

/// What models have used since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Calls that a model has answered or failed.
    pub model_calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a dollar.
    pub cost_micros: u64,
}

/// Counts what models use.
pub(crate) struct Meter {
    /// When this process began.
    pub since: Millis,
    used: Mutex<ModelUsage>,
}

impl Meter {
    pub(crate) fn new(since: Millis) -> Self {
        Self { since, used: Mutex::default() }
    }

    pub(crate) fn used(&self) -> ModelUsage {
        *self.used.lock()
    }

    /// Counts what this fact tells of, if it comes from a model. Each call of a model is counted once, for one session.
    pub(crate) fn count(&self, body: &Body) {
        let Usage { input_tokens, output_tokens, cost_micros } = match body {
            Body::ModelReturned(fact) => fact.usage,
            Body::ModelFailed(fact) => fact.usage,
            Body::CompactionProvided(fact) => fact.usage,
            _ => return,
        };
        let mut used = self.used.lock();
        used.model_calls = used.model_calls.saturating_add(1);
        used.tokens = used.tokens.saturating_add(input_tokens.saturating_add(output_tokens));
        used.cost_micros = used.cost_micros.saturating_add(cost_micros);
    }
}

impl Runtime {
    /// What models have used since this runtime was started.
    pub fn used(&self) -> ModelUsage {
        self.inner().usage.meter().used()
    }

    /// How long this runtime has been running.
    pub fn uptime(&self) -> Millis {
        self.inner().clock.now().since(self.inner().usage.meter().since)
    }
}
