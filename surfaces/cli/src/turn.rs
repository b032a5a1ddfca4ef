//! One turn over a link: what comes is shown, what waits for a person is asked, Ctrl-C cancels.

use std::io::{BufRead, IsTerminal, Write};

use holdfast_contract::attachment::Attachment;
use holdfast_contract::content::Content;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{TurnOutcome, UiQuestion};
use holdfast_rpc::{
    ApprovalAnswer, Client, InSession, Notice, PersonsAnswer, Request, SessionOpen, SessionOpened,
    SessionSend, TurnEnd, UiAnswer,
};
use serde_json::Value;

use crate::chat::harmless;
use crate::exit::Exit;
use crate::link::Link;

/// Whether a person can be asked: both ends of the conversation are a terminal.
pub(crate) fn attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Link {
    /// Opens a session, or takes one up.
    pub(crate) async fn open_session(&self, open: SessionOpen) -> Result<SessionOpened, Problem> {
        self.client.ask(&Request::SessionOpen(open)).await
    }

    /// Says something, and gives how the turn ended. Each notice is shown as it comes.
    pub(crate) async fn turn(
        &mut self,
        session: &StreamId,
        (text, attachments): (String, Vec<Attachment>),
        mut show: impl FnMut(&Notice) -> Result<(), Problem>,
    ) -> Result<TurnEnd, Problem> {
        let client = self.client.clone();
        let send = Request::SessionSend(SessionSend { session: session.clone(), text, attachments });
        let mut sent = std::pin::pin!(client.ask::<TurnEnd>(&send));
        let mut cancelled = false;
        let end = loop {
            tokio::select! {
                biased;
                Some(notice) = self.notices.recv() => {
                    show(&notice)?;
                    if attended() {
                        answer(&client, notice);
                    }
                }
                _ = tokio::signal::ctrl_c() => {
                    if cancelled {
                        return Err(Problem::new(Code::TurnCancelled, "interrupted twice; the turn goes on to its end without you"));
                    }
                    cancelled = true;
                    let cancel = Request::SessionCancel(InSession { session: session.clone() });
                    // A turn that has ended by itself in the meantime needs no cancelling.
                    let _ended = client.ask::<Value>(&cancel).await;
                }
                end = &mut sent => break end?,
            }
        };
        while let Ok(notice) = self.notices.try_recv() {
            show(&notice)?;
        }
        Ok(end)
    }
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

/// Asks the person at the terminal, on a thread of its own, and sends the answer on.
fn answer(client: &Client, notice: Notice) {
    let client = client.clone();
    tokio::spawn(async move {
        let request = match tokio::task::spawn_blocking(move || ask(notice)).await {
            Ok(Some(request)) => request,
            _ => return,
        };
        // Somebody else may have answered first.
        if let Err(problem) = client.ask::<Value>(&request).await {
            eprintln!("{problem}");
        }
    });
}

fn ask(notice: Notice) -> Option<Request> {
    match notice {
        Notice::Approval { session, approval, tool, arguments, reasons, .. } => {
            let shown = serde_json::to_string_pretty(&arguments).unwrap_or_default();
            eprintln!("\n{} wants to run with {}", harmless(tool.as_str()), harmless(&shown));
            for reason in &reasons {
                eprintln!("  {}: {}", reason.hook, harmless(&reason.reason));
            }
            let answer = loop {
                match line("allow? [y]es once, [s]ession, [a]lways, [n]o: ")?.as_str() {
                    "y" | "yes" => break PersonsAnswer::Once,
                    "s" | "session" => break PersonsAnswer::Session,
                    "a" | "always" => break PersonsAnswer::Always,
                    "n" | "no" | "" => break PersonsAnswer::Deny { reason: "the user said no".to_owned() },
                    _ => eprintln!("one of y, s, a, n"),
                }
            };
            Some(Request::ApprovalAnswer(ApprovalAnswer { session, approval, answer }))
        }
        Notice::Question { session, request, question } => {
            let answer = match question {
                UiQuestion::Select { prompt, options } => {
                    choose(&prompt, &options).and_then(|place| options.get(place)).cloned().map(Value::String)
                }
                UiQuestion::Confirm { prompt } => {
                    let answer = line(&format!("{} [y/n] ", harmless(&prompt)))?;
                    Some(Value::Bool(matches!(answer.as_str(), "y" | "yes")))
                }
                UiQuestion::Input { prompt, .. } | UiQuestion::Custom { prompt, .. } => {
                    line(&format!("{} ", harmless(&prompt))).map(Value::String)
                }
            };
            Some(Request::UiAnswer(UiAnswer { session, request, answer }))
        }
        _ => None,
    }
}

/// Lets the person choose one of several; none if they do not.
pub(crate) fn choose(prompt: &str, options: &[String]) -> Option<usize> {
    for (number, option) in (1..).zip(options) {
        eprintln!("  {number}. {}", harmless(option));
    }
    let chosen = line(&format!("{} ", harmless(prompt)))?.parse::<usize>().ok()?.checked_sub(1)?;
    (chosen < options.len()).then_some(chosen)
}

/// A line from the person; none at the end of the input.
fn line(prompt: &str) -> Option<String> {
    let mut text = String::new();
    eprint!("{prompt}");
    std::io::stderr().flush().ok()?;
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(read) if read > 0 => Some(text.trim().to_owned()),
        _ => None,
    }
}

/// An answer as text.
pub(crate) fn text(answer: Option<&Content>) -> String {
    answer.map(Content::to_text).unwrap_or_default()
}
