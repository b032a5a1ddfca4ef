//! What is said in the crash tests, and the model that answers. A prompt is a plan, `do: write look; run?edit`: rounds of tool
//! calls, and the model does what it says. Which round is next follows from the conversation alone.
use std::sync::Arc;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Message};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_model::{Deltas, Model, ModelRequest};
use serde_json::{Value, json};

use super::ledger::{Noted, Outside};

/// A session and its user's lines.
pub struct Talk {
    pub session: &'static str,
    pub lines: &'static [Line],
}

/// What a user does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Says something and waits for the answer.
    Say(&'static str),
    /// Closes the session, which leaves a snapshot, and takes it up again.
    Reopen,
    /// Has the conversation compacted.
    Compact,
    /// Says something, and takes it back while a tool runs.
    Cancel(&'static str),
    /// Installs another version of an extension.
    Reload,
}

use Line::{Cancel, Compact, Reload, Reopen, Say};

impl Talk {
    /// What the user says, in order.
    pub fn prompts(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.lines.iter().filter_map(|line| match line {
            Say(prompt) | Cancel(prompt) => Some(*prompt),
            Reopen | Compact | Reload => None,
        })
    }
}

/// About a thousand frames: every effect class, several calls at once, each answer to an approval, agents that call agents.
pub const LONG: &[Talk] = &[
    Talk {
        session: "amy",
        lines: &[
            Say("do: compute look write; run mystery"),
            Say("do: write?approve ponder; send"),
            Reopen,
            Say("do: mystery mystery write; compute"),
            Say("nothing, thank you"),
            Compact,
            Say("do: run look"),
        ],
    },
    Talk {
        session: "bob",
        lines: &[
            Say("do: clerk compute"),
            Say("do: run?edit write?deny mystery"),
            Reopen,
            Say("do: send send; ponder write"),
        ],
    },
    Talk {
        session: "cat",
        lines: &[
            Say("do: write?pause run; mystery"),
            Say("do: chief"),
            Say("do: look ponder compute; write; run"),
        ],
    },
    Talk {
        session: "dan",
        lines: &[
            Say("do: mystery?approve; mystery?pause"),
            Say("do: write write write write"),
            Reopen,
            Say("do: clerk mystery; look"),
        ],
    },
    Talk {
        session: "eve",
        lines: &[
            Say("hello"),
            Say("do: ponder; run; mystery; send; write"),
            Say("do: look mystery; write"),
            Say("do: compute"),
        ],
    },
];

/// Nothing but turns, for a program that trips when it reads its own log.
pub const PLAIN: &[Talk] = &[
    Talk { session: "amy", lines: &[Say("do: compute look write; mystery"), Say("do: run?approve ponder")] },
    Talk { session: "bob", lines: &[Say("do: mystery write; send"), Say("do: write")] },
];

/// A few hundred frames, for runs that are killed hundreds of times.
pub const SHORT: &[Talk] = &[
    Talk {
        session: "amy",
        lines: &[Say("do: compute look write; mystery"), Reopen, Say("do: run?approve ponder")],
    },
    Talk { session: "bob", lines: &[Say("do: clerk mystery"), Say("do: write?pause send")] },
    Talk { session: "cat", lines: &[Say("do: mystery write; run"), Compact, Say("do: mystery")] },
];

/// One conversation of sixty turns and forty calls: an agent that is asked, one that the conversation is handed over to and that gives it
/// back, one in the background, a turn that is cancelled, approvals, and an extension that is replaced in the middle.
pub const CONVERSATION: &[Talk] = &[Talk {
    session: "ada",
    lines: &[
        Say("hello"),
        Say("do: compute look"),
        Say("a word"),
        Say("do: write"),
        Say("another word"),
        Say("do: clerk"),
        Say("what was that?"),
        Say("do: run?approve"),
        Say("good"),
        Say("do: later"),
        Say("it may take its time"),
        Say("do: transfer_to_sage"),
        Say("who are you?"),
        Say("do: ponder compute"),
        Say("I see"),
        Say("do: write send"),
        Say("and then?"),
        Say("do: hand_back"),
        Say("are you back?"),
        Cancel("do: wait"),
        Say("never mind"),
        Say("do: mystery"),
        Say("strange"),
        Say("do: write?edit"),
        Say("not like that"),
        Say("do: write?deny"),
        Say("better"),
        Reload,
        Say("do: compute"),
        Say("is it new?"),
        Say("do: compute compute"),
        Say("it is"),
        Reopen,
        Say("where were we?"),
        Say("do: look"),
        Say("ah"),
        Say("do: transfer_to_sage; write"),
        Say("you again"),
        Say("do: clerk"),
        Say("thank you"),
        Say("do: run; hand_back"),
        Say("hm"),
        Say("do: send compute"),
        Say("sent"),
        Say("do: later ponder"),
        Say("fine"),
        Say("do: write; write"),
        Say("twice?"),
        Say("do: mystery look"),
        Say("well"),
        Compact,
        Say("what do you remember?"),
        Say("do: compute"),
        Say("little"),
        Say("do: run compute"),
        Say("nearly there"),
        Say("do: write"),
        Say("one more"),
        Say("do: look compute"),
        Say("that was it"),
        Say("do: ponder"),
        Say("so long"),
        Say("goodbye"),
    ],
}];

/// What an agent is asked to do; none for a tool.
fn task_of(tool: &str) -> Option<&'static str> {
    match tool {
        "clerk" => Some("do: write look; mystery"),
        "chief" => Some("do: clerk; send"),
        _ => None,
    }
}

