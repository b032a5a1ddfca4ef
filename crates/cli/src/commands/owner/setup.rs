//! `holdfast setup ID`: shows what an extension needs, asks for it, and says what is still missing.

use std::io::{BufRead, IsTerminal, Write};

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{ExtensionMethod, SetupApply, SetupShow};
use holdfast_runtime::{SetupQuestion, SetupState};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::Value;

use crate::arguments::Setup;
use crate::chat::sanitize_for_terminal;
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn setup(output: &Output, link: &mut Link, command: Setup) -> Result<Exit, Problem> {
    let id: holdfast_contract::ids::ExtensionId = command.id.as_str().into();
    let mut state: SetupState =
        link.client.ask(&ExtensionMethod::SetupShow(SetupShow { extension: id.clone() })).await?;
    let named = !command.set.is_empty() || !command.secret.is_empty();
    let mut answers: Vec<(String, Value)> = Vec::new();
    for pair in &command.set {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Problem::new(Code::UsageInvalid, format!("`{}` sets nothing", sanitize_for_terminal(pair)))
                .help("Write `--set name=value`.")
        })?;
        if state.questions.iter().any(|question| question.name == name && question.secret) {
            let what = format!("`{name}` is a secret, and arguments can be seen by others");
            let help = format!("Use `--secret {name}`, which reads it from standard input.");
            return Err(Problem::new(Code::UsageInvalid, what).help(help));
        }
        answers.push((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())));
    }
    for name in &command.secret {
        let value = line().ok_or_else(|| {
            let what = format!("standard input has no line for `{name}`");
            Problem::new(Code::UsageInvalid, what).help("Give one line for each `--secret`, in their order.")
        })?;
        answers.push((name.clone(), value.into()));
    }
    if !named && !output.json {
        introduce(&state);
        if std::io::stdin().is_terminal() {
            for question in &state.questions {
                answers.extend(ask(question).map(|answer| (question.name.clone(), answer.into())));
            }
        }
    }
    for (name, value) in answers {
        state = link
            .client
            .ask(&ExtensionMethod::SetupApply(SetupApply { extension: id.clone(), name, value }))
            .await?;
    }
    report(output, &state)?;
    Ok(state.complete.into())
}

fn introduce(state: &SetupState) {
    let instructions = sanitize_for_terminal(state.instructions.trim());
    if !instructions.is_empty() {
        eprintln!("{instructions}\n");
    }
    if state.questions.is_empty() {
        eprintln!("{} asks for nothing.", state.extension);
    }
}

/// Asks one question; an empty line leaves it as it is.
fn ask(question: &SetupQuestion) -> Option<String> {
    let about = sanitize_for_terminal(&question.description);
    let kind = match (question.required, question.answered) {
        (_, true) => "set; empty leaves it",
        (true, _) => "required",
        (false, _) => "optional",
    };
    let hint = if question.secret { ", not shown" } else { "" };
    eprintln!("{}{}{about}", sanitize_for_terminal(&question.name), if about.is_empty() { "" } else { ": " });
    eprint!("  ({kind}{hint}) ");
    std::io::stderr().flush().ok()?;
    let answer = if question.secret { unseen() } else { line() };
    answer.filter(|answer| !answer.is_empty())
}

/// A line that the terminal does not show.
fn unseen() -> Option<String> {
    let stdin = rustix::stdio::stdin();
    let before = tcgetattr(stdin).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin, OptionalActions::Flush, &quiet).ok()?;
    let answer = line();
    let _shown = tcsetattr(stdin, OptionalActions::Now, &before);
    eprintln!("");
    answer
}

fn line() -> Option<String> {
    let mut text = String::new();
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(read) if read > 0 => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
        _ => None,
    }
}

fn report(output: &Output, state: &SetupState) -> Result<(), Problem> {
    if output.json {
        return output.document(state);
    }
    let word = sanitize_for_terminal(&state.word);
    match state.complete {
        true => eprintln!("{} is set up: {word}", state.extension),
        false => eprintln!("{} is not set up: {word}", state.extension),
    }
    Ok(())
}
