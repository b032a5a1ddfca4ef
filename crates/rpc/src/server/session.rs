//! Answers about sessions: opening one with its feed, messages, approvals and questions, and what is read back from the log.

use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_contract::attachment::Attachment;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::effect::Pending;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_policy::Rule;
use holdfast_runtime::{CommandInfo, QuestionSubject, TurnReport, WaitingQuestion};
use holdfast_store::Store;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::summaries::{existing_stream, session_summaries};
use super::{Connection, RENAME, ServerContext, value, word};
use crate::hub::Subscription;
use crate::protocol::*;
use crate::session_feed::SessionFeed;

/// Frames in one answer of `session.frames`.
const MAX_FRAMES: usize = 1000;
/// Frames that are read for one answer of `session.frames`, where only some kinds are asked for.
const MAX_FRAMES_READ: usize = 20_000;

/// A session that a client has opened.
pub(super) struct OpenedSession {
    /// How the client opened it.
    open: SessionOpen,
    /// The next frame of its feed that is not sent yet.
    sent: watch::Receiver<Seq>,
    /// Starts the feed.
    start: Option<oneshot::Sender<()>>,
    _subscription: Subscription,
    follower: tokio::task::JoinHandle<()>,
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Connection {
    pub(super) async fn answer_session(&self, method: SessionMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            SessionMethod::Open(open) => value(&self.open(open).await?),
            SessionMethod::Send(SessionSend { session, text, attachments }) => {
                if !runtime.is_open(&session) {
                    runtime.open_models_of(&session).await?;
                }
                let channel = self.channel(&session);
                // A client that shows the user what belongs to no turn is a channel.
                let report = if self.opened_as(&session).notices {
                    runtime.say_on_surface(&session, &channel, text, attachments).await?
                } else {
                    let attachments = attachments.into_iter().map(Into::into).collect();
                    runtime.resume(&session)?.say_with(&channel, Content::text(text), attachments).await?
                };
                self.turn_end(session, report).await
            }
            SessionMethod::Wait(SessionParams { session }) => {
                let report = runtime.resume(&session)?.running_turn().await?;
                self.turn_end(session, report).await
            }
            SessionMethod::Cancel(SessionParams { session }) => {
                runtime.resume(&session)?.cancel("the user cancelled it").await?;
                self.ack_durable().await
            }
            SessionMethod::Compact(SessionParams { session }) => {
                runtime.resume(&session)?.compact("the user asked for it").await?;
                self.ack_durable().await
            }
            SessionMethod::Rename(SessionRename { session, name }) => {
                let session = existing_stream(runtime.store(), session.as_str())?;
                let output = Content::text(name.clone());
                runtime.resume(&session)?.command(RENAME, &name, output).await?;
                self.ack_durable().await
            }
            SessionMethod::End(SessionParams { session }) => {
                runtime.resume(&session)?.end("the user ended it").await?;
                self.ack_durable().await
            }
            SessionMethod::Fork(SessionFork { session, at }) => {
                let session = existing_stream(runtime.store(), session.as_str())?;
                let fork = (self.owner.create_session)(&SessionOpen::default())?.0.id;
                let next = runtime.fork(&session, at, &fork)?;
                Ok(json!({ "session": fork, "from": session, "frames": next }))
            }
            SessionMethod::List(SessionList { all, limit }) => {
                value(&session_summaries(runtime.store(), all, limit)?)
            }
            SessionMethod::Frames(asked) => value(&frames(runtime.store(), &asked)?),
            SessionMethod::Content(SessionContent { session, digest }) => {
                let gone = || {
                    let what = format!("no frame of `{session}` refers to a value {digest}");
                    Problem::new(Code::StoreMissing, what)
                };
                let value = runtime.store().content(&session, digest)?.ok_or_else(gone)?;
                Ok(json!({ "value": value }))
            }
            SessionMethod::Turn(SessionTurn { session, ended }) => {
                let report = runtime.ended_turn(&session, ended)?;
                let TurnReport { outcome, answer, files, limit_set_in, .. } = report;
                let attachments = files.iter().map(Attachment::from).collect();
                value(&TurnDetails { outcome, answer, attachments, limit_set_in })
            }
            SessionMethod::ApprovalShow(ApprovalShow { session, approval }) => {
                let _expected = runtime.expect_answer(&session, approval);
                let pending = runtime.resume(&session)?.approval(approval).await?;
                value(&approval_info(pending))
            }
            SessionMethod::ApprovalAnswer(answer) => {
                self.approve(answer).await?;
                self.ack_durable().await
            }
            SessionMethod::UiAnswer(UiAnswer { session, request, answer }) => {
                let answer = answer.map(Content::new);
                if !runtime.answer_for_grant(&session, request, answer.as_ref()).await? {
                    let _expected = runtime.expect_answer(&session, request);
                    runtime.resume(&session)?.answer(request, answer).await?;
                }
                self.ack_durable().await
            }
            SessionMethod::Questions(NoParams {}) => {
                let waiting = runtime.questions().await?;
                value(&waiting.into_iter().map(question_info).collect::<Vec<_>>())
            }
            SessionMethod::Commands(NoParams {}) => value(&self.commands()),
            SessionMethod::CommandRun(CommandRun { session, command, arguments }) => {
                let create = &self.owner.create_session;
                let opened = self.opened_as(&session);
                let make =
                    || create(&SessionOpen { session: None, model: None, ..opened }).map(|created| created.0);
                let done = runtime.run_command(&session, &command, &arguments, make).await?;
                self.ack_durable().await?;
                value(&CommandEnd { output: done.output, session: done.session })
            }
        }
    }

