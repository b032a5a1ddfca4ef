//! Secrets in a running system: found for extensions, kept for setup, and hidden from whatever is recorded or shown.
//!
//! Where they lie is the business of `holdfast-secrets`, whose stores block; whoever asks from a task goes through `Secrets::on_thread`.

use std::sync::{Arc, PoisonError, RwLock};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::LifecycleOutcome;
use holdfast_contract::tool::ToolOutcome;
pub use holdfast_secrets::{Chain, Digester, ExposeSecret, SecretName, SecretString, StoredSecret};
use holdfast_secrets::{FoundSecret, RedactedStream, Redactor};
use serde_json::Value;

/// The secrets of a home.
pub struct Secrets {
    chain: Chain,
    digester: Digester,
    /// Names that no store lists but that are secrets all the same: variables with the keys of models.
    also: Vec<SecretName>,
    redactor: RwLock<Arc<Redactor>>,
}

impl Secrets {
    /// Reads what there is to hide.
    pub fn new(chain: Chain, digester: Digester, also: Vec<SecretName>) -> Result<Self, Problem> {
        let secrets = Self { chain, digester, also, redactor: RwLock::default() };
        // What cannot be read cannot be hidden either, so nothing is given out.
        secrets.look()?;
        Ok(secrets)
    }

    /// Looks again for what is to be hidden.
    fn look(&self) -> Result<(), Problem> {
        let redactor = self.chain.redactor(self.also.iter().cloned())?;
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(redactor);
        Ok(())
    }

    /// The secret that an extension means by a name.
    pub fn find_for(&self, extension: &ExtensionId, name: &str) -> Result<Option<FoundSecret>, Problem> {
        self.chain.find_for(extension, name)
    }

    /// Keeps a secret, and hides it from now on.
    pub fn keep(&self, name: &SecretName, value: &SecretString) -> Result<StoredSecret, Problem> {
        let kept = self.chain.set(name, value)?;
        self.look()?;
        Ok(kept)
    }

    /// What a frame records of a value.
    pub(crate) fn digest(&self, name: &str, value: &Content) -> Digest {
        self.digester.digest(name, &SecretString::from(value.to_text()))
    }

    /// A text without the values.
    pub fn hide_in_text(&self, text: &str) -> String {
        self.redactor().redact(text).into_owned()
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the values out of a fact before anything is made of it.
    pub(crate) fn hide(&self, body: &mut Body) {
        let redactor = self.redactor();
        body.contents(&mut |content| hide_in(&redactor, content));
        if let Some(fault) = fault_in(body) {
            fault.message = redactor.redact(&fault.message).into_owned();
        }
    }

    /// Takes the values out of something that is passed on.
    pub(crate) fn hide_in_content(&self, content: &mut Content) {
        hide_in(&self.redactor(), content);
    }

    /// Takes the values out of a text that comes in pieces.
    pub(crate) fn hide_in_stream(&self) -> RedactedStream {
        self.redactor().stream()
    }

    /// A log whose lines have no values in them, for whatever extensions write there.
    pub fn hide_in_log(self: Arc<Self>, log: LogSink) -> LogSink {
        Arc::new(move |id, level, line| log(id, level, &self.hide_in_text(line)))
    }

    /// Does something that blocks where that disturbs nobody.
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
