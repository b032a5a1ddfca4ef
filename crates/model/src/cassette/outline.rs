//! What a model saw, in outline: a digest and the beginning of each part. Enough to tell two requests apart and to say where they
//! differ, without the whole conversation on every line of a tape.

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Artifact;
use holdfast_contract::message::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ModelRequest;

/// How many letters of a part are shown.
const MAX_BEGINNING_CHARS: usize = 80;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outline(Vec<Part>);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    part: String,
    digest: Digest,
    begins: String,
}

/// The beginning is for people: the order of fields in it may differ.
impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        (&self.part, self.digest) == (&other.part, other.digest)
    }
}

impl Part {
    /// What a model sees of it, and how it begins for a person.
    fn new(part: String, seen: Value, begins: &str) -> Self {
        let begins = begins
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(MAX_BEGINNING_CHARS)
            .collect();
        Self { part, digest: Content::new(seen).digest(), begins }
    }
}

impl Outline {
    pub(super) fn of(ask: &ModelRequest) -> Self {
        let text = |part: String, content: &Content| Part::new(part, plain(content), &content.to_text());
        let mut parts = vec![text("the instructions".to_owned(), &ask.instructions)];
        parts.extend(
            ask.context.iter().zip(1..).map(|(content, number)| text(format!("context {number}"), content)),
        );
        for (message, number) in ask.messages.iter().zip(1..) {
            let (role, seen, begins) = message_seen(message);
            parts.push(Part::new(format!("message {number} ({role})"), seen, &begins));
        }
        for spec in &ask.tools {
            let seen = json!([spec.name, spec.description, plain(&spec.input_schema)]);
            parts.push(Part::new(format!("the tool `{}`", spec.name), seen, &spec.description));
        }
        Self(parts)
    }

    pub(super) fn digest(&self) -> Digest {
        let parts: Vec<_> = self.0.iter().map(|part| (&part.part, part.digest)).collect();
        Digest::of_json(&parts).unwrap_or_default()
    }

    /// Where the nearest of these differs: the one with the most parts in common.
    pub(super) fn nearest<'o>(&self, others: impl Iterator<Item = &'o Outline>) -> Option<String> {
        let common = |other: &&Outline| self.0.iter().filter(|part| other.0.contains(part)).count();
        let mut nearest: Option<&Outline> = None;
        for other in others {
            if nearest.is_none_or(|nearest| common(&other) > common(&nearest)) {
                nearest = Some(other);
            }
        }
        nearest.map(|nearest| self.difference(nearest))
    }

    fn difference(&self, taped: &Outline) -> String {
        let here = self.0.iter().find(|part| !taped.0.contains(part));
        let there = match here {
            Some(here) => taped.0.iter().find(|part| part.part == here.part),
            None => taped.0.iter().find(|part| !self.0.contains(part)),
        };
        match (here, there) {
            (Some(here), Some(there)) => {
                format!("{}: the tape has `{}`, the request `{}`", here.part, there.begins, here.begins)
            }
            (Some(here), None) => format!("{}, which the tape does not have: `{}`", here.part, here.begins),
            (None, Some(there)) => format!("{}, which only the tape has: `{}`", there.part, there.begins),
            (None, None) => "the order of its parts".to_owned(),
        }
    }
}

fn plain(content: &Content) -> Value {
    content.value().clone()
}

fn files(attached: &[Artifact]) -> Vec<Value> {
    attached.iter().map(|file| json!([file.name, file.media_type, file.content.digest()])).collect()
}

fn message_seen(message: &Message) -> (&'static str, Value, String) {
    match message {
        Message::User { text, attachments } if attachments.is_empty() => {
            ("user", plain(text), text.to_text())
        }
        Message::User { text, attachments } => {
            ("user", json!([plain(text), files(attachments)]), text.to_text())
        }
        Message::Note { text } => ("note", plain(text), text.to_text()),
        Message::Assistant { text, reasoning, calls } => {
            let asked: Vec<Value> =
                calls.iter().map(|call| json!([call.model_id, call.tool, plain(&call.arguments)])).collect();
            let called: Vec<String> = calls.iter().map(|call| call.tool.to_string()).collect();
            let begins = format!("{} {}", text.to_text(), called.join(" "));
            ("assistant", json!([plain(text), reasoning.as_ref().map(plain), asked]), begins)
        }
        Message::Tool { model_id, content, failed, attachments, edited, .. } => {
            let mut seen = vec![json!(model_id), plain(content), json!(failed)];
            if !attachments.is_empty() {
                seen.push(json!(files(attachments)));
            }
            if let Some(edited) = edited {
                seen.push(json!({ "edited": plain(edited) }));
            }
            ("tool", seen.into(), content.to_text())
        }
    }
}