    /// How this client calls itself in a session: as it said when it opened it.
    fn channel(&self, session: &StreamId) -> String {
        let channel = self.opened_as(session).channel;
        if channel.is_empty() { "rpc".to_owned() } else { channel }
    }

    /// How this client opened a session, or would open one.
    fn opened_as(&self, session: &StreamId) -> SessionOpen {
        let opened = self.sessions.lock().get(session).map(|opened| opened.open.clone());
        opened.unwrap_or_else(|| self.with_hello(SessionOpen::default()))
    }

    /// What is not said of a session is as the client said of itself.
    fn with_hello(&self, mut open: SessionOpen) -> SessionOpen {
        if let Some(hello) = &*self.hello.lock() {
            open.folder = open.folder.or_else(|| hello.folder.clone());
            open.profile = open.profile.or(hello.profile);
        }
        open
    }

    /// A session has the profile that it was started with, or else that of the policy.
    fn keeps_profile(&self, session: &StreamId, asked: Option<Profile>) -> Result<Profile, Problem> {
        let has = self.owner.runtime.session_policy(session)?.profile_name();
        match asked.filter(|asked| *asked != has) {
            Some(asked) => {
                let (has, asked) = (word(&has), word(&asked));
                let what = format!("the session `{session}` is under the profile `{has}`, not `{asked}`");
                Err(Problem::new(Code::ProfilePinned, what))
            }
            None => Ok(has),
        }
    }

    async fn open(&self, open: SessionOpen) -> Result<SessionOpened, Problem> {
        let open = self.with_hello(open);
        let ServerContext { runtime, create_session, .. } = &*self.owner;
        let store = runtime.store();
        let exists = match &open.session {
            Some(id) => store.head(id)?.is_some() || runtime.is_open(id),
            None => false,
        };
        let session = match &open.session {
            Some(id) if exists => id.clone(),
            Some(id) if !open.create => {
                let problem = Problem::new(Code::StoreMissing, format!("there is no session `{id}`"));
                return Err(problem.help("`holdfast session list` shows what there is."));
            }
            _ => {
                if let Some(model) = &open.model {
                    runtime.open_model(model).await?;
                }
                let (new, warnings) = create_session(&open)?;
                let session = new.id.clone();
                let workspace = new.settings.workspace.as_deref().map(str::to_owned);
                let profile = Some(runtime.policy()?.under(new.settings.pinned_profile).profile_name());
                let first = open.frames_from.unwrap_or_default();
                let opened = self.subscribe(&session, &open, first);
                runtime.open(new)?;
                self.sessions.lock().insert(session.clone(), opened);
                let (resumed, next) = (false, Seq(0));
                return Ok(SessionOpened { session, resumed, next, workspace, profile, warnings });
            }
        };
        let profile = Some(self.keeps_profile(&session, open.profile)?);
        let workspace = runtime.session_settings(&session)?.workspace.as_deref().map(str::to_owned);
        runtime.open_models_of(&session).await?;
        let next = store.head(&session)?.map_or(Seq(0), |head| head.seq.next());
        let first = match open.frames_from {
            Some(first) => first,
            None => running_turn(store, &session)?.unwrap_or(next),
        };
        // Subscribed first, so that no output that the resume leads to is missed.
        let opened = self.subscribe(&session, &open, first);
        runtime.resume(&session)?;
        // A feed of it that this client had before ends.
        self.sessions.lock().insert(session.clone(), opened);
        Ok(SessionOpened { session, resumed: true, next, workspace, profile, warnings: Vec::new() })
    }

