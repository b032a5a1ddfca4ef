//! A question to a user of a channel, as the channel's `send-question` gets it.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::problem::{Code, Fault};

/// A question to one user of a channel, with what can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelQuestion {
    /// The user.
    pub user: String,
    /// The question, without the words to answer with: the channel shows the choices.
    pub text: String,
    /// What can be chosen. The answer to a question without choices is written: its text ends with how.
    pub choices: Vec<AnswerChoice>,
}

/// One of the answers to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerChoice {
    /// What the user reads.
    pub label: String,
    /// What the channel publishes on `user.message`, as the user's text, when it is chosen.
    pub answer: String,
}

/// The question that a channel is to show, from the arguments of the call.
pub fn asked(arguments: &Content) -> Result<ChannelQuestion, Fault> {
    let odd = |error| Fault::new(Code::ToolArguments, format!("the question is invalid: {error}"));
    let mut value = arguments.value().clone();
    value.as_object_mut().map(|fields| fields.remove("delivery"));
    serde_json::from_value(value).map_err(odd)
}
