//! Providers over real sockets: one scenario per test, each against every shape of API.
//!
//! The server is `@copilotkit/aimock`, which answers as the providers do. A few cells it cannot play, such as signed reasoning and
//! keys that are repeated in errors, are played by a server of a few lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[path = "providers/asking.rs"]
mod asking;
#[path = "providers/servers.rs"]
mod servers;

use std::time::Duration;

use asking::{PLANTED, SHAPES, Shape, ask, ask_after_calls, ask_with, settings};
use holdfast_contract::content::Content;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::Usage;
use holdfast_contract::problem::Code;
use holdfast_model::offline::Offline;
use holdfast_model::provider::{
    MAX_ANSWER_BYTES, MAX_EVENT_BYTES, MAX_STREAM_BYTES, Provider, ProviderSettings,
};
use holdfast_model::trial;
use serde_json::{Value, json};
use servers::{Aimock, Canned};

fn model(shape: &Shape, base: &str) -> Provider {
    Provider::new(settings(shape, base)).unwrap()
}

#[tokio::test]
async fn text_streams_and_is_paid_for() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let settings =
            ProviderSettings { price_in: Some(2.0), price_out: Some(10.0), ..settings(shape, &server.base) };
        let answered = ask(&Provider::new(settings).unwrap(), &["greet me"]).await;
        let returned = answered.returned();
        assert_eq!(returned.text.to_text(), "Good day to you, and welcome aboard.", "{shape:?}");
        assert_eq!(answered.text(), returned.text.to_text(), "{shape:?}");
        assert!(answered.deltas.len() > 2, "{shape:?} came at once");
        // Aimock cannot be told what Ollama counts.
        let expected = match shape.provider {
            "ollama" => Usage::default(),
            _ => Usage { input_tokens: 1_100, output_tokens: 50, cost_micros: 2_700 },
        };
        assert_eq!(returned.usage, expected, "{shape:?}");
    }
}

#[tokio::test]
async fn two_calls_at_once_and_then_an_answer() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let model = model(shape, &server.base);
        let first = ask(&model, &["read both"]).await;
        let returned = first.returned();
        let calls: Vec<(String, Value)> = returned
            .calls
            .iter()
            .map(|call| (call.tool.to_string(), call.arguments.value().clone()))
            .collect();
        let expected = [("fs.read".to_owned(), json!({ "path": "a.txt" })), ("clock".to_owned(), json!({}))];
        assert_eq!(calls, expected, "{shape:?}");
        assert_ne!(returned.calls[0].model_id, returned.calls[1].model_id, "{shape:?}");
        let second = first.then_results(&model, &["the text", "noon"]).await;
        assert_eq!(second.returned().text.to_text(), "Both are read.", "{shape:?}");
        let sent = server.last_request().await;
        for expected in shape.handed_back {
            assert!(sent.contains(expected), "{shape:?}: {expected} is not in {sent}");
        }
    }
}

#[tokio::test]
async fn reasoning_streams_apart_from_the_answer() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let answered = ask(&model(shape, &server.base), &["think first"]).await;
        assert_eq!(answered.returned().text.to_text(), "Forty-two.", "{shape:?}");
        assert_eq!(answered.reasoning(), "Six times seven.", "{shape:?}");
        let kept = answered.returned().reasoning.as_ref().expect("the reasoning is kept").to_text();
        assert!(kept.contains("Six times seven."), "{shape:?}: {kept}");
    }
}

#[tokio::test]
async fn too_many_requests_pass_and_say_how_long_to_wait() {
    for shape in SHAPES {
        let server = Aimock::start(None).await;
        let model = model(shape, &server.base);
        let failed = ask(&model, &["come in"]).await.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelRateLimit, true),
            "{shape:?}: {failed:?}"
        );
        assert!(failed.fault.message.contains("wait 7 s"), "{shape:?}: {failed:?}");
        assert_eq!(failed.retry_after, Some(Millis(7_000)), "{shape:?}");
        assert_eq!(
            ask(&model, &["come in"]).await.returned().text.to_text(),
            "Now there is room.",
            "{shape:?}"
        );
    }
}

