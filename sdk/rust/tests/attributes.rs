//! What the attributes make of functions: schemas, descriptions, calls. On the host, where the lists are the same as in a guest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use holdfast_extension::private::{Tool, inventory};
use holdfast_extension::{
    Argument, Choice, Content, Decision, Delivery, Effects, Event, Failure, File, Json, Setup,
    StreamingChannel, ToolCall, Value, execute_task, json, on_event, run_background, send_file, send_message,
    send_question, send_to_user, setup, streaming_channel, timers, tool, tool_gate,
};

#[derive(Argument)]
enum Mode {
    Fast,
    VerySlow,
}

#[derive(Argument)]
struct Point {
    /// To the east.
    x: f64,
    y: Option<i32>,
}

/// Adds numbers.
///
/// All of them.
#[tool(effects = "pure", timeout_ms = 5000)]
fn add(
    /// The first.
    a: i32,
    b: Option<u8>,
    mode: Mode,
    points: Vec<Point>,
) -> Json<Value> {
    let mode = match mode {
        Mode::Fast => 1,
        Mode::VerySlow => 2,
    };
    let reach: f64 = points.iter().map(|point| point.x + f64::from(point.y.unwrap_or(0))).sum();
    Json(json!({ "sum": a + i32::from(b.unwrap_or(0)) + mode, "reach": reach }))
}

#[tool(name = "speak", description = "Says it.")]
fn say(text: String) -> Result<String, &'static str> {
    if text.is_empty() { Err("nothing to say") } else { Ok(text) }
}

#[on_event]
fn takes(event: Event) -> Result<(), Failure> {
    if event.repeat { Err(Failure::Failed(event.topic)) } else { Ok(()) }
}

#[send_to_user]
fn sends(user: String, text: String, delivery: Delivery) -> Result<(), Failure> {
    if delivery.repeat { Err(Failure::Denied(format!("{user} has {text}"))) } else { Ok(()) }
}

#[send_message]
fn broadcasts(text: String, delivery: Delivery) -> Result<(), Failure> {
    if delivery.id.is_empty() { Err(Failure::Failed(text)) } else { Ok(()) }
}

#[send_file]
fn files(user: Option<String>, file: File, delivery: Delivery) -> Result<(), Failure> {
    if delivery.id.is_empty() || user.is_none() { Err(Failure::Failed(file.name)) } else { Ok(()) }
}

#[send_question]
fn asks(user: String, text: String, choices: Vec<Choice>, delivery: Delivery) -> Result<(), Failure> {
    let labels: Vec<String> = choices.into_iter().map(|choice| choice.label).collect();
    if delivery.repeat { Err(Failure::Failed(format!("{user}: {text} {labels:?}"))) } else { Ok(()) }
}

struct Screen;

#[streaming_channel]
impl StreamingChannel for Screen {
    fn start(user: String, id: String) -> Result<(), Failure> {
        if id.is_empty() { Err(Failure::Failed(user)) } else { Ok(()) }
    }
    fn chunk(_user: String, _id: String, text: String) -> Result<(), Failure> {
        if text.is_empty() { Err("nothing to show".into()) } else { Ok(()) }
    }
    fn status(user: String, id: String, status: String) -> Result<(), Failure> {
        Self::chunk(user, id, status)
    }
    fn end(user: String, id: String, text: String, delivery: Delivery) -> Result<(), Failure> {
        if delivery.id.is_empty() { Err("which one?".into()) } else { Self::chunk(user, id, text) }
    }
}

#[execute_task]
fn tidies(task: String) -> Option<Content> {
    (task == "tidy").then(|| json!({ "text": "tidied up" }).into())
}

#[run_background]
fn ticks() -> Result<(), Failure> {
    loop {
        timers::wait(1_000)?;
    }
}

struct Token;

#[setup]
impl Setup for Token {
    fn schema() -> Value {
        json!([{ "name": "token", "description": "The bot's token.", "secret": true, "required": true }])
    }
    fn apply(values: Value) -> Result<(), Failure> {
        if values["token"].is_string() { Ok(()) } else { Err("a token is a text".into()) }
    }
    fn complete() -> Result<String, Failure> {
        Err(Failure::NotFound("the token is missing".to_owned()))
    }
}

#[test]
fn what_belongs_together_is_one_impl() {
    assert_eq!(Token::schema()[0]["name"], "token");
    assert!(Token::apply(json!({ "token": "secret:token" })).is_ok() && Token::complete().is_err());
    let (user, id, text) = ("ada".to_owned(), "bus.00/1".to_owned(), "hello".to_owned());
    assert!(
        Screen::start(user.clone(), id.clone()).is_ok()
            && Screen::start(user.clone(), String::new()).is_err()
    );
    assert!(Screen::status(user.clone(), id.clone(), text.clone()).is_ok());
    assert!(Screen::end(user, id, text, Delivery { id: "bus.01/2".to_owned(), repeat: false }).is_ok());
    assert!(tidies("tidy".to_owned()).is_some() && tidies("dust".to_owned()).is_none());
}

