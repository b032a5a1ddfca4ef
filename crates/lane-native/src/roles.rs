//! The role traits, and the small adapters that make a role of a closure.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookSpec};
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::role::Role;
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::{Host, Later};

/// An answer that is there at once.
pub fn now<T: Send + 'static>(value: T) -> Later<T> {
    Box::pin(std::future::ready(value))
}

/// A tool that a model may call.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> ToolSpec;

    /// Runs it on arguments that fit its schema and that every gate let pass.
    fn call(
        &self,
        call: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>>;
}

/// A hook, guardrail, context provider or router: whatever is asked at a hook point.
pub trait Hook: Send + Sync {
    /// Where and when it is asked.
    fn spec(&self) -> HookSpec;

    /// Decides.
    fn decide(&self, input: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>>;

    /// Whether it always decides synchronously, without a host call. Then [`Hook::try_decide`] must return a decision.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// Decides synchronously; `None` where that takes [`Hook::decide`].
    fn try_decide(&self, _: &HookInput) -> Option<Result<Decision, Fault>> {
        None
    }
}

/// A life of its own. Every step is optional.
pub trait Lifecycle: Send + Sync {
    /// Once, before anything else.
    fn initialize(&self, _host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Begin.
    fn start(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// End.
    fn stop(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Free what is held.
    fn destroy(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Is it well?
    fn health_check(&self) -> Later<bool> {
        now(true)
    }
}

/// A loop in the background.
pub trait Service: Send + Sync {
    /// Runs until it is dropped, which is how it is stopped. That it ends by itself is a failure.
    fn run_background(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>>;
}

/// Tasks that the manifest's schedules name.
pub trait Tasks: Send + Sync {
    /// Runs one.
    fn execute_task(&self, task: String, host: Arc<dyn Host>) -> Later<Result<Content, Fault>>;
}

/// Methods that other extensions may call.
pub trait Api: Send + Sync {
    /// Calls one.
    fn call(&self, method: String, arguments: Content, host: Arc<dyn Host>) -> Later<Result<Content, Fault>>;
}

/// Takes the events of the topics that the extension subscribes to.
pub trait Subscriber: Send + Sync {
    /// Takes one: an object with `id`, `topic`, `payload`, `key`, `correlation`, `attempt` and `repeat`. What fails is tried again.
    fn on_event(&self, event: Content, host: Arc<dyn Host>) -> Later<Result<(), Fault>>;
}

/// A way to reach the user.
pub trait Channel: Send + Sync {
    /// Sends a text to one user. The delivery is an object with its `id`, and `repeat` where it may have arrived before.
    fn send_to_user(
        &self,
        user: String,
        text: String,
        delivery: Content,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// Whether it knows whom to write to where no user is named. Then [`Channel::send_message`] must do so.
    fn has_messages(&self) -> bool {
        false
    }

    /// Sends a text to whomever the channel reaches.
    fn send_message(
        &self,
        _text: String,
        _delivery: Content,
        _host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "the channel knows nobody to write to")))
    }

    /// Whether it sends files. Then [`Channel::send_file`] must do so.
    fn has_files(&self) -> bool {
        false
    }

    /// Sends a file that a tool has made to one user, or to whomever the channel reaches where none is named.
    fn send_file(
        &self,
        _user: Option<String>,
        _file: Artifact,
        _delivery: Content,
        _host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "the channel sends no files")))
    }
}

/// A channel that shows an answer as it is written. What comes before the end is provisional: the text at the end is what counts. A
/// function that fails ends the stream, and the whole text goes to [`Channel::send_to_user`].
pub trait StreamingChannel: Channel {
    /// An answer to a user begins. The id is the stream's.
    fn stream_start(&self, user: String, id: String, host: Arc<dyn Host>) -> Later<Result<(), Fault>>;

    /// More of the text.
    fn stream_chunk(
        &self,
        user: String,
        id: String,
        text: String,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// A line on what goes on meanwhile.
    fn stream_status(
        &self,
        user: String,
        id: String,
        status: String,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// The whole text as it counts. The delivery is as with [`Channel::send_to_user`].
    fn stream_end(
        &self,
        user: String,
        id: String,
        text: String,
        delivery: Content,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;
}

/// Functions of the roles that have no trait of their own: commands, agents, renderers, setup.
pub trait Functions: Send + Sync {
    /// Whether there are functions of a role. To be set up, an extension must say so.
    fn has(&self, _: Role) -> bool {
        false
    }

    /// Calls one by its name in [`Role::functions`]; none where there is no such function. The arguments are an object with the
    /// fields that `wit/` names.
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        host: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>>;
}

/// A tool made of a closure that answers at once.
pub struct FnTool<F>(pub ToolSpec, pub F);

impl<F> Tool for FnTool<F>
where
    F: Fn(&Content) -> Result<Content, Fault> + Send + Sync,
{
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        _: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        now(self.1(&arguments))
    }
}

/// A hook made of a closure that answers at once.
pub struct FnHook<F>(pub HookSpec, pub F);

impl<F> Hook for FnHook<F>
where
    F: Fn(&HookInput) -> Result<Decision, Fault> + Send + Sync,
{
    fn spec(&self) -> HookSpec {
        self.0.clone()
    }

    fn decide(&self, input: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        now(self.1(&input))
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        Some(self.1(input))
    }
}
