//! A program's only access to the network: the loopback interface of its namespace, which has no other interface. A proxy listens there,
//! and for programs that know no proxy a resolver, and listeners for the addresses that it gives out. This side only copies bytes. Whether
//! a host may be connected to, and at which address, is a host call on behalf of the call that the program is working on, and is recorded
//! there.

mod names;
#[cfg(test)]
mod names_tests;
mod request;
#[cfg(test)]
mod request_tests;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::manifest::ListenPort;
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{TransparentListeners, gateway_address};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::gateway::names::LookedUpNames;
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
const RESOLVER_PORT: u16 = 53;
/// Web, mail, and the web's usual alternatives.
const USUAL_PORTS: &[u16] = &[80, 443, 143, 993, 465, 587, 8080, 8443];
const MAX_PORTS: usize = 32;

/// The host's answer where a connection is allowed: the addresses that it has checked.
#[derive(Deserialize)]
struct Open {
    addresses: Vec<SocketAddr>,
}

/// What a listener of a program is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    /// Requests to a proxy.
    Proxy,
    /// Names to look up.
    Resolver,
    /// Connections to addresses.
    Addresses,
}

/// What listens on the loopback of a program.
pub struct GatewayListeners {
    /// For requests to a proxy.
    pub proxy: std::net::TcpListener,
    /// For names and connections without a proxy, where the machine leads them here.
    pub transparent: Option<TransparentListeners>,
}

/// The ports at which connections without a proxy are accepted: those of granted hosts, and the usual ones of hosts that the user may be
/// asked about. Each is a listener, and costs a descriptor. Ports that the program itself listens on are not among them.
pub(crate) fn ports(granted: &[String], own: &[ListenPort]) -> Vec<u16> {
    let named = granted.iter().filter_map(|host| host.rsplit_once(':')?.1.parse().ok());
    let taken = [gateway_address().port(), RESOLVER_PORT, 0];
    let mut ports: Vec<u16> = Vec::new();
    for port in named.chain(USUAL_PORTS.iter().copied()) {
        let is_own = own.iter().any(|listens| listens.number() == port);
        if !is_own && !ports.contains(&port) && !taken.contains(&port) && ports.len() < MAX_PORTS {
            ports.push(port);
        }
    }
    ports
}

/// Serves a program until this is aborted, which closes every connection.
pub fn open<S: CallSource + 'static>(
    GatewayListeners { proxy, transparent }: GatewayListeners,
    calls: &Arc<S>,
) -> io::Result<JoinHandle<()>> {
    let mut listeners = vec![(Service::Proxy, proxy)];
    match transparent {
        Some(TransparentListeners { resolver, connections }) => {
            listeners.push((Service::Resolver, resolver));
            listeners.extend(connections.into_iter().map(|listener| (Service::Addresses, listener)));
        }
        None => calls.warn("this machine leads no addresses to the gateway: names cannot be looked up, and only libraries that use `HTTP_PROXY` have a network"),
    }
    let calls: Weak<dyn CallSource> = Arc::downgrade(&(calls.clone() as Arc<dyn CallSource>));
    let program = Arc::new(GatewayState {
        calls,
        names: Mutex::default(),
        permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
    });
    let mut serving = JoinSet::new();
    for (service, listener) in listeners {
        listener.set_nonblocking(true)?;
        let (listener, program) = (TcpListener::from_std(listener)?, program.clone());
        serving.spawn(async move { program.listen(service, listener).await });
    }
    Ok(tokio::spawn(async move { while serving.join_next().await.is_some() {} }))
}

/// A program with its connections.
struct GatewayState {
    calls: Weak<dyn CallSource>,
    names: Mutex<LookedUpNames>,
    permits: Arc<Semaphore>,
}

impl GatewayState {
    async fn listen(self: Arc<Self>, service: Service, listener: TcpListener) {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            while open.try_join_next().is_some() {}
            let (program, permit) = (self.clone(), self.permits.clone().try_acquire_owned());
            open.spawn(async move {
                match (permit, service) {
                    // The program sees how its connection ended; nothing else depends on it.
                    (Ok(_permit), _) => {
                        drop(timeout(CONNECTION_TIMEOUT, program.serve(service, stream)).await)
                    }
                    (Err(_), Service::Proxy) => {
                        let why = format!("too many connections: {MAX_CONNECTIONS} are open");
                        drop(refuse(stream, "503 Service Unavailable", &why).await);
                    }
                    (Err(_), Service::Resolver | Service::Addresses) => {}
                }
            });
        }
    }

    async fn serve(&self, service: Service, stream: TcpStream) -> io::Result<()> {
        match service {
            Service::Proxy => serve(stream, self.calls.clone()).await,
            Service::Resolver => self.resolve(stream).await,
            Service::Addresses => self.pass_on(stream).await,
        }
    }

    /// Answers requests for names, each with its length before it.
    async fn resolve(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let length = timeout(HEAD_TIMEOUT, stream.read_u16()).await??;
            let mut request = vec![0; usize::from(length)];
            timeout(HEAD_TIMEOUT, stream.read_exact(&mut request)).await??;
            let Some(response) = self.names.lock().answer(&request) else { return Ok(()) };
            stream.write_u16(response.len() as u16).await?;
            stream.write_all(&response).await?;
        }
    }

    /// Connects to what the program means by the address that it has connected to, and copies bytes both ways.
    async fn pass_on(&self, mut program: TcpStream) -> io::Result<()> {
        let SocketAddr::V4(address) = program.local_addr()? else { return Ok(()) };
        let (host, port) = (self.names.lock().host(*address.ip()), address.port());
        let mut remote = match connect(&self.calls, &host, port).await {
            Ok(remote) => remote,
            Err(fault) => {
                if let Some(calls) = self.calls.upgrade() {
                    calls.warn(&format!("could not connect to {host}:{port}: {}", fault.message));
                }
                // The program's connection is reset, as by a host that refuses.
                return program.set_zero_linger();
            }
        };
        let ((from_program, to_program), (from_remote, to_remote)) = (program.split(), remote.split());
        let out = copy(from_program.take(MAX_BYTES), to_remote, true);
        let back = copy(from_remote.take(MAX_BYTES), to_program, true);
        tokio::try_join!(out, back).map(drop)
    }
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
            let is_refused = matches!(fault.code, Code::ToolDenied | Code::HookSideEffect);
            let status = if is_refused { "403 Forbidden" } else { "502 Bad Gateway" };
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
