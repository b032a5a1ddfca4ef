//! `holdfast rpc`: the protocol over standard input and output, for automation.

use std::collections::BTreeSet;

use holdfast_contract::problem::{Code, Problem};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, split, stdin, stdout};

use crate::client::link::ClientOrigin;
use crate::exit::Exit;

/// What is still to come once the input has ended.
#[derive(Default)]
struct Outstanding {
    /// Requests without an answer.
    requests: u64,
    /// Requests to open a session with `answers: true`.
    opening: Vec<Value>,
    /// Sessions that were opened so.
    attended: BTreeSet<String>,
    /// Questions to a person, by session and frame, which cannot be answered any more.
    questions: BTreeSet<(String, u64)>,
}

/// Carries lines between this process's own input and output and the owner. When the input ends, what was asked is answered first, as
/// far as it needs no approval.
///
/// A client that does not say where its sessions work, or under which profile, means this process's folder and `--profile`.
pub(crate) async fn rpc(
    owner: impl AsyncRead + AsyncWrite + Send + 'static,
    origin: &ClientOrigin,
) -> Result<Exit, Problem> {
    let broken =
        |error: std::io::Error| Problem::new(Code::ConnectionLost, format!("the connection broke: {error}"));
    let (answers, mut requests) = split(owner);
    let (mut input, mut answers, mut output) = (BufReader::new(stdin()), BufReader::new(answers), stdout());
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut outstanding = Outstanding::default();
    let mut open = true;
    while open || (outstanding.requests > 0 && outstanding.questions.is_empty()) {
        tokio::select! {
            read = input.read_until(b'\n', &mut asked), if open => {
                open = read.map_err(broken)? > 0;
                if !asked.trim_ascii().is_empty() {
                    if let Some(whole) = with_origin(&asked, origin) {
                        asked = whole;
                    }
                    let end: &[u8] = if asked.ends_with(b"\n") { b"" } else { b"\n" };
                    asked.extend_from_slice(end);
                    requests.write_all(&asked).await.map_err(broken)?;
                    requests.flush().await.map_err(broken)?;
                    outstanding.asked(&serde_json::from_slice(&asked).unwrap_or_default());
                }
                asked.clear();
            }
            read = answers.read_until(b'\n', &mut answered) => {
                if read.map_err(broken)? == 0 {
                    return Err(Problem::new(Code::ConnectionLost, "disconnected from the process that owns the home"));
                }
                output.write_all(&answered).await.map_err(broken)?;
                output.flush().await.map_err(broken)?;
                outstanding.answered(&serde_json::from_slice(&answered).unwrap_or_default());
                answered.clear();
            }
        }
    }
    Ok(Exit::Done)
}

/// A request that opens a session or introduces the client, with the folder and the profile that it does not name.
fn with_origin(line: &[u8], origin: &ClientOrigin) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    if !matches!(message["method"].as_str(), Some("hello" | "session.open")) {
        return None;
    }
    let folder = origin.folder.as_ref().and_then(|folder| folder.to_str()).map(Value::from);
    let profile = origin.profile.and_then(|profile| serde_json::to_value(profile).ok());
    let fields = message.as_object_mut()?;
    let params = fields.entry("params").or_insert_with(|| Value::Object(Map::new())).as_object_mut()?;
    for (name, value) in [("folder", folder), ("profile", profile)] {
        if let Some(value) = value.filter(|_| params.get(name).is_none_or(Value::is_null)) {
            params.insert(name.to_owned(), value);
        }
    }
    serde_json::to_vec(&message).ok()
}

impl Outstanding {
    /// Takes a request.
    fn asked(&mut self, message: &Value) {
        self.requests += 1;
        if message["method"] == "session.open" && message["params"]["answers"] == true {
            self.opening.push(message["id"].clone());
        }
    }

    /// Takes an answer or a notification.
    fn answered(&mut self, message: &Value) {
        if message["method"] == "frame" {
            return self.frame(&message["params"]);
        }
        if message["method"].is_string() {
            return;
        }
        self.requests = self.requests.saturating_sub(1);
        let opened = self.opening.iter().position(|id| *id == message["id"]);
        if let Some(place) = opened {
            self.opening.swap_remove(place);
            self.attended.extend(message["result"]["session"].as_str().map(str::to_owned));
        }
    }

    fn frame(&mut self, frame: &Value) {
        let session = frame["stream"].as_str().unwrap_or_default();
        // Without an answer, the policy decides.
        if !self.attended.contains(session) {
            return;
        }
        let request = |seq: &Value| (session.to_owned(), seq.as_u64().unwrap_or_default());
        match frame["kind"].as_str() {
            Some("approval.requested" | "ui.requested") => {
                self.questions.insert(request(&frame["seq"]));
            }
            Some("approval.answered") => {
                self.questions.remove(&request(&frame["body"]["approval"]));
            }
            Some("ui.answered") => {
                self.questions.remove(&request(&frame["body"]["request"]));
            }
            Some("turn.ended") => self.questions.retain(|(of, _)| of != session),
            _ => {}
        }
    }
}
