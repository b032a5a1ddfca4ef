//! Five hundred installed tools: what a model is shown of them, what that costs, and how it comes to the others. The model is a provider over
//! a real socket, so that what is counted is what is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use holdfast_bench::tools::{Catalogued, catalogue};
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::tool::ToolSpec;
use holdfast_lane_native::{FnTool, NativeExtension};
use holdfast_model::provider::{Provider, ProviderSettings};
use holdfast_testkit::pieces::agent;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder};
use serde_json::{Value, json};

/// What a request may take with five hundred tools installed, in tokens of four letters each: instructions, context and tools.
const BUDGET: usize = 8_000;

/// A server that answers as a provider does, and what it was asked.
struct Server {
    base: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Gives these answers, one to each request.
    fn start(answers: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                seen.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                let delta = json!({ "choices": [{ "index": 0, "delta": answer }] });
                let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
                let stream_text = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
                write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{stream_text}", stream_text.len())
                    .unwrap();
            }
        });
        Self { base, requests }
    }

    fn model(&self) -> Provider {
        Provider::new(ProviderSettings {
            name: "main".to_owned(),
            provider: "openai".to_owned(),
            model: "gpt-4o".to_owned(),
            base_url: Some(self.base.clone()),
            key: Some("sk-for-tests".into()),
            ..ProviderSettings::default()
        })
        .unwrap()
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn says(text: &str) -> Value {
    json!({ "content": text })
}

fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
        })
        .collect();
    json!({ "tool_calls": calls })
}

/// The tools that a request defines.
fn defined(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// A home with the built-in tools, an agent, and the catalogue.
fn crowded(server: &Server) -> LabBuilder {
    let mut lab = Lab::build()
        .model("script", server.model())
        .extension(holdfast_ext_orchestrator::extension())
        .extension(holdfast_ext_setup::extension())
        .extension(NativeExtension::new("researcher", "1.0.0").agent(agent("researcher", "script")))
        .shows(40, &["orchestrator", "setup"]);
    for Catalogued { id, description, tools } in catalogue() {
        let mut extension = NativeExtension::new(id, "1.0.0").described(description).replayable();
        for spec in tools {
            let done = json!({ "done": spec.name });
            extension = extension.tool(FnTool(spec, move |_: &Content| Ok(Content::new(done.clone()))));
        }
        lab = lab.extension(extension);
    }
    lab
}

#[tokio::test]
async fn five_hundred_tools_fit_into_a_small_request() {
    let searches: Vec<Value> = ["weather", "mail", "music", "flights", "invoices", "photos", "pods", "notes"]
        .iter()
        .map(|query| calls(&[("find_tools", json!({ "query": query, "limit": 10 }))]))
        .collect();
    let count = searches.len();
    let server = Server::start(searches.into_iter().chain([says("That is a lot.")]).collect());
    let lab = crowded(&server)
        .limits(holdfast_contract::message::Limits { max_turns: 20, ..Default::default() })
        .start()
        .await;
    assert_eq!(lab.runtime.registry().tools.len(), 500 + 4 + 4 + 1);
    lab.say("what can you do?").await;
    let requests = server.requests();
    assert_eq!(requests.len(), count + 1);
    for request in &requests {
        let system: usize = request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["role"] == "system")
            .map(|it| it.to_string().len())
            .sum();
        let tools = request["tools"].to_string().len();
        let tokens = (system + tools) / 4;
        assert!(system > 0 && tokens < BUDGET, "{tokens} tokens");
        assert!(defined(request).len() <= 40, "{:?}", defined(request));
    }
    // Nothing was used or found yet.
    assert_eq!(
        defined(&requests[0]),
        [
            "configure_extension",
            "extensions_doctor",
            "find_tools",
            "list_channels",
            "request_restart",
            "request_secure_input",
            "researcher",
            "send_to_channel",
            "start_background_task"
        ]
    );
    let system = requests[0]["messages"][0].to_string();
    assert!(system.contains("- researcher (call it as a tool)"), "{system}");
    assert!(system.contains("- mail (10 tools, 10 not shown): Reads, searches and sends e-mail"), "{system}");
    assert!(system.contains("500 tools of these are installed and not shown to you."), "{system}");
    // The last search is there as a whole; of the first, only what there is room for.
    let last = defined(requests.last().unwrap());
    assert!(last.contains(&"notes_create") && last.contains(&"notes_search"), "{last:?}");
    lab.stop().await;
}