#[tool_gate]
fn gate(call: ToolCall) -> Result<Decision, Failure> {
    if call.arguments()["force"] == true { Err("no force".into()) } else { Ok(Decision::Ask(call.tool)) }
}

fn named(name: &str) -> &'static Tool {
    inventory::iter::<Tool>.into_iter().find(|tool| tool.name == name).unwrap()
}

fn call(name: &str, arguments: Value) -> Result<Content, Failure> {
    (named(name).call)(arguments)
}

#[test]
fn a_tool_is_described_by_its_function() {
    let add = named("add");
    assert_eq!((add.description, add.timeout_ms), ("Adds numbers.\n\nAll of them.", Some(5000)));
    assert!(matches!(add.effects, Effects::Pure));
    let integer =
        |minimum: i64, maximum: i64| json!({ "type": "integer", "minimum": minimum, "maximum": maximum });
    let mut first = integer(i32::MIN.into(), i32::MAX.into());
    first["description"] = "The first.".into();
    let point = json!({
        "type": "object",
        "properties": {
            "x": { "type": "number", "description": "To the east." },
            "y": integer(i32::MIN.into(), i32::MAX.into()),
        },
        "required": ["x"],
        "additionalProperties": false,
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "a": first,
            "b": integer(0, 255),
            "mode": { "type": "string", "enum": ["fast", "very_slow"] },
            "points": { "type": "array", "items": point },
        },
        "required": ["a", "mode", "points"],
        "additionalProperties": false,
    });
    assert_eq!((add.input_schema)(), expected);
    let speak = named("speak");
    assert_eq!(speak.description, "Says it.");
    assert!(matches!(speak.effects, Effects::Unknown));
}

#[test]
fn a_call_reads_its_arguments() {
    let given = json!({ "a": 1, "mode": "very_slow", "points": [{ "x": 1.5, "y": 2 }] });
    let Ok(Content::Json(answer)) = call("add", given) else { panic!("no answer") };
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({ "sum": 3, "reach": 3.5 }));
    assert!(matches!(call("speak", json!({ "text": "hi" })), Ok(Content::Text(text)) if text == "hi"));
}

#[test]
fn what_does_not_fit_is_told() {
    let wrong = [
        (json!({ "mode": "fast", "points": [] }), "`a`: it is missing"),
        (json!({ "a": 1, "mode": "slow", "points": [] }), "`mode`: it must be one of fast, very_slow"),
        (json!({ "a": 1, "mode": "fast", "points": [{}] }), "`points`: `x`: it is missing"),
        (
            json!({ "a": 1, "b": 256, "mode": "fast", "points": [] }),
            "`b`: it must be a whole number from 0 to 255",
        ),
    ];
    for (arguments, expected) in wrong {
        match call("add", arguments) {
            Err(Failure::InvalidArguments(text)) => assert_eq!(text, expected),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        matches!(call("speak", json!({ "text": "" })), Err(Failure::Failed(text)) if text == "nothing to say")
    );
}

#[test]
fn a_hook_stays_a_function() {
    let call = |arguments: &str| ToolCall { id: 1, tool: "x".to_owned(), arguments: arguments.to_owned() };
    assert!(matches!(gate(call("{}")), Ok(Decision::Ask(tool)) if tool == "x"));
    assert!(gate(call("{\"force\":true}")).is_err());
}

#[test]
fn channels_and_subscribers_are_functions() {
    let delivery = |repeat| Delivery { id: "bus.00/1".to_owned(), repeat };
    assert!(sends("ada".to_owned(), "hello".to_owned(), delivery(false)).is_ok());
    assert!(sends("ada".to_owned(), "hello".to_owned(), delivery(true)).is_err());
    assert!(broadcasts("hello".to_owned(), delivery(false)).is_ok());
    let file =
        || File { name: "a.txt".to_owned(), media_type: "text/plain".to_owned(), content: b"hi".to_vec() };
    assert!(files(Some("ada".to_owned()), file(), delivery(false)).is_ok());
    assert!(files(None, file(), delivery(false)).is_err());
    let event = Event {
        id: "bus.00/1".to_owned(),
        topic: "shop.sold".to_owned(),
        payload: "{}".to_owned(),
        key: None,
        correlation: None,
        attempt: 1,
        repeat: false,
    };
    assert!(takes(event).is_ok());
}
