//! The capability `secrets`, and the secrets of a running system: found for extensions, stored for setup, and redacted from everything that
//! is recorded or shown.
//!
//! `holdfast-secrets` stores them. Its stores block, so tasks use `Secrets::on_thread`.

use std::sync::{Arc, PoisonError, RwLock};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::Capability;
use holdfast_contract::host_call::arguments::SecretKeepArguments;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::LifecycleOutcome;
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::Later;
pub use holdfast_secrets::{Chain, Digester, ExposeSecret, SecretName, SecretString, StoredSecret};
use holdfast_secrets::{FoundSecret, RedactedStream, Redactor};
use serde_json::Value;

use super::setup::reference;
use super::{Caller, failed};
use crate::runtime::Inner;

/// The secrets of a home.
pub struct Secrets {
    chain: Chain,
    digester: Digester,
    /// Secrets that no store lists: environment variables with the keys of models.
    also: Vec<SecretName>,
    redactor: RwLock<Arc<Redactor>>,
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
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(redactor);
        Ok(())
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

    /// What a frame records of a value.
    pub(crate) fn digest(&self, name: &str, value: &Content) -> Digest {
        self.digester.digest(name, &SecretString::from(value.to_text()))
    }

    /// A text with the values redacted.
    pub fn hide_in_text(&self, text: &str) -> String {
        self.redactor().redact(text).into_owned()
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Redacts the values in a fact before anything is decided on it.
    pub(crate) fn hide(&self, body: &mut Body) {
        redact(&self.redactor(), body);
    }

    /// Redacts the values in something that is passed on.
    pub(crate) fn hide_in_content(&self, content: &mut Content) {
        hide_in(&self.redactor(), content);
    }

    /// Redacts the values in a text that comes in pieces.
    pub(crate) fn hide_in_stream(&self) -> RedactedStream {
        self.redactor().stream()
    }

    /// A log whose lines are redacted, for what extensions write there.
    pub fn hide_in_log(self: Arc<Self>, log: LogSink) -> LogSink {
        Arc::new(move |id, level, line| log(id, level, &self.hide_in_text(line)))
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

impl Inner {
    /// The reference that stands for a secret that an extension may have.
    pub(super) fn secret_reference(
        self: &Arc<Self>,
        caller: &Caller,
        name: String,
    ) -> Later<Result<Content, Fault>> {
        let (id, found) = (caller.extension.id.clone(), self.find_secret(caller, name.clone()));
        Box::pin(async move { found.await.map(|_| Content::text(reference(&id, &name))) })
    }

    /// A secret that an extension may have. Its value goes to the extension, and nowhere else.
    pub(super) fn secret_get(
        self: &Arc<Self>,
        caller: &Caller,
        name: String,
    ) -> Later<Result<Content, Fault>> {
        let found = self.find_secret(caller, name);
        Box::pin(async move { Ok(Content::text(found.await?.value.expose_secret())) })
    }

    /// An extension's own secret, or a global one that it is granted.
    fn find_secret(self: &Arc<Self>, caller: &Caller, name: String) -> Later<Result<FoundSecret, Fault>> {
        let id = caller.extension.id.clone();
        let granted = self
            .extensions
            .found(&caller.extension.digest)
            .is_some_and(|found| found.secrets.contains(&name));
        let Some(secrets) = self.home.secrets().cloned() else {
            return failed(Fault::new(Code::SecretMissing, "this system keeps no secrets"));
        };
        Box::pin(async move {
            let (owner, asked) = (id.clone(), name.clone());
            let found = secrets.on_thread(move |secrets| secrets.find_for(&owner, &asked)).await;
            match found.map_err(|problem| problem.to_fault())? {
                Some(found) if granted || found.name.extension() == Some(&id) => Ok(found),
                Some(_) => {
                    let help = format!("`holdfast ext grant {id} --secret {name}`");
                    Err(Fault::new(Code::ToolDenied, format!("the secret `{name}` is not granted: {help}")))
                }
                None => {
                    let help = format!("`holdfast setup {id}` asks for what is missing.");
                    Err(Fault::new(Code::SecretMissing, format!("there is no secret `{name}`. {help}")))
                }
            }
        })
    }

    /// Stores a secret: an extension's own, or any where the extension may set others up.
    pub(super) fn secret_keep(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: SecretKeepArguments,
    ) -> Later<Result<Content, Fault>> {
        let SecretKeepArguments { name, value } = arguments;
        let named = match caller.grants.hold(Capability::Setup) {
            true => match name.split_once('.') {
                Some((extension, name)) => SecretName::own(&extension.into(), name),
                None => SecretName::global(&name),
            },
            false => SecretName::own(&caller.extension.id, &name),
        };
        let inner = self.clone();
        Box::pin(async move {
            let kept = inner.keep_secret(named.map_err(|it| it.to_fault())?, SecretString::from(value)).await;
            kept.map(|()| Content::default()).map_err(|problem| problem.to_fault())
        })
    }
}

fn redact(redactor: &Redactor, body: &mut Body) {
    body.contents(&mut |content| hide_in(redactor, content));
    if let Some(fault) = fault_in(body) {
        fault.message = redactor.redact(&fault.message).into_owned();
    }
}

fn hide_in(redactor: &Redactor, content: &mut Content) {
    // A text of JSON has every text in it, and most have nothing to hide.
    if let Some(value) = content.value()
        && matches!(redactor.redact(content.json()), std::borrow::Cow::Owned(_))
    {
        *content = Content::new(hidden(redactor, value));
    }
}

fn hidden(redactor: &Redactor, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(text).into_owned()),
        Value::Array(items) => items.iter().map(|item| hidden(redactor, item)).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                (redactor.redact(name).into_owned(), hidden(redactor, value))
            };
            fields.iter().map(field).collect()
        }
        other => other.clone(),
    }
}

/// The fault that a fact tells of.
fn fault_in(body: &mut Body) -> Option<&mut Fault> {
    match body {
        Body::ToolReturned(fact) => failure(&mut fact.outcome),
        Body::HostCalled(fact) => failure(&mut fact.outcome),
        Body::HookFaulted(fact) => Some(&mut fact.fault),
        Body::ModelFailed(fact) => Some(&mut fact.fault),
        Body::DeliveryReported(fact) => fact.fault.as_mut(),
        Body::ExtensionRejected(fact) => Some(&mut fact.fault),
        Body::ScheduleEnded(fact) => fact.fault.as_mut(),
        Body::ExtensionFaulted(fact) => Some(&mut fact.fault),
        Body::ExtensionReported(fact) => match &mut fact.outcome {
            LifecycleOutcome::Failed(fault) => Some(fault),
            _ => None,
        },
        _ => None,
    }
}

fn failure(outcome: &mut ToolOutcome) -> Option<&mut Fault> {
    match outcome {
        ToolOutcome::Failure(fault) => Some(fault),
        ToolOutcome::Result(_) => None,
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
