//! JSON-RPC 2.0 with one message per line.
//!
//! [`read_line`] and [`encode_request`], [`encode_response`] are the codec, [`RpcMessage`] is what one side receives, and
//! [`PendingRequests`] matches responses to requests. Use this crate wherever two processes exchange JSON-RPC over a byte stream.
//! Do not put limits, methods or error types here: the caller passes its line limit and its own error type.

mod line;
mod message;
mod pending;

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod pending_tests;

pub use line::{EncodeError, LineError, encode_request, encode_response, read_line};
pub use message::{MessageError, RpcMessage};
pub use pending::{Completion, PendingRequests};

/// The error codes that JSON-RPC 2.0 reserves.
pub mod error_code {
    /// The line is not valid JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The first of the codes that servers may define.
    pub const SERVER_ERROR: i64 = -32000;
}
