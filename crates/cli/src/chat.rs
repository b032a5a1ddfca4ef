//! `holdfast chat`: talk in the terminal with the owner of a home.
//!
//! This file is the conversation itself: what is typed goes to the owner, what the owner tells is shown. `input.rs` and
//! `terminal.rs` read the user, `ask.rs` asks questions, `screen.rs` and `text/` show, `calls.rs`, `why.rs` and
//! `commands.rs` read frames. Everything that is shown and not written here goes through `text/sanitize.rs`.
//!
//! The chat has nothing but the protocol: one feed of frames and output, in order, and requests.

mod ask;
mod calls;
mod commands;
mod input;
mod live;
mod reconnect;
mod renders;
mod screen;
mod terminal;
mod text;
mod why;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_contract::attachment::Attachment;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{ModelName, Seq, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{ApprovalAnswered, TurnEnded, TurnOutcome, UiAnswered};
use holdfast_rpc::{
    ApprovalAnswer, Client, ExtensionMethod, Notification, Request, ServerHello, SessionMethod, SessionOpen,
    SessionOpened, SessionParams, SessionSend, SessionTurn, ToolRendered, TurnDetails, UiAnswer,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::client::attach;
use crate::client::link::Link;
use crate::commands::local::up::listen;
use crate::output::problem_rows;
pub(crate) use ask::{Prompt, PromptKind, QuestionReply, ask, read_line};
pub(crate) use terminal::{Terminal, error_width, width};
pub(crate) use text::margin::{MARGIN, Margin, line_of, margined, wrapped};
pub(crate) use text::sanitize::{cut, is_hidden, one_line, safe_json, sanitize_for_terminal};
pub(crate) use text::style::TextStyle;
pub(crate) use why::{ReadFrame, outcome, why};

pub(crate) use calls::Calls;
use calls::Over;
use input::{Input, InputRequest, Typed, Words};
use live::LiveText;
pub(crate) use reconnect::Relink;
use renders::markdown;
use screen::{Screen, Speaker};

/// Frames that are looked at to introduce a session that is resumed, and which kinds of them.
const INTRODUCED_FRAMES: u64 = 2000;
const INTRODUCED_KINDS: &[FrameKind] = &[
    FrameKind::SessionStarted,
    FrameKind::InputReceived,
    FrameKind::TurnStarted,
    FrameKind::ModelRouted,
    FrameKind::TurnEnded,
];

/// How a chat is to be.
pub(crate) struct ChatOptions {
    /// The session to resume; `None` opens a new one.
    pub session: Option<StreamId>,
    /// The model, in place of the configured one, for a new session.
    pub model: Option<ModelName>,
    /// Whether to use colours.
    pub color: bool,
    /// Where earlier lines are kept.
    pub history: PathBuf,
    /// Whether to leave out what is not asked for.
    pub quiet: bool,
}

/// Talks until the user leaves. An error with [`Code::TurnCancelled`] means that they left in the middle of a turn, with
/// Ctrl-C: the exit code is 130.
///
/// If the owner ends without having been asked to stop, `relink` gives a link to another one, and the chat goes on.
pub(crate) async fn chat(
    link: &mut Link,
    options: ChatOptions,
    relink: Option<&Relink<'_>>,
) -> Result<bool, Problem> {
    let terminal = Terminal::take().map(Arc::new);
    let _leave = Leave(terminal.clone());
    let text_style = if options.color && terminal.is_some() { TextStyle::Color } else { TextStyle::Plain };
    let words = Words::default();
    let mut input = Input::start(terminal.clone(), options.history, text_style, words.clone())?;
    let (finish, finished) = mpsc::unbounded_channel();
    let mut chat = Chat {
        client: link.client.clone(),
        welcome: link.welcome.clone(),
        screen: Screen::new(text_style, terminal.is_some(), input.printer.take()),
        input,
        words,
        attended: terminal.is_some(),
        quiet: options.quiet,
        model: options.model,
        session: StreamId::default(),
        workspace: None,
        next: Seq(0),
        shown_from: Seq(0),
        hand: InputState::Free,
        waiting: VecDeque::new(),
        held: VecDeque::new(),
        turn: TurnState::default(),
        attached: Vec::new(),
        made: MadeFiles::default(),
        calls: Calls::default(),
        live: LiveText::default(),
        finish,
        left: None,
        warned: false,
        unsaid: None,
        stopping: false,
        said: false,
    };
    chat.open(options.session).await?;
    chat.learn_words().await;
    chat.talk(link, finished, relink).await
}

/// Restores the terminal, however the chat ends.
struct Leave(Option<Arc<Terminal>>);

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some(terminal) = &self.0 {
            terminal.leave();
        }
    }
}