    /// A feed of a session from this frame on. It starts when the client has been told of it, see [`Self::start_feed`].
    fn subscribe(&self, session: &StreamId, open: &SessionOpen, first: Seq) -> OpenedSession {
        let ServerContext { runtime, hub, .. } = &*self.owner;
        let feed = Arc::new(SessionFeed::new(session.clone(), open, first, self.lines.clone()));
        let subscription = hub.subscribe(feed.clone());
        let (sending, sent) = watch::channel(first);
        let (start, started) = oneshot::channel();
        let runtime = runtime.clone();
        let follower = tokio::spawn(async move { feed.follow(runtime, started, sending).await });
        let (open, start) = (open.clone(), Some(start));
        OpenedSession { open, sent, start, _subscription: subscription, follower }
    }

    /// Starts the feed of a session: the client has been told of it.
    pub(super) fn start_feed(&self, session: &StreamId) {
        let start = self.sessions.lock().get_mut(session).and_then(|opened| opened.start.take());
        // A client that has gone has no feed any more.
        let _gone = start.map(|start| start.send(()));
        self.owner.runtime.chat_opened();
    }

    /// The answer to a request that waited for a turn, after the frame that ends it was sent.
    async fn turn_end(&self, session: StreamId, report: TurnReport) -> Result<Value, Problem> {
        let TurnReport { ended, outcome, answer, files, spent, limit_set_in } = report;
        let sent = self.sessions.lock().get(&session).map(|opened| opened.sent.clone());
        if let Some(mut sent) = sent {
            // A feed that has ended sends nothing more.
            let _ended = sent.wait_for(|next| *next > ended).await;
        }
        let attachments = files.iter().map(Attachment::from).collect();
        value(&TurnEnd { session, ended, outcome, answer, attachments, spent, limit_set_in })
    }

    async fn approve(
        &self,
        ApprovalAnswer { session, approval, answer }: ApprovalAnswer,
    ) -> Result<(), Problem> {
        let ServerContext { runtime, remember, .. } = &*self.owner;
        let _expected = runtime.expect_answer(&session, approval);
        let handle = runtime.resume(&session)?;
        let approve = |scope| Answer::Approve { scope };
        let (mut rule, mut unwritten) = (None, None);
        let answer = match answer {
            ApprovalChoice::Once => approve(ApprovalScope::Once),
            ApprovalChoice::Session => approve(ApprovalScope::Session),
            ApprovalChoice::Always => {
                if runtime.session_policy(&session)?.remembers_answers() {
                    let pending = handle.approval(approval).await?;
                    if self.is_current(&pending) {
                        rule = Some(always(&pending)?);
                    } else {
                        unwritten = Some(replaced(&pending));
                    }
                }
                approve(ApprovalScope::Session)
            }
            ApprovalChoice::Edit { arguments } => Answer::Edit { arguments: Content::new(arguments) },
            ApprovalChoice::Deny { reason } => Answer::Deny { reason },
        };
        // The rule is written only if the answer was taken.
        handle.approve(approval, answer).await?;
        match rule {
            Some(rule) => runtime.set_policy(remember(rule)?, "always"),
            None => unwritten.map_or(Ok(()), Err),
        }
    }

