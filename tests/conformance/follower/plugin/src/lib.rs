//! The follower as a native plugin.

use std::sync::{Arc, Mutex};

use holdfast_plugin::{Call, Failure, Plugin, export};
use serde_json::{Value, json};

struct Follower;

impl Plugin for Follower {
    fn describe(_: &Value) -> Result<(Self, Value), Failure> {
        let schema = json!({
            "type": "object",
            "properties": { "agent": { "type": "string" }, "task": { "type": "string" } },
            "required": ["agent", "task"],
        });
        let follow = json!({
            "name": "follow",
            "description": "Follows an agent.",
            "effects": "write",
            "input_schema": schema,
        });
        Ok((Self, json!({ "protocol": "0.1", "tools": [follow], "requires": ["update"] })))
    }

    fn call(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let listening = told.clone();
        let updated = move |update: &Value| {
            let told = match update["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("{}{}", update["tool"].as_str().unwrap_or_default(), update["arguments"]),
            };
            listening.lock().unwrap().push(told);
        };
        let answer = call.ask_streamed("agent.invoke", call.params["arguments"].clone(), updated)?;
        call.ask("clock", Value::Null)?;
        let told = told.lock().unwrap().join(" ");
        Ok(format!("{told} = {}", answer.as_str().unwrap_or_default()).into())
    }
}

export!(Follower);
