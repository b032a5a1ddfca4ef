//! A program's only access to the network: a proxy on the loopback interface of its namespace, which has no other interface. This
//! side only copies bytes. Whether a host may be connected to, and at which address, is a host call on behalf of the call that the
//! program is working on, and is recorded there.

mod request;
#[cfg(test)]
mod request_tests;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::gateway::request::{MAX_HEAD_BYTES, ProxyRequest, Rejection};
use crate::program::CallSource;

/// Open connections of one program.
const MAX_CONNECTIONS: usize = 64;
/// How long a program may take to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection may be idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a connection may stay open in all.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3600);
/// How much a program may still send after its request was refused, and for how long it is read.
const MAX_DISCARDED_BYTES: u64 = 1 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes in each direction of one connection.
const MAX_BYTES: u64 = 1 << 30;

/// The host's answer where a connection is allowed: the addresses that it has checked.
#[derive(Deserialize)]
struct Open {
    addresses: Vec<SocketAddr>,
}

/// Serves a program until this is aborted, which closes every connection.
pub fn open<S: CallSource + 'static>(
    listener: std::net::TcpListener,
    calls: &Arc<S>,
) -> io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let calls: Weak<dyn CallSource> = Arc::downgrade(&(calls.clone() as Arc<dyn CallSource>));
    let listener = TcpListener::from_std(listener)?;
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    Ok(tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((program, _)) = listener.accept().await {
            while open.try_join_next().is_some() {}
            let (calls, permit) = (calls.clone(), permits.clone().try_acquire_owned());
            open.spawn(async move {
                match permit {
                    // The program sees how its connection ended; nothing else depends on it.
                    Ok(_permit) => drop(timeout(CONNECTION_TIMEOUT, serve(program, calls)).await),
                    Err(_) => {
                        let why = format!("too many connections: {MAX_CONNECTIONS} are open");
                        drop(refuse(program, "503 Service Unavailable", &why).await);
                    }
                }
            });
        }
    }))
}

/// Serves one connection of the program.
async fn serve(mut program: TcpStream, calls: Weak<dyn CallSource>) -> io::Result<()> {
    let (head, rest) = match timeout(HEAD_TIMEOUT, read_head(&mut program)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return Err(error),
        Err(_) => return refuse(program, "408 Request Timeout", "timed out waiting for the request").await,
    };
    let request = match ProxyRequest::parse(&head) {
        Ok(request) => request,
        Err(Rejection { status, reason }) => return refuse(program, status, reason).await,
    };
    let (host, port) = request.target();
    let remote = match connect(&calls, host, port).await {
        Ok(reached) => reached,
        Err(fault) => {
            if let Some(calls) = calls.upgrade() {
                calls.warn(&format!("could not connect to {host}:{port}: {}", fault.message));
            }
            let status = if fault.code == Code::ToolDenied { "403 Forbidden" } else { "502 Bad Gateway" };
            return refuse(program, status, &fault.message).await;
        }
    };
    carry(program, remote, &request, rest).await
}

/// Connects to a host, if the program may. The host call and its outcome are in the log before a byte is sent either way.
pub async fn connect(calls: &Weak<dyn CallSource>, host: &str, port: u16) -> Result<TcpStream, Fault> {
    let gone = || Fault::new(Code::ToolDenied, "the program is being stopped");
    let asked = calls.upgrade().ok_or_else(gone)?.oldest()?;
    let target = json!({ "host": host, "port": port });
    let answer = asked.call(HostCall::of(HostCallKind::NetworkConnect, target)).await?;
    let open: Open = serde_json::from_value(answer.value().clone()).map_err(|error| {
        Fault::new(Code::Internal, format!("invalid answer to `network.connect`: {error}"))
    })?;
    let mut why = "the host has no address".to_owned();
    for address in open.addresses {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(remote)) => {
                let outcome = json!({ "host": host, "port": port, "address": address });
                asked.call(HostCall::of(HostCallKind::NetworkConnected, outcome)).await?;
                return Ok(remote);
            }
            Ok(Err(error)) => why = format!("{address}: {error}"),
            Err(_) => why = format!("{address}: no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    let outcome = json!({ "host": host, "port": port, "error": why });
    asked.call(HostCall::of(HostCallKind::NetworkConnected, outcome)).await?;
    Err(Fault::new(Code::ToolFailed, format!("could not connect to {host}:{port}: {why}")))
}

/// Reads up to the end of the request's head; the second value is what arrived after it.
async fn read_head(program: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok((read, rest));
        }
        if read.len() > MAX_HEAD_BYTES {
            return Ok((read, Vec::new()));
        }
        if program.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Copies bytes both ways until one side has closed its direction.
async fn carry(
    mut program: TcpStream,
    mut remote: TcpStream,
    request: &ProxyRequest,
    rest: Vec<u8>,
) -> io::Result<()> {
    let length = match request {
        ProxyRequest::Tunnel { .. } => {
            program.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            MAX_BYTES
        }
        ProxyRequest::Plain { head, length, .. } => {
            remote.write_all(head).await?;
            (*length).min(MAX_BYTES)
        }
    };
    let tunnel = matches!(request, ProxyRequest::Tunnel { .. });
    let (from_program, to_program) = program.split();
    let (from_remote, to_remote) = remote.split();
    // Of a plain request only its body is sent: bytes after it would be a second request, which was not checked.
    let out = copy(AsyncReadExt::chain(&rest[..], from_program).take(length), to_remote, tunnel);
    let back = copy(from_remote.take(MAX_BYTES), to_program, true);
    if tunnel {
        return tokio::try_join!(out, back).map(drop);
    }
    // A host may respond before it has read the whole body; the response then ends the exchange.
    tokio::select! {
        ended = back => ended,
        failed = async { match out.await { Err(error) => error, Ok(()) => std::future::pending().await } } => Err(failed),
    }
}

/// Copies to the end of the stream, with a timeout on every read and write.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    close: bool,
) -> io::Result<()> {
    let mut chunk = vec![0; 16 << 10];
    loop {
        match timeout(IDLE_TIMEOUT, from.read(&mut chunk)).await? {
            Ok(0) if close => return to.shutdown().await,
            Ok(0) => return Ok(()),
            Ok(read) => timeout(IDLE_TIMEOUT, to.write_all(chunk.get(..read).unwrap_or_default())).await??,
            Err(error) => return Err(error),
        }
    }
}

/// Refuses a request with a status and a reason.
async fn refuse(mut program: TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("{why}\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    program.write_all(answer.as_bytes()).await?;
    program.shutdown().await?;
    // Closing a socket with unread input resets the connection, and the response could be lost.
    let rest =
        async { tokio::io::copy(&mut program.take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await };
    timeout(DISCARD_TIMEOUT, rest).await?.map(drop)
}
