//! Sessions: one actor per session owns the session's machine; nothing else accesses it. Here are its handle and its commands.
//!
//! Every iteration is the same: take a command from the inbox, make it a fact, step the machine, append the frames to the log,
//! perform the acts. An act that leaves the machine waits for its frame to be durable, in a task of its own; the actor goes on.
//!
//! | file | contents |
//! |---|---|
//! | `sessions.rs` | opening, resuming and closing sessions |
//! | `actor.rs` | the actor's loop |
//! | `effects.rs` | performing acts: models, tools, approvals, questions |
//! | `hooks.rs` | calling the hooks of a round |
//! | `host_calls.rs` | host calls that read or step the session: clock, random bytes, state, messages, questions |
//! | `stream_guard.rs` | guardrails on streamed text |
//! | `redacted_output.rs` | streamed text without secrets |
//! | `preview.rs` | sanitizers on streamed text, reasoning and progress |
//! | `progress.rs` | the progress that calls report |
//! | `discovery.rs` | which tools a model is shown, and tool search |
//! | `children.rs` | child sessions of agents |
//! | `tasks.rs` | tasks by the frame that started them, to cancel them |

mod actor;
mod children;
mod discovery;
mod effects;
mod hooks;
mod host_calls;
mod preview;
mod progress;
mod redacted_output;
mod sessions;
mod stream_guard;
mod tasks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use holdfast_contract::attachment;
use holdfast_contract::content::Content;
use holdfast_contract::effect::Input;
use holdfast_contract::hook::Artifact;
use holdfast_contract::host_call::{CallRecord, HostCall};
use holdfast_contract::ids::{CallId, HookId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::{Spent, UserText};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, RegistryPin};
use holdfast_contract::session_frames::{Answer, SessionSettings, StreamedUpdates, TurnOutcome, UiQuestion};
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::{self, UpdateSink};
use holdfast_kernel::Pending;
use tokio::sync::{mpsc, oneshot};

use crate::calls::Permit;
use crate::messaging::OutputStream;
use crate::runtime::Inner;

pub(crate) use actor::SessionActor;
pub(crate) use progress::ProgressOutput;
pub use sessions::NewSession;
pub(crate) use sessions::Sessions;

/// How a turn ended, for those who wait for it. It is durable by then.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReport {
    /// The `turn.ended` frame.
    pub ended: Seq,
    /// How.
    pub outcome: TurnOutcome,
    /// What the user is told.
    pub answer: Option<Content>,
    /// Files that its tools made.
    pub files: Vec<Artifact>,
    /// What the turn used.
    pub spent: Spent,
    /// Where the limit is set that ended it, if one did.
    pub limit_set_in: Option<String>,
}

/// The source of an answer that came over a surface, to an approval and to a question.
const APPROVAL: &str = "approval";
const UI: &str = "ui";

pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, Problem>>;

/// Something for a session's actor.
pub(crate) enum SessionCommand {
    /// A user's input; a turn is started with it as soon as none is running.
    Say(Box<UserInput>),
    /// Tell when the running turn ends.
    Await(ReplySender<TurnReport>),
    /// A fact that an act caused.
    Fact(Box<Input>),
    /// A tool has answered.
    Returned(Box<ToolAnswer>),
    /// An extension calls the host in the middle of a call.
    HostCall(Box<SessionHostCall>),
    /// The host asks the user about what an extension wants to do.
    Question {
        extension: Arc<ExtensionRef>,
        under: Seq,
        hook: Option<HookId>,
        question: UiQuestion,
        reply: oneshot::Sender<Result<Content, Fault>>,
    },
    /// A host call that is served outside the session was answered.
    Answered(Box<HostAnswer>),
    /// A command that the user gave, and what it printed.
    Command { command: String, arguments: String, output: Content, reply: ReplySender<()> },
    /// Ask other models from the next turn on.
    Choose { models: Vec<ModelName>, reply: ReplySender<()> },
    /// Compact the conversation.
    Compact { reason: String, reply: ReplySender<()> },
    /// Cancel the running turn.
    Cancel { reason: String, reply: ReplySender<()> },
    /// End the session.
    End { reason: String, reply: ReplySender<()> },
    /// What is to be approved.
    Approval { approval: Seq, reply: ReplySender<Pending> },
    /// A person's answer to an approval.
    Approve { approval: Seq, answer: Answer, by: Arc<str>, reply: ReplySender<()> },
    /// The user's answer to an extension's question.
    AnswerUi { request: Seq, answer: Option<Content>, by: Arc<str>, reply: ReplySender<()> },
    /// A turn's end is durable.
    Ended { ended: Seq, outcome: TurnOutcome, answer: Option<Content>, spent: Spent },
    /// The log cannot be written.
    Broken(Problem),
    /// Close the session; what is in progress is dropped and recovered on the next resume.
    Close(ReplySender<()>),
    /// Release the session if nothing is under way; with `unused`, only if nobody has used it since this was last asked. Answers
    /// whether it did.
    Release { unused: bool, reply: ReplySender<bool> },
}

