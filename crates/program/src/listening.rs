//! The ports that a program listens on. A program has a loopback of its own, so this process listens on that of the machine and forwards
//! each connection: by a socket of the program's namespace, which reaches that loopback and nothing else, to the same port there.
//!
//! A port belongs to one extension of this process at a time. [`ProgramPorts`] are those of one program, and close with it.

mod claim;
mod holder;
#[cfg(test)]
mod listening_tests;
mod usage;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::ListenPort;
use holdfast_contract::problem::{Code, Fault};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::listening::claim::PortClaim;
pub use crate::listening::usage::PortCounters;

/// Connections to one program that may be open, all its ports together. Each costs a descriptor, also while it is not open.
pub(crate) const MAX_CONNECTIONS: usize = 64;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may be open on which nothing was sent yet, either way.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may be idle afterwards, in both directions.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Bytes that are read and not yet written, in each direction of a connection.
const CHUNK_BYTES: usize = 16 << 10;
/// The pause after a connection could not be accepted, for example because this process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The ports of a program.
pub struct ProgramPorts {
    connectors: Arc<Connectors>,
    state: Mutex<PortState>,
}

enum PortState {
    NotOpen,
    /// The tasks that accept connections; each has its port. They end when this is dropped.
    Open {
        _tasks: JoinSet<()>,
    },
    Closed,
}

impl ProgramPorts {
    /// Ports that are not open yet, of a program that is reached by these sockets.
    pub fn new(connectors: Vec<OwnedFd>) -> Self {
        Self {
            connectors: Arc::new(Connectors(Mutex::new(connectors))),
            state: Mutex::new(PortState::NotOpen),
        }
    }

    /// Listens on these ports of this machine's loopback. A fault if one of them is in use, or if the machine lacks what it takes. The
    /// ports of an extension that is being stopped are waited for.
    pub async fn open(
        &self,
        id: &ExtensionId,
        ports: &[ListenPort],
        counters: &Arc<PortCounters>,
    ) -> Result<(), Fault> {
        if ports.is_empty() || matches!(*self.state.lock(), PortState::Open { .. }) {
            return Ok(());
        }
        if self.connectors.0.lock().is_empty() {
            let message = format!("`{id}` cannot listen: programs have no namespaces on this machine");
            return Err(Fault::new(Code::ListenDenied, message));
        }
        let mut listeners = Vec::new();
        for port in ports {
            let claim = PortClaim::take(id, *port).await?;
            let listener = TcpListener::bind(port.address()).await;
            listeners.push((claim, listener.map_err(|error| unavailable(id, *port, &error))?));
        }
        let mut state = self.state.lock();
        if matches!(*state, PortState::Closed) {
            return Err(Fault::new(Code::ExtensionFault, "the process has exited"));
        }
        let mut tasks = JoinSet::new();
        for (claim, listener) in listeners {
            let port = OpenPort { connectors: self.connectors.clone(), counters: counters.clone(), claim };
            tasks.spawn(port.serve(listener));
        }
        *state = PortState::Open { _tasks: tasks };
        Ok(())
    }

    /// Closes the ports and every connection. They may be opened again.
    pub fn release(&self) {
        let mut state = self.state.lock();
        if matches!(*state, PortState::Open { .. }) {
            *state = PortState::NotOpen;
        }
    }

    /// The same for a program that has ended.
    pub fn close(&self) {
        *self.state.lock() = PortState::Closed;
    }
}

fn unavailable(id: &ExtensionId, port: ListenPort, error: &io::Error) -> Fault {
    let address = port.address();
    let why = if error.kind() == io::ErrorKind::AddrInUse {
        let user = holder::of(port).unwrap_or_else(|| "another program".to_owned());
        format!(
            "{user} listens there; stop it, or set another port for `{id}` and grant it with `holdfast ext grant {id} --listen PORT`"
        )
    } else {
        error.to_string()
    };
    Fault::new(Code::PortUnavailable, format!("`{id}` cannot listen on {address}: {why}"))
}