#[tokio::test]
async fn a_failing_server_is_worth_another_attempt_and_an_unknown_model_is_not() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let model = model(shape, &server.base);
        let failed = ask(&model, &["fall over"]).await.failed();
        assert_eq!((failed.fault.code, failed.retryable), (Code::ModelFailed, true), "{shape:?}: {failed:?}");
        assert!(failed.fault.message.contains("The engine is on fire"), "{shape:?}: {failed:?}");
        let failed = ask(&model, &["no such model"]).await.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelUnknown, false),
            "{shape:?}: {failed:?}"
        );
        assert!(failed.fault.message.contains(shape.model), "{shape:?}: {failed:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let answered = ask(&model(shape, &server.base), &["tell a long story"]).await;
        let failed = answered.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelInterrupted, true),
            "{shape:?}: {failed:?}"
        );
        assert!(!answered.deltas.is_empty(), "{shape:?} said nothing before it broke off");
    }
}

/// The stream ends in good order, but in the middle of the answer. Aimock only cuts connections, so this is canned.
#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_no_answer() {
    for shape in SHAPES {
        let server = Canned::start(vec![shape.stream(false)]).await;
        let failed = ask(&model(shape, &server.base), &["hello"]).await.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelInterrupted, true),
            "{shape:?}: {failed:?}"
        );
    }
}

// Finding L10.
#[tokio::test]
async fn an_answer_that_does_not_end_is_cut_off_with_a_code() {
    for shape in SHAPES {
        let server = Canned::start(vec![shape.endless(MAX_ANSWER_BYTES + (1 << 20))]).await;
        let answered = ask(&model(shape, &server.base), &["hello"]).await;
        let failed = answered.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelAnswerSize, false),
            "{shape:?}: {failed:?}"
        );
        assert!(answered.text().len() <= MAX_ANSWER_BYTES, "{shape:?}");
    }
}

// Finding L10: the library keeps an event until it ends.
#[tokio::test]
async fn an_event_that_does_not_end_is_cut_off_with_a_code() {
    for shape in SHAPES {
        // With and without line breaks, which end no server-sent event.
        let pieces = [format!("data: {}", "x".repeat(64 << 10)), format!("data: {}\n", "x".repeat(64 << 10))];
        for piece in pieces.into_iter().take(if shape.provider == "ollama" { 1 } else { 2 }) {
            let mut server = Canned::endless(200, shape.content_type, piece).await;
            let failed = ask(&model(shape, &server.base), &["hello"]).await.failed();
            assert_eq!(
                (failed.fault.code, failed.retryable),
                (Code::ModelAnswerSize, false),
                "{shape:?}: {failed:?}"
            );
            let limit = format!("more than {} MiB", MAX_EVENT_BYTES >> 20);
            assert!(failed.fault.message.contains(&limit), "{shape:?}: {failed:?}");
            server.closed().await;
        }
    }
}

// Finding L10: events that say nothing are not counted as text.
#[tokio::test]
async fn events_without_an_end_are_cut_off_with_a_code() {
    let shape = &SHAPES[0];
    let mut server = Canned::endless(200, shape.content_type, ": ping\n\n".repeat(8 << 10)).await;
    let failed = ask(&model(shape, &server.base), &["hello"]).await.failed();
    assert_eq!((failed.fault.code, failed.retryable), (Code::ModelAnswerSize, false), "{failed:?}");
    let limit = format!("more than {} MiB", MAX_STREAM_BYTES >> 20);
    assert!(failed.fault.message.contains(&limit), "{failed:?}");
    server.closed().await;
}