#[tokio::test]
async fn a_tool_is_found_shown_and_called() {
    let server = Server::start(vec![
        calls(&[
            ("find_tools", json!({ "query": "text my sister that the train is delayed" })),
            ("find_tools", json!({ "query": "lower the blinds", "limit": 1 })),
        ]),
        calls(&[("sms_send", json!({ "number": "1", "text": "late" })), ("smarthome_blinds", json!({}))]),
        says("Both are done."),
        // It is not shown, and there all the same.
        calls(&[("stocks_quote", json!({ "symbol": "ACME" }))]),
        says("Eighty."),
        calls(&[("find_tools", json!({ "query": "xyzzy" }))]),
        says("Nothing."),
    ]);
    let lab = crowded(&server).start().await;
    for (said, answer) in
        [("text my sister", "Both are done."), ("what is ACME at?", "Eighty."), ("xyzzy", "Nothing.")]
    {
        assert_eq!(lab.say(said).await.answer.unwrap().to_text(), answer);
    }
    let requests = server.requests();
    let shown = |request: usize, tool: &str| defined(&requests[request]).contains(&tool);
    assert!(!shown(0, "sms_send") && !shown(0, "smarthome_blinds"));
    assert!(shown(1, "sms_send") && shown(1, "smarthome_blinds"), "what two searches at once have found");
    assert!(shown(3, "sms_send"), "what was used stays, in the next turn too");
    assert!(!shown(3, "stocks_quote") && shown(4, "stocks_quote"), "and so does what was called unseen");
    assert!(shown(6, "smarthome_blinds"), "a search that finds nothing takes nothing away");
    let told = requests[6]["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains("None of 509 tools fits."), "{told}");
    let frames = lab.frames();
    let (asked, kept) = (bodies(&frames, FrameKind::HostCalled), bodies(&frames, FrameKind::StateWritten));
    assert_eq!(asked.iter().filter(|body| body["ask"] == "tools.find").count(), 3);
    let keys: Vec<&str> = kept.iter().map(|body| body["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["found.1", "found.2", "found.3"], "no search overwrites another");
    assert!(bodies(&frames, FrameKind::ToolSettled).iter().all(|body| body["status"] == "done"));
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:?}");
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

#[tokio::test]
async fn what_is_installed_meanwhile_is_in_the_next_turns_summary() {
    let server = Server::start(vec![says("one"), says("two")]);
    let lab = crowded(&server).start().await;
    lab.say("one").await;
    let late = NativeExtension::new("parrot", "1.0.0")
        .described("Says everything again.")
        .tool(FnTool(ToolSpec::named("parrot_say", "Says it again."), |said: &Content| Ok(said.clone())));
    lab.runtime.found(vec![lab.lane.add(late)]);
    lab.runtime.settled().await.unwrap();
    lab.say("two").await;
    let told: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request["messages"][0].to_string().contains("Says everything again."))
        .collect();
    assert_eq!(told, [false, true]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn few_tools_are_shown_without_a_search() {
    let server = Server::start(vec![says("hello")]);
    let few = NativeExtension::new("few", "1.0.0")
        .tool(FnTool(ToolSpec::named("few_one", "One."), |_: &Content| Ok(Content::text("1"))));
    let lab = Lab::build()
        .model("script", server.model())
        .extension(holdfast_ext_orchestrator::extension())
        .extension(few)
        .shows(40, &["orchestrator"])
        .start()
        .await;
    lab.say("hello").await;
    assert!(defined(&server.requests()[0]).contains(&"few_one"));
    lab.stop().await;
}
