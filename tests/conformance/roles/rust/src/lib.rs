//! Every role beside tools, hooks, agents and commands, in Rust. Each function fails with what it was given, so that a test sees it.

use holdfast_extension::{
    Choice, Content, Delivery, Event, Failure, File, Setup, StreamingChannel, Value, execute_task, json,
    on_event, run_background, send_file, send_message, send_question, send_to_user, setup, streaming_channel,
};

fn given(what: Value) -> Result<(), Failure> {
    Err(Failure::Failed(what.to_string()))
}

#[execute_task]
fn tidies(task: String) -> Option<Content> {
    (task != "nothing").then(|| json!({ "text": task }).into())
}

#[on_event]
fn takes(event: Event) -> Result<(), Failure> {
    let payload: Value = event.payload.parse().unwrap_or_default();
    given(json!([event.id, event.topic, payload, event.key, event.correlation, event.attempt, event.repeat]))
}

#[run_background]
fn background() -> Result<(), Failure> {
    given(json!(["over"]))
}

#[send_to_user]
fn to_user(user: String, text: String, delivery: Delivery) -> Result<(), Failure> {
    given(json!([user, text, delivery.id, delivery.repeat]))
}

#[send_message]
fn message(text: String, delivery: Delivery) -> Result<(), Failure> {
    given(json!([text, delivery.id, delivery.repeat]))
}

#[send_file]
fn sends_file(user: Option<String>, file: File, delivery: Delivery) -> Result<(), Failure> {
    given(json!([user, file.name, file.media_type, file.content, delivery.id]))
}

#[send_question]
fn question(user: String, text: String, choices: Vec<Choice>, delivery: Delivery) -> Result<(), Failure> {
    let choices: Vec<_> = choices.into_iter().map(|choice| json!([choice.label, choice.answer])).collect();
    given(json!([user, text, choices, delivery.id]))
}

struct Screen;

#[streaming_channel]
impl StreamingChannel for Screen {
    fn start(user: String, id: String) -> Result<(), Failure> {
        given(json!([user, id]))
    }
    fn chunk(user: String, id: String, text: String) -> Result<(), Failure> {
        given(json!([user, id, text]))
    }
    fn status(user: String, id: String, status: String) -> Result<(), Failure> {
        given(json!([user, id, status]))
    }
    fn end(user: String, id: String, text: String, delivery: Delivery) -> Result<(), Failure> {
        given(json!([user, id, text, delivery.id]))
    }
}

struct Parameters;

#[setup]
impl Setup for Parameters {
    fn schema() -> Value {
        json!([{ "name": "token", "description": "The token.", "secret": true, "required": true }])
    }
    fn apply(values: Value) -> Result<(), Failure> {
        given(json!([values]))
    }
    fn complete() -> Result<String, Failure> {
        Ok("ready".into())
    }
}