// Finding L10: the body of an error is read for its message.
#[tokio::test]
async fn the_body_of_an_error_that_does_not_end_is_cut_off() {
    for shape in SHAPES {
        for (status, code) in [(500, Code::ModelFailed), (401, Code::ModelKey), (400, Code::ModelRefused)] {
            let mut server =
                Canned::endless(status, "text/plain", "the engine is on fire ".repeat(1000)).await;
            let failed = ask(&model(shape, &server.base), &["hello"]).await.failed();
            assert_eq!(failed.fault.code, code, "{shape:?}: {failed:?}");
            assert!(failed.fault.message.contains("the engine is on fire"), "{shape:?}: {failed:?}");
            assert!(failed.fault.message.len() < 1000, "{shape:?}: {failed:?}");
            server.closed().await;
        }
    }
}

#[tokio::test]
async fn a_wrong_key_says_which_key_and_not_the_key() {
    let server = Aimock::start(Some("the-right-key")).await;
    for shape in SHAPES {
        let failed = ask(&model(shape, &server.base), &["greet me"]).await.failed();
        assert_eq!((failed.fault.code, failed.retryable), (Code::ModelKey, false), "{shape:?}: {failed:?}");
        assert!(failed.fault.message.contains("check the key in PLANTED_KEY"), "{shape:?}: {failed:?}");
        assert!(!format!("{failed:?}").contains(PLANTED), "{shape:?}");
    }
}

/// Providers repeat what they were sent. Aimock does not, so this is canned.
#[tokio::test]
async fn a_key_that_the_provider_repeats_is_taken_out() {
    // The second puts the key where an excerpt of the body would be cut.
    let bodies = [
        format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {PLANTED}.\"}}}}"),
        format!("{}{PLANTED}", "x".repeat(290)),
    ];
    for (shape, status) in
        SHAPES.iter().flat_map(|shape| [401, 403, 429, 500, 400].map(|status| (shape, status)))
    {
        for body in &bodies {
            let server = Canned::start(vec![Canned::answer(status, "application/json", body)]).await;
            let model = model(shape, &server.base);
            let failed = ask(&model, &["hello"]).await.failed();
            let said = format!("{failed:?} {model:?}");
            assert!(!said.contains("planted"), "{shape:?} {status}: {said}");
        }
    }
}

/// A key in a header would travel along.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for shape in SHAPES {
        let elsewhere = Canned::start(vec![shape.stream(true)]).await;
        let moved =
            format!("HTTP/1.1 307 Moved\r\nlocation: {}/\r\ncontent-length: 0\r\n\r\n", elsewhere.base);
        let server = Canned::start(vec![moved]).await;
        let failed = ask(&model(shape, &server.base), &["hello"]).await.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelUnreachable, false),
            "{shape:?}: {failed:?}"
        );
        assert_eq!(elsewhere.requests().len(), 0, "{shape:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_worth_another_attempt() {
    for shape in SHAPES {
        let failed = ask(&model(shape, "http://127.0.0.1:1"), &["hello"]).await.failed();
        assert_eq!(
            (failed.fault.code, failed.retryable),
            (Code::ModelUnreachable, true),
            "{shape:?}: {failed:?}"
        );
        // Finding B21: a provider is called what the settings call it.
        assert!(!failed.fault.message.contains("openai_resp"), "{shape:?}: {failed:?}");
    }
}

#[tokio::test]
async fn giving_up_closes_the_connection() {
    for shape in SHAPES {
        let mut server = Canned::stalling(shape.stream(false)).await;
        let model = model(shape, &server.base);
        let asking = tokio::spawn(async move { ask(&model, &["hello"]).await });
        server.began().await;
        asking.abort();
        let closed = tokio::time::timeout(Duration::from_secs(60), server.closed()).await;
        assert!(closed.is_ok(), "{shape:?}: the connection stays open");
    }
}

