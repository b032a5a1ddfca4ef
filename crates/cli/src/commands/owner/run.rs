//! `holdfast run "PROMPT"`: one turn. Plain: the answer. With `--json`: every frame of the turn.

use std::io::IsTerminal;

use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_home::OFFLINE;
use holdfast_rpc::{Notification, SessionOpen, SessionOpened, TurnEnd};
use rustix::fs::FileType;

use crate::arguments::Run;
use crate::chat::{Calls, ReadFrame, TextStyle, error_width, why};
use crate::client::attach;
use crate::client::link::Link;
use crate::client::turn::{attended, exit, text, told};
use crate::client::typed::standard_input;
use crate::exit::Exit;
use crate::output::{Output, end_stream, report, stream, user_frame_line};

/// The longest message that is read from standard input.
const MAX_MESSAGE_BYTES: u64 = 8 << 20;

pub(crate) async fn run(output: &Output, link: &mut Link, command: Run) -> Result<Exit, Problem> {
    let (_, end) = turn(output, link, command).await?;
    Ok(exit(&end.outcome))
}

/// One turn, shown; what was opened for it, and how it ended.
async fn turn(output: &Output, link: &mut Link, command: Run) -> Result<(SessionOpened, TurnEnd), Problem> {
    let prompt = prompt(command.prompt)?;
    let attachments = command.attach.iter().map(|file| attach::read(file)).collect::<Result<_, _>>()?;
    let session = command.session.map(StreamId::from);
    let opened = link
        .open_session(SessionOpen {
            session,
            create: true,
            model: command.model.map(Into::into),
            channel: "run".to_owned(),
            answers: attended(),
            ..SessionOpen::default()
        })
        .await?;
    // A person reads along; a program is given the answer, without what a broken attempt or a remark before a call had written.
    let live = !output.json && std::io::stdout().is_terminal();
    let mut streamed = false;
    let end = link
        .turn(&opened.session, (prompt, attachments), |notice| {
            match notice {
                Notification::Text { text, .. } if live => {
                    streamed = true;
                    stream(text);
                }
                Notification::Frame(frame) if output.verbose && frame.envelope.seq >= opened.next => {
                    eprintln!("{}", user_frame_line(frame));
                }
                _ => {}
            }
            Ok(())
        })
        .await?;
    end_stream();
    if output.json {
        for frame in link.frames_of_turn(&opened, &end).await? {
            // A script has nothing to load references with.
            output.document(&link.client.whole(frame).await?)?;
        }
    } else if !output.quiet {
        tell_calls(link, &opened, &end).await?;
    }
    if !output.json && end.outcome == TurnOutcome::Answered && !streamed {
        output.foreign(&text(end.answer.as_ref()))?;
    }
    for file in &end.attachments {
        match &command.save {
            Some(folder) => eprintln!("saved {}", attach::save(folder, file)?.display()),
            None if output.quiet => {}
            None => eprintln!("{}; --save FOLDER keeps it", attach::made_by_tool(file)),
        }
    }
    if end.outcome != TurnOutcome::Answered {
        report(&told(&end));
    }
    if !output.quiet && !output.json {
        eprintln!("session {}", opened.session);
    }
    Ok((opened, end))
}

/// Says on standard error which tools were called and what became of each call, so that a denial is not silent.
async fn tell_calls(link: &Link, opened: &SessionOpened, end: &TurnEnd) -> Result<(), Problem> {
    let mut calls = Calls::default();
    for frame in link.frames_of_turn(opened, end).await? {
        let Ok(body) = link.client.body(&frame).await else { continue };
        if let Some(over) = calls.frame(frame.envelope.at, &body, TextStyle::Plain, error_width()) {
            eprintln!("{}", over.line);
        }
    }
    Ok(())
}

/// One turn without a terminal and without a prompt: a tool is called, what decided the call is shown, and the next commands are named.
pub(crate) async fn demonstrate(output: &Output, link: &mut Link) -> Result<Exit, Problem> {
    let model = Some(OFFLINE.into());
    let open =
        SessionOpen { model, channel: "run".to_owned(), answers: attended(), ..SessionOpen::default() };
    let opened = link.open_session(open).await?;
    let prompt = match opened.workspace {
        Some(_) => "List the files in this folder.",
        // In a folder that tools may not touch.
        None => "/kv_get {\"glob\": \"*\"}",
    };
    output.lines(format!("A chat needs a terminal, so this is one demonstration turn.\n\n> {prompt}\n"))?;
    let session = Some(opened.session.to_string());
    let command = Run { prompt: prompt.to_owned(), session, model: None, attach: Vec::new(), save: None };
    let (opened, end) = turn(output, link, command).await?;
    let mut frames = Vec::new();
    for frame in link.frames_of_turn(&opened, &end).await? {
        let body = link.client.body(&frame).await?;
        frames.push(ReadFrame { seq: frame.envelope.seq, source: frame.envelope.source, body });
    }
    output.lines("\nThe call, frame by frame, as it was recorded before it took effect:\n")?;
    for line in why(&frames, None) {
        output.line(line)?;
    }
    output.lines(format!(
        "\nNext:\n  \
         holdfast                  in a terminal: a chat\n  \
         holdfast run \"…\"          one turn\n  \
         holdfast log show {session}    every frame of this turn\n  \
         holdfast replay {session}      the same facts give the same frames",
        session = opened.session
    ))?;
    Ok(exit(&end.outcome))
}

/// The prompt: the argument, or all of standard input for `-`. What is piped in besides is appended to the argument.
fn prompt(asked: String) -> Result<String, Problem> {
    let prompt = match asked.as_str() {
        "-" => standard_input(MAX_MESSAGE_BYTES)?,
        _ if is_piped() => {
            [asked.as_str(), &standard_input(MAX_MESSAGE_BYTES)?].join("\n\n").trim_end().to_owned()
        }
        _ => asked,
    };
    if prompt.trim().is_empty() {
        let problem = Problem::new(Code::UsageInvalid, "there is nothing to say: the message is empty");
        Err(problem.help("Write it as the argument, or pipe it in: `holdfast run - < file`."))
    } else {
        Ok(prompt)
    }
}

/// Whether standard input is a pipe or a file. Of anything else, such as a terminal or `/dev/null`, nothing is read unasked.
fn is_piped() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin()).map(|about| FileType::from_raw_mode(about.st_mode));
    kind.is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::RegularFile))
}
