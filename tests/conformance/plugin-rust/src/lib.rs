//! The conformance extension as a native plugin: every role and every hook point, each doing what its directive says.
//! `tests/tests/conformance/directive.rs` says what a directive is.

use holdfast_plugin::{Call, Failure, Plugin, export};
use serde_json::{Value, json};

const POINTS: &[&str] = &[
    "session_start",
    "turn_start",
    "input_normalise",
    "sanitize_input",
    "guard_input",
    "context",
    "model_route",
    "guard_chunk",
    "tool_modify",
    "tool_gate",
    "tool_after",
    "sanitize_result",
    "guard_result",
    "sanitize_output",
    "guard_output",
    "response_process",
    "compaction_before",
    "compaction_provide",
    "session_cancel",
    "turn_end",
    "session_end",
];
const ALLOWING: &[&str] = &["guard_input", "guard_chunk", "tool_gate", "guard_result", "guard_output"];
const OBEYS: &str = "Does what it is told.";

struct Conformance {
    config: Value,
}

impl Plugin for Conformance {
    fn describe(hello: &Value) -> Result<(Self, Value), Failure> {
        let typed = json!({
            "name": "typed",
            "description": "Takes a count and promises text.",
            "effects": "pure",
            "input_schema": {
                "type": "object",
                "properties": { "count": { "type": "integer" } },
                "required": ["count"],
            },
            "output_schema": { "type": "string" },
            "render": { "as": "table" },
        });
        let change = json!({
            "name": "change",
            "description": "Says that it changes things.",
            "effects": "write",
            "timeout_ms": 2000,
        });
        let welcome = json!({
            "protocol": "0.1",
            "tools": [{ "name": "act", "description": OBEYS, "effects": "pure" }, change, typed],
            "hooks": POINTS,
            "agent": { "name": "helper", "description": "Helps in words." },
            "commands": [{ "name": "obey", "description": OBEYS }],
            "methods": [{ "name": "obey", "description": OBEYS }],
            "functions": {
                "lifecycle": ["initialize", "start", "stop", "destroy", "health-check"],
                "agent": ["invoke"],
                "commands": ["run"],
                "renderer": ["render-call", "render-result"],
            },
        });
        Ok((Self { config: hello["config"].clone() }, welcome))
    }

    fn call(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let params = call.params;
        let (arguments, turn) = (&params["arguments"], &params["turn"]);
        match call.method {
            "hook" => self.decide(call),
            "tool" if params["tool"] == "helper" => {
                self.told(call, "agent", &arguments["task"], &Value::Null, turn)
            }
            "tool" => self.told(call, "tool", arguments, arguments, turn),
            "api" => self.told(call, "api", arguments, arguments, &Value::Null),
            "health" => {
                let (verb, _) = self.directive(call, "health", &Value::Null, &Value::Null, &Value::Null)?;
                Ok((verb != "unwell").into())
            }
            "initialize" | "start" | "stop" | "destroy" => {
                self.directive(call, call.method, &Value::Null, &Value::Null, &Value::Null)?;
                Ok(Value::Null)
            }
            _ => match params["function"].as_str().unwrap_or_default() {
                "run" => self.told(call, "command", &arguments["arguments"], &Value::Null, &Value::Null),
                "invoke" => self.told(call, "agent", &arguments["task"], &Value::Null, &Value::Null),
                "render-call" => Ok(shown(&arguments["tool"], &arguments["arguments"])),
                _ => Ok(shown(&arguments["tool"], &arguments["result"])),
            },
        }
    }
}

export!(Conformance);

fn split(text: &str, separator: &str) -> (String, String) {
    let (before, after) = text.split_once(separator).unwrap_or((text, ""));
    (before.to_owned(), after.to_owned())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn read(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(error.to_string()))
}

fn shown(tool: &Value, what: &Value) -> Value {
    if tool == "plain" { Value::Null } else { format!("**{}** {}", text_of(tool), text_of(what)).into() }
}

impl Conformance {
    fn line(&self, place: &str, subject: &Value, arguments: &Value) -> Option<String> {
        let sources = [subject.as_str(), arguments["do"].as_str(), self.config["do"].as_str()];
        let mut found = sources.into_iter().flatten().filter_map(|lines| {
            lines.split('\n').map(|line| split(line, " ")).find(|(before, _)| before == place)
        });
        found.next().map(|(_, line)| line)
    }

