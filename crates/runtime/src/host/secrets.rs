//! The capability `secrets`, and the secrets of a running system: found for extensions, stored for setup, and redacted from everything that
//! is recorded or shown.
//!
//! `holdfast-secrets` stores them. Its stores block, so tasks use `Secrets::on_thread`.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::Capability;
use holdfast_contract::host_call::arguments::SecretKeepArguments;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogSink;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{Descriptor, ExtensionRef};
use holdfast_contract::session_frames::ChunkSaid;
use holdfast_contract::system_frames::LifecycleOutcome;
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::Later;
pub use holdfast_secrets::{
    Chain, Digester, ExposeSecret, RemovedSecret, SecretName, SecretString, StoreKind, StoredSecret,
};
use holdfast_secrets::{FoundSecret, RedactedStream, Redactor};
use parking_lot::RwLock;
use serde_json::Value;

use super::outside::consent::UngrantedUse;
use super::setup::reference;
use super::{Caller, failed};
use crate::runtime::{Inner, Runtime};

/// The secrets of a home.
pub struct Secrets {
    chain: Chain,
    digester: Digester,
    /// Secrets that no store lists: environment variables with the keys of models.
    also: Vec<SecretName>,
    redactor: RwLock<Arc<Redactor>>,
}

/// A secret as it is listed: without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSecret {
    /// Its name.
    pub name: SecretName,
    /// The store that it comes from.
    pub store: StoreKind,
    /// Where that store is.
    pub place: String,
}

impl Secrets {
    /// Reads what has to be redacted.
    pub fn new(chain: Chain, digester: Digester, also: Vec<SecretName>) -> Result<Self, Problem> {
        let secrets = Self { chain, digester, also, redactor: RwLock::default() };
        // A secret that cannot be read cannot be redacted either, so nothing is given out.
        secrets.look()?;
        Ok(secrets)
    }

    /// Reads again what has to be redacted.
    fn look(&self) -> Result<(), Problem> {
        let redactor = self.chain.redactor(self.also.iter().cloned())?;
        *self.redactor.write() = Arc::new(redactor);
        Ok(())
    }

    /// A secret of the home's own, such as a token that the settings name.
    pub fn find(&self, name: &SecretName) -> Result<Option<FoundSecret>, Problem> {
        self.chain.find(name)
    }

    /// The secret that an extension means by a name.
    pub fn find_for(&self, extension: &ExtensionId, name: &str) -> Result<Option<FoundSecret>, Problem> {
        self.chain.find_for(extension, name)
    }

    /// Stores a secret, and redacts it from now on.
    pub fn keep(&self, name: &SecretName, value: &SecretString) -> Result<StoredSecret, Problem> {
        let kept = self.chain.set(name, value)?;
        self.look()?;
        Ok(kept)
    }

    /// Removes a secret from every store that has it. It is redacted as long as this process runs: what was said before may contain it.
    fn remove(&self, name: &SecretName) -> Result<RemovedSecret, Problem> {
        self.chain.remove_everywhere(name)
    }

    /// The names of all secrets, with the first store that has each, and where that store is. Variables of the process are listed where
    /// a model's key is expected in them.
    fn list(&self) -> Result<Vec<ListedSecret>, Problem> {
        let mut names = self.chain.names()?;
        for name in &self.also {
            let found = self.chain.find(name)?.filter(|_| names.iter().all(|(known, _)| known != name));
            names.extend(found.map(|found| (name.clone(), found.from)));
        }
        names.sort();
        let stores = self.chain.describe();
        let place = |kind: StoreKind| stores.iter().find(|it| it.kind == kind).map(|it| it.place.clone());
        let listed = names.into_iter();
        Ok(listed
            .map(|(name, store)| ListedSecret { name, store, place: place(store).unwrap_or_default() })
            .collect())
    }

    /// What a frame records of a value.
    pub(crate) fn digest(&self, name: &str, value: &Content) -> Digest {
        self.digester.digest(name, &SecretString::from(value.to_text()))
    }

    /// A text with the values redacted.
    pub fn redact_text(&self, text: &str) -> String {
        self.redactor().redact(text).into_owned()
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.redactor.read().clone()
    }

    /// Redacts the values in a fact before anything is decided on it.
    pub(crate) fn redact(&self, body: &mut Body) {
        redact_body(&self.redactor(), body);
    }

