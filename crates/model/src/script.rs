//! A model that plays a script. Which step is next follows from the conversation alone, so that a request which is issued again
//! after a crash gets the same answer. A script is made in code from [`ScriptStep`]s or read from YAML by [`Script::read`].

mod read;
#[cfg(test)]
mod read_tests;

use std::collections::HashMap;
use std::path::Path;

use holdfast_contract::content::Content;
use holdfast_contract::ids::StreamId;
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::problem::{Code, Fault, Location, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use parking_lot::Mutex;
use serde_json::Value;

use crate::file::read_text;
use crate::{Delta, Deltas, Model, ModelRequest, ready};

/// One answer of a scripted model.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptStep {
    /// It says something.
    Says(String),
    /// It calls tools.
    Calls(Vec<(String, Value)>),
    /// It fails so often, and then does something else.
    Fails {
        /// How often.
        times: u32,
        /// Whether asking again may help.
        retryable: bool,
        /// What it does then.
        then: Box<ScriptStep>,
    },
    /// It never answers.
    Hangs,
    /// It says this much of something, and then never ends.
    Stalls(String),
    /// Another step, with usage.
    Costs(Usage, Box<ScriptStep>),
    /// Another step, after thinking about it.
    Reasons(String, Box<ScriptStep>),
}

impl ScriptStep {
    /// It says this.
    pub fn says(text: &str) -> Self {
        Self::Says(text.to_owned())
    }

    /// It calls these tools concurrently.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::Calls(calls.into_iter().map(|(tool, arguments)| (tool.to_owned(), arguments)).collect())
    }

    /// The same, at a price in tokens and millionths of a dollar.
    pub fn costing(self, tokens: u64, cost_micros: u64) -> Self {
        Self::Costs(Usage { input_tokens: tokens, output_tokens: 0, cost_micros }, Box::new(self))
    }
}

/// A model that plays these steps: the first when the conversation has no answer of a model yet, and so on. Past its end it says
/// `done`.
#[derive(Default)]
pub struct Script {
    steps: Vec<ScriptStep>,
    failed: Mutex<HashMap<(StreamId, usize), u32>>,
}

impl Script {
    /// A script of these steps.
    pub fn new(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self { steps: steps.into_iter().collect(), failed: Mutex::default() }
    }

    /// A script as it is written in this text. The file's name is for messages only. All problems are reported together.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        read::steps(file, text).map(Self::new)
    }

    /// A script from a file. Blocks while it is read. A problem names the line and the field, and nothing else of the file: it
    /// may be no script, but a file with secrets, and problems go into the log.
    pub fn read(file: &Path) -> Result<Self, Vec<Problem>> {
        let text = read_text(file).map_err(|error| {
            let place = Location { file: file.to_owned(), ..Location::default() };
            let help = "Check that the file is there and can be read by you.";
            vec![
                Problem::new(Code::ScriptInvalid, format!("the script cannot be read: {error}"))
                    .at(place)
                    .help(help),
            ]
        })?;
        Self::parse(file, &text).map_err(|problems| problems.into_iter().map(read::without_content).collect())
    }

    fn answer(
        &self,
        step: ScriptStep,
        place: (StreamId, usize),
        usage: Usage,
        deltas: &Deltas,
    ) -> Later<Result<ModelReturned, ModelFailed>> {
        match step {
            ScriptStep::Says(text) => {
                text.split_inclusive(' ').for_each(|word| deltas(Delta::Text(word)));
                let text = Content::text(text);
                ready(Ok(ModelReturned { text, reasoning: None, calls: Vec::new(), usage }))
            }
            ScriptStep::Calls(calls) => {
                let asked = |(index, (tool, arguments)): (usize, (String, Value))| AskedCall {
                    model_id: format!("call-{}", index + 1).into(),
                    tool: tool.into(),
                    arguments: Content::new(arguments),
                };
                let calls = calls.into_iter().enumerate().map(asked).collect();
                ready(Ok(ModelReturned { text: Content::text(""), reasoning: None, calls, usage }))
            }
            ScriptStep::Fails { times, retryable, then } => {
                let mut failed = self.failed.lock();
                let count = failed.entry(place.clone()).or_default();
                if *count >= times {
                    drop(failed);
                    return self.answer(*then, place, usage, deltas);
                }
                *count += 1;
                let fault = Fault::new(Code::ModelFailed, format!("failure {count} of {times}"));
                ready(Err(ModelFailed { usage, ..ModelFailed::new(fault, retryable) }))
            }
            ScriptStep::Hangs => Box::pin(std::future::pending()),
            ScriptStep::Stalls(text) => {
                deltas(Delta::Text(&text));
                Box::pin(std::future::pending())
            }
            ScriptStep::Costs(usage, then) => self.answer(*then, place, usage, deltas),
            ScriptStep::Reasons(text, then) => {
                text.split_inclusive(' ').for_each(|word| deltas(Delta::Reasoning(word)));
                let answer = self.answer(*then, place, usage, deltas);
                Box::pin(async move {
                    answer
                        .await
                        .map(|returned| ModelReturned { reasoning: Some(Content::text(text)), ..returned })
                })
            }
        }
    }
}

impl Model for Script {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let answers =
            ask.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        let step = self.steps.get(answers).cloned().unwrap_or_else(|| ScriptStep::says("done"));
        self.answer(step, (ask.turn.session.clone(), answers), Usage::default(), &deltas)
    }
}
