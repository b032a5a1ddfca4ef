//! A loaded plugin: what it registers, and how calls become requests. The same requests as those of a program.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    HookRequest, HookVerdict, PROTOCOL, ProcessWelcome, ToExtension, ToolRequest, plain,
};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::role::{Role, RoleSet};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Later, Reply};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::{FEATURES, Image, Terms};

/// How long a plugin may take to be loaded, and to answer `hello`.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// A loaded plugin.
pub(crate) struct PluginInstance(Arc<Inner>);

struct Inner {
    image: Arc<Image>,
    terms: Terms,
    welcome: ProcessWelcome,
    capabilities: InstanceCapabilities,
    descriptors: Vec<Descriptor>,
}

/// What a plugin says that it is.
pub(crate) async fn welcome(image: &Arc<Image>, hello: &ToExtension) -> Result<ProcessWelcome, Fault> {
    let answer = tokio::time::timeout(HELLO_TIMEOUT, image.describe(hello)).await;
    let late = |_| {
        let message = format!("the plugin did not answer `hello` within {} s", HELLO_TIMEOUT.as_secs());
        Fault::new(Code::ExtensionFault, message)
    };
    let answer = answer.map_err(late)?.map_err(|fault| as_code(fault, Code::ExtensionFault))?;
    let welcome: ProcessWelcome = read(answer, "hello")?;
    let refused = |message: String| Err(Fault::new(Code::ComponentVersion, message));
    if welcome.protocol != PROTOCOL {
        let theirs = &welcome.protocol;
        return refused(format!("the plugin speaks protocol {theirs:?}; this program speaks {PROTOCOL:?}"));
    }
    if let Some(missing) = welcome.requires.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        return refused(format!("the plugin requires `{missing}`, which this program does not support"));
    }
    if welcome.later {
        return refused(
            "a plugin knows what it is before it is initialised: `later` is for programs".to_owned(),
        );
    }
    Ok(welcome)
}

impl PluginInstance {
    pub(crate) fn new(
        image: Arc<Image>,
        terms: Terms,
        welcome: ProcessWelcome,
        descriptors: Vec<Descriptor>,
    ) -> Self {
        let capabilities = capabilities(&welcome);
        Self(Arc::new(Inner { image, terms, welcome, capabilities, descriptors }))
    }
}

/// What a plugin can do. One with a lifecycle, a background loop or a channel must not run twice.
fn capabilities(welcome: &ProcessWelcome) -> InstanceCapabilities {
    let roles: RoleSet = welcome.functions.keys().copied().collect();
    let lasting = [Role::Lifecycle, Role::Service, Role::Channel];
    let has_lifecycle = lasting.into_iter().any(|role| roles.contains(role));
    InstanceCapabilities {
        scope: Scope::Shared,
        replayable: false,
        has_lifecycle,
        exclusive: has_lifecycle,
        synchronous_hooks: false,
        roles,
    }
}

/// Replaces the code of a failure that the plugin reported by one that fits the call.
fn as_code(fault: Fault, code: Code) -> Fault {
    match fault.code {
        Code::ToolFailed | Code::ToolArguments => Fault { code, ..fault },
        _ => fault,
    }
}

fn read<T: DeserializeOwned>(answer: Value, method: &str) -> Result<T, Fault> {
    serde_json::from_value(answer)
        .map_err(|error| Fault::new(Code::ExtensionFault, format!("invalid answer to `{method}`: {error}")))
}

impl Inner {
    fn id(&self) -> &ExtensionId {
        &self.terms.id
    }

    /// What a call needs and the plugin does not have.
    fn missing(&self, call: &Call) -> Option<String> {
        match call {
            Call::Task { .. } if !self.welcome.has(Role::Scheduler, "execute-task") => {
                Some("tasks".to_owned())
            }
            Call::Api { .. } if self.welcome.methods.is_none() => Some("methods".to_owned()),
            Call::Function { role, function, .. } if !self.welcome.has(*role, function) => {
                Some(format!("function `{function}`"))
            }
            _ => None,
        }
    }

    async fn lifecycle(&self, step: LifecycleCommand, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        let (function, message) = match step {
            LifecycleCommand::Load => return Ok(Reply::Descriptors(self.descriptors.clone())),
            LifecycleCommand::Initialize => ("initialize", ToExtension::Initialize),
            LifecycleCommand::Start => ("start", ToExtension::Start),
            LifecycleCommand::Stop => ("stop", ToExtension::Stop),
            LifecycleCommand::Destroy => ("destroy", ToExtension::Destroy),
        };
        if self.welcome.has(Role::Lifecycle, function) {
            let told = self.image.request(&message, host, &self.terms).await;
            told.map_err(|fault| as_code(fault, Code::ExtensionFault))?;
        }
        Ok(Reply::Done)
    }

    async fn call(&self, call: Call, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        if let Some(missing) = self.missing(&call) {
            return Err(Fault::new(Code::ExtensionFault, format!("`{}` has no {missing}", self.id())));
        }
        let (method, message) = match call {
            Call::Lifecycle(step) => return self.lifecycle(step, host).await,
            Call::Health if !self.welcome.has(Role::Lifecycle, "health-check") => {
                return Ok(Reply::Health(!self.image.is_stuck()));
            }
            Call::Health => ("health", ToExtension::Health),
            Call::Hook(input) => ("hook", ToExtension::Hook(HookRequest::from(&input))),
            Call::Tool { call, tool, arguments, turn } => {
                let turn = (&turn).into();
                ("tool", ToExtension::Tool(ToolRequest { call, tool, arguments, turn }))
            }
            Call::Task { task } => ("task", ToExtension::Task { task }),
            Call::Api { method, arguments } => {
                ("api", ToExtension::Api { method, arguments: plain(&arguments) })
            }
            Call::Function { role, function, arguments } => {
                let arguments = plain(&arguments);
                ("function", ToExtension::Function { role, function, arguments })
            }
        };
        let answer = self.image.request(&message, host, &self.terms).await;
        let answer = answer.map_err(|fault| match method {
            "hook" => as_code(fault, Code::HookFault),
            "health" => as_code(fault, Code::ExtensionFault),
            _ => fault,
        })?;
        Ok(match method {
            "health" => Reply::Health(read(answer, method)?),
            "hook" => {
                let verdict: Option<HookVerdict> = read(answer, method)?;
                Reply::Decision(verdict.unwrap_or(HookVerdict::Continue).into())
            }
            _ => Reply::Content(Content::new(answer)),
        })
    }
}

impl Instance for PluginInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.call(call, host).await })
    }

    fn capabilities(&self) -> InstanceCapabilities {
        self.0.capabilities
    }
}