    /// Redacts the values in something that is passed on.
    pub(crate) fn redact_content(&self, content: &mut Content) {
        redact_content(&self.redactor(), content);
    }

    /// Redacts the values in a text that comes in pieces.
    pub(crate) fn redacted_stream(&self) -> RedactedStream {
        self.redactor().stream()
    }

    /// A log whose lines are redacted, for what extensions write there.
    pub fn redacted_log(self: Arc<Self>, log: LogSink) -> LogSink {
        Arc::new(move |id, level, line| log(id, level, &self.redact_text(line)))
    }

    /// Runs blocking work on a blocking thread.
    pub(crate) async fn on_thread<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.map_err(|error| {
            Problem::new(Code::Internal, format!("the secrets could not be asked: {error}"))
        })?
    }
}

impl Runtime {
    /// The names of all secrets, and where each comes from.
    pub async fn secrets(&self) -> Result<Vec<ListedSecret>, Problem> {
        self.inner().secrets()?.on_thread(Secrets::list).await
    }

    /// Stores a secret, and redacts it from now on.
    pub async fn set_secret(&self, name: SecretName, value: SecretString) -> Result<StoredSecret, Problem> {
        self.inner().keep_secret(name, value).await
    }

    /// Removes a secret from every store that has it. One that is nowhere is a problem that names those that are.
    pub async fn remove_secret(&self, name: SecretName) -> Result<RemovedSecret, Problem> {
        let (secrets, sought) = (self.inner().secrets()?, name.clone());
        let removed = secrets.on_thread(move |secrets| secrets.remove(&sought)).await?;
        if removed.from.is_empty() && removed.left_in.is_none() {
            let known: Vec<String> = self.secrets().await?.iter().map(|it| it.name.to_string()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let empty = "No secrets are stored; `holdfast secret set NAME` stores one.";
            let name = name.to_string();
            return Err(Problem::unknown(Code::SecretMissing, "secret", &name, &known, empty));
        }
        self.inner().setup_changed(name.extension());
        Ok(removed)
    }
}

impl Inner {
    /// The secrets of the home; a problem where their stores could not be opened.
    pub(super) fn secrets(&self) -> Result<Arc<Secrets>, Problem> {
        self.home.secrets().cloned().ok_or_else(|| {
            let what = "the secret stores of this home could not be opened when it was started";
            Problem::new(Code::SecretsUnreadable, what)
                .help("The warning at the start says why; fix that, and start the home again.")
        })
    }

    /// The reference to a secret that an extension may use.
    pub(super) fn secret_reference(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
    ) -> Later<Result<Content, Fault>> {
        let (id, found) = (caller.extension.id.clone(), self.find_secret(caller, name.clone()));
        Box::pin(async move { found.await.map(|_| Content::text(reference(&id, &name))) })
    }

    /// A secret that an extension may have. Its value goes to the extension, and nowhere else.
    pub(super) fn secret_get(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
    ) -> Later<Result<Content, Fault>> {
        let found = self.find_secret(caller, name);
        Box::pin(async move { Ok(Content::text(found.await?.value.expose_secret())) })
    }

    /// Strikes those secrets that are there from what descriptors need: the extension's own, or a global one that it is granted. A store
    /// that cannot be read has none.
    pub(crate) async fn find_required_secrets(
        self: &Arc<Self>,
        extension: &Arc<ExtensionRef>,
        descriptors: &mut [Descriptor],
    ) {
        let granted = self.extensions.found(&extension.digest).map(|found| found.secrets).unwrap_or_default();
        for descriptor in descriptors {
            let mut missing = Vec::new();
            for name in std::mem::take(&mut descriptor.missing_secrets) {
                let (id, asked) = (extension.id.clone(), name.clone());
                let found = match self.home.secrets().cloned() {
                    Some(secrets) => {
                        secrets.on_thread(move |it| it.find_for(&id, &asked)).await.ok().flatten()
                    }
                    None => None,
                };
                let is_own = |found: &FoundSecret| found.name.extension() == Some(&extension.id);
                if !found.is_some_and(|found| granted.contains(&name) || is_own(&found)) {
                    missing.push(name);
                }
            }
            descriptor.missing_secrets = missing;
        }
    }

