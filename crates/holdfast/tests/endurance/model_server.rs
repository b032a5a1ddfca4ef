//! A model server that fails now and then, as real ones do: it speaks the chat completions protocol on loopback.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::shared::read_request;

/// Of so many requests, three fail.
const FAULT_PERIOD: u64 = 25;

/// The server. It lives as long as the test.
pub struct ModelServer {
    pub port: u16,
}

impl ModelServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().map_while(Result::ok)) {
                std::thread::spawn(move || drop(serve(&stream, number)));
            }
        });
        Self { port }
    }
}

fn serve(mut stream: &TcpStream, number: u64) -> std::io::Result<()> {
    // A client that was killed leaves half a request.
    let Ok(request) = std::panic::catch_unwind(|| read_request(stream)) else { return Ok(()) };
    let Some((_, body)) = request.split_once("\r\n\r\n") else { return Ok(()) };
    let Ok(body) = serde_json::from_str::<Value>(body) else { return Ok(()) };
    let events = reply(&body);
    match number % FAULT_PERIOD {
        7 => return respond(stream, "500 Internal Server Error", "{\"error\":{\"message\":\"planted\"}}"),
        13 => return Ok(()),
        19 => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            )?;
            return write!(stream, "data: {}\n\n", events[0]);
        }
        _ => {}
    }
    if body["stream"] == true {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        for event in &events {
            write!(stream, "data: {event}\n\n")?;
            stream.flush()?;
        }
        return write!(stream, "data: [DONE]\n\n");
    }
    respond(stream, "400 Bad Request", "{\"error\":{\"message\":\"only streams\"}}")
}

fn respond(mut stream: &TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The chunks of an answer: a call of the tool that the user's message names, or, after its result, a sentence with the message's id.
fn reply(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let asked = messages.iter().rev().find(|message| message["role"] == "user").map(text).unwrap_or_default();
    let words: Vec<String> = asked.split_whitespace().map(str::to_owned).collect();
    let (id, tool) = match words.as_slice() {
        [id, tool, ..] => (id.clone(), tool.clone()),
        _ => (asked.clone(), "none".to_owned()),
    };
    let called = messages.last().is_some_and(|message| message["role"] == "tool");
    let chunk = |delta: Value, finish: Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    if called || tool == "none" {
        return vec![
            chunk(json!({ "role": "assistant", "content": "done " }), Value::Null),
            chunk(json!({ "content": id }), Value::Null),
            chunk(json!({}), json!("stop")),
        ];
    }
    let arguments = json!({ "id": id }).to_string();
    let call = json!({ "index": 0, "id": format!("call-{id}"), "type": "function",
        "function": { "name": tool, "arguments": arguments } });
    vec![
        chunk(json!({ "role": "assistant", "tool_calls": [call] }), Value::Null),
        chunk(json!({}), json!("tool_calls")),
    ]
}