/// Sockets of a program's namespace that are not connected.
struct Connectors(Mutex<Vec<OwnedFd>>);

/// One of them, in use. It is disconnected and given back when this is dropped.
struct Connector {
    /// None only while it is given back.
    socket: Option<OwnedFd>,
    pool: Arc<Connectors>,
}

impl Connector {
    fn take(pool: &Arc<Connectors>) -> Option<Self> {
        let socket = pool.0.lock().pop()?;
        Some(Self { socket: Some(socket), pool: pool.clone() })
    }

    /// Connects to a port of the program's loopback. The stream is another handle on the same socket.
    async fn connect(&self, port: ListenPort) -> io::Result<TcpStream> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?.try_clone()?;
        let socket = TcpSocket::from_std_stream(socket.into());
        timeout(CONNECT_TIMEOUT, socket.connect(port.address().into())).await?
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        // The kernel resets what is still open, and the socket can be connected again.
        if rustix::net::connect_unspec(&socket).is_ok() {
            // What the earlier connection ended with is not an error of the next one.
            let _ = rustix::net::sockopt::socket_error(&socket);
            self.pool.0.lock().push(socket);
        }
    }
}

/// A port that is listened on.
struct OpenPort {
    connectors: Arc<Connectors>,
    counters: Arc<PortCounters>,
    claim: PortClaim,
}

impl OpenPort {
    async fn serve(self, listener: TcpListener) {
        let (port, mut open) = (self.claim.port(), JoinSet::new());
        loop {
            let Ok((client, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            while open.try_join_next().is_some() {}
            match Connector::take(&self.connectors) {
                Some(connector) => drop(open.spawn(forward(client, connector, port, self.counters.clone()))),
                None => refuse(&client, port, &self.counters),
            }
        }
    }
}

/// Resets a connection, as a machine does where nothing listens.
fn refuse(client: &TcpStream, port: ListenPort, counters: &PortCounters) {
    counters.refused(port);
    // Without it the connection ends in order, which the client notices too.
    let _ = client.set_zero_linger();
}

/// Forwards one connection until both sides have closed their direction, or one fails.
async fn forward(mut client: TcpStream, connector: Connector, port: ListenPort, counters: Arc<PortCounters>) {
    let Ok(mut program) = connector.connect(port).await else { return refuse(&client, port, &counters) };
    counters.connected(port);
    // Only latency depends on it: what is read is written at once.
    let _ = (client.set_nodelay(true), program.set_nodelay(true));
    let activity = Activity::default();
    let ((from_client, to_client), (from_program, to_program)) = (client.split(), program.split());
    let inward = copy(from_client, to_program, &activity, |bytes| counters.received(port, bytes));
    let outward = copy(from_program, to_client, &activity, |bytes| counters.sent(port, bytes));
    // Each side sees how the connection ended; nothing else depends on it.
    let _ = tokio::try_join!(inward, outward);
}

/// When something was last sent on a connection, either way.
struct Activity(Mutex<(Instant, Duration)>);

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new((Instant::now(), FIRST_BYTE_TIMEOUT)))
    }
}

impl Activity {
    fn note(&self) {
        *self.0.lock() = (Instant::now(), IDLE_TIMEOUT);
    }

    /// How much longer nothing need be sent; nothing once it has been too long.
    fn left(&self) -> Option<Duration> {
        let (last, most) = *self.0.lock();
        most.checked_sub(last.elapsed()).filter(|left| !left.is_zero())
    }
}

/// Copies one direction to its end.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
    count: impl Fn(u64),
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let Some(left) = activity.left() else { return Err(io::ErrorKind::TimedOut.into()) };
        // The other direction may have been active meanwhile.
        let Ok(read) = timeout(left, from.read(&mut chunk)).await else { continue };
        let read = read?;
        if read == 0 {
            return to.shutdown().await;
        }
        activity.note();
        timeout(IDLE_TIMEOUT, to.write_all(chunk.get(..read).unwrap_or_default())).await??;
        activity.note();
        count(read as u64);
    }
}