    /// An extension's own secret, or a global one that it is granted. The user is asked about another one, where there is one to ask.
    pub(super) fn find_secret(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
    ) -> Later<Result<FoundSecret, Fault>> {
        let id = caller.extension.id.clone();
        let granted = self
            .extensions
            .found(&caller.extension.digest)
            .is_some_and(|found| found.secrets.contains(&name));
        let Some(secrets) = self.home.secrets().cloned() else {
            return failed(Fault::new(Code::SecretMissing, "this system keeps no secrets"));
        };
        let inner = self.clone();
        Box::pin(async move {
            let (owner, asked) = (id.clone(), name.clone());
            let found = secrets.on_thread(move |secrets| secrets.find_for(&owner, &asked)).await;
            match found.map_err(|problem| problem.to_fault())? {
                Some(found) if granted || found.name.extension() == Some(&id) => Ok(found),
                Some(found) => {
                    let asked = UngrantedUse {
                        wanted: Grants { secrets: vec![name.clone()], ..Grants::default() },
                        action: format!("use the secret `{name}`"),
                        option: format!("--secret {name}"),
                    };
                    // Nobody is asked about what is not an extension of the home.
                    let bundle = inner.activation(caller.extension.digest).map_err(|_| {
                        Fault::new(Code::ToolDenied, format!("the secret `{name}` is not granted to `{id}`"))
                    })?;
                    inner.consent(&caller, &bundle, asked).await.map(|()| found)
                }
                None => {
                    let help = format!("`holdfast setup {id}` asks for what is missing.");
                    Err(Fault::new(Code::SecretMissing, format!("there is no secret `{name}`. {help}")))
                }
            }
        })
    }

    /// Stores a secret: an extension's own, or any where the extension may set others up. An empty value removes an own one.
    pub(super) fn secret_keep(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: SecretKeepArguments,
    ) -> Later<Result<Content, Fault>> {
        let SecretKeepArguments { name, value } = arguments;
        let named = if caller.grants.hold(Capability::Setup) {
            match name.split_once('.') {
                Some((extension, name)) => SecretName::own(&extension.into(), name),
                None => SecretName::global(&name),
            }
        } else {
            SecretName::own(&caller.extension.id, &name)
        };
        let (inner, id) = (self.clone(), caller.extension.id.clone());
        Box::pin(async move {
            let named = named.map_err(|it| it.to_fault())?;
            if value.is_empty() && named.extension() == Some(&id) {
                let secrets = inner.secrets().map_err(|it| it.to_fault())?;
                let removed = secrets.on_thread(move |secrets| secrets.remove(&named)).await;
                return removed.map(|_| Content::default()).map_err(|problem| problem.to_fault());
            }
            let kept = inner.keep_secret(named, SecretString::from(value)).await;
            kept.map(|_| Content::default()).map_err(|problem| problem.to_fault())
        })
    }
}

fn redact_body(redactor: &Redactor, body: &mut Body) {
    body.contents(&mut |content| redact_content(redactor, content));
    faults(body, &mut |fault| fault.message = redactor.redact(&fault.message).into_owned());
}

fn redact_content(redactor: &Redactor, content: &mut Content) {
    // A text of JSON has every text in it, and most have no secret.
    if matches!(redactor.redact(content.json()), std::borrow::Cow::Owned(_)) {
        *content = Content::new(redact_value(redactor, content.value()));
    }
}

fn redact_value(redactor: &Redactor, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(text).into_owned()),
        Value::Array(items) => items.iter().map(|item| redact_value(redactor, item)).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                (redactor.redact(name).into_owned(), redact_value(redactor, value))
            };
            fields.iter().map(field).collect()
        }
        other => other.clone(),
    }
}

