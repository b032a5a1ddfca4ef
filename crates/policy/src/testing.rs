//! What the tests of this crate share: calls that are quick to write, and policies from text.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::Generation;
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use serde_json::{Value, json};

use crate::{Policy, PolicyRequest, PolicyVerdict};

/// A call, with something sensible in every place.
pub(crate) struct Call {
    pub(crate) tool: ToolSpec,
    pub(crate) extension: ExtensionRef,
    pub(crate) arguments: Content,
    pub(crate) turn: TurnContext,
}

impl Call {
    pub(crate) fn new(tool: &str, effects: EffectClass) -> Self {
        Self {
            tool: ToolSpec { effects, ..ToolSpec::named(tool, "A tool.") },
            extension: ExtensionRef {
                id: "files".into(),
                version: "1.0.0".into(),
                digest: Digest::of(b"the content"),
                generation: Generation(1),
            },
            arguments: Content::new(json!({})),
            turn: TurnContext {
                session: "s".into(),
                turn: 1,
                agent: "main".into(),
                origin: Origin { channel: "cli".to_owned(), user: None },
                ..TurnContext::default()
            },
        }
    }

    pub(crate) fn with(mut self, arguments: Value) -> Self {
        self.arguments = Content::new(arguments);
        self
    }

    pub(crate) fn from(mut self, channel: &str, user: Option<&str>) -> Self {
        self.turn.origin = Origin { channel: channel.to_owned(), user: user.map(str::to_owned) };
        self
    }

    pub(crate) fn of(mut self, extension: &str) -> Self {
        self.extension.id = extension.into();
        self
    }

    pub(crate) fn request(&self) -> PolicyRequest<'_> {
        PolicyRequest {
            tool: &self.tool,
            extension: &self.extension,
            arguments: &self.arguments,
            turn: &self.turn,
        }
    }
}

/// The policy that a text describes.
pub(crate) fn policy(text: &str) -> Policy {
    Policy::parse(Path::new("policy.yaml"), text).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// What is wrong with a text, as a person sees it.
pub(crate) fn problems(text: &str) -> String {
    let problems = Policy::parse(Path::new("policy.yaml"), text).expect_err("there should be a problem");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A verdict in a few letters: `ask standard/exec`.
pub(crate) fn short(verdict: &PolicyVerdict) -> String {
    let word = match &verdict.decision {
        Decision::Allow => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Deny { .. } => "deny",
        other => panic!("a policy cannot decide {other:?}"),
    };
    format!("{word} {}", verdict.rule)
}

/// Decides, and makes sure on the way that the explanation and the stored document say the same.
pub(crate) fn decide(policy: &Policy, call: &Call) -> String {
    let verdict = policy.evaluate(&call.request());
    assert_eq!(policy.explain(&call.request()).verdict, verdict);
    let stored = Policy::from_document(policy.document()).unwrap();
    assert_eq!(stored.digest(), policy.digest());
    assert_eq!(stored.evaluate(&call.request()), verdict);
    short(&verdict)
}

/// The reason of a verdict.
pub(crate) fn reason(verdict: PolicyVerdict) -> String {
    match verdict.decision {
        Decision::Ask { reason } | Decision::Deny { reason } => reason,
        _ => String::new(),
    }
}

/// A text of this many letters.
pub(crate) fn long(letter: &str, times: usize) -> Arc<str> {
    letter.repeat(times).into()
}
