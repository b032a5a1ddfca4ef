//! A stream as a story: one frame a line, the way golden files keep it.

use std::fmt::Write;

use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Frame, FrameSource};
use serde_json::Value;

/// The frames, one a line: place, kind, what it answers, who caused it, and the body. Digests are shortened. The place of the
/// registry in the system stream is left out: extensions come up at their own pace, so it is not the same every time.
pub fn story(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames {
        let envelope = &frame.envelope;
        let cause = envelope.cause.map(|cause| format!("<- {cause}")).unwrap_or_default();
        let body = frame.body.as_ref().map(|body| shorten(body).to_string());
        let body = body.unwrap_or_else(|| "(erased)".to_owned());
        let at = envelope.at.0 - super::clock::EPOCH.0;
        let place = format!(
            "{:>3} {:<18} {:<6} {:<14}",
            envelope.seq.0,
            envelope.kind,
            cause,
            source(&envelope.source)
        );
        let late = if at > 0 { format!(" +{at}ms") } else { String::new() };
        writeln!(text, "{place}{late} {body}").unwrap();
    }
    text
}

fn source(source: &FrameSource) -> String {
    match source {
        FrameSource::Kernel => "kernel".to_owned(),
        FrameSource::Host => "host".to_owned(),
        FrameSource::Policy(_) => "policy".to_owned(),
        FrameSource::Surface(name) => format!("surface:{name}"),
        FrameSource::Model(name) => format!("model:{name}"),
        FrameSource::Extension(it) => format!("{}@{}", it.id, it.generation.0),
    }
}

fn shorten(value: &Value) -> Value {
    match value {
        Value::String(text) if Digest::parse(text).is_some() => Value::String(format!("#{}", &text[..8])),
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::Object(fields)
            if fields.len() == 2 && fields.contains_key("seq") && fields.contains_key("digest") =>
        {
            shorten(&fields["digest"])
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), shorten(value))).collect(),
        other => other.clone(),
    }
}

/// The kinds, in order: for assertions on the course of events alone.
pub fn kinds(frames: &[Frame]) -> Vec<FrameKind> {
    frames.iter().map(|frame| frame.envelope.kind).collect()
}

/// The bodies of one kind, in order.
pub fn bodies(frames: &[Frame], kind: FrameKind) -> Vec<Value> {
    let of_kind = frames.iter().filter(|frame| frame.envelope.kind == kind);
    of_kind.map(|frame| frame.body.clone().unwrap_or_default()).collect()
}
