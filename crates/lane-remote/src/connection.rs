//! A connection to another Holdfast: one for each call, so that nothing is left over from an earlier one.

use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::RpcError;
use holdfast_contract::remote::{
    REMOTE_LINE_BYTES, REMOTE_PROTOCOL, RemoteCall, RemoteHello, RemoteRequest, RemoteWelcome,
};
use holdfast_jsonrpc::{EncodeError, RpcMessage, encode_request, read_line};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, lookup_host};

use crate::lane::RemoteTarget;

/// How long the other side may take until it has said what it offers.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that was welcomed.
pub(crate) struct RemoteConnection {
    stream: BufReader<TcpStream>,
    /// What is offered.
    pub welcome: RemoteWelcome,
}

fn unavailable(target: &RemoteTarget, why: impl std::fmt::Display) -> Fault {
    let message = format!("the remote `{}` at {} does not answer: {why}", target.name, target.address);
    Fault::new(Code::RemoteUnavailable, message)
}

impl RemoteConnection {
    /// Connects and says who is calling.
    pub(crate) async fn open(target: &RemoteTarget, token: &SecretString) -> Result<Self, Fault> {
        let opened = tokio::time::timeout(HELLO_TIMEOUT, Self::welcomed(target, token)).await;
        opened.unwrap_or_else(|_| Err(unavailable(target, "timeout")))
    }

    async fn welcomed(target: &RemoteTarget, token: &SecretString) -> Result<Self, Fault> {
        let stream = BufReader::new(connect(target).await?);
        let welcome = RemoteWelcome { protocol: String::new(), tools: Vec::new() };
        let mut connection = Self { stream, welcome };
        let (protocol, token) = (REMOTE_PROTOCOL.to_owned(), token.expose_secret().to_owned());
        let hello = RemoteRequest::Hello(RemoteHello { protocol, token });
        connection.send(target, 1, &hello).await?;
        let answer = connection.receive(1).await.map_err(|why| unavailable(target, why))?;
        let refused =
            |why: String| Fault::new(Code::RemoteRefused, format!("the remote `{}`: {why}", target.name));
        let answer = answer.map_err(|error| refused(error.message))?;
        let welcome: RemoteWelcome =
            serde_json::from_value(answer).map_err(|error| refused(error.to_string()))?;
        if welcome.protocol != REMOTE_PROTOCOL {
            let theirs = &welcome.protocol;
            return Err(refused(format!("it speaks version {theirs:?} and not {REMOTE_PROTOCOL:?}")));
        }
        connection.welcome = welcome;
        Ok(connection)
    }

    /// Runs a tool.
    pub(crate) async fn call(mut self, target: &RemoteTarget, call: RemoteCall) -> Result<Value, Fault> {
        self.send(target, 2, &RemoteRequest::Call(call)).await?;
        // From here on the call may have had its effect.
        let lost = |why| {
            let message = format!("the connection to the remote `{}` was lost: {why}", target.name);
            Fault::new(Code::ToolInterrupted, message)
        };
        self.receive(2).await.map_err(lost)?.map_err(|error| failure(target, error))
    }

    async fn send(&mut self, target: &RemoteTarget, id: u64, request: &RemoteRequest) -> Result<(), Fault> {
        let line = encode_request(Some(id), request, REMOTE_LINE_BYTES).map_err(|error| match error {
            EncodeError::TooLong { bytes } => {
                Fault::new(Code::AnswerTooLarge, format!("a message of {bytes} bytes is too long"))
            }
            EncodeError::Json(error) => Fault::new(Code::Internal, error.to_string()),
        })?;
        let stream = self.stream.get_mut();
        stream.write_all(line.as_bytes()).await.map_err(|error| unavailable(target, error))
    }

    async fn receive(&mut self, asked: u64) -> Result<Result<Value, RpcError>, String> {
        let mut line = Vec::new();
        match read_line(&mut self.stream, &mut line, REMOTE_LINE_BYTES).await {
            Ok(true) => {}
            Ok(false) => return Err("it was closed".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        match RpcMessage::<RpcError>::parse(&line).map_err(|error| error.to_string())? {
            RpcMessage::Response { id, answer } if id == asked => Ok(answer),
            _ => Err("it sent something that was not asked for".to_owned()),
        }
    }
}

/// Connects. What is sent is not encrypted, so that only this machine is called unless the settings say otherwise.
async fn connect(target: &RemoteTarget) -> Result<TcpStream, Fault> {
    let found = lookup_host(&target.address).await.map_err(|error| unavailable(target, error))?;
    let addresses: Vec<_> = found.collect();
    if !target.insecure && !addresses.iter().all(|address| address.ip().is_loopback()) {
        let message = format!(
            "{} is another machine, and what is sent to it is not encrypted: use a tunnel to this machine, or set \
             `remotes.{}.insecure: true`",
            target.address, target.name
        );
        return Err(Fault::new(Code::RemoteRefused, message));
    }
    TcpStream::connect(addresses.as_slice()).await.map_err(|error| unavailable(target, error))
}

/// What the other side says of a call that failed. Its codes are its own, except those that say the same here.
fn failure(target: &RemoteTarget, error: RpcError) -> Fault {
    let theirs = error.data.as_ref().and_then(|data| data["code"].as_str());
    let same =
        [Code::ToolDenied, Code::ToolArguments, Code::ToolTimeout, Code::ToolCancelled, Code::ToolUnknown];
    let code = same.into_iter().find(|code| Some(code.as_str()) == theirs).unwrap_or(Code::ToolFailed);
    Fault::new(code, format!("the remote `{}`: {}", target.name, error.message))
}
