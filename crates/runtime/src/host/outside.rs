//! The capabilities that reach outside of the program: `network`, `http`, `files` and `environment`. Each call is granted by what it names:
//! a host, a folder, a variable.

pub(crate) mod consent;
mod environment;
pub(super) mod files;
pub(crate) mod http;
mod listen;
pub(crate) mod network;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::host_call::arguments::SentBytes;
use holdfast_contract::problem::{Code, Fault};
use serde_json::{Value, json};

/// Bytes as an extension sent them.
fn received(bytes: SentBytes) -> Result<Vec<u8>, Fault> {
    match bytes {
        SentBytes::Text(text) => Ok(text.into_bytes()),
        SentBytes::Encoded { base64 } => STANDARD.decode(base64).map_err(|error| {
            Fault::new(Code::ToolArguments, format!("the bytes are not valid base64: {error}"))
        }),
    }
}

/// Bytes for an extension: as text where they are UTF-8.
fn sent(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(other) => json!({ "base64": STANDARD.encode(other.as_bytes()) }),
    }
}
