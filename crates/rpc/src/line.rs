//! Messages on the wire: JSON-RPC 2.0, one per line. Neither side has the other's store, so every value is written in full.

use holdfast_contract::content::to_whole_json;
use holdfast_contract::problem::{Code, Problem};
use holdfast_jsonrpc::{LineError, read_line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncBufRead;

/// The longest line that is read: a paste of many megabytes fits, a runaway does not.
const MAX_LINE_BYTES: usize = 64 << 20;

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

/// Reads a line; none at the end. The last one needs no line feed. One that is too long is an error that ends the connection.
pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, Problem> {
    let mut line = Vec::new();
    match read_line(from, &mut line, MAX_LINE_BYTES).await {
        Ok(true) | Err(LineError::Truncated) => Ok(Some(line)),
        Ok(false) => Ok(None),
        Err(LineError::TooLong { .. }) => {
            Err(Problem::new(Code::UsageInvalid, "a message is longer than 64 MiB"))
        }
        Err(LineError::Io(error)) => {
            Err(Problem::new(Code::ConnectionLost, format!("the connection broke: {error}")))
        }
    }
}

/// A message as it goes over the wire, with its newline.
pub(crate) fn write(mut message: Value) -> String {
    if let Some(fields) = message.as_object_mut() {
        fields.insert("jsonrpc".to_owned(), json!("2.0"));
    }
    format!("{message}\n")
}

/// A notification as it goes over the wire.
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
