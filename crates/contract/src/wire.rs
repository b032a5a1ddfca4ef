//! Calls into an extension, the same in every lane: a native one takes them as they are, the others carry them over their
//! boundary. An [`Instance`] is a loaded extension; a [`Host`] is what it may ask in the middle of a call.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budgets::Budgets;
use crate::content::Content;
use crate::digest::Digest;
use crate::hook::{Decision, HookInput};
use crate::host_call::HostCall;
use crate::ids::{CallId, Millis, ToolName};
use crate::manifest::{self, Grants, LaneKind, Manifest, Scope};
use crate::message::TurnView;
use crate::problem::{Code, Fault, Problem};
use crate::registry::{Descriptor, ExtensionRef};
use crate::role::RoleSet;
use crate::system_frames::{LifecycleCommand, PortUse};

/// Something that will be there later.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call into an extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// Ask a hook.
    Hook(HookInput),
    /// Run a tool.
    Tool {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The final arguments.
        arguments: Content,
        /// The turn it belongs to.
        turn: TurnView,
    },
    /// A step of its life.
    Lifecycle(LifecycleCommand),
    /// Is it well?
    Health,
    /// Run a scheduled task.
    Task {
        /// The task.
        task: String,
    },
    /// A method of its `api`, called by another extension.
    Api {
        /// The method.
        method: String,
        /// The arguments.
        arguments: Content,
    },
    /// A function of any other role, by its name in [`crate::role::Role::functions`].
    Function {
        /// The role.
        role: crate::role::Role,
        /// The function.
        function: String,
        /// The arguments.
        arguments: Content,
    },
}

/// What an extension answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// A hook's decision.
    Decision(Decision),
    /// A tool's, task's or method's result.
    Content(Content),
    /// Whether it is healthy.
    Health(bool),
    /// What it registers, after loading.
    Descriptors(Vec<Descriptor>),
    /// Done, nothing to say.
    Done,
}

/// Static facts about a loaded extension. Cheap to copy, so that callers may ask for them before every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceCapabilities {
    /// How long one instance is used.
    pub scope: Scope,
    /// The same call with the same host answers gives the same reply, so strict replay runs it again.
    pub replayable: bool,
    /// It has lifecycle steps: it is initialised, started, stopped and destroyed.
    pub has_lifecycle: bool,
    /// Two generations must never run concurrently, as with an extension that polls or listens.
    pub exclusive: bool,
    /// Hooks are answered by [`Instance::try_decide`] without a host call. One instance can then serve any number of calls, in the
    /// order in which they are made. Set only after [`Instance::prepare`] has completed.
    pub synchronous_hooks: bool,
    /// The roles whose functions are called by name.
    pub roles: RoleSet,
}

/// A loaded extension in any lane.
pub trait Instance: Send + Sync {
    /// Makes a call. The future is dropped to cancel the call; the caller enforces timeouts.
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>>;

    /// What the extension can do.
    fn capabilities(&self) -> InstanceCapabilities;

    /// Answers a hook synchronously; `None` where that takes [`Instance::call`].
    fn try_decide(&self, _: &HookInput) -> Option<Result<Decision, Fault>> {
        None
    }

    /// Loads what the first call needs, so that no hook waits for it in the middle of a turn; `None` if everything is loaded.
    fn prepare(&self) -> Option<Later<()>> {
        None
    }

    /// The connections to the ports that it listens on, since this was asked last.
    fn take_port_use(&self) -> Vec<PortUse> {
        Vec::new()
    }

    /// A new instance without state; `None` where one instance is shared by all callers. It must not be called again after a
    /// call has failed or was cancelled.
    fn fresh(&self) -> Option<Arc<dyn Instance>> {
        None
    }
}

/// Runs extensions of one kind. Lanes never know each other.
pub trait Lane: Send + Sync {
    /// The lane's name, as it stands in frames.
    fn name(&self) -> &str;

    /// Brings the code of one activation to where it can be called.
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>>;

    /// Everything that was to be loaded is: a good moment to get ready for the first call.
    fn at_rest(&self) {}

