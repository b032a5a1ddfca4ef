//! The codec: messages to lines, and lines from a byte stream with a limit on their length.

use std::{fmt, io};

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Why no line could be read.
#[derive(Debug)]
pub enum LineError {
    /// The stream failed.
    Io(io::Error),
    /// The line has more bytes than the limit.
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The stream ended before the line did. The bytes that were read are in the buffer.
    Truncated,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "read error: {error}"),
            Self::TooLong { limit } => write!(f, "a line is longer than {limit} bytes"),
            Self::Truncated => f.write_str("the stream ended in the middle of a line"),
        }
    }
}

impl std::error::Error for LineError {}

/// Appends the next line to a buffer, without its line feed; false at the end of the stream. Never holds more than `limit` bytes
/// and one, so that a peer cannot exhaust memory.
pub async fn read_line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    limit: usize,
) -> Result<bool, LineError> {
    let mut limited = from.take(limit as u64 + 1);
    let read = limited.read_until(b'\n', line).await.map_err(LineError::Io)?;
    match line.last() {
        Some(b'\n') if read > 0 => {
            line.pop();
            Ok(true)
        }
        _ if read == 0 => Ok(false),
        _ if read > limit => Err(LineError::TooLong { limit }),
        _ => Err(LineError::Truncated),
    }
}

/// Why a message could not be encoded.
#[derive(Debug)]
pub enum EncodeError {
    /// The message cannot be represented as JSON.
    Json(serde_json::Error),
    /// The line would exceed the limit.
    TooLong {
        /// Bytes of the message.
        bytes: usize,
    },
}

/// Encodes a request, or a notification where there is no id. The message is an object with `method` and, if there are any,
/// `params`.
pub fn encode_request(
    id: Option<u64>,
    message: &impl Serialize,
    limit: usize,
) -> Result<String, EncodeError> {
    let mut line = match id {
        Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},"),
        None => "{\"jsonrpc\":\"2.0\",".to_owned(),
    };
    let text = serde_json::to_string(message).map_err(EncodeError::Json)?;
    // The envelope's fields replace the message's opening brace, so that the message is serialised only once.
    line.push_str(text.get(1..).unwrap_or_default());
    terminated(line, limit)
}

/// Encodes the response to a request.
pub fn encode_response<E: Serialize>(
    id: &Value,
    answer: Result<&Value, &E>,
    limit: usize,
) -> Result<String, EncodeError> {
    #[derive(Serialize)]
    struct Response<'a, E> {
        id: &'a Value,
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a E>,
    }
    let response = Response { id, jsonrpc: "2.0", result: answer.ok(), error: answer.err() };
    terminated(serde_json::to_string(&response).map_err(EncodeError::Json)?, limit)
}

fn terminated(mut line: String, limit: usize) -> Result<String, EncodeError> {
    if line.len() >= limit {
        return Err(EncodeError::TooLong { bytes: line.len() });
    }
    line.push('\n');
    Ok(line)
}
