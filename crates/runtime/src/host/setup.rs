//! The capability `setup`: which parameters an extension needs, which are missing, and setting them.
//!
//! A secret is stored with the secrets under the extension's own name; everything else goes to its settings. An extension with the setup
//! role provides its questions, gets the answers, a secret as its reference, and decides whether its setup is complete.

mod cache;

use std::sync::Arc;

use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::arguments::{DoctorArguments, NameArgument, SetupApplyArguments};
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{ExtensionRetried, SetupCalled};
use holdfast_contract::wire::{Call, Later, Reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::cache::SetupCache;
use super::SystemHost;
use super::secrets::{SecretName, SecretString, StoredSecret};
use crate::calls::{start_call, wait_timeout};
use crate::runtime::{Inner, Runtime};
use crate::system::SystemCommand;

/// How long an extension may take to answer.
const TIMEOUT: Millis = Millis(30_000);
/// The names of questions that a frame has, and the characters of each.
const MAX_RECORDED_NAMES: usize = 32;
const MAX_NAME_CHARS: usize = 64;

/// A question that must be answered before an extension can work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupQuestion {
    /// The name of the parameter.
    pub name: String,
    /// What it is, for the user.
    #[serde(default)]
    pub description: String,
    /// Whether the answer must not be shown.
    #[serde(default)]
    pub secret: bool,
    /// Whether the extension does not work without it.
    #[serde(default)]
    pub required: bool,
    /// Whether it was answered.
    #[serde(default)]
    pub answered: bool,
}

/// The state of an extension's setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupState {
    /// The extension.
    pub extension: ExtensionId,
    /// The setup instructions of its manifest.
    pub instructions: String,
    /// What it asks for.
    pub questions: Vec<SetupQuestion>,
    /// Whether everything that it needs is set.
    pub complete: bool,
    /// Its own message about that, or what is missing.
    pub word: String,
}

impl SetupState {
    /// The names of what is required and was not answered.
    pub fn missing(&self) -> Vec<&str> {
        let open = self.questions.iter().filter(|question| question.required && !question.answered);
        open.map(|question| question.name.as_str()).collect()
    }
}

impl Runtime {
    /// The state of an extension's setup.
    pub async fn setup(&self, id: &ExtensionId) -> Result<SetupState, Problem> {
        self.inner().setup(id).await
    }

    /// Sets a parameter, and returns the state of the setup after that.
    pub async fn configure(&self, id: &ExtensionId, name: &str, value: Value) -> Result<SetupState, Problem> {
        self.inner().configure(id, name, value).await
    }
}

