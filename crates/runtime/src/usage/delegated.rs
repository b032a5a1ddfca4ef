//! What an agent that an extension invokes may use, and what it has used. The kernel says what is left when it is invoked, and charges the
//! session when the answer is recorded.

use std::sync::Arc;

use holdfast_contract::message::{Limits, Spent};
use holdfast_kernel::limits::within;
use parking_lot::Mutex;

/// What a session has left for an agent, and what the agent has used.
#[derive(Clone)]
pub(crate) struct DelegatedBudget {
    left: Limits,
    used: Arc<Mutex<Option<Spent>>>,
}

impl DelegatedBudget {
    /// A budget of which nothing is used.
    pub(crate) fn new(left: Limits) -> Self {
        Self { left, used: Arc::default() }
    }

    /// What is left for an agent that has limits of its own.
    pub(crate) fn left_for(&self, own: Limits) -> Limits {
        within(own, &self.left)
    }

    /// How many model calls are left.
    pub(crate) fn model_calls(&self) -> u32 {
        self.left.max_turns
    }

    /// Charges what an agent has used.
    pub(crate) fn charge(&self, spent: Spent) {
        let mut used = self.used.lock();
        *used = Some(used.unwrap_or_default().plus(spent));
    }

    /// What agents have used; none if none was invoked.
    pub(crate) fn used(&self) -> Option<Spent> {
        *self.used.lock()
    }
}
