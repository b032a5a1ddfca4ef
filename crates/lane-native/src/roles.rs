//! The role traits, and adapters that turn a closure into a role.

use std::sync::Arc;

use holdfast_contract::channel_question::ChannelQuestion;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookSpec};
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::role::Role;
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::{Host, Later};

/// A future that is ready.
pub fn now<T: Send + 'static>(value: T) -> Later<T> {
    Box::pin(std::future::ready(value))
}

/// A tool that a model may call.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> ToolSpec;

    /// Runs it. The arguments fit its schema and have passed every gate.
    fn call(
        &self,
        call: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>>;
}

/// A hook, guardrail, context provider or router: anything that is called at a hook point.
pub trait Hook: Send + Sync {
    /// Where and when it is called.
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

/// Lifecycle steps. Every step is optional.
pub trait Lifecycle: Send + Sync {
    /// Once, before anything else.
    fn initialize(&self, _host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Starts work.
    fn start(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Stops work.
    fn stop(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Releases resources.
    fn destroy(&self) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
    /// Whether it is healthy.
    fn health_check(&self) -> Later<bool> {
        now(true)
    }
}

/// A background loop.
pub trait Service: Send + Sync {
    /// Runs until it is dropped, which stops it. Returning is a failure.
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

/// Handles the events of the topics that the extension subscribes to.
pub trait Subscriber: Send + Sync {
    /// Handles an event: an object with `id`, `topic`, `payload`, `key`, `correlation`, `attempt` and `repeat`. A failure is retried.
    fn on_event(&self, event: Content, host: Arc<dyn Host>) -> Later<Result<(), Fault>>;
}

/// Sends messages to users.
pub trait Channel: Send + Sync {
    /// Sends a text to one user. The delivery is an object with its `id`, and `repeat` if it may have arrived before.
    fn send_to_user(
        &self,
        user: String,
        text: String,
        delivery: Content,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// Whether it has a default recipient. Then [`Channel::send_message`] must be implemented.
    fn has_messages(&self) -> bool {
        false
    }

    /// Sends a text to the default recipient.
    fn send_message(
        &self,
        _text: String,
        _delivery: Content,
        _host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "the channel has no default recipient")))
    }

    /// Whether it can send files. Then [`Channel::send_file`] must be implemented.
    fn has_files(&self) -> bool {
        false
    }

    /// Sends a file that a tool has created to one user, or to the default recipient if none is given.
    fn send_file(
        &self,
        _user: Option<String>,
        _file: Artifact,
        _delivery: Content,
        _host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "the channel cannot send files")))
    }

    /// Whether it can show questions with choices. Then [`Channel::send_question`] must be implemented.
    fn has_questions(&self) -> bool {
        false
    }

    /// Shows a question with what can be chosen. A choice's `answer` is published as the user's message when the user takes it.
    fn send_question(
        &self,
        _question: ChannelQuestion,
        _delivery: Content,
        _host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "the channel cannot show questions")))
    }
}

/// A channel that shows an answer while it is generated. Chunks are provisional: only the text at the end is final. If a function
/// fails, the stream ends and the whole text is passed to [`Channel::send_to_user`].
pub trait StreamingChannel: Channel {
    /// Starts the answer to a user. The id identifies the stream.
    fn stream_start(&self, user: String, id: String, host: Arc<dyn Host>) -> Later<Result<(), Fault>>;

    /// Appends text.
    fn stream_chunk(
        &self,
        user: String,
        id: String,
        text: String,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// Shows a line about the work in progress.
    fn stream_status(
        &self,
        user: String,
        id: String,
        status: String,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;

    /// Ends the stream with the final text. The delivery is as in [`Channel::send_to_user`].
    fn stream_end(
        &self,
        user: String,
        id: String,
        text: String,
        delivery: Content,
        host: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>>;
}

/// Functions of the roles without their own trait: commands, agents, renderers, setup.
pub trait Functions: Send + Sync {
    /// Whether there are functions of a role. Required for `Role::Setup`.
    fn has(&self, _: Role) -> bool {
        false
    }

    /// Calls a function by its name in [`Role::functions`]; `None` if there is no such function. The arguments are an object with the
    /// fields that `wit/` defines.
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        host: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>>;
}

/// A tool from a synchronous closure.
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

/// A hook from a synchronous closure.
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