impl Inner {
    pub(super) fn setup_open(self: &Arc<Self>) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move { Ok(Content::of(&inner.not_set_up().await)) })
    }

    pub(super) fn setup_show(self: &Arc<Self>, name: NameArgument) -> Later<Result<Content, Fault>> {
        let (inner, id) = (self.clone(), ExtensionId::from(name.0.as_str()));
        Box::pin(async move {
            let state = inner.setup(&id).await;
            state.map(|state| Content::of(&state)).map_err(|problem| problem.to_fault())
        })
    }

    pub(super) fn setup_apply(
        self: &Arc<Self>,
        arguments: SetupApplyArguments,
    ) -> Later<Result<Content, Fault>> {
        let SetupApplyArguments { extension, name, value } = arguments;
        let inner = self.clone();
        Box::pin(async move {
            let state = inner.configure(&extension, &name, value).await;
            state.map(|state| Content::of(&state)).map_err(|problem| problem.to_fault())
        })
    }

    pub(super) fn extension_doctor(
        self: &Arc<Self>,
        arguments: DoctorArguments,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let found = inner.recent_faults(arguments.extension.as_ref());
            found.map(|found| Content::of(&found)).map_err(|problem| problem.to_fault())
        })
    }

    /// The state of an extension's setup. One that is down is started for it.
    pub(crate) async fn setup(self: &Arc<Self>, id: &ExtensionId) -> Result<SetupState, Problem> {
        let Some(serving) = self.started_for_setup(id).await? else {
            let what = format!("`{id}` is not active");
            let help = "`holdfast ext list` shows what is installed, and what is wrong with it.";
            return Err(Problem::new(Code::ExtensionUnknown, what).help(help));
        };
        self.setup_of(&serving).await
    }

    /// The state of the setup of an active generation.
    async fn setup_of(self: &Arc<Self>, serving: &Arc<ExtensionRef>) -> Result<SetupState, Problem> {
        let id = &serving.id;
        let spec = self.extensions.found(&serving.digest).and_then(|found| found.setup).unwrap_or_default();
        let mut questions = Vec::new();
        let has_role = self.extensions.instance(serving)?.capabilities().roles.contains(Role::Setup);
        if has_role {
            let schema = self.ask_setup(id, SetupFunction::Schema).await?;
            let read = serde_json::from_value(schema.value().clone());
            questions = read.map_err(|error| {
                Fault::new(
                    Code::ExtensionFault,
                    format!("`{id}` asks its questions in no known form: {error}"),
                )
            })?;
        }
        for name in spec.secrets {
            if !questions.iter().any(|question: &SetupQuestion| question.name == name) {
                let description = String::new();
                let question =
                    SetupQuestion { name, description, secret: true, required: true, answered: false };
                questions.push(question);
            }
        }
        let set = self.home.configuration().map(|it| it.of(id)).unwrap_or_default();
        for question in &mut questions {
            question.answered = match (question.secret, self.home.secrets()) {
                (true, Some(secrets)) => {
                    let (id, name) = (id.clone(), question.name.clone());
                    secrets.clone().on_thread(move |it| it.find_for(&id, &name)).await?.is_some()
                }
                (true, None) => false,
                (false, _) => set.contains_key(&question.name),
            };
        }
        let mut state = SetupState {
            extension: id.clone(),
            instructions: spec.instructions,
            questions,
            complete: true,
            word: "everything is there".to_owned(),
        };
        let missing = state.missing().join(", ");
        // The extension's own word decides. One that has none is set up when nothing that is required is missing.
        match if has_role { self.ask_setup(id, SetupFunction::Complete).await.map(Some) } else { Ok(None) } {
            Ok(word) => match word.filter(|word| !word.value().is_null()) {
                Some(word) => state.word = word.to_text(),
                None if missing.is_empty() => {}
                None => (state.complete, state.word) = (false, format!("missing: {missing}")),
            },
            Err(fault) => (state.complete, state.word) = (false, fault.message),
        }
        Ok(state)
    }

    /// The generation that serves. An extension that is down is started: without its setup it may have had no way to be well.
    async fn started_for_setup(&self, id: &ExtensionId) -> Result<Option<Arc<ExtensionRef>>, Problem> {
        let serving = self.extensions.active(id);
        if serving.is_some() {
            return Ok(serving);
        }
        let reason = "it is to be set up".to_owned();
        self.system.tell(ExtensionRetried { id: id.clone(), reason, reload: false });
        self.system.ask(SystemCommand::Settled).await?;
        Ok(self.extensions.active(id))
    }

    /// Sets a parameter.
    pub(crate) async fn configure(
        self: &Arc<Self>,
        id: &ExtensionId,
        name: &str,
        value: Value,
    ) -> Result<SetupState, Problem> {
        let state = self.setup(id).await?;
        let Some(question) = state.questions.iter().find(|question| question.name == name) else {
            let names: Vec<&str> = state.questions.iter().map(|it| it.name.as_str()).collect();
            let what = format!("`{id}` does not ask for `{name}`");
            let help = if names.is_empty() {
                "It asks for nothing.".to_owned()
            } else {
                format!("It asks for: {}.", names.join(", "))
            };
            return Err(Problem::new(Code::UsageInvalid, what).help(help));
        };
        if question.required && value.as_str().is_some_and(|text| text.trim().is_empty()) {
            let what = format!("`{name}` of `{id}` is required and must not be empty");
            return Err(Problem::new(Code::UsageInvalid, what).help("Give it a value."));
        }
        let told = if question.secret {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.keep_secret(SecretName::own(id, name)?, SecretString::from(text)).await?;
            Value::String(reference(id, name))
        } else {
            self.set(id, name, &value).await?;
            value
        };
        if self
            .extensions
            .active(id)
            .and_then(|serving| self.extensions.instance(&serving).ok())
            .is_some_and(|it| it.capabilities().roles.contains(Role::Setup))
        {
            self.ask_setup(id, SetupFunction::Apply(name, told)).await?;
        }
        self.setup_changed(Some(id));
        let state = self.setup(id).await?;
        // A loop that had ended for want of its setup is started with the extension.
        let ended = self.extensions.active(id).is_some_and(|serving| self.background_has_ended(&serving));
        if state.complete && ended {
            let reason = "it was set up".to_owned();
            self.system.tell(ExtensionRetried { id: id.clone(), reason, reload: true });
            self.system.ask(SystemCommand::Settled).await?;
            return self.setup(id).await;
        }
        Ok(state)
    }

    /// Stores a secret.
    pub(crate) async fn keep_secret(
        &self,
        name: SecretName,
        value: SecretString,
    ) -> Result<StoredSecret, Problem> {
        let whose = name.extension().cloned();
        let stored = self.secrets()?.on_thread(move |secrets| secrets.keep(&name, &value)).await?;
        self.setup_changed(whose.as_ref());
        Ok(stored)
    }

    /// Writes a setting, and waits until the extension runs with it.
    async fn set(&self, id: &ExtensionId, name: &str, value: &Value) -> Result<(), Problem> {
        let none = || Problem::new(Code::SettingsInvalid, "this system keeps no settings");
        let configuration = self.home.configuration().cloned().ok_or_else(none)?;
        configuration.set(id, name, value, &|changes| self.report_changes(changes))?;
        self.system.ask(SystemCommand::Settled).await
    }

    async fn ask_setup(
        self: &Arc<Self>,
        id: &ExtensionId,
        function: SetupFunction<'_>,
    ) -> Result<Content, Fault> {
        let (serving, _guard) = self.extensions.enter(id, TIMEOUT).await?;
        let instance = self.extensions.instance(&serving)?;
        let host = Arc::new(SystemHost::new(self, serving.clone(), None));
        let (name, arguments) = (function.name().to_owned(), function.arguments());
        let call = Call::Function { role: Role::Setup, function: name, arguments };
        let made = start_call(&instance, call, host);
        let answer = wait_timeout(made, TIMEOUT, Code::ExtensionFault, self.clock.clone()).await;
        let answer = answer.map(|reply| match reply {
            Reply::Content(content) => content,
            _ => Content::default(),
        });
        self.record_setup(&serving, &function, &answer);
        answer
    }

    /// Records a call of a set-up function, unless it answered as before: then it is counted. Only an answer has a digest here: what a
    /// person typed is not recorded in any form.
    fn record_setup(
        &self,
        serving: &ExtensionRef,
        function: &SetupFunction<'_>,
        answer: &Result<Content, Fault>,
    ) {
        let (id, generation) = (serving.id.clone(), serving.generation);
        let called = |names: Vec<String>, digest: Option<DigestOf>| SetupCalled {
            id,
            generation,
            function: function.name().to_owned(),
            names,
            answer: digest,
            fault: answer.as_ref().err().cloned(),
        };
        if let SetupFunction::Apply(name, _) = function {
            return self.system.tell(called(vec![(*name).to_owned()], None));
        }
        let outcome = match answer {
            Ok(content) => content.digest(),
            Err(fault) => Digest::of(fault.message.as_bytes()),
        };
        if self.routine_checks.setup_differs(serving, function.name(), outcome, self.clock.now()) {
            let names = answer.as_ref().map(question_names).unwrap_or_default();
            self.system.tell(called(names, answer.as_ref().ok().map(DigestOf::from)));
        }
    }
}

