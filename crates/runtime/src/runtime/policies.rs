//! The policies by digest: a turn that started on an older policy still runs under it.

use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::SessionSettings;
use holdfast_contract::system_frames::PolicyChanged;
use holdfast_policy::Policy;
use holdfast_store::{ObjectKind, Store};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::Runtime;

/// The policies that are in use, and the store that has the others.
pub(crate) struct Policies {
    store: Store,
    in_use: RwLock<FxHashMap<Digest, Arc<Policy>>>,
}

impl Policies {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, in_use: RwLock::default() }
    }

    /// Stores a policy and gives its digest.
    fn put(&self, policy: Policy) -> Result<Digest, Problem> {
        let digest = self.store.put(ObjectKind::Policy, policy.document().to_vec())?;
        self.keep(digest, Arc::new(policy));
        Ok(digest)
    }

    fn keep(&self, digest: Digest, policy: Arc<Policy>) {
        self.in_use.write().insert(digest, policy);
    }

    /// The policy of this digest.
    pub(crate) fn get(&self, digest: Option<Digest>) -> Result<Arc<Policy>, Problem> {
        let digest = digest.ok_or_else(|| Problem::new(Code::PolicyInvalid, "no policy is in force"))?;
        if let Some(policy) = self.in_use.read().get(&digest) {
            return Ok(policy.clone());
        }
        let missing = || Problem::new(Code::ReplayMissing, format!("policy {digest} is not in the store"));
        let bytes = self.store.object(digest)?.ok_or_else(missing)?;
        let policy = Arc::new(Policy::from_document(&bytes)?);
        self.keep(digest, policy.clone());
        Ok(policy)
    }
}

impl Runtime {
    /// Brings a policy into force for turns that start from now on.
    pub fn set_policy(&self, policy: Policy, reason: &str) -> Result<(), Problem> {
        let inner = self.inner();
        let spending = policy.spending().cloned();
        let digest = inner.policies.put(policy)?;
        if inner.usage.daily().set(spending.as_ref()) {
            self.rebuild_daily_usage()?;
        }
        inner.system.tell(PolicyChanged { policy: digest, reason: reason.to_owned() });
        Ok(())
    }

    /// The policy that the next turn of a session starts under.
    pub fn session_policy(&self, session: &StreamId) -> Result<Arc<Policy>, Problem> {
        self.inner().policy_for(Some(session))
    }

    /// What a session was set to when it started.
    pub fn session_settings(&self, session: &StreamId) -> Result<Arc<SessionSettings>, Problem> {
        self.inner().session_settings(session)
    }

    /// The policy that new turns start under.
    pub fn policy(&self) -> Result<Arc<Policy>, Problem> {
        self.inner().policy_in_force()
    }
}
