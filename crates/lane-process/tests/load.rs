//! Caching of a program's exports, and the progress that it reports.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod support;

use std::fs;
use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Call, Host, Later};
use serde_json::json;
use support::{Yard, eventually, go};

/// Counts its starts in its data folder, and has one more tool if it finds a file there.
const COUNTS: &str = r#"
hello = receive()
data = hello["params"]["data_dir"]
open(os.path.join(data, "starts"), "a").write(".")
tools = [{"name": "go"}] + [{"name": "more"}] * os.path.exists(os.path.join(data, "more"))
send(id=hello["id"], result={"protocol": "0.1", "tools": tools})
while True:
    message = receive()
    if "id" in message: send(id=message["id"], result=message["params"]["arguments"])
"#;

#[tokio::test]
async fn a_cached_program_starts_at_its_first_call() {
    let yard = Yard::new();
    let starts = || fs::read_to_string(yard.path().join("data/counts/starts")).unwrap_or_default().len();
    let first = yard.load("counts", COUNTS).await.unwrap();
    assert_eq!(starts(), 1, "the first load asks for its exports");
    drop(first);
    yard.empties().await;

    let known = yard.load("counts", COUNTS).await.unwrap();
    assert_eq!((starts(), yard.running().len()), (1, 0), "its exports are cached");
    assert_eq!(go(&known, json!({ "n": 1 })).await.unwrap(), json!({ "n": 1 }));
    assert_eq!(starts(), 2, "the first call starts it");
    drop(known);

    fs::write(yard.path().join("data/counts/more"), "").unwrap();
    let changed = yard.load("counts", COUNTS).await.unwrap();
    let fault = go(&changed, json!({})).await.unwrap_err();
    assert!(fault.message.contains("have changed since it was loaded"), "{fault}");
    let reloaded = yard.load("counts", COUNTS).await.unwrap();
    assert_eq!(
        go(&reloaded, json!({ "n": 2 })).await.unwrap(),
        json!({ "n": 2 }),
        "the next load asks again"
    );
}

#[tokio::test]
async fn required_features_are_checked() {
    let yard = Yard::new();
    assert!(yard.load("fits", "greet(requires=['progress', 'cancel'])\nreceive()").await.is_ok());
    let fault = yard.load("newer", "greet(requires=['telepathy'])\nreceive()").await.err().unwrap();
    assert_eq!(fault.code, Code::ComponentVersion, "{fault}");
    assert!(fault.message.contains("telepathy"), "{fault}");
}

/// Records progress.
#[derive(Default)]
struct Watching(Mutex<Vec<String>>);

impl Host for Watching {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::ready(Err(Fault::new(Code::ToolDenied, "nothing"))))
    }

    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[tokio::test]
async fn progress_is_reported_up_to_a_limit() {
    let yard = Yard::new();
    let script = r#"
greet()
call = receive()["id"]
for step in range(3): send(method="progress", params={"call": call, "text": f"{step} of 3"})
for step in range(9000): send(method="progress", params={"call": call, "text": "x" * 100})
send(method="progress", params={"call": call + 7, "text": "of no call"})
send(id=call, result="done")
receive()
"#;
    let it = yard.load("steps", script).await.unwrap();
    let host = Arc::new(Watching::default());
    let (arguments, turn) = (Content::new(json!({})), Arc::default());
    let call = Call::Tool { call: CallId { turn: 1, index: 1 }, tool: "go".into(), arguments, turn };
    it.call(call, host.clone()).await.unwrap();
    let shown = host.0.lock().unwrap();
    assert_eq!(shown[..3], ["0 of 3", "1 of 3", "2 of 3"]);
    assert!(shown.len() < 50, "progress above the limit is dropped: {}", shown.len());
}

/// Uses its standard input as a socket, and prints freely to standard output.
const OVER_A_SOCKET: &str = r#"
import socket
both = socket.socket(fileno=0).makefile("rw")
for line in both:
    message = json.loads(line)
    print("heard", message.get("method"))
    if "id" not in message: continue
    welcome = {"protocol": "0.1", "tools": [{"name": "go"}]}
    result = welcome if message["method"] == "hello" else message["params"]["arguments"]
    both.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    both.flush()
"#;

#[tokio::test]
async fn a_socket_transport_leaves_standard_output_free() {
    let yard = Yard::new();
    let it = yard.load_with("socket", OVER_A_SOCKET, "transport: socket\n").await.unwrap();
    let large = json!({ "text": "x".repeat(1 << 20) });
    assert_eq!(go(&it, large.clone()).await.unwrap(), large, "more than the socket's buffer");
    let printed = || yard.lines.lock().unwrap().iter().any(|line| line.contains("heard tool"));
    eventually(printed).await;
}