/// Aimock signs nothing, or writes down requests without signatures, so this is canned.
#[tokio::test]
async fn signed_reasoning_goes_back_as_it_came() {
    let events = |events: &[Value]| -> String {
        let line = |event: &Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
        };
        Canned::answer(200, "text/event-stream", &events.iter().map(line).collect::<String>())
    };
    let encrypted =
        json!({ "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "c2lnbmF0dXJl" });
    let call =
        json!({ "type": "function_call", "id": "f", "call_id": "a", "name": "clock", "arguments": "{}" });
    let table = [
        (
            "anthropic",
            events(&[
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "Look at the clock." } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "c2lnbmF0dXJl" } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "redacted_thinking", "data": "aGlkZGVu" } }),
                json!({ "type": "content_block_stop", "index": 1 }),
                json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "a", "name": "clock", "input": {} } }),
                json!({ "type": "content_block_stop", "index": 2 }),
                json!({ "type": "message_stop" }),
            ]),
            json!([
                { "type": "thinking", "thinking": "Look at the clock.", "signature": "c2lnbmF0dXJl" },
                { "type": "redacted_thinking", "data": "aGlkZGVu" },
                { "type": "tool_use", "id": "a", "name": "clock", "input": {} },
            ]),
            "/messages/1/content",
        ),
        (
            "gemini",
            events(&[
                json!({ "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
                { "functionCall": { "name": "clock", "args": {} }, "thoughtSignature": "c2lnbmF0dXJl" },
            ] } }] }),
            ]),
            json!([{ "functionCall": { "name": "clock", "args": {} }, "thoughtSignature": "c2lnbmF0dXJl" }]),
            "/contents/1/parts",
        ),
        (
            "openai_resp",
            events(&[
                json!({ "type": "response.output_item.done", "output_index": 0, "item": encrypted }),
                json!({ "type": "response.output_item.added", "output_index": 1, "item": call }),
                json!({ "type": "response.output_item.done", "output_index": 1, "item": call }),
                json!({ "type": "response.completed", "response": { "id": "r", "status": "completed", "model": "m", "output": [encrypted, call] } }),
            ]),
            json!({ "type": "reasoning", "summary": [], "encrypted_content": "c2lnbmF0dXJl" }),
            "/input/1",
        ),
    ];
    for (provider, answer, expected, place) in table {
        let shape = SHAPES.iter().find(|shape| shape.provider == provider).unwrap();
        let server = Canned::start(vec![answer, shape.stream(true)]).await;
        let model = model(shape, &server.base);
        let asked = ask(&model, &["what time is it?"]).await;
        asked.then_results(&model, &["noon"]).await.returned();
        let sent = server.requests().pop().unwrap();
        let sent: Value = serde_json::from_str(sent.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(sent.pointer(place), Some(&expected), "{provider}: {sent:#}");
    }
}

#[tokio::test]
async fn reasoning_of_one_provider_is_not_shown_to_another() {
    let server = Aimock::start(None).await;
    let shape = |provider: &str| SHAPES.iter().find(|shape| shape.provider == provider).unwrap();
    let asked = ask(&model(shape("anthropic"), &server.base), &["read both"]).await;
    asked.then_results(&model(shape("openai"), &server.base), &["a", "b"]).await.returned();
    let sent = server.last_request().await;
    assert!(!sent.contains("Two calls will do.") && !sent.contains("c2lnbmF0dXJl"), "{sent}");
}

#[tokio::test]
async fn a_trial_says_how_a_model_does() {
    let server = Canned::start(vec![SHAPES[0].stream(true)]).await;
    let report = trial::test(&model(&SHAPES[0], &server.base)).await;
    assert!(report.failed.is_none() && report.streamed && report.first <= Some(report.latency), "{report:?}");
    let report = trial::test(&model(&SHAPES[0], "http://127.0.0.1:1")).await;
    assert_eq!(report.failed.unwrap().fault.code, Code::ModelUnreachable);
    assert!(trial::test(&Offline).await.failed.is_none());
}