    /// Whether the code of its extensions runs in this process, and can end it.
    fn runs_in_process(&self) -> bool {
        true
    }

    /// The activations whose code ended an earlier process.
    fn crashed(&self) -> Vec<Digest> {
        Vec::new()
    }
}

/// What one activation consists of, apart from the bytes of its files. Its digest is the activation's: other content, settings
/// or grants are another generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The lane that runs it.
    pub lane: String,
    /// The manifest as it was written.
    pub manifest: String,
    /// What is started, as a path within the folder; empty where the manifest is the whole extension.
    pub entrypoint: String,
    /// Its files by path, with the digests under which the vault has them.
    pub files: BTreeMap<String, Digest>,
    /// Its configuration: the user's settings over the manifest's. Nothing but the bundle has it, so it is written whole.
    #[serde(serialize_with = "crate::content::whole")]
    pub config: Content,
    /// What it may reach: what the manifest asks for and the user gives.
    pub grants: Grants,
    /// What a call may use up.
    #[serde(default)]
    pub budgets: Budgets,
    /// The definitions of an MCP server's tools that were approved, by the digest under which the vault has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Digest>,
}

impl Bundle {
    /// What its manifest says.
    pub fn parsed(&self) -> Result<Manifest, Fault> {
        let parsed = manifest::parse(Path::new("manifest.yaml"), &self.manifest);
        parsed.map(|parsed| parsed.manifest).map_err(|rejected| {
            let unreadable = || Problem::new(Code::ManifestSyntax, "the manifest cannot be read");
            Problem::all(rejected.errors).unwrap_or_else(unreadable).to_fault()
        })
    }

    /// Whether its lane gives it ports to listen on.
    pub fn can_listen(&self) -> bool {
        [LaneKind::Process, LaneKind::Python, LaneKind::Node].iter().any(|lane| lane.as_str() == self.lane)
    }

    /// The digest that grants are tied to: what the author wrote, and nothing of what the user sets.
    pub fn content(&self) -> Digest {
        Digest::of_json(&(&self.manifest, &self.files)).unwrap_or_default()
    }
}

/// Where lanes find the code of an activation, and keep what they derive from it.
pub trait Vault: Send + Sync {
    /// The bundle of an activation.
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault>;

    /// The bytes of a file.
    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault>;

    /// What was cached under this name, exactly as it was written; nothing if it was altered since.
    fn derived(&self, name: &str) -> Option<Vec<u8>>;

    /// Caches something derived, replacing what was cached under this name. A failure to write is ignored.
    fn keep_derived(&self, name: &str, bytes: &[u8]);
}

/// Something that happens while a host call is served, for the extension that made it. It is provisional: what counts is the answer. It is
/// recorded with the answer, so that the extension is told the same at a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallUpdate {
    /// More of an agent's answer.
    Text(Content),
    /// The agent calls a tool.
    ToolCall {
        /// The tool.
        tool: ToolName,
        /// The arguments that its model has written.
        arguments: Content,
    },
}

/// Receives the updates of a host call, in order.
pub trait UpdateSink: Send + Sync {
    /// Takes an update. What leads to the next one waits until this is done.
    fn send(&self, update: CallUpdate) -> Later<()>;

    /// Done when the extension no longer wants the answer. The call then ends as a failure, which is recorded. By default never.
    fn cancelled(&self) -> Later<()> {
        Box::pin(std::future::pending())
    }
}

/// What serves the host calls of an extension in the middle of a call. Each call and its answer is recorded.
pub trait Host: Send + Sync {
    /// Makes a host call.
    fn call(&self, call: HostCall) -> Later<Result<Content, Fault>> {
        self.call_within(call, None)
    }

    /// Makes a host call with a timeout of its own, for the calls that can take long.
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>>;

    /// The same with what happens meanwhile: the text of an agent that is invoked, and its tool calls. Other calls have no updates. Where
    /// the answer comes from a log, so do the updates.
    fn call_streamed(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        _updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        self.call_within(call, timeout)
    }

    /// Shows clients the progress of a call. It is provisional: only the call's result is recorded.
    fn progress(&self, _text: &str) {}
}