impl SessionCommand {
    /// A question without a user to answer it.
    fn dismissed(request: Seq) -> Self {
        let (reply, _nobody_waits) = oneshot::channel();
        SessionCommand::AnswerUi { request, answer: None, by: UI.into(), reply }
    }
}

/// A host call of an extension in the middle of a call.
pub(crate) struct SessionHostCall {
    pub extension: Arc<ExtensionRef>,
    /// The frame that had the extension called.
    pub under: Seq,
    pub hook: Option<HookId>,
    pub call: HostCall,
    pub timeout: Option<Millis>,
    /// Who is told what happens meanwhile.
    pub updates: Option<Arc<dyn UpdateSink>>,
    pub reply: oneshot::Sender<Result<Content, Fault>>,
}

/// What a tool has answered.
pub(crate) struct ToolAnswer {
    pub call: CallId,
    /// The frame that had it called.
    pub cause: Seq,
    pub extension: Arc<ExtensionRef>,
    pub spec: Arc<ToolSpec>,
    pub at: Millis,
    pub answer: Result<wire::Reply, Fault>,
    pub entered: Permit,
}

/// An answer on its way to an extension that asked for something outside its session.
pub(crate) struct HostAnswer {
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
    pub call: CallRecord,
    pub answer: Result<Content, Fault>,
    /// What an agent used that was invoked.
    pub spent: Option<Spent>,
    /// What the extension was told meanwhile, if it asked for that.
    pub streamed: Option<StreamedUpdates>,
    pub reply: oneshot::Sender<Result<Content, Fault>>,
}

/// A user's input on its way in.
pub(crate) struct UserInput {
    pub surface: Arc<str>,
    pub text: Content,
    pub attachments: Vec<Artifact>,
    /// The event that caused it.
    pub message_id: Option<String>,
    /// Whether that event is delivered again: then a message that no one waits for any more when its turn comes is skipped.
    pub delivered_again: bool,
    /// The registry to use in place of the current one: a child runs on its parent's.
    pub pin: Option<RegistryPin>,
    /// Where the turn is shown while it runs, besides the surfaces.
    pub output: Option<Arc<OutputStream>>,
    /// Whether events are raised about the turn.
    pub watched: bool,
    pub reply: ReplySender<TurnReport>,
}

/// A session that is open in this process.
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) id: StreamId,
    pub(crate) inbox: mpsc::UnboundedSender<SessionCommand>,
    /// Set once the actor has left because nobody used the session. The next use resumes it.
    released: Arc<AtomicBool>,
    inner: Weak<Inner>,
    /// Of a session that was opened, not resumed: what it was set to, known before its first frame is in the log.
    pub(crate) settings: Option<Arc<SessionSettings>>,
}

impl SessionHandle {
    /// The session's stream.
    pub fn id(&self) -> &StreamId {
        &self.id
    }

    /// Gives the session an input and waits for its turn to end. Inputs are taken one after the other.
    pub async fn say(&self, surface: &str, text: impl Into<Content>) -> Result<TurnReport, Problem> {
        self.say_with(surface, text, Vec::new()).await
    }

    /// The same with files. Where one cannot be attached, nothing is said.
    pub async fn say_with(
        &self,
        surface: &str,
        text: impl Into<Content>,
        attachments: Vec<Artifact>,
    ) -> Result<TurnReport, Problem> {
        self.say_message(surface, (text.into(), attachments), None, None).await
    }

    pub(crate) async fn say_pinned(
        &self,
        surface: &str,
        text: Content,
        pin: Option<RegistryPin>,
    ) -> Result<TurnReport, Problem> {
        self.say_unwatched(surface, text, pin, None).await
    }

    /// The same, shown there while its turn runs.
    pub(crate) async fn say_shown(
        &self,
        surface: &str,
        text: Content,
        output: Arc<OutputStream>,
    ) -> Result<TurnReport, Problem> {
        self.say_unwatched(surface, text, None, Some(output)).await
    }

    /// Says something in a session that an agent or an extension has opened, which is nobody's conversation.
    async fn say_unwatched(
        &self,
        surface: &str,
        text: Content,
        pin: Option<RegistryPin>,
        output: Option<Arc<OutputStream>>,
    ) -> Result<TurnReport, Problem> {
        let (surface, attachments, message_id) = (surface.into(), Vec::new(), None);
        let (delivered_again, watched) = (false, false);
        let said = |reply| UserInput {
            surface,
            text,
            attachments,
            message_id,
            delivered_again,
            pin,
            output,
            watched,
            reply,
        };
        self.say_whole(said).await
    }