/// What the model says when it has done what a prompt asks.
pub fn answer_to(prompt: &str) -> String {
    format!("done with `{prompt}`")
}

/// The model. It notes that it was asked.
pub struct Planner(pub Arc<dyn Outside>);

impl Model for Planner {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let session = ask.turn.session.clone();
        // A summary is asked for outside any session.
        if session.as_str() != "summary" {
            self.0.note(Noted::Told { session, seq: ask.decided_by, kind: FrameKind::ModelRequested });
        }
        let asked =
            ask.messages.iter().rposition(|message| matches!(message, Message::User { .. })).unwrap_or(0);
        let Some(Message::User { text, .. }) = ask.messages.get(asked) else { return says("nobody asked") };
        let since = ask.messages[asked..].iter();
        let done = since.filter(|message| matches!(message, Message::Assistant { .. })).count();
        let prompt = text.to_text();
        let mut rounds = prompt.strip_prefix("do: ").into_iter().flat_map(|plan| plan.split("; "));
        match rounds.nth(done) {
            Some(round) => {
                let calls =
                    round.split(' ').enumerate().map(|(place, word)| asked_call(done * 10 + place, word));
                returned(Content::text(""), calls.collect())
            }
            None => says(&answer_to(&prompt)),
        }
    }
}

/// `write?edit`: the tool, and what the person who is asked about it will say.
fn asked_call(place: usize, word: &str) -> AskedCall {
    let (tool, answer) = word.split_once('?').unwrap_or((word, ""));
    let arguments = match task_of(tool) {
        _ if matches!(tool, "transfer_to_sage" | "hand_back") => json!({}),
        Some(task) => json!({ "task": task }),
        None if answer.is_empty() => json!({ "place": place }),
        None => json!({ "place": place, "ask": answer }),
    };
    AskedCall {
        model_id: format!("call-{place}").into(),
        tool: tool.into(),
        arguments: Content::new(arguments),
    }
}

/// What the person will say about a call, if anybody is to be asked.
pub fn wanted_answer(arguments: &Content) -> Option<&str> {
    arguments.value().get("ask").and_then(Value::as_str)
}

fn says(text: &str) -> Later<Result<ModelReturned, ModelFailed>> {
    returned(Content::text(text), Vec::new())
}

fn returned(text: Content, calls: Vec<AskedCall>) -> Later<Result<ModelReturned, ModelFailed>> {
    Box::pin(std::future::ready(Ok(ModelReturned {
        text,
        reasoning: None,
        calls,
        usage: Default::default(),
    })))
}
