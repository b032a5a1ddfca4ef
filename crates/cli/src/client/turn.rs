//! One turn over a link: what comes is shown, what waits for a person is asked, Ctrl-C cancels.

use std::io::IsTerminal;

use holdfast_contract::attachment::Attachment;
use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_rpc::{
    ApprovalAnswer, Client, Notification, SessionFrames, SessionMethod, SessionOpen, SessionOpened,
    SessionParams, SessionSend, TurnEnd, UiAnswer,
};
use serde_json::Value;
use tokio::signal::unix::SignalKind;

use crate::chat::QuestionReply;
use crate::client::link::Link;
use crate::client::questions::{Questions, ask_line};
use crate::commands::local::up::listen;
use crate::exit::Exit;
use crate::output::report;

/// Whether a person can be asked: both ends of the conversation are a terminal.
pub(crate) fn attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Link {
    /// Opens a session, or takes one up.
    pub(crate) async fn open_session(&self, open: SessionOpen) -> Result<SessionOpened, Problem> {
        let opened: SessionOpened = self.client.ask(&SessionMethod::Open(open)).await?;
        opened.warnings.iter().for_each(report);
        Ok(opened)
    }

    /// The frames from when a session was opened to the end of a turn.
    pub(crate) async fn frames_of_turn(
        &self,
        opened: &SessionOpened,
        end: &TurnEnd,
    ) -> Result<Vec<Frame>, Problem> {
        let (session, from, to) = (opened.session.clone(), opened.next, Some(end.ended));
        self.client.frames(SessionFrames { session, from, to, kinds: Vec::new(), limit: None }).await
    }

    /// Sends a message, and gives how the turn ended. Each notification is shown as it comes, or once a question that it would disturb is
    /// answered.
    pub(crate) async fn turn(
        &mut self,
        session: &StreamId,
        (text, attachments): (String, Vec<Attachment>),
        show: impl FnMut(&Notification) -> Result<(), Problem>,
    ) -> Result<TurnEnd, Problem> {
        let send = SessionMethod::Send(SessionSend { session: session.clone(), text, attachments });
        self.follow(session, send, show).await
    }

    /// The same with a request that is answered when the turn has ended.
    pub(crate) async fn follow(
        &mut self,
        session: &StreamId,
        send: SessionMethod,
        mut show: impl FnMut(&Notification) -> Result<(), Problem>,
    ) -> Result<TurnEnd, Problem> {
        let client = self.client.clone();
        let mut sent = std::pin::pin!(client.ask::<TurnEnd>(&send));
        let mut questions = Questions::new(attended())?;
        // One listener for the whole turn: a signal between two rounds of the loop is not lost.
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut interrupts = 0;
        let end = loop {
            let interrupted = tokio::select! {
                biased;
                Some((request, reply)) = questions.replies.recv() => {
                    questions.answered();
                    questions.held.drain(..).try_for_each(|notice| show(&notice))?;
                    answer(&client, session, request, reply)
                }
                Some(notice) = self.notices.recv() => {
                    if let Some(notice) = questions.notice(notice) {
                        show(&notice)?;
                    }
                    false
                }
                Some(()) = interrupt.recv() => true,
                end = &mut sent => break end?,
            };
            if interrupted {
                interrupts += 1;
                if interrupts > 1 {
                    return Err(Problem::new(
                        Code::TurnCancelled,
                        "interrupted twice; the turn goes on to its end without you",
                    ));
                }
                let cancel = SessionMethod::Cancel(SessionParams { session: session.clone() });
                // A turn that has ended by itself in the meantime needs no cancelling.
                let _ended = client.ask::<Value>(&cancel).await;
            }
            questions.ask_next(&client).await;
        };
        questions.answered();
        questions.held.drain(..).try_for_each(|notice| show(&notice))?;
        while let Ok(notice) = self.notices.try_recv() {
            show(&notice)?;
        }
        Ok(end)
    }
}

/// Sends a person's answer on. True if they interrupt the turn.
fn answer(client: &Client, session: &StreamId, request: Seq, reply: QuestionReply) -> bool {
    let session = session.clone();
    let request = match reply {
        QuestionReply::Approval(answer) => {
            SessionMethod::ApprovalAnswer(ApprovalAnswer { session, approval: request, answer })
        }
        QuestionReply::Extension(answer) => SessionMethod::UiAnswer(UiAnswer { session, request, answer }),
        QuestionReply::Interrupt => return true,
        QuestionReply::End | QuestionReply::Withdrawn => return false,
    };
    let client = client.clone();
    tokio::spawn(async move {
        // Another client may have answered first.
        if let Err(problem) = client.ask::<Value>(&request).await {
            report(&problem);
        }
    });
    false
}

/// How a turn's outcome leaves the program.
pub(crate) fn exit(outcome: &TurnOutcome) -> Exit {
    match outcome {
        TurnOutcome::Answered => Exit::Done,
        TurnOutcome::Cancelled { .. } => Exit::Interrupted,
        TurnOutcome::Limited(_) | TurnOutcome::Blocked { .. } | TurnOutcome::Failed(_) => Exit::Failed,
    }
}

/// How a turn ended, in words, for one that was not answered.
pub(crate) fn told(end: &TurnEnd) -> Problem {
    match &end.outcome {
        TurnOutcome::Failed(fault) => fault.clone().into(),
        TurnOutcome::Limited(limit) => {
            let what = limit.with_place(end.limit_set_in.as_deref());
            Problem::new(Code::TurnLimit, format!("the turn was ended by a limit on {what}"))
        }
        TurnOutcome::Blocked { reason } => Problem::new(Code::GuardBlocked, reason.clone()),
        TurnOutcome::Cancelled { reason } => Problem::new(Code::TurnCancelled, reason.clone()),
        TurnOutcome::Answered => Problem::new(Code::Internal, "the turn was answered"),
    }
}

/// Lets the person choose one of several; Enter takes the first. None if there is nobody.
pub(crate) fn choose(prompt: &str, options: &[String]) -> Option<usize> {
    for (number, option) in (1..).zip(options) {
        eprintln!("  {number} {option}");
    }
    loop {
        let typed = ask_line(&format!("{prompt} (Enter for 1)"))?;
        let number = if typed.trim().is_empty() { Some(1) } else { typed.trim().parse::<usize>().ok() };
        match number.and_then(|number| number.checked_sub(1)).filter(|place| *place < options.len()) {
            Some(place) => return Some(place),
            None => eprintln!("  a number from 1 to {}", options.len()),
        }
    }
}

/// An answer as text.
pub(crate) fn text(answer: Option<&Content>) -> String {
    answer.map(Content::to_text).unwrap_or_default()
}