/// Visits the faults of a fact. A new kind of frame does not compile until it is here.
fn faults(body: &mut Body, visit: &mut dyn FnMut(&mut Fault)) {
    match body {
        Body::ToolReturned(fact) => failure(&mut fact.outcome, visit),
        Body::HostCalled(fact) => failure(&mut fact.outcome, visit),
        Body::ChildEnded(fact) => failure(&mut fact.outcome, visit),
        Body::CompactionProvided(fact) => failure(&mut fact.outcome, visit),
        Body::HookFaulted(fact) => visit(&mut fact.fault),
        Body::ModelFailed(fact) => visit(&mut fact.fault),
        Body::ExtensionRejected(fact) => visit(&mut fact.fault),
        Body::ExtensionFaulted(fact) => visit(&mut fact.fault),
        Body::EventRetried(fact) => visit(&mut fact.fault),
        Body::EventDead(fact) => visit(&mut fact.fault),
        Body::DeliveryReported(fact) => fact.fault.iter_mut().for_each(visit),
        Body::StreamShown(fact) => fact.fault.iter_mut().for_each(visit),
        Body::SetupCalled(fact) => fact.fault.iter_mut().for_each(visit),
        Body::RendererCalled(fact) => fact.faults.iter_mut().for_each(visit),
        Body::ScheduleEnded(fact) => fact.fault.iter_mut().for_each(visit),
        Body::ExtensionReported(fact) => {
            if let LifecycleOutcome::Failed(fault) = &mut fact.outcome {
                visit(fault);
            }
        }
        Body::PreviewAsked(fact) => {
            fact.hooks.iter_mut().filter_map(|hook| hook.fault.as_mut()).for_each(visit);
        }
        Body::StreamGuarded(fact) => {
            for word in &mut fact.words {
                if let ChunkSaid::Faulted(fault) = &mut word.said {
                    visit(fault);
                }
            }
        }
        // Facts without a fault.
        Body::SessionStarted(_)
        | Body::SessionResumed(_)
        | Body::SessionCancelled(_)
        | Body::SessionEnded(_)
        | Body::SessionSet(_)
        | Body::InputReceived(_)
        | Body::MessageInjected(_)
        | Body::ModelReturned(_)
        | Body::HookAgreed(_)
        | Body::HookDecided(_)
        | Body::ToolChecked(_)
        | Body::ApprovalAnswered(_)
        | Body::UiRequested(_)
        | Body::UiAnswered(_)
        | Body::StateWritten(_)
        | Body::TimerFired(_)
        | Body::CompactionRequested(_)
        | Body::ClockRead(_)
        | Body::RandomDrawn(_)
        | Body::SecretUsed(_)
        | Body::CommandRun(_)
        | Body::SystemStarted(_)
        | Body::SystemStopping(_)
        | Body::ExtensionsFound(_)
        | Body::ExtensionRemoved(_)
        | Body::ExtensionRetried(_)
        | Body::HealthReported(_)
        | Body::ExtensionsChecked(_)
        | Body::OverridesSet(_)
        | Body::PolicyChanged(_)
        | Body::SystemSettled(_)
        | Body::ScheduleDue(_)
        | Body::HeadAnchored(_)
        | Body::LogCheckpointed(_)
        | Body::LogErased(_)
        | Body::LogMigrated(_)
        | Body::EventPublished(_)
        | Body::EventDelivered(_)
        | Body::EventDiscarded(_) => {}
        // The faults of a decision are those of the facts that it follows from.
        Body::AgentChanged(_)
        | Body::InputNormalised(_)
        | Body::TurnStarted(_)
        | Body::TurnEnded(_)
        | Body::ContextInjected(_)
        | Body::ModelRouted(_)
        | Body::ModelRequested(_)
        | Body::StreamInterrupted(_)
        | Body::StreamLost(_)
        | Body::HookCalled(_)
        | Body::GuardVerdict(_)
        | Body::ToolCalled(_)
        | Body::ToolDecided(_)
        | Body::ToolDispatched(_)
        | Body::ToolSettled(_)
        | Body::ApprovalRequested(_)
        | Body::ChildOpened(_)
        | Body::LimitReached(_)
        | Body::CompactionStarted(_)
        | Body::CompactionApplied(_)
        | Body::SystemStopped(_)
        | Body::ExtensionCommanded(_)
        | Body::ExtensionStateChanged(_)
        | Body::ExtensionReloaded(_)
        | Body::ExtensionRolledBack(_)
        | Body::RegistryChanged(_)
        | Body::ScheduleFired(_)
        | Body::ScheduleSkipped(_) => {}
    }
}

fn failure(outcome: &mut ToolOutcome, visit: &mut dyn FnMut(&mut Fault)) {
    match outcome {
        ToolOutcome::Failure(fault) => visit(fault),
        ToolOutcome::Result(_) => {}
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
