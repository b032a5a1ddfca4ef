//! What every actor shares. Each part keeps its state to itself and lives in its folder; what needs several parts is a method of
//! [`Inner`], in the folder that it belongs to.

use std::sync::Arc;

use fail::fail_point;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::SessionSettings;
use holdfast_contract::system_frames::LogMigrated;
use holdfast_policy::Policy;
use holdfast_store::Store;
use tokio::sync::watch;

use super::home_settings::HomeSettings;
use super::models::Models;
use super::policies::Policies;
use super::{Runtime, ShutdownRequest};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::extensions::{ActiveRegistry, Extensions};
use crate::history::conversations::Conversations;
use crate::host::outside::consent::ConsentAnswers;
use crate::host::services::SharedServices;
use crate::host::setup::SetupCache;
use crate::messaging::Messaging;
use crate::parts::{Entropy, HomeParts, Parts, Surface};
use crate::session::Sessions;
use crate::system::{Background, ExecutionMarker, RoutineChecks, SystemActor, SystemHandle};
use crate::usage::Usage;

/// What every actor shares.
pub(crate) struct Inner {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub surface: Arc<dyn Surface>,
    /// What the user of the home has configured.
    pub home: HomeSettings,
    pub models: Models,
    pub policies: Policies,
    /// The registry that new turns start on.
    pub registry: ActiveRegistry,
    pub extensions: Extensions,
    pub sessions: Sessions,
    pub calls: Calls,
    pub usage: Usage,
    pub messaging: Messaging,
    /// The system's actor.
    pub system: SystemHandle,
    /// Whose code is executing while extensions start.
    pub executing: ExecutionMarker,
    /// The background services of extensions.
    pub background: Background,
    /// Calls of extensions that are counted.
    pub routine_checks: RoutineChecks,
    /// The titles and projects of conversations.
    pub conversations: Conversations,
    /// The services that extensions share.
    pub shared: SharedServices,
    /// The user's answers about network hosts.
    pub answers: ConsentAnswers,
    /// Which extensions are not set up.
    pub setup_cache: SetupCache,
    /// Whether extensions are loaded only to be listed: they are not initialised or started, and no event is delivered.
    pub inspects: bool,
    /// What is requested of the whole process.
    pub shutdown: watch::Sender<ShutdownRequest>,
}

impl Inner {
    /// Starts the system's actor, brings the policy into force and begins to start the extensions in order. Does not wait until they
    /// have started.
    pub(crate) async fn start(parts: Parts) -> Result<Arc<Self>, Problem> {
        let Parts { store, clock, entropy, models, lanes, extensions, policy, surface, routes, home } = parts;
        let HomeParts {
            zone,
            secrets,
            configuration,
            rejected,
            agents,
            default_model,
            limits,
            calls,
            context,
            tools,
            overrides,
            executing,
            preparations,
            inspects,
            places,
            http,
            variables,
        } = home;
        let (system, commands) = SystemHandle::new();
        let conversations = Conversations::of(places.as_ref().map(|places| places.home.as_path()));
        let messaging = Messaging::open(store.clone(), clock.clone(), entropy.clone(), routes).await?;
        let inner = Arc::new(Self {
            models: Models::new(models, default_model),
            policies: Policies::new(store.clone()),
            registry: ActiveRegistry::default(),
            extensions: Extensions::new(lanes, clock.clone(), preparations),
            sessions: Sessions::default(),
            calls: Calls::new(calls),
            usage: Usage::new(zone.clone(), clock.now()),
            home: HomeSettings {
                zone,
                secrets,
                configuration,
                agents,
                limits,
                context,
                tools,
                places,
                http,
                variables,
            },
            store,
            clock,
            entropy,
            surface,
            messaging,
            system,
            executing: ExecutionMarker::open(executing.as_deref()),
            inspects,
            background: Background::default(),
            routine_checks: RoutineChecks::default(),
            conversations,
            shared: SharedServices::default(),
            answers: ConsentAnswers::default(),
            setup_cache: SetupCache::default(),
            shutdown: watch::Sender::default(),
        });
        // Before anything runs: what extensions publish while they start reaches those that start after them.
        inner.installed(&extensions);
        inner.sync_subscriptions().await?;
        fail_point!("system::before_start");
        SystemActor::start(inner.clone(), commands)?;
        let runtime = Runtime::of(&inner);
        if let Some(migration) = inner.store.migration() {
            inner.system.tell(LogMigrated { from: migration.from, to: migration.to });
        }
        runtime.set_policy(policy, "start")?;
        if let Some(overrides) = overrides {
            // Before anything is registered: the first turn must not have what they switch off.
            runtime.set_overrides(overrides);
        }
        runtime.discovered(extensions, rejected).await?;
        runtime.extensions().await?;
        inner.extensions.startup().discovered();
        runtime.rebuild_daily_usage()?;
        // What waits from an earlier process needs the policy, and turns also the extensions.
        inner.start_router();
        Ok(inner)
    }

    /// The policy that new turns start under.
    pub(crate) fn policy_in_force(&self) -> Result<Arc<Policy>, Problem> {
        self.policies.get(self.registry.view().policy)
    }

    /// The policy that a session's next turn starts under: in the profile that its client asked for.
    pub(crate) fn policy_for(&self, session: Option<&StreamId>) -> Result<Arc<Policy>, Problem> {
        let settings = session.map(|id| self.session_settings(id)).transpose()?;
        Ok(self.policy_in_force()?.under(settings.and_then(|settings| settings.pinned_profile)))
    }

    /// What a session was set to when it started. Of one that was opened just now, whose actor may not have recorded its first frame
    /// yet, from its handle, else from that frame.
    pub(crate) fn session_settings(&self, session: &StreamId) -> Result<Arc<SessionSettings>, Problem> {
        if let Some(settings) = self.sessions.get(session).and_then(|handle| handle.settings) {
            return Ok(settings);
        }
        self.session_start(session).map(|started| started.settings)
    }
}
