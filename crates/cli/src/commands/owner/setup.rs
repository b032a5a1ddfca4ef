//! `holdfast setup ID`: shows what an extension needs, asks for it, and says what is still missing.

use std::io::IsTerminal;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{ExtensionMethod, SetupApply, SetupShow};
use holdfast_runtime::{SetupQuestion, SetupState};
use serde_json::Value;

use crate::arguments::Setup;
use crate::chat::one_line;
use crate::client::link::Link;
use crate::client::questions::ask_line;
use crate::client::typed::{hidden_line, line};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn setup(output: &Output, link: &mut Link, command: Setup) -> Result<Exit, Problem> {
    let id: ExtensionId = command.id.as_str().into();
    let mut state: SetupState =
        link.client.ask(&ExtensionMethod::SetupShow(SetupShow { extension: id.clone() })).await?;
    let named = !command.set.is_empty() || !command.secret.is_empty();
    let mut answers: Vec<(String, Value)> = Vec::new();
    for pair in &command.set {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Problem::new(Code::UsageInvalid, format!("`{pair}` sets nothing"))
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
                let Some(answer) = ask(&state.extension, question) else { break };
                if !answer.is_empty() {
                    answers.push((question.name.clone(), answer.into()));
                }
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
    let instructions = state.instructions.trim();
    if !instructions.is_empty() {
        eprintln!("`{}` says:\n{instructions}\n", state.extension);
    }
    if state.questions.is_empty() {
        eprintln!("{} asks for nothing.", state.extension);
    }
}

/// Asks one question; an empty line leaves it as it is, and without an answer the user wants no more of them.
fn ask(extension: &ExtensionId, question: &SetupQuestion) -> Option<String> {
    let about = one_line(&question.description);
    let kind = match (question.required, question.answered) {
        (_, true) => "set; empty leaves it",
        (true, _) => "required",
        (false, _) => "optional",
    };
    let hint = if question.secret { ", not shown" } else { "" };
    let name = one_line(&question.name);
    eprintln!("`{extension}` asks for {name}{}{about}", if about.is_empty() { "" } else { ": " });
    let asked = format!("  ({kind}{hint})");
    if question.secret { hidden_line(&format!("{asked} ")) } else { ask_line(&asked) }
}

fn report(output: &Output, state: &SetupState) -> Result<(), Problem> {
    if output.json {
        return output.document(state);
    }
    let word = one_line(&state.word);
    if state.complete {
        eprintln!("{} is set up: {word}", state.extension)
    } else {
        eprintln!("{} is not set up: {word}", state.extension)
    }
    Ok(())
}
