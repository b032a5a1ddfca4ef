//! What one side receives from the other.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A message. `E` is the error object of a response.
#[derive(Debug, PartialEq)]
pub enum RpcMessage<E> {
    /// Wants a response under its id.
    Request {
        /// Chosen by the sender: any JSON value.
        id: Value,
        /// The method.
        method: String,
        /// The parameters.
        params: Option<Value>,
    },
    /// Wants no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Option<Value>,
    },
    /// The response to an earlier request.
    Response {
        /// The request's id.
        id: Value,
        /// The outcome.
        answer: Result<Value, E>,
    },
}

/// Why a line is not a message.
#[derive(Debug)]
pub enum MessageError {
    /// Not JSON, or an object with other fields or types.
    Json(serde_json::Error),
    /// The version is not 2.0.
    Version(String),
    /// A response must have exactly one of `result` and `error`.
    Response,
    /// Neither a request, nor a notification, nor a response.
    Kind,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::Version(version) => write!(f, "`jsonrpc` is {version:?} and not \"2.0\""),
            Self::Response => f.write_str("a response has either a result or an error"),
            Self::Kind => f.write_str("it is neither a request nor a response"),
        }
    }
}

impl std::error::Error for MessageError {}

/// All fields that any message may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "E: DeserializeOwned")]
struct Fields<E> {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<E>,
}

/// A result of `null` is a result.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl<E: DeserializeOwned> RpcMessage<E> {
    /// Reads a message. Unknown fields are an error.
    pub fn parse(line: &[u8]) -> Result<Self, MessageError> {
        let fields: Fields<E> = serde_json::from_slice(line).map_err(MessageError::Json)?;
        if fields.jsonrpc != "2.0" {
            return Err(MessageError::Version(fields.jsonrpc));
        }
        match fields {
            Fields { method: Some(method), id, params, result: None, error: None, .. } => Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            }),
            Fields { method: None, id: Some(id), params: None, result, error, .. } => match (result, error) {
                (Some(result), None) => Ok(Self::Response { id, answer: Ok(result) }),
                (None, Some(error)) => Ok(Self::Response { id, answer: Err(error) }),
                _ => Err(MessageError::Response),
            },
            _ => Err(MessageError::Kind),
        }
    }
}
