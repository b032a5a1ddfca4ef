//! A program's way to the network: a proxy on the loopback of its namespace, which has nothing else. This side only carries bytes. Whether a host
//! may be reached, and under which address, is asked of the host of the call that the program is working on, and is recorded there.

mod request;

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

use crate::connection::Connection;
use crate::gateway::request::{HEAD_BYTES, ProxyRequest, Wrong};

/// Connections that a program may have at once.
const CONNECTIONS: usize = 64;
/// How long a program may take to say what it wants, and a host to be connected to.
const HEAD: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(15);
/// How long nothing may be said on a connection, and how long it may be there.
const IDLE: Duration = Duration::from_secs(300);
const WHOLE: Duration = Duration::from_secs(3600);
/// How much of what a program still says is listened to after it was refused, and for how long.
const LEFT: u64 = 1 << 20;
const PARTING: Duration = Duration::from_secs(2);
/// Bytes that may go each way over one connection.
const BYTES: u64 = 1 << 30;

/// What the host answers where a connection may be made: the addresses that it has looked at.
#[derive(Deserialize)]
struct Open {
    addresses: Vec<SocketAddr>,
}

/// Serves a program until this is aborted, which closes every connection.
pub(crate) fn open(
    listener: std::net::TcpListener,
    connection: &Arc<Connection>,
) -> io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let (listener, connection) = (TcpListener::from_std(listener)?, Arc::downgrade(connection));
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    Ok(tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((program, _)) = listener.accept().await {
            while open.try_join_next().is_some() {}
            let (connection, room) = (connection.clone(), room.clone().try_acquire_owned());
            open.spawn(async move {
                match room {
                    // What becomes of it is the program's to see; there is nobody else to tell.
                    Ok(_room) => drop(timeout(WHOLE, serve(program, connection)).await),
                    Err(_) => {
                        let why = format!("{CONNECTIONS} connections are open already");
                        drop(refuse(program, "503 Service Unavailable", &why).await);
                    }
                }
            });
        }
    }))
}

/// Serves one connection of the program's.
async fn serve(mut program: TcpStream, connection: Weak<Connection>) -> io::Result<()> {
    let (head, rest) = match timeout(HEAD, read_head(&mut program)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return Err(error),
        Err(_) => return refuse(program, "408 Request Timeout", "the request did not come").await,
    };
    let request = match ProxyRequest::parse(&head) {
        Ok(request) => request,
        Err(Wrong(status, why)) => return refuse(program, status, why).await,
    };
    let (host, port) = request.target();
    let remote = match reach(&connection, host, port).await {
        Ok(reached) => reached,
        Err(fault) => {
            if let Some(connection) = connection.upgrade() {
                connection.warn(&format!("{host}:{port} was not reached: {}", fault.message));
            }
            let status = if fault.code == Code::ToolDenied { "403 Forbidden" } else { "502 Bad Gateway" };
            return refuse(program, status, &fault.message).await;
        }
    };
    carry(program, remote, &request, rest).await
}

/// Connects to a host, if it may be reached. Question and outcome are in the log before a byte goes either way.
async fn reach(connection: &Weak<Connection>, host: &str, port: u16) -> Result<TcpStream, Fault> {
    let gone = || Fault::new(Code::ToolDenied, "the program is being ended");
    let asked = connection.upgrade().ok_or_else(gone)?.oldest()?;
    let target = json!({ "host": host, "port": port });
    let answer = asked.call(HostCall::of(HostCallKind::NetworkConnect, target)).await?;
    let open: Open = serde_json::from_value(answer.value().cloned().unwrap_or_default())
        .map_err(|error| Fault::new(Code::Internal, format!("the host's answer makes no sense: {error}")))?;
    let mut why = "it has no address".to_owned();
    for address in open.addresses {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(remote)) => {
                let outcome = json!({ "host": host, "port": port, "address": address });
                asked.call(HostCall::of(HostCallKind::NetworkConnected, outcome)).await?;
                return Ok(remote);
            }
            Ok(Err(error)) => why = format!("{address}: {error}"),
            Err(_) => why = format!("{address}: no answer within {} s", CONNECT.as_secs()),
        }
    }
    let outcome = json!({ "host": host, "port": port, "error": why });
    asked.call(HostCall::of(HostCallKind::NetworkConnected, outcome)).await?;
    Err(Fault::new(Code::ToolFailed, format!("{host}:{port} cannot be reached: {why}")))
}

/// Reads up to the end of the request's head, and what came behind it.
async fn read_head(program: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok((read, rest));
        }
        if read.len() > HEAD_BYTES {
            return Ok((read, Vec::new()));
        }
        if program.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Carries bytes both ways until one side has said everything.
async fn carry(
    mut program: TcpStream,
    mut remote: TcpStream,
    request: &ProxyRequest,
    rest: Vec<u8>,
) -> io::Result<()> {
    let length = match request {
        ProxyRequest::Tunnel { .. } => {
            program.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            BYTES
        }
        ProxyRequest::Plain { head, length, .. } => {
            remote.write_all(head).await?;
            (*length).min(BYTES)
        }
    };
    let whole = matches!(request, ProxyRequest::Tunnel { .. });
    let (from_program, to_program) = program.split();
    let (from_remote, to_remote) = remote.split();
    // What belongs to the request goes out, and of a plain one nothing behind it: it would be another one.
    let out = copy(AsyncReadExt::chain(&rest[..], from_program).take(length), to_remote, whole);
    let back = copy(from_remote.take(BYTES), to_program, true);
    match whole {
        true => tokio::try_join!(out, back).map(drop),
        // A host may answer before it has heard everything, and then it has.
        false => tokio::select! {
            ended = back => ended,
            failed = async { match out.await { Err(error) => error, Ok(()) => std::future::pending().await } } => Err(failed),
        },
    }
}

/// Copies to the end, as long as something comes now and then.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    close: bool,
) -> io::Result<()> {
    let mut chunk = vec![0; 16 << 10];
    loop {
        match timeout(IDLE, from.read(&mut chunk)).await? {
            Ok(0) if close => return to.shutdown().await,
            Ok(0) => return Ok(()),
            Ok(read) => timeout(IDLE, to.write_all(chunk.get(..read).unwrap_or_default())).await??,
            Err(error) => return Err(error),
        }
    }
}

/// Tells the program why not.
async fn refuse(mut program: TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("{why}\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    program.write_all(answer.as_bytes()).await?;
    program.shutdown().await?;
    // Closing on what was not read would take the answer back.
    let rest = async { tokio::io::copy(&mut program.take(LEFT), &mut tokio::io::sink()).await };
    timeout(PARTING, rest).await?.map(drop)
}
