//! Programs that violate the protocol. Each is contained: the caller gets the reason, the program is killed with all its processes, and
//! other programs are not affected.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::hook::Decision;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Reply};
use serde_json::json;
use support::{Echo, Yard, eventually, go};

/// A correct program.
const GOOD: &str = r#"
greet()
while True:
    message = receive()
    if "id" in message: send(id=message["id"], result=message["params"]["arguments"])
"#;

/// Programs that fail to load, and the expected error.
const REFUSED: &[(&str, &str, &str)] = &[
    ("ends before it says a word", "sys.exit(3)", "has exited (exit status: 3)"),
    ("is killed", "os.kill(os.getpid(), 9)", "has exited (signal: 9"),
    ("is not a program", "raise SystemError('broken')", "has exited (exit status: 1): SystemError: broken"),
    ("speaks another language", "print('hello')", "protocol violation: expected value"),
    ("sends nothing but a line's end", "print()", "protocol violation: EOF while parsing"),
    (
        "sends bytes that are not text",
        "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); time.sleep(9)",
        "protocol violation",
    ),
    ("sends a list", "print('[]')", "protocol violation"),
    (
        "says what it likes besides",
        "receive(); print('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"more\":1}')",
        "unknown field `more`",
    ),
    (
        "speaks another version of JSON-RPC",
        "receive(); print('{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}')",
        "`jsonrpc` is \"1.0\"",
    ),
    (
        "answers before it is asked",
        "print('{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}'); time.sleep(9)",
        "no request is waiting for the response to 7",
    ),
    (
        "answers under a name",
        "receive(); print('{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":1}')",
        "is not the id of a request",
    ),
    (
        "answers with a result and an error",
        "receive(); send(id=1, result=1, error={'code': 1, 'message': 'no'})",
        "either a result or an error",
    ),
    ("answers with neither", "receive(); send(id=1)", "either a result or an error"),
    (
        "breaks off in the middle of a line",
        "receive(); sys.stdout.write('{\"jsonrpc\"'); sys.stdout.flush()",
        "ended in the middle of a line",
    ),
    ("does not know what it is", "receive(); send(id=1, result=None)", "invalid answer to `hello`"),
    (
        "speaks another protocol",
        "receive(); send(id=1, result={'protocol': '9.9'})",
        "speaks protocol \"9.9\"",
    ),
    ("has a tool without a name", "greet(tools=[{'description': 'x'}])", "missing field `name`"),
    ("has a tool with an empty name", "greet(tools=[{'name': ''}]); receive()", "a tool has the name ``"),
    // Finding N3.
    (
        "has a tool that is named like a question",
        "greet(tools=[{'name': '? shell wants to run (call 1.2)'}]); receive()",
        "a tool has the name `? shell wants to run (call 1.2)`: a name begins with",
    ),
    (
        "has a tool with a space in its name",
        "greet(tools=[{'name': 'shell wants'}]); receive()",
        "a tool has the name `shell wants`",
    ),
    (
        "has a tool with invisible characters in its name",
        "greet(tools=[{'name': 'file\\u200b_read\\u3000\\n'}]); receive()",
        "a tool has the name `file\\u{200b}_read\\u{3000}\\u{a}`",
    ),
    (
        "has a command with an invisible character in its name",
        "greet(commands=[{'name': 'help\\u2060'}]); receive()",
        "a command has the name `help\\u{2060}`",
    ),
    (
        "has two tools of one name",
        "greet(tools=[{'name': 'a'}, {'name': 'a'}]); receive()",
        "it has two of the tool `a`",
    ),
    ("has a hook at no point", "greet(hooks=['nowhere']); receive()", "unknown variant `nowhere`"),
    ("says more than there is to say", "greet(extra=1); receive()", "unknown field `extra`"),
    (
        "refuses to say what it is",
        "receive(); send(id=1, error={'code': 1, 'message': 'not today'})",
        "not today",
    ),
    (
        "sends a line without end",
        "receive()\nwhile True: sys.stdout.write('x' * 65536)",
        "a line is longer than",
    ),
    (
        "sends one line that is too long",
        "receive(); print('\"' + 'x' * (9 << 20) + '\"')",
        "a line is longer than",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_answer_to_hello_refuses_the_program() {
    let yard = Yard::new();
    let good = yard.load("good", GOOD).await.unwrap();
    for (what, script, expected) in REFUSED {
        let fault = yard.load("bad", script).await.err().unwrap_or_else(|| panic!("{what}: it was loaded"));
        assert!(fault.message.contains(expected), "{what}: {fault}");
        assert_eq!(go(&good, json!({ "n": 1 })).await, Ok(json!({ "n": 1 })), "{what}: its neighbour");
    }
    drop(good);
    yard.empties().await;
}

/// Programs that load and fail when they are called, and the expected error.
const WRONG: &[(&str, &str, &str)] = &[
    ("ends in the middle of a call", "greet(); receive(); sys.exit(7)", "has exited (exit status: 7)"),
    (
        "is killed in the middle of a call",
        "greet(); receive(); os.kill(os.getpid(), 11)",
        "has exited (signal: 11",
    ),
    ("answers with garbage", "greet(); receive(); print('garbage'); time.sleep(9)", "protocol violation"),
    (
        "answers twice",
        "greet(); m = receive(); print('{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}'); time.sleep(9)",
        "no request is waiting for the response to 99",
    ),
    (
        "asks without an id",
        "greet(); receive(); send(method='ask', params={'call': 2, 'name': 'clock'}); time.sleep(9)",
        "needs an id",
    ),
    (
        "logs with an id",
        "greet(); receive(); send(id=1, method='log', params={'text': 'x'}); time.sleep(9)",
        "has no id",
    ),
    (
        "logs a number",
        "greet(); receive(); send(method='log', params={'text': 1}); time.sleep(9)",
        "invalid type",
    ),
    (
        "sends half a message",
        "greet(); receive(); sys.stdout.write('{'); sys.stdout.flush(); sys.exit(0)",
        "middle of a line",
    ),
    (
        "fails in its own words",
        "greet()\nwhile True:\n    m = receive()\n    send(id=m['id'], error={'code': 1, 'message': 'the disk is full'})",
        "the disk is full",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_reports_the_reason_to_its_caller() {
    let yard = Yard::new();
    let good = yard.load("good", GOOD).await.unwrap();
    for (what, script, expected) in WRONG {
        let bad = yard.load("bad", script).await.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        let fault = go(&bad, json!({})).await.unwrap_err();
        assert!(fault.message.contains(expected), "{what}: {fault}");
        assert_eq!(go(&good, json!({ "n": 1 })).await, Ok(json!({ "n": 1 })), "{what}: its neighbour");
    }
    drop(good);
    yard.empties().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_a_lifecycle_is_restarted_by_the_next_call() {
    let yard = Yard::new();
    let script =
        "greet(); m = receive(); send(id=m['id'], result=time.monotonic_ns()); receive(); sys.exit(1)";
    let it = yard.load("mortal", script).await.unwrap();
    let first = go(&it, json!({})).await.unwrap();
    let fault = go(&it, json!({})).await.unwrap_err();
    assert_eq!(fault.code, Code::ExtensionFault, "{fault}");
    let second = go(&it, json!({})).await.unwrap();
    assert_ne!(first, second, "another process");
    drop(it);
    yard.empties().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_the_caller_cancels_the_request() {
    let yard = Yard::new();
    let script = r#"
greet()
receive()
cancelled = receive()
message = receive()
send(id=message["id"], result=cancelled)
send(id=2, result="late")
message = receive()
send(id=message["id"], result="still here")
"#;
    let it = yard.load("slow", script).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(300), go(&it, json!({}))).await;
    assert!(waited.is_err(), "it does not answer");
    let told = go(&it, json!({})).await.unwrap();
    assert_eq!((&told["method"], &told["params"]), (&json!("cancel"), &json!({ "id": 2 })));
    assert_eq!(go(&it, json!({})).await, Ok(json!("still here")), "an answer that came late does no harm");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_calls_of_a_call_are_limited() {
    let yard = Yard::new();
    let script = r#"
greet()
message = receive()
answers = []
for number in range(22):
    send(id=number, method="ask", params={"call": message["id"], "name": "clock"})
    answers.append(receive())
send(id="x", method="ask", params={"call": 99, "name": "clock"})
other = receive()
send(id="y", method="ask", params={"call": message["id"], "name": "random", "arguments": {"bytes": "many"}})
senseless = receive()
send(id="z", method="whistle")
unknown = receive()
send(id=message["id"], result={
    "first": answers[0]["result"], "last": answers[21]["error"]["data"], "other": other["error"]["data"],
    "senseless": senseless["error"], "unknown": unknown["error"]["code"]})
receive()
"#;
    let it = yard.load("asks", script).await.unwrap();
    let answer = go(&it, json!({})).await.unwrap();
    assert_eq!(answer["first"], "clock");
    assert_eq!(answer["last"]["code"], Code::HostCallsExhausted.as_str());
    assert_eq!(answer["other"]["code"], Code::ToolCancelled.as_str());
    assert_eq!(answer["senseless"]["data"]["code"], Code::HostCallsExhausted.as_str());
    assert_eq!(answer["unknown"], -32601);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_calls_of_a_background_loop_are_not_limited() {
    let yard = Yard::new();
    let script = r#"
greet(functions={"service": ["run-background"]})
message = receive()
for number in range(100):
    send(id=number, method="ask", params={"call": message["id"], "name": "clock"})
    answer = receive()
send(id=message["id"], result=answer["result"])
receive()
"#;
    let it = yard.load("loops", script).await.unwrap();
    let (function, arguments) = ("run-background".to_owned(), Content::default());
    let call = Call::Function { role: Role::Service, function, arguments };
    assert_eq!(it.call(call, Arc::new(Echo)).await, Ok(Reply::Content(Content::text("clock"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_after_initialize_are_registered_and_it_is_initialised_once() {
    let yard = Yard::new();
    let script = r#"
greet(later=True, tools=[], functions={"lifecycle": ["initialize", "start"]})
steps = []
while True:
    message = receive()
    steps.append(message["method"])
    if message["method"] == "initialize" and os.path.exists(os.path.expanduser("~/broken")):
        send(id=message["id"], error={"code": 1, "message": "there is no database"})
    elif message["method"] == "hello":
        send(id=message["id"], result={"protocol": "0.1", "tools": [{"name": "go"}]})
    else:
        send(id=message["id"], result=steps if message["method"] == "tool" else None)
"#;
    let it = yard.load("knows", script).await.unwrap();
    let step = async |command| it.call(Call::Lifecycle(command), Arc::new(Echo)).await;
    let Ok(Reply::Descriptors(descriptors)) = step(LifecycleCommand::Load).await else { panic!("no tools") };
    assert_eq!(descriptors.len(), 1);
    assert_eq!(step(LifecycleCommand::Initialize).await, Ok(Reply::Done));
    assert_eq!(step(LifecycleCommand::Start).await, Ok(Reply::Done));
    assert_eq!(go(&it, json!({})).await, Ok(json!(["initialize", "hello", "start", "tool"])));
    // A restarted lifecycle gets all steps.
    assert_eq!(step(LifecycleCommand::Destroy).await, Ok(Reply::Done));
    assert_eq!(step(LifecycleCommand::Initialize).await, Ok(Reply::Done));
    assert_eq!(go(&it, json!({})).await, Ok(json!(["initialize", "tool"])));
    std::fs::write(yard.folder.path().join("data/knows/broken"), "").unwrap();
    let broken = yard.load("knows", script).await.unwrap();
    let refused = broken.call(Call::Lifecycle(LifecycleCommand::Load), Arc::new(Echo)).await;
    assert_eq!(refused, Err(Fault::new(Code::ExtensionFault, "there is no database")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_lines_and_standard_error_are_limited() {
    let yard = Yard::new();
    let script = r#"
greet()
message = receive()
send(method="log", params={"level": "error", "text": "the first line"})
for number in range(1000): send(method="log", params={"text": "x" * 100})
sys.stderr.write("a complaint\n"); sys.stderr.flush()
send(id=message["id"], result="done")
receive()
"#;
    let it = yard.load("talks", script).await.unwrap();
    assert_eq!(go(&it, json!({})).await, Ok(json!("done")));
    eventually(|| yard.lines.lock().unwrap().iter().any(|line| line.contains("a complaint"))).await;
    let lines = yard.lines.lock().unwrap();
    assert_eq!(lines[0], "Error: the first line");
    assert!(lines.iter().any(|line| line.starts_with("Warning: log limit reached")), "{lines:?}");
    assert!(lines.iter().any(|line| line == "Printed: a complaint"), "{lines:?}");
    assert!(lines.len() < 50, "{}", lines.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_processes_are_killed_with_the_program() {
    let yard = Yard::new();
    let script = r#"
greet()
message = receive()
for number in range(3):
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2)
        if os.fork() == 0:
            try: os.setsid()
            except OSError: pass
            while True: time.sleep(1)
        while True: time.sleep(1)
send(id=message["id"], result="started")
receive()
"#;
    let it = yard.load("parent", script).await.unwrap();
    assert_eq!(go(&it, json!({})).await, Ok(json!("started")));
    eventually(|| yard.running().len() >= 7).await;
    drop(it);
    yard.empties().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_can_access_its_data_but_not_the_home_or_the_network() {
    let yard = Yard::new();
    std::fs::write(yard.path().join("secret"), "key").unwrap();
    let script = r#"
import socket
hello = greet()
message = receive()
def tried(attempt):
    try: attempt(); return "done"
    except OSError as error: return error.strerror
data = hello["params"]["data_dir"]
send(id=message["id"], result={
    "own": tried(lambda: open(os.path.join(data, "kept"), "w").write("x")),
    "secret": tried(lambda: open(message["params"]["arguments"]["secret"]).read()),
    "code": tried(lambda: open("main.py", "a").write("x")),
    "shadow": tried(lambda: open("/etc/shadow").read()),
    "network": tried(lambda: socket.create_connection(("127.0.0.1", 1))),
    "host": tried(lambda: os.kill(message["params"]["arguments"]["host"], 0)),
    "environment": sorted(os.environ)})
receive()
"#;
    let it = yard.load("curious", script).await.unwrap();
    let secret = yard.path().join("secret");
    let answer = go(&it, json!({ "secret": secret, "host": std::process::id() })).await.unwrap();
    assert_eq!(answer["own"], "done");
    assert!(yard.path().join("data/curious/kept").exists());
    assert_eq!(answer["code"], "Read-only file system");
    for outside in ["secret", "shadow"] {
        assert_eq!(answer[outside], "No such file or directory", "{outside}");
    }
    assert_eq!(answer["network"], "Permission denied");
    assert_eq!(answer["host"], "No such process");
    let names: Vec<&str> =
        answer["environment"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let known = |name: &&str| {
        name.to_ascii_uppercase().ends_with("_PROXY")
            || ["HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR"].contains(name)
    };
    assert!(names.iter().all(known), "{names:?}");
}

/// Confinement is a property of the process: a hook has the files that every call of the program has, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_writes_where_its_program_may_write_and_nowhere_else() {
    let yard = Yard::new();
    let script = r#"
hello = greet(hooks=["tool_gate"])
message = receive()
def tried(path):
    try: open(path, "w").write("x"); return "done"
    except OSError as error: return error.strerror
told = [tried(os.path.join(hello["params"]["data_dir"], "kept")), tried("main.py")]
send(id=message["id"], result={"decision": "deny", "reason": ", ".join(told)})
receive()
"#;
    let it = yard.load("guard", script).await.unwrap();
    let turn = json!({
        "session": "s1", "turn": 1, "agent": "main", "origin": { "channel": "test", "user": "ada" },
    });
    let asked = json!({
        "hook": { "hook": "guard/0", "point": "tool_gate", "subject": { "json": "hello" }, "turn": turn },
    });
    let reply = it.call(serde_json::from_value(asked).unwrap(), Arc::new(Echo)).await.unwrap();
    let Reply::Decision(Decision::Deny { reason }) = reply else { panic!("{reply:?}") };
    assert_eq!(reason, "done, Read-only file system");
    assert!(yard.path().join("data/guard/kept").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_concurrently() {
    let yard = Yard::new();
    let script = r#"
greet()
first, second = receive(), receive()
send(id=second["id"], result="second")
send(id=first["id"], result="first")
receive()
"#;
    let it = yard.load("juggler", script).await.unwrap();
    let both = async {
        let first = tokio::spawn({
            let it = it.clone();
            async move { go(&it, json!({ "n": 1 })).await }
        });
        let second = go(&it, json!({ "n": 2 })).await;
        (first.await.unwrap(), second)
    };
    let (first, second): (Result<_, Fault>, _) = both.await;
    let mut answers = [first.unwrap(), second.unwrap()];
    answers.sort_by_key(ToString::to_string);
    assert_eq!(answers, [json!("first"), json!("second")]);
}

// Findings M1 and M9: the tree is removed without recursion, and the program is killed because its disk usage cannot be measured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deep_tree_exceeds_the_quota_and_is_removed() {
    let yard = Yard::new();
    let good = yard.load("good", GOOD).await.unwrap();
    let script = "
hello = greet()
print(os.environ['TMPDIR'], file=sys.stderr, flush=True)
receive()
os.chdir(os.environ['TMPDIR'])
for level in range(15000): os.mkdir('d'); os.chdir('d')
print('made', file=sys.stderr, flush=True)
receive()
";
    let deep = yard.load("deep", script).await.unwrap();
    let fault = go(&deep, json!({})).await.unwrap_err();
    assert!(fault.message.contains("nested more than 256 deep"), "{fault}");
    let lines = yard.lines.lock().unwrap().clone();
    let scratch = lines.iter().find_map(|line| line.strip_prefix("Printed: ")).unwrap().to_owned();
    assert!(scratch.contains("holdfast-"), "{lines:?}");
    drop(deep);
    eventually(|| !std::path::Path::new(&scratch).exists()).await;
    assert_eq!(go(&good, json!({ "n": 1 })).await, Ok(json!({ "n": 1 })));
}