    /// Whether the code that a person was asked about is the code of the extension that later calls run. It is not where the extension
    /// was changed while the question was open.
    fn is_current(&self, pending: &Pending) -> bool {
        let registry = self.owner.runtime.registry();
        let stack = registry.tool(&pending.call.tool).map(|entry| entry.stack.as_slice()).unwrap_or_default();
        let is_asked =
            |asked: &ExtensionRef, now: &ExtensionRef| asked.id == now.id && asked.digest == now.digest;
        let asked = pending.implementation.as_ref();
        asked.is_some_and(|asked| stack.iter().any(|now| is_asked(asked, &now.extension)))
    }

    fn commands(&self) -> Vec<SlashCommandInfo> {
        let line = |command: CommandInfo| SlashCommandInfo {
            name: command.name,
            takes: command.takes,
            description: command.description,
            extension: command.extension.map(|id| id.to_string()),
        };
        self.owner.runtime.commands().into_iter().map(line).collect()
    }
}

/// The rule that "always" means: for this tool of the extension whose implementation the call has.
fn always(pending: &Pending) -> Result<Rule, Problem> {
    let missing = || Problem::new(Code::ToolUnknown, "the tool that was asked about is no longer there");
    let extension = &pending.implementation.as_ref().ok_or_else(missing)?.id;
    Rule::always(&pending.call.tool, extension)
        .ok_or_else(|| Problem::new(Code::PolicyInvalid, "a rule for this tool would match others too"))
}

/// Why no rule was written for a call that was approved.
fn replaced(pending: &Pending) -> Problem {
    let (tool, extension) =
        (&pending.call.tool, pending.extension.as_ref().map_or("nobody", |id| id.as_str()));
    let what =
        format!("`{tool}` of `{extension}` was changed while the question was open; no rule was written");
    let help =
        "The call was allowed for this session. The next call is asked about again; `always` then counts.";
    Problem::new(Code::ToolUnknown, what).help(help)
}

/// The first frame of the turn that is running, as far as the log tells: the message that it answers.
fn running_turn(store: &Store, session: &StreamId) -> Result<Option<Seq>, Problem> {
    let last = |kind| {
        let frame = store.last_of_kind(session, kind)?;
        Ok::<_, Problem>(frame.map(|frame| frame.envelope.seq))
    };
    let received = last(FrameKind::InputReceived)?;
    let ended = last(FrameKind::TurnEnded)?;
    Ok(received.filter(|received| ended.is_none_or(|ended| ended < *received)))
}

fn frames(store: &Store, asked: &SessionFrames) -> Result<FramePage, Problem> {
    let SessionFrames { session, from, to, kinds, limit } = asked;
    let session = existing_stream(store, session.as_str())?;
    let limit =
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_FRAMES).clamp(1, MAX_FRAMES);
    let mut page = FramePage { frames: Vec::new(), next: None };
    let mut read = 0;
    store.for_each_frame(&session, *from, |frame| {
        let seq = frame.envelope.seq;
        if to.is_some_and(|to| seq > to) {
            return Ok(ControlFlow::Break(()));
        }
        if page.frames.len() >= limit || read >= MAX_FRAMES_READ {
            page.next = Some(seq);
            return Ok(ControlFlow::Break(()));
        }
        read += 1;
        if kinds.is_empty() || kinds.contains(&frame.envelope.kind) {
            page.frames.push(frame);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

fn approval_info(pending: Pending) -> ApprovalInfo {
    let Pending { approval, call, extension, reasons, .. } = pending;
    let arguments = call.arguments.value().clone();
    ApprovalInfo { approval, call: call.id, tool: call.tool, extension, arguments, reasons }
}

fn question_info(waiting: WaitingQuestion) -> QuestionInfo {
    let (id, WaitingQuestion { session, request, origin, since, subject }) = (waiting.id(), waiting);
    let (channel, user) = (origin.channel, origin.user);
    let (extension, tool, arguments, reasons, question) = match subject {
        QuestionSubject::Approval { tool, extension, arguments, reasons } => {
            (extension, Some(tool), Some(arguments.value().clone()), reasons, None)
        }
        QuestionSubject::Extension { extension, question } => {
            (Some(extension), None, None, Vec::new(), Some(question))
        }
    };
    QuestionInfo { id, session, request, channel, user, since, extension, tool, arguments, reasons, question }
}