/// A picture, a document, a text and an archive.
fn files() -> Vec<Artifact> {
    let file = |name: &str, media_type: &str, content: Value| Artifact {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        content: Content::new(content),
    };
    vec![
        file("cat.png", "image/png", json!({ "base64": "iVBORw0K" })),
        file("plan.pdf", "application/pdf", json!({ "base64": "JVBERi0x" })),
        file("notes.txt", "text/plain", json!("the blue door")),
        file("all.zip", "application/zip", json!({ "base64": "UEsDBAAA" })),
    ]
}

#[tokio::test]
async fn files_go_with_a_message_as_each_provider_takes_them() {
    for shape in SHAPES {
        let expected: &[&str] = match shape.provider {
            "openai" => &[
                r#"{"image_url":{"url":"data:image/png;base64,iVBORw0K"},"type":"image_url"}"#,
                r#""file_data":"data:application/pdf;base64,JVBERi0x""#,
            ],
            "openai_resp" => &[
                r#""image_url":"data:image/png;base64,iVBORw0K""#,
                r#""file_data":"data:application/pdf;base64,JVBERi0x""#,
            ],
            "anthropic" => &[
                r#"{"source":{"data":"iVBORw0K","media_type":"image/png","type":"base64"},"type":"image"}"#,
                r#"{"data":"JVBERi0x","media_type":"application/pdf","type":"base64"}"#,
            ],
            "gemini" => &[
                r#"{"inline_data":{"data":"iVBORw0K","mime_type":"image/png"}}"#,
                r#"{"inline_data":{"data":"JVBERi0x","mime_type":"application/pdf"}}"#,
            ],
            _ => &[r#""images":["iVBORw0K"]"#, "`plan.pdf` (application/pdf, 6 bytes). You do not see it"],
        };
        let server = Canned::start(vec![shape.stream(true)]).await;
        let answered = ask_with(&model(shape, &server.base), "what is this?", files()).await;
        assert!(answered.text().starts_with("Well, well"), "{shape:?}");
        let sent = sorted(&server.requests()[0]);
        let in_words = [
            "what is this?",
            r#"<file name=\"notes.txt\">\nthe blue door\n</file>"#,
            "`all.zip` (application/zip, 6 bytes). You do not see it: this model's provider does not take files of this type.",
        ];
        for part in expected.iter().chain(&in_words) {
            assert!(sent.contains(part), "{shape:?}: {part} is not in {sent}");
        }
    }
}

#[tokio::test]
async fn files_that_tools_make_stand_behind_their_results_as_each_provider_takes_them() {
    for shape in SHAPES {
        let server = Canned::start(vec![shape.stream(true)]).await;
        ask_after_calls(&model(shape, &server.base), files()).await.returned();
        let sent = sorted(&server.requests()[0]);
        let place =
            |part: &str| sent.find(part).unwrap_or_else(|| panic!("{shape:?}: {part} is not in {sent}"));
        let behind = [
            "Files that the tools have made",
            "iVBORw0K",
            "A tool made `notes.txt` (text/plain, 13 bytes). You do not see it: it is a text for the user.",
            "A tool made `all.zip` (application/zip, 6 bytes). You do not see it",
        ];
        for part in behind {
            assert!(place("seen b") < place(part), "{shape:?}: {part} in {sent}");
        }
        assert!(!sent.contains("the blue door"), "{sent}");
    }
}

/// The body of a request, with its fields in order.
fn sorted(request: &str) -> String {
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let value: std::collections::BTreeMap<String, Value> = serde_json::from_str(body).unwrap();
    Content::of(&value).json().to_owned()
}

#[tokio::test]
async fn a_picture_is_answered_by_a_server_that_knows_each_api() {
    let server = Aimock::start(None).await;
    for shape in SHAPES {
        let picture = files().into_iter().take(1).collect();
        let answered = ask_with(&model(shape, &server.base), "greet me", picture).await;
        assert_eq!(answered.returned().text.to_text(), "Good day to you, and welcome aboard.", "{shape:?}");
    }
}