/// A function of the set-up role, with its arguments.
enum SetupFunction<'a> {
    /// What the extension asks for.
    Schema,
    /// Here is this parameter: its value, or the reference of a secret.
    Apply(&'a str, Value),
    /// Whether the set-up is complete.
    Complete,
}

impl SetupFunction<'_> {
    fn name(&self) -> &'static str {
        match self {
            SetupFunction::Schema => "schema",
            SetupFunction::Apply(..) => "apply",
            SetupFunction::Complete => "complete",
        }
    }

    fn arguments(&self) -> Content {
        match self {
            SetupFunction::Apply(name, value) => Content::new(serde_json::json!({ *name: value })),
            SetupFunction::Schema | SetupFunction::Complete => Content::default(),
        }
    }
}

/// The names of the questions in an answer, of the first ones.
fn question_names(answer: &Content) -> Vec<String> {
    let questions = answer.value().as_array().into_iter().flatten();
    let names = questions.filter_map(|question| question.get("name")?.as_str());
    names.take(MAX_RECORDED_NAMES).map(|name| name.chars().take(MAX_NAME_CHARS).collect()).collect()
}

/// The reference that the host replaces with an extension's secret where it sends it.
pub(crate) fn reference(id: &ExtensionId, name: &str) -> String {
    format!("secret:{id}/{name}")
}