    /// Says what a user wrote, with the event under which it was published. Its turn is run here, whether or not anybody waits for it.
    pub(crate) async fn say_published(
        &self,
        surface: &str,
        (text, attachments): UserText,
        event: String,
    ) -> Result<TurnReport, Problem> {
        let (surface, message_id, pin, output) = (surface.into(), Some(event), None, None);
        let (delivered_again, watched) = (false, true);
        let said = |reply| UserInput {
            surface,
            text,
            attachments,
            message_id,
            delivered_again,
            pin,
            output,
            watched,
            reply,
        };
        self.say_whole(said).await
    }

    /// The same with its cause, and where it is shown.
    pub(crate) async fn say_message(
        &self,
        surface: &str,
        said: UserText,
        message_id: Option<String>,
        output: Option<Arc<OutputStream>>,
    ) -> Result<TurnReport, Problem> {
        attachment::check(&said.1)?;
        let (surface, (text, attachments), pin) = (surface.into(), said, None);
        let (delivered_again, watched) = (message_id.is_some(), true);
        let said = |reply| UserInput {
            surface,
            text,
            attachments,
            message_id,
            delivered_again,
            pin,
            output,
            watched,
            reply,
        };
        self.say_whole(said).await
    }

    async fn say_whole(
        &self,
        say: impl FnOnce(ReplySender<TurnReport>) -> UserInput,
    ) -> Result<TurnReport, Problem> {
        self.ask(|reply| SessionCommand::Say(Box::new(say(reply)))).await
    }

    /// Waits for the turn that a resume continues.
    pub async fn running_turn(&self) -> Result<TurnReport, Problem> {
        self.ask(SessionCommand::Await).await
    }

    /// Cancels the running turn.
    pub async fn cancel(&self, reason: &str) -> Result<(), Problem> {
        self.ask(|reply| SessionCommand::Cancel { reason: reason.to_owned(), reply }).await
    }

    /// Asks for the conversation to be compacted.
    pub async fn compact(&self, reason: &str) -> Result<(), Problem> {
        self.ask(|reply| SessionCommand::Compact { reason: reason.to_owned(), reply }).await
    }

    /// Records a command that the user gave, and what it printed.
    pub async fn command(&self, command: &str, arguments: &str, output: Content) -> Result<(), Problem> {
        let (command, arguments) = (command.to_owned(), arguments.to_owned());
        self.ask(|reply| SessionCommand::Command { command, arguments, output, reply }).await
    }

    /// Ends the session permanently.
    pub async fn end(&self, reason: &str) -> Result<(), Problem> {
        self.ask(|reply| SessionCommand::End { reason: reason.to_owned(), reply }).await
    }

    /// The call that waits for an approval.
    pub async fn approval(&self, approval: Seq) -> Result<Pending, Problem> {
        self.ask(|reply| SessionCommand::Approval { approval, reply }).await
    }

    /// Answers an approval.
    pub async fn approve(&self, approval: Seq, answer: Answer) -> Result<(), Problem> {
        self.approve_as(APPROVAL, approval, answer).await
    }

    /// The same by a named person.
    pub(crate) async fn approve_as(&self, by: &str, approval: Seq, answer: Answer) -> Result<(), Problem> {
        let by = by.into();
        self.ask(|reply| SessionCommand::Approve { approval, answer, by, reply }).await
    }

    /// Answers an extension's question; none dismisses it.
    pub async fn answer(&self, request: Seq, answer: Option<Content>) -> Result<(), Problem> {
        self.answer_as(UI, request, answer).await
    }

    /// The same by a named person.
    pub(crate) async fn answer_as(
        &self,
        by: &str,
        request: Seq,
        answer: Option<Content>,
    ) -> Result<(), Problem> {
        let by = by.into();
        self.ask(|reply| SessionCommand::AnswerUi { request, answer, by, reply }).await
    }

    /// Closes the session in this process. It can be resumed.
    pub async fn close(&self) -> Result<(), Problem> {
        self.ask(SessionCommand::Close).await
    }

    pub(crate) async fn ask<T>(
        &self,
        note: impl FnOnce(ReplySender<T>) -> SessionCommand,
    ) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        let gone =
            || Problem::new(Code::SessionEnded, format!("session `{}` is not open in this process", self.id));
        if let Err(mpsc::error::SendError(note)) = self.inbox.send(note(reply)) {
            let inner = self.inner.upgrade().filter(|_| self.released.load(Ordering::Acquire));
            let handle = inner.ok_or_else(gone)?.resume(&self.id)?;
            handle.inbox.send(note).map_err(|_| gone())?;
        }
        answer.await.map_err(|_| gone())?
    }

    /// Asks the actor to leave if nothing is under way. The answer is whether it has left.
    pub(crate) fn release(&self, unused: bool) -> oneshot::Receiver<Result<bool, Problem>> {
        let (reply, answer) = oneshot::channel();
        // An actor that is gone has left.
        if let Err(mpsc::error::SendError(SessionCommand::Release { reply, .. })) =
            self.inbox.send(SessionCommand::Release { unused, reply })
        {
            drop(reply.send(Ok(true)));
        }
        answer
    }
}