/// A conversation in a session.
struct Chat {
    client: Client,
    welcome: ServerHello,
    screen: Screen,
    input: Input,
    words: Words,
    /// Whether a person can answer questions.
    attended: bool,
    quiet: bool,
    model: Option<ModelName>,
    session: StreamId,
    /// The folder that the session's tools may touch.
    workspace: Option<String>,
    /// The next frame that has not been seen.
    next: Seq,
    /// The first frame that is shown: earlier ones were recorded before the session was opened here.
    shown_from: Seq,
    hand: InputState,
    /// The frames of questions that have not been asked yet.
    waiting: VecDeque<Frame>,
    /// What happened while a question was being asked; it is shown afterwards.
    held: VecDeque<Notification>,
    turn: TurnState,
    /// Files that go with what is said next.
    attached: Vec<Attachment>,
    /// Files that the last turn made.
    made: MadeFiles,
    calls: Calls,
    live: LiveText,
    finish: mpsc::UnboundedSender<Finished>,
    /// How the chat is to end.
    left: Option<Result<bool, Problem>>,
    /// Whether the user was told how to leave.
    warned: bool,
    /// What was said and is not recorded yet, as far as is known here.
    unsaid: Option<(String, Vec<Attachment>)>,
    /// Whether the owner was asked to stop.
    stopping: bool,
    /// Whether anything was said in this chat.
    said: bool,
}

/// What the user is busy with.
enum InputState {
    Free,
    Prompt,
    /// A question, and how to withdraw it.
    Question(Seq, Arc<AtomicBool>),
}

/// The turn that is running, if one is.
#[derive(Default)]
struct TurnState {
    /// By its frames.
    running: bool,
    /// A request has not been answered.
    asked: bool,
    /// How often it was interrupted.
    interrupts: u32,
}

/// Files that a turn made.
#[derive(Default)]
struct MadeFiles {
    files: Vec<Attachment>,
    /// Whether the user is still to be told of them.
    unseen: bool,
}

/// A request in the background was answered.
enum Finished {
    /// What was said, or a compaction.
    Asked(Result<Value, Problem>),
    /// How a call is shown; the result as it is shown otherwise.
    Shown(String, Result<Value, Problem>),
    /// Anything else.
    Other(Result<Value, Problem>),
}

