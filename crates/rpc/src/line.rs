//! Messages on the wire: JSON-RPC 2.0, one per line. Neither side has the other's values, so all of them are written whole.

use holdfast_contract::content::to_whole_json;
use holdfast_contract::problem::{Code, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The longest line that is read: a paste of many megabytes fits, a runaway does not.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// An answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub id: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

/// A JSON-RPC error. Its data is the problem.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErrorObject {
    pub code: i64,
    pub message: String,
    pub data: Option<Problem>,
}

/// JSON-RPC's own numbers; everything else is the application's.
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const FAILED: i64 = -32000;

/// Reads a line; none at the end. One that is too long is an error that ends the connection.
pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, Problem> {
    let mut line = Vec::new();
    let broken =
        |error: std::io::Error| Problem::new(Code::ConnectionLost, format!("the connection broke: {error}"));
    let read = from.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.map_err(broken)?;
    match read {
        0 => Ok(None),
        _ if line.ends_with(b"\n") || (read as u64) < MAX_LINE_BYTES => Ok(Some(line)),
        _ => Err(Problem::new(Code::UsageInvalid, "a message is longer than 64 MiB")),
    }
}

/// A message as it goes over the wire, with its newline.
pub(crate) fn write(mut message: Value) -> String {
    if let Some(fields) = message.as_object_mut() {
        fields.insert("jsonrpc".to_owned(), json!("2.0"));
    }
    format!("{message}\n")
}

/// A notice as it goes over the wire.
pub(crate) fn notice(notice: &impl Serialize) -> String {
    write(to_whole_json(notice).unwrap_or_default())
}

/// An answer as it goes over the wire.
pub(crate) fn answer(id: Value, answer: Result<Value, (i64, Problem)>) -> String {
    write(match answer {
        Ok(result) => json!({ "id": id, "result": result }),
        Err((code, problem)) => {
            json!({ "id": id, "error": { "code": code, "message": problem.what, "data": problem } })
        }
    })
}
