//! The handle of a running system. Here are starting and stopping; what concerns sessions, extensions, models or messages is beside
//! what it concerns, in the other folders.
//!
//! | file | contents |
//! |---|---|
//! | `inner.rs` | the parts that all actors share |
//! | `home_settings.rs` | what the user of the home has configured, and redaction |
//! | `models.rs`, `policies.rs` | models by name, policies by digest |
//! | `code_agent.rs` | agents that are an extension's code, in place of a model |
//! | `summary.rs` | summaries for compaction, written by a model |

mod code_agent;
mod home_settings;
mod inner;
mod models;

pub use self::models::DefaultModel;
mod policies;
pub(crate) mod summary;

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::Problem;
use holdfast_store::Store;
use tokio::sync::watch;

use crate::extensions::StartWait;
use crate::parts::Parts;
use crate::system::SystemCommand;

pub(crate) use code_agent::code_of;
pub(crate) use inner::Inner;

/// A running system. Cheap to clone; dropping the last handle does not stop it, [`Runtime::stop`] does.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// What is requested of the whole process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShutdownRequest {
    /// Nothing: it goes on.
    #[default]
    GoOn,
    /// Stop everything in order, and start again; why.
    Restart(String),
    /// Stop everything in order; why.
    Stop(String),
}

impl Runtime {
    /// Starts: resumes the system stream, brings the policy into force and starts the extensions in order. Waits until each of them has
    /// started or failed.
    pub async fn start(parts: Parts) -> Result<Self, Problem> {
        let runtime = Self::begin(parts).await?;
        runtime.settled().await?;
        Ok(runtime)
    }

    /// The same, without waiting for the extensions. Turns wait for those that are starting, see [`Runtime::ready`].
    pub async fn begin(parts: Parts) -> Result<Self, Problem> {
        Inner::start(parts).await.map(Self)
    }

    /// Waits for the extensions that are starting as a turn does: until they are active or have failed, or have had ten seconds.
    pub async fn ready(&self) {
        self.0.extensions.startup().ready(StartWait::Start, &*self.0.clock).await;
    }

    /// The same, where the time does not count in which packages are installed or code is compiled for an extension that is starting.
    pub async fn prepared(&self) {
        self.0.extensions.startup().ready(StartWait::Preparation, &*self.0.clock).await;
    }

    /// The extensions that are starting.
    pub fn starting(&self) -> Vec<ExtensionId> {
        self.0.extensions.startup().starting()
    }

    /// Waits until everything reported so far has been carried out.
    pub async fn settled(&self) -> Result<(), Problem> {
        self.0.system.ask(SystemCommand::Settled).await?;
        self.0.sync_subscriptions().await?;
        self.0.router_settled().await;
        Ok(())
    }

    /// Stops everything in reverse order: first deliveries of events, then the sessions, then the services that extensions share, then
    /// the extensions.
    pub async fn stop(&self, reason: &str) -> Result<(), Problem> {
        self.0.close_bus().await?;
        self.0.sessions.close_all().await?;
        self.0.close_services().await;
        self.0.count_connections();
        self.0.record_checks(self.0.routine_checks.take());
        self.0.system.ask(|reply| SystemCommand::Stop { reason: reason.to_owned(), reply }).await?;
        self.0.store.flush()
    }

    /// Requests something of the whole process. Its owner carries it out.
    pub fn request_shutdown(&self, request: ShutdownRequest) {
        self.0.shutdown.send_replace(request);
    }

    /// What is requested of the whole process.
    pub fn shutdown_requests(&self) -> watch::Receiver<ShutdownRequest> {
        self.0.shutdown.subscribe()
    }

    /// The current time, by the runtime's clock.
    pub fn now(&self) -> Millis {
        self.0.clock.now()
    }

    /// The current date in the home's time zone, for a prompt.
    pub fn date(&self) -> String {
        self.0.home.zone().date(self.now())
    }

    /// The log.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Records a fact in the system stream and waits until it is on disk.
    pub(crate) async fn record(&self, body: impl Into<Body>) -> Result<(), Problem> {
        self.0.system.tell(body);
        self.settled().await?;
        self.0.store.flush()
    }

    pub(crate) fn of(inner: &Arc<Inner>) -> Self {
        Self(inner.clone())
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}