impl Chat {
    async fn talk(
        &mut self,
        link: &mut Link,
        mut finished: mpsc::UnboundedReceiver<Finished>,
        relink: Option<&Relink<'_>>,
    ) -> Result<bool, Problem> {
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let mut hang_up = listen(SignalKind::hangup())?;
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        // It is looked at only while a call runs.
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Some(left) = self.left.take() {
                self.withdraw();
                self.screen.settle();
                if left.is_ok() && self.attended && self.said && !self.quiet {
                    let session = one_line(self.session.as_str());
                    self.note(&format!(
                        "holdfast chat --session {session} goes on here, and -c with the last chat"
                    ));
                }
                return left;
            }
            self.go_on().await;
            tokio::select! {
                notice = link.notices.recv() => match notice {
                    Some(notice) => self.notice(notice).await,
                    None => match relink.filter(|_| !self.stopping) {
                        Some(relink) => self.reconnect(link, relink).await,
                        None => self.left = Some(Err(self.gone())),
                    },
                },
                typed = self.input.typed.recv() => self.typed(typed.unwrap_or(Typed::End)).await,
                Some(finished) = finished.recv() => {
                    // The owner sends the frames of a turn before the answer to who asked for it.
                    while let Ok(notice) = link.notices.try_recv() {
                        self.notice(notice).await;
                    }
                    self.finished(finished);
                }
                _ = seconds.tick(), if self.shows_calls() => self.show_running(),
                _ = interrupt.recv() => self.interrupt(),
                _ = terminate.recv() => self.left = Some(Ok(true)),
                _ = hang_up.recv() => self.left = Some(Ok(true)),
            }
        }
    }

    fn gone(&self) -> Problem {
        let what = "disconnected from the process that owns the home";
        let help = format!(
            "What was acknowledged is on disk. Go on with `holdfast chat --session {}`.",
            one_line(self.session.as_str())
        );
        Problem::new(Code::ConnectionLost, what).help(help)
    }

    /// Asks the next question, or for the next line, if the user is asked nothing.
    async fn go_on(&mut self) {
        if !matches!(self.hand, InputState::Free) {
            return;
        }
        if let Some(asked) = self.next_question().await {
            self.screen.settle();
            self.screen.status(None);
            let withdrawn = Arc::new(AtomicBool::new(false));
            self.hand = InputState::Question(asked.request, withdrawn.clone());
            self.input.want(InputRequest::Answer(Box::new(asked), withdrawn));
        } else if !self.turn.running && !self.turn.asked {
            self.screen.settle();
            self.screen.status(None);
            self.screen.prompting = true;
            self.hand = InputState::Prompt;
            self.input.want(InputRequest::Line);
        }
    }

    async fn next_question(&mut self) -> Option<Prompt> {
        while let Some(frame) = self.waiting.pop_front() {
            // One that another client has answered meanwhile is left out.
            if let Ok(asked) = Prompt::of(&frame, &self.client).await {
                return Some(asked);
            }
        }
        None
    }

    async fn typed(&mut self, typed: Typed) {
        let hand = std::mem::replace(&mut self.hand, InputState::Free);
        self.screen.prompting = false;
        match typed {
            Typed::Line(line) => {
                self.warned = false;
                self.line(line).await;
            }
            Typed::Interrupt if self.warned => self.left = Some(Ok(true)),
            Typed::Interrupt => {
                self.warned = true;
                self.screen.line("Ctrl-C again leaves, as Ctrl-D and /quit do");
            }
            Typed::End => self.left = Some(Ok(true)),
            Typed::Reply(reply) => {
                if let InputState::Question(request, _) = hand {
                    self.reply(request, reply);
                }
                for notice in std::mem::take(&mut self.held) {
                    self.notice(notice).await;
                }
            }
        }
    }

    async fn line(&mut self, line: String) {
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        if text.starts_with('/') && self.command(text).await {
            return;
        }
        self.say(line);
    }

    /// Sends a message.
    fn say(&mut self, text: String) {
        self.turn = TurnState { asked: true, ..TurnState::default() };
        self.live = LiveText::default();
        let attachments = std::mem::take(&mut self.attached);
        self.made = MadeFiles::default();
        self.said = true;
        self.unsaid = Some((text.clone(), attachments.clone()));
        let request = SessionMethod::Send(SessionSend { session: self.session.clone(), text, attachments });
        self.ask_later(request, Finished::Asked);
    }

    fn ask_later(
        &self,
        request: impl Into<Request>,
        finished: impl FnOnce(Result<Value, Problem>) -> Finished + Send + 'static,
    ) {
        let (client, finish, request) = (self.client.clone(), self.finish.clone(), request.into());
        tokio::spawn(async move {
            let answer = client.ask(&request).await;
            // A chat that is over wants no answer.
            let _over = finish.send(finished(answer));
        });
    }

    fn reply(&mut self, request: Seq, reply: QuestionReply) {
        let session = self.session.clone();
        match reply {
            QuestionReply::Approval(answer) => {
                let request =
                    SessionMethod::ApprovalAnswer(ApprovalAnswer { session, approval: request, answer });
                self.ask_later(request, Finished::Other);
            }
            QuestionReply::Extension(answer) => {
                self.ask_later(
                    SessionMethod::UiAnswer(UiAnswer { session, request, answer }),
                    Finished::Other,
                );
            }
            QuestionReply::Interrupt => self.interrupt(),
            QuestionReply::End => self.left = Some(Ok(true)),
            QuestionReply::Withdrawn => {}
        }
    }

    /// Ctrl-C.
    fn interrupt(&mut self) {
        let busy = self.turn.running || self.turn.asked;
        self.turn.interrupts += 1;
        if busy && self.turn.interrupts == 1 {
            self.screen.line("cancelling the turn; Ctrl-C again leaves");
            let request = SessionMethod::Cancel(SessionParams { session: self.session.clone() });
            self.ask_later(request, Finished::Other);
            return;
        }
        let what = if busy { "left in the middle of a turn" } else { "interrupted" };
        let help = format!("`holdfast chat --session {}` goes on with it.", one_line(self.session.as_str()));
        self.left = Some(Err(Problem::new(Code::TurnCancelled, what).help(help)));
    }

    fn finished(&mut self, finished: Finished) {
        let answer = match finished {
            Finished::Asked(answer) => {
                self.turn.asked = false;
                // A compaction has no end to wait for, and a session that cannot go on has none either.
                if answer.as_ref().is_ok_and(|answer| answer["ended"].is_null()) || answer.is_err() {
                    self.turn.running = false;
                }
                let made =
                    answer.as_ref().ok().and_then(|answer| Vec::deserialize(&answer["attachments"]).ok());
                self.made = MadeFiles { files: made.unwrap_or_default(), unseen: true };
                self.show_made();
                answer
            }
            Finished::Other(answer) => answer,
            Finished::Shown(block, answer) => return self.rendered(&block, answer),
        };
        if let Err(problem) = answer
            && problem.code != Code::ConnectionLost
        {
            self.problem(&problem);
        }
    }

    async fn notice(&mut self, notice: Notification) {
        if let InputState::Question(asked, _) = self.hand
            && matches!(
                notice,
                Notification::Frame(_) | Notification::Text { .. } | Notification::Reasoning { .. }
            )
        {
            // A question that another client has answered, or whose turn is over, is withdrawn.
            if let Notification::Frame(frame) = &notice
                && frame.envelope.stream == self.session
                && (frame.envelope.kind == FrameKind::TurnEnded || Prompt::answered_by(frame) == Some(asked))
            {
                self.withdraw();
            }
            self.held.push_back(notice);
            return;
        }
        match notice {
            Notification::Frame(frame) if frame.envelope.stream == self.session => self.frame(frame).await,
            Notification::Text { session, offset, text, .. } if session == self.session => {
                self.wrote(offset, &text);
            }
            Notification::Reasoning { session, text, .. }
                if session == self.session && !self.screen.prompting =>
            {
                self.screen.text(Speaker::Reasoning, &text);
            }
            Notification::Progress { session, extension, text, .. }
                if session == self.session && !self.screen.prompting =>
            {
                self.screen.line(line_of(&format!("{extension}: "), &text, self.screen.width()));
            }
            Notification::Told { extension: Some(extension), text } => {
                self.screen.foreign(Some(extension.as_str()), &text);
            }
            Notification::Told { extension: None, text } => self.note(&text),
            Notification::Stopping {} => self.stopping = true,
            Notification::Broken { session, problem } if session == self.session => {
                self.turn = TurnState::default();
                self.problem(&problem);
            }
            _ => {}
        }
    }

    /// The model wrote a piece of its answer.
    fn wrote(&mut self, offset: u64, text: &str) {
        let is_next = self.live.wrote(offset, text);
        // At the prompt the answer is shown when it is complete.
        if is_next && !self.screen.prompting {
            self.screen.text(Speaker::Answer, text);
        }
    }

    /// Keeps a frame that asks a person something.
    fn question(&mut self, frame: Frame) {
        if !self.attended {
            return;
        }
        if self.screen.prompting {
            self.screen.line("a question waits for your answer: press Enter");
        }
        self.waiting.push_back(frame);
    }

    /// Withdraws the question that is being asked.
    fn withdraw(&mut self) {
        if let InputState::Question(_, withdrawn) = &self.hand {
            withdrawn.store(true, Ordering::Relaxed);
        }
    }

    async fn frame(&mut self, frame: Frame) {
        let seq = frame.envelope.seq;
        if seq < self.next {
            return;
        }
        self.next = seq.next();
        let Ok(body) = self.client.body(&frame).await else { return };
        // What was recorded before this chat opened the session is taken note of, and not shown.
        let earlier = seq < self.shown_from;
        let columns = self.screen.width();
        let over = self.calls.frame(frame.envelope.at, &body, self.screen.text_style, columns);
        if let Some(over) = over.filter(|_| !earlier) {
            self.over(over);
        }
        match &body {
            Body::TurnStarted(_) => {
                self.unsaid = None;
                self.turn.running = true;
            }
            Body::ModelReturned(_) => self.live.returned(),
            Body::ApprovalRequested(_) | Body::UiRequested(_) => self.question(frame),
            Body::ApprovalAnswered(ApprovalAnswered { approval: request, .. })
            | Body::UiAnswered(UiAnswered { request, .. }) => {
                self.waiting.retain(|waiting| waiting.envelope.seq != *request);
            }
            Body::TurnEnded(ended) => self.ended(seq, ended, earlier).await,
            _ if earlier => {}
            Body::StreamInterrupted(_) => self.note("the model broke off; what it wrote does not count"),
            Body::ModelFailed(failed) => self.note(&format!("the model failed: {}", failed.fault)),
            Body::CompactionApplied(applied) => {
                self.note(&format!(
                    "compacted: {} messages replaced, {} kept",
                    applied.replaced, applied.kept
                ));
            }
            _ => {}
        }
        if self.turn.running && !earlier {
            self.show_running();
        }
    }

    /// Shows which calls run.
    fn show_running(&mut self) {
        let running = self.calls.running();
        if running.is_some() {
            self.screen.settle();
        }
        self.screen.status(running.as_deref());
    }

    /// Whether a call runs and nothing else is shown in its place.
    fn shows_calls(&self) -> bool {
        self.turn.running && matches!(self.hand, InputState::Free) && self.calls.running().is_some()
    }

    /// A call is over. Its line comes at once; what its extension says of it comes when it is said.
    fn over(&mut self, over: Over) {
        let Over { line, block, asked } = over;
        self.screen.line(line);
        match asked {
            Some(asked) => {
                self.ask_later(ExtensionMethod::ToolRender(asked), |answer| Finished::Shown(block, answer))
            }
            None => self.screen.block(&block),
        }
    }

    /// An extension has said how a call is shown, or has left it to us.
    fn rendered(&mut self, block: &str, answer: Result<Value, Problem>) {
        // Nothing is written over a question; the call's line stands above it.
        if matches!(self.hand, InputState::Question(..)) {
            return;
        }
        let said = answer.ok().and_then(|answer| serde_json::from_value::<ToolRendered>(answer).ok());
        let ToolRendered { call, result } = said.unwrap_or_default();
        let (text_style, columns) = (self.screen.text_style, self.screen.width());
        for text in call.iter().chain(&result) {
            self.screen.block(&markdown(text, text_style, columns));
        }
        if result.is_none() {
            self.screen.block(block);
        }
    }

    async fn ended(&mut self, seq: Seq, ended: &TurnEnded, earlier: bool) {
        if !earlier {
            self.screen.settle();
            self.show_end(seq, ended).await;
        }
        self.turn.running = false;
        self.live = LiveText::default();
        self.waiting.clear();
        self.show_made();
    }

    async fn show_end(&mut self, seq: Seq, ended: &TurnEnded) {
        if ended.outcome != TurnOutcome::Answered {
            let line = wrapped(&format!("the turn ended {}", how(&ended.outcome)), self.screen.width());
            self.screen.line(self.screen.text_style.notable(&line));
        }
        match &ended.outcome {
            TurnOutcome::Answered => {
                let answer = ended.answer.as_ref().map(|answer| answer.to_text()).unwrap_or_default();
                if self.screen.prompting || !self.live.has_shown(&answer) {
                    if self.live.was_changed(&answer) && !self.screen.prompting {
                        self.note("the answer was changed before it was given:");
                    }
                    self.screen.whole(&answer);
                }
            }
            TurnOutcome::Limited(limit) => {
                let turn = SessionTurn { session: self.session.clone(), ended: seq };
                let details = self.client.ask::<TurnDetails>(&SessionMethod::Turn(turn)).await;
                if let Some(place) = details.ok().and_then(|details| details.limit_set_in) {
                    let line = wrapped(&format!("the limit on {limit} is {place}"), self.screen.width());
                    self.screen.line(line);
                }
            }
            _ => {}
        }
    }

    /// Names the files that the turn has made, once its answer has been shown.
    fn show_made(&mut self) {
        if self.turn.running || self.turn.asked || !std::mem::take(&mut self.made.unseen) {
            return;
        }
        for file in &self.made.files {
            self.screen.row(format!("{}; /save keeps it", attach::made_by_tool(file)));
        }
    }

    fn note(&mut self, text: &str) {
        let line = wrapped(text, self.screen.width());
        self.screen.line(self.screen.text_style.dim(&line));
    }

    fn problem(&mut self, problem: &Problem) {
        let text = problem_rows(problem, self.screen.width());
        let mut lines = text.lines();
        let first = self.screen.text_style.bad(lines.next().unwrap_or_default());
        self.screen.line(first);
        lines.for_each(|line| self.screen.line(line));
    }

    /// Opens a session, and says which.
    async fn open(&mut self, session: Option<StreamId>) -> Result<(), Problem> {
        let request = SessionMethod::Open(SessionOpen {
            session,
            create: false,
            model: self.model.clone(),
            channel: "chat".to_owned(),
            answers: self.attended,
            notices: true,
            ..SessionOpen::default()
        });
        let opened: SessionOpened = self.client.ask(&request).await?;
        self.session = opened.session;
        (self.next, self.shown_from) = (Seq(0), opened.next);
        self.turn = TurnState::default();
        self.live = LiveText::default();
        self.waiting.clear();
        if let Some(profile) = opened.profile {
            self.welcome.profile = profile_name(profile);
        }
        let here = std::env::current_dir().ok();
        for warning in &opened.warnings {
            self.problem(warning);
        }
        self.workspace = opened.workspace;
        self.introduce(opened.resumed).await?;
        if let Some(workspace) = &self.workspace
            && here.is_some_and(|here| here != Path::new(workspace))
        {
            let why =
                if opened.resumed { "where this session was started" } else { "which the settings name" };
            let line = format!("tools work in {}, {why}, and not in the current folder", one_line(workspace));
            self.note(&line);
        }
        Ok(())
    }

    async fn introduce(&mut self, resumed: bool) -> Result<(), Problem> {
        let tail = if resumed { self.tail(INTRODUCED_FRAMES, INTRODUCED_KINDS).await? } else { Vec::new() };
        self.turn.running = has_running_turn(&tail);
        if self.quiet {
            return Ok(());
        }
        let ServerHello { model, profile, home, .. } = &self.welcome;
        let model = self.model(&tail).unwrap_or_else(|| model.to_string());
        let line = format!("session {} · model {model} · profile {profile}", self.session);
        let folder = self.workspace.as_deref().unwrap_or("none, so there are no file tools and no shell");
        let place = one_line(&format!("folder {folder} · home {home} · /help shows the commands"));
        self.note(&line);
        self.note(&place);
        let said = tail.iter().rev().find_map(|read| match &read.body {
            Body::InputReceived(received) => Some(received.text.to_text()),
            _ => None,
        });
        let answered = tail.iter().rev().find_map(|read| match &read.body {
            Body::TurnEnded(ended) => ended.answer.as_ref().map(|answer| answer.to_text()),
            _ => None,
        });
        let columns = self.screen.width().min(100).saturating_sub(4).max(8);
        for (sign, text) in [("›", said), (" ", answered.filter(|_| !self.turn.running))] {
            if let Some(text) = text {
                self.note(&format!("{sign} {}", cut(&one_line(text.trim()), columns)));
            }
        }
        Ok(())
    }
}

fn profile_name(profile: Profile) -> String {
    serde_json::to_value(profile).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Whether a turn runs after these frames.
fn has_running_turn(frames: &[ReadFrame]) -> bool {
    let last = frames.iter().rev().find_map(|read| match &read.body {
        Body::TurnStarted(_) => Some(true),
        Body::TurnEnded(_) => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}

fn how(outcome: &TurnOutcome) -> String {
    let text = why::outcome(outcome);
    match outcome {
        TurnOutcome::Limited(_) | TurnOutcome::Answered => text,
        _ => format!("early, {text}"),
    }
}