    fn ask_host(&self, call: &Call<'_>, verb: &str, rest: &str, turn: &Value) -> Result<Option<String>, Failure> {
        let question = |view: Value| call.ask("ui", view).map(|it| if it.is_null() { "nothing".into() } else { it });
        Ok(Some(match verb {
            "clock" => text_of(&call.ask("clock", Value::Null)?),
            "random" => text_of(&call.ask("random", json!({ "bytes": rest.parse::<u32>().unwrap_or(0) }))?),
            "remember" => {
                let (key, value) = split(rest, " ");
                call.ask("state.set", json!({ "key": key, "value": read(&value)? }))?;
                String::new()
            }
            "forget" => {
                call.ask("state.set", json!({ "key": rest }))?;
                String::new()
            }
            "host" => {
                let (name, arguments) = split(rest, " ");
                match call.ask(&name, read(&arguments)?) {
                    Ok(_) => "served".to_owned(),
                    Err(_) => "refused".to_owned(),
                }
            }
            "recall" => match call.ask("state.get", json!({ "key": rest }))? {
                Value::Null => "nothing".to_owned(),
                value => value.to_string(),
            },
            "tell" => {
                call.ask("inject", json!({ "text": rest }))?;
                String::new()
            }
            "log" => {
                call.log(rest);
                String::new()
            }
            "config" => self.config.get(rest).map_or_else(|| "nothing".to_owned(), Value::to_string),
            "session" if turn.is_null() => "outside".to_owned(),
            "session" => {
                let user = turn["user"].as_str().unwrap_or("nobody");
                let [session, agent, channel] = ["session", "agent", "channel"].map(|it| text_of(&turn[it]));
                format!("{session}/{}/{agent}/{channel}/{user}", turn["turn"])
            }
            "select" => {
                let (prompt, options) = split(rest, ": ");
                let options: Vec<&str> = options.split(", ").collect();
                text_of(&question(json!({ "select": { "prompt": prompt, "options": options } }))?)
            }
            "confirm" => match question(json!({ "confirm": { "prompt": rest } }))?.as_bool() {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "nothing".to_owned(),
            },
            "input" => text_of(&question(json!({ "input": { "prompt": rest } }))?),
            "custom" => {
                let (kind, rest) = split(rest, " ");
                let (prompt, payload) = split(&rest, ": ");
                let view = json!({ "kind": kind, "payload": read(&payload)? });
                match question(json!({ "custom": { "prompt": prompt, "view": view } }))? {
                    Value::String(nothing) if nothing == "nothing" => nothing,
                    answer => answer.to_string(),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// A directive's last verb and its text, once the host has been asked for the others.
    fn directive(
        &self,
        call: &Call<'_>,
        place: &str,
        subject: &Value,
        arguments: &Value,
        turn: &Value,
    ) -> Result<(String, String), Failure> {
        let Some(mut line) = self.line(place, subject, arguments) else { return Ok(Default::default()) };
        let mut heard = String::new();
        loop {
            let (stage, rest) = split(&line, " | ");
            let (verb, text) = split(&stage, " ");
            match self.ask_host(call, &verb, &text, turn)? {
                Some(_) if rest.is_empty() => return Ok(Default::default()),
                Some(answer) => (heard, line) = (answer, rest),
                None => {
                    let text = text.replace('%', &heard);
                    return match verb.as_str() {
                        "invalid" => Err(Failure::invalid(text)),
                        "refused" | "missing" | "failed" => Err(Failure::new(text)),
                        _ => Ok((verb, text)),
                    };
                }
            }
        }
    }

    fn told(
        &self,
        call: &Call<'_>,
        place: &str,
        given: &Value,
        arguments: &Value,
        turn: &Value,
    ) -> Result<Value, Failure> {
        let (verb, text) = self.directive(call, place, given, arguments, turn)?;
        match verb.as_str() {
            "text" => Ok(text.into()),
            "json" => read(&text),
            _ => Ok(given.clone()),
        }
    }

    fn decide(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let request = call.params;
        let point = request["point"].as_str().unwrap_or_default();
        let arguments = &request["call"]["arguments"];
        let (verb, text) = self.directive(call, point, &request["subject"], arguments, &request["turn"])?;
        Ok(match verb.as_str() {
            "deny" | "ask" | "flag" | "block" => json!({ "decision": verb, "reason": text }),
            "inject" | "replace" => json!({ "decision": verb, "content": text }),
            "route" | "order" => {
                let (model, reason) = split(&text, " ");
                json!({ "decision": "route", "model": model, "authoritative": verb == "order", "reason": reason })
            }
            "arguments" => json!({ "decision": "modify", "arguments": read(&text)? }),
            "implementation" => json!({ "decision": "modify", "implementation": text }),
            "result" => json!({ "decision": "enrich", "result": text }),
            "json" if point == "tool_after" => json!({ "decision": "enrich", "result": read(&text)? }),
            "json" => json!({ "decision": "replace", "content": read(&text)? }),
            "artifact" => {
                let (name, content) = split(&text, " ");
                let artifact = json!({ "name": name, "media_type": "text/plain", "content": content });
                json!({ "decision": "enrich", "artifacts": [artifact] })
            }
            "render" => json!({ "decision": "enrich", "render": read(&text)? }),
            "keep" => {
                let (keep, text) = split(&text, " ");
                let instructions = (!text.is_empty()).then_some(text);
                json!({ "decision": "compact", "keep": keep.parse::<u32>().ok(), "instructions": instructions })
            }
            "instructions" => json!({ "decision": "compact", "instructions": text }),
            _ if ALLOWING.contains(&point) => json!({ "decision": "allow" }),
            _ => Value::Null,
        })
    }
}
