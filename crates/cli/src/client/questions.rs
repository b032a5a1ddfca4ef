//! The questions of a command's turn, put to the person at its terminal one at a time, in the same way as the chat does. While one
//! is open nothing else is written. While text of a model is shown on the terminal, what is typed is not, so that nothing but
//! this program moves the cursor. The terminal is given back on every way out.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::FrameKind;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{ApprovalChoice, Client, Notification};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::chat::{Prompt, PromptKind, QuestionReply, Terminal, TextStyle, ask, read_line};
use crate::output::Quiet;

/// What waits for a person, and what waits until they have answered.
pub(crate) struct Questions {
    /// Whether a person is there.
    attended: bool,
    /// The frames of questions that have not been asked yet.
    waiting: VecDeque<Frame>,
    open: Option<Open>,
    /// The terminal for the whole turn, if text is shown on it.
    terminal: Option<TerminalGuard>,
    /// What happened while a question was open.
    pub held: VecDeque<Notification>,
    reply: mpsc::UnboundedSender<(Seq, QuestionReply)>,
    /// Replies to questions.
    pub replies: mpsc::UnboundedReceiver<(Seq, QuestionReply)>,
}

/// The question that is being asked.
struct Open {
    request: Seq,
    withdrawn: Arc<AtomicBool>,
    /// The terminal for this question alone.
    _terminal: Option<TerminalGuard>,
    _quiet: Quiet,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.withdrawn.store(true, Ordering::Relaxed);
    }
}

impl Questions {
    /// None yet.
    pub(crate) fn new(attended: bool) -> Result<Self, Problem> {
        if attended {
            leave_with_signals()?;
        }
        let terminal = (attended && shows_text()).then(TerminalGuard::take).flatten();
        let (reply, replies) = mpsc::unbounded_channel();
        let (waiting, held) = (VecDeque::new(), VecDeque::new());
        Ok(Self { attended, waiting, open: None, terminal, held, reply, replies })
    }

    /// Takes note of what happened, and gives it back if it can be shown now.
    pub(crate) fn notice(&mut self, notice: Notification) -> Option<Notification> {
        if let Notification::Frame(frame) = &notice {
            self.frame(frame);
        }
        match self.open {
            Some(_) => {
                self.held.push_back(notice);
                None
            }
            None => Some(notice),
        }
    }

    fn frame(&mut self, frame: &Frame) {
        if self.attended && Prompt::is_in(frame) {
            self.waiting.push_back(frame.clone());
        }
        if let Some(request) = Prompt::answered_by(frame) {
            self.waiting.retain(|waiting| waiting.envelope.seq != request);
            if self.open.as_ref().is_some_and(|open| open.request == request) {
                self.withdraw();
            }
        }
        if frame.envelope.kind == FrameKind::TurnEnded {
            self.waiting.clear();
            self.withdraw();
        }
    }

    /// Withdraws the question that is being asked.
    fn withdraw(&self) {
        if let Some(open) = &self.open {
            open.withdrawn.store(true, Ordering::Relaxed);
        }
    }

    /// Asks the next question, if none is being asked.
    pub(crate) async fn ask_next(&mut self, client: &Client) {
        if self.open.is_some() {
            return;
        }
        let Some(frame) = self.waiting.pop_front() else { return };
        // One that another client has answered meanwhile is left out.
        let Ok(asked) = Prompt::of(&frame, client).await else { return };
        let (request, withdrawn, reply) =
            (asked.request, Arc::new(AtomicBool::new(false)), self.reply.clone());
        let quiet = Quiet::new();
        let own = if self.terminal.is_none() { TerminalGuard::take() } else { None };
        let Some(at) = own.as_ref().or(self.terminal.as_ref()).map(|guard| guard.0.clone()) else {
            // There is no receiver once the turn is over.
            let _over = reply.send((request, unanswered(&asked.question)));
            return;
        };
        let still_wanted = withdrawn.clone();
        self.open = Some(Open { request, withdrawn, _terminal: own, _quiet: quiet });
        let text_style = if crate::colors() { TextStyle::Color } else { TextStyle::Plain };
        tokio::task::spawn_blocking(move || {
            let answer = match ask(&asked, &at, &still_wanted, text_style) {
                QuestionReply::End => unanswered(&asked.question),
                answer => answer,
            };
            let _over = reply.send((request, answer));
        });
    }

    /// The question is answered, or no longer needs an answer: the terminal is restored.
    pub(crate) fn answered(&mut self) {
        self.open = None;
    }
}

/// What it means that the terminal has gone, or Ctrl-D: no.
fn unanswered(question: &PromptKind) -> QuestionReply {
    match question {
        PromptKind::Approval(_) => {
            QuestionReply::Approval(ApprovalChoice::Deny { reason: "the user did not answer".to_owned() })
        }
        PromptKind::Extension { .. } => QuestionReply::Extension(None),
    }
}

/// Asks one question, of no turn that is followed here; `None` if there is no terminal.
pub(crate) fn ask_now(asked: &Prompt) -> Option<QuestionReply> {
    let terminal = TerminalGuard::take()?;
    let text_style = if crate::colors() { TextStyle::Color } else { TextStyle::Plain };
    Some(ask(asked, &terminal.0, &AtomicBool::new(false), text_style))
}

/// A line from the user; `None` if there is no user, or no answer.
pub(crate) fn ask_line(prompt: &str) -> Option<String> {
    let terminal = TerminalGuard::take()?;
    read_line(&terminal.0, &format!("{prompt} "))
}

/// Whether foreign text is shown on the terminal that this program is in the foreground of. The terminal of another program is not touched,
/// such as that of a pager which reads the output.
fn shows_text() -> bool {
    let foreground = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
    std::io::stdout().is_terminal() && foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The terminal, until it is given back.
struct TerminalGuard(Arc<Terminal>);

/// The terminal that has to be given back when a signal ends the program.
static TAKEN: Mutex<Option<Arc<Terminal>>> = Mutex::new(None);

impl TerminalGuard {
    fn take() -> Option<Self> {
        let terminal = Arc::new(Terminal::take_for_command()?);
        *TAKEN.lock() = Some(terminal.clone());
        Some(Self(terminal))
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        TAKEN.lock().take();
        self.0.leave();
    }
}

/// From now on, a signal that ends the program gives the terminal back first.
fn leave_with_signals() -> Result<(), Problem> {
    for kind in [SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(|error| {
            Problem::new(Code::Internal, format!("could not install a signal handler: {error}"))
        })?;
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                if let Some(terminal) = TAKEN.lock().take() {
                    terminal.leave();
                }
                std::process::exit(128 + kind.as_raw_value());
            }
        });
    }
    Ok(())
}
