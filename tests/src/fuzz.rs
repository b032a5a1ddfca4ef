//! The fuzz targets: each takes any bytes, tells whether they were valid input, and panics where its oracle finds a bug. `fuzz/` runs
//! them under libFuzzer, and `tests/generated/fuzz_corpus.rs` with the committed inputs and some hundred mutations of them.

use std::fmt::Debug;
use std::path::Path;

use holdfast_contract::digest::canonical;
use holdfast_contract::hook::Decision;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::manifest;
use holdfast_contract::problem::Problem;
use holdfast_contract::protocol::{HookVerdict, ProcessWelcome, RpcError, ToExtension, ToHost};
use holdfast_jsonrpc::{RpcMessage, encode_request, encode_response};
use holdfast_rpc::{Notification, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::generated::check;
use crate::generated::plan::WorldPlan;
use crate::generated::world::World;

/// The parser of the gateway's request heads. It is the lane's own: compiled here once more, since the lane does not export it.
#[path = "../../crates/program/src/gateway/request.rs"]
mod request;

/// A target: its name, which is also that of its corpus, and what it does.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All targets.
pub const TARGETS: [Target; 6] = [
    ("canonical_json", canonical_json),
    ("client_protocol", client_protocol),
    ("gateway_head", gateway_head),
    ("manifest", manifest),
    ("process_protocol", process_protocol),
    ("sessions", sessions),
];

/// Sessions on the real runtime, as the bytes choose them: they verify, replay to identical frames, and keep the rules of
/// `generated/check.rs`.
pub fn sessions(bytes: &[u8]) -> bool {
    let mut world = World::new(WorldPlan::from_bytes(bytes));
    world.run();
    check::world(&world).unwrap_or_else(|why| panic!("{why}"));
    true
}

/// A manifest as it lies on the disk: an error has a code, and what is read is printed and read as the same manifest.
pub fn manifest(bytes: &[u8]) -> bool {
    let file = Path::new("manifest.yaml");
    let read = match manifest::parse_bytes(file, bytes) {
        Ok(read) => read,
        Err(rejected) => {
            assert!(!rejected.errors.is_empty(), "it is rejected without an error");
            rejected.errors.iter().chain(&rejected.warnings).for_each(has_a_code);
            return false;
        }
    };
    read.warnings.iter().for_each(has_a_code);
    let printed = serde_json::to_string(&read.manifest).unwrap();
    let again = manifest::parse(file, &printed).unwrap_or_else(|rejected| panic!("{printed}: {rejected:?}"));
    assert_eq!(again.manifest, read.manifest, "{printed}");
    true
}

fn has_a_code(problem: &Problem) {
    assert!(problem.code.as_str().starts_with("HF-") && !problem.what.is_empty(), "{problem:?}");
}

/// Lines between the host and an extension's process: what parses is printed and parses to the same.
pub fn process_protocol(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').for_each(envelope);
    let valid = messages(bytes).filter(|message| {
        let asked = survives_printing::<ToHost>(message);
        let verdict = survives_printing::<HookVerdict>(message);
        let valid = [
            asked.is_some(),
            verdict.is_some(),
            survives_printing::<ToExtension>(message).is_some(),
            survives_printing::<ProcessWelcome>(message).is_some(),
            survives_printing::<RpcError>(message).is_some(),
        ];
        if let Some(ToHost::Ask(question)) = asked {
            drop(HostCall::try_from(question));
        }
        drop(verdict.map(Decision::from));
        valid.contains(&true)
    });
    valid.count() > 0
}

/// A line is a message of JSON-RPC that encodes to the same message, or an error that says why not.
fn envelope(line: &[u8]) {
    let message = match RpcMessage::<RpcError>::parse(line) {
        Ok(message) => message,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let body = |method: &str, params: &Option<Value>| match params {
        Some(params) => json!({ "method": method, "params": params }),
        None => json!({ "method": method }),
    };
    let line = match &message {
        RpcMessage::Request { id, method, params } => match id.as_u64() {
            Some(id) => encode_request(Some(id), &body(method, params), usize::MAX),
            None => return,
        },
        RpcMessage::Notification { method, params } => {
            encode_request(None, &body(method, params), usize::MAX)
        }
        RpcMessage::Response { id, answer } => encode_response(id, answer.as_ref(), usize::MAX),
    };
    assert_eq!(RpcMessage::<RpcError>::parse(line.unwrap().as_bytes()).unwrap(), message);
}

/// Lines between a client and the owner of a home: what parses is printed and parses to the same.
pub fn client_protocol(bytes: &[u8]) -> bool {
    let valid = messages(bytes).filter_map(|mut message| {
        let fields = message.as_object_mut()?;
        fields.remove("id");
        fields.remove("jsonrpc");
        let request = request_survives_printing(&message);
        let notification = survives_printing::<Notification>(&message).is_some();
        (request || notification).then_some(())
    });
    valid.count() > 0
}

fn request_survives_printing(message: &Value) -> bool {
    let read = |message: &Value| Request::read(message["method"].as_str()?, message["params"].clone()).ok();
    let Some(request) = read(message) else { return false };
    let printed = serde_json::to_value(&request).unwrap();
    let again = read(&printed).unwrap_or_else(|| panic!("not a request: {printed}"));
    assert_eq!(serde_json::to_value(&again).unwrap(), printed);
    true
}

fn messages(bytes: &[u8]) -> impl Iterator<Item = Value> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn survives_printing<T: Serialize + DeserializeOwned + Debug>(message: &Value) -> Option<T> {
    let read: T = serde_json::from_value(message.clone()).ok()?;
    let printed = serde_json::to_string(&read).unwrap();
    let again: T = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(serde_json::to_string(&again).unwrap(), printed);
    Some(again)
}

/// The head of a request to the gateway: no panic, and what is passed on is one request to the host that was asked about, which reads
/// the same when it is asked again.
pub fn gateway_head(bytes: &[u8]) -> bool {
    use request::{MAX_HEAD_BYTES, ProxyRequest, Rejection};

    let read = match ProxyRequest::parse(bytes) {
        Ok(read) => read,
        Err(Rejection { status, reason }) => {
            assert!(status.starts_with('4') && !reason.is_empty(), "{status}: {reason}");
            return false;
        }
    };
    let (host, port) = read.target();
    assert!(!host.is_empty() && port != 0, "{host}:{port}");
    let ProxyRequest::Plain { head, .. } = &read else { return true };
    let text = std::str::from_utf8(head).unwrap();
    let lines: Vec<&str> = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").collect();
    assert!(!lines.iter().any(|line| line.contains(['\r', '\n', '\0'])), "a line within a line: {text:?}");
    let fields = |wanted: &str| {
        lines[1..].iter().filter(|line| line.split(':').next().unwrap().eq_ignore_ascii_case(wanted)).count()
    };
    assert_eq!((fields("host"), fields("connection"), fields("transfer-encoding")), (1, 1, 0), "{text:?}");
    assert!(fields("content-length") <= 1, "{text:?}");
    let authority = lines[1].strip_prefix("Host: ").unwrap();
    let (method, rest) = text.split_once(' ').unwrap();
    let again = format!("{method} http://{authority}{rest}");
    if again.len() <= MAX_HEAD_BYTES {
        assert_eq!(ProxyRequest::parse(again.as_bytes()), Ok(read), "{again:?}");
    }
    true
}

/// Canonical JSON: what another implementation of RFC 8785 writes, and the same when it is read and written again.
pub fn canonical_json(bytes: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
    let ours = canonical(&value).unwrap();
    let others = serde_json_canonicalizer::to_vec(&value).unwrap();
    assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&others));
    let again: Value = serde_json::from_slice(&ours).unwrap();
    assert_eq!(String::from_utf8_lossy(&canonical(&again).unwrap()), String::from_utf8_lossy(&ours));
    true
}
