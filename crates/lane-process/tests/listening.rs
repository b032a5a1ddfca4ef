//! The ports of programs: forwarded connections reach the program's port and nothing else, are bounded, and close with the program.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::manifest::{Grants, ListenPort};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Instance, Reply};
use support::{Echo, Yard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// After this a test gives up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A program that echoes on its port what it gets, in upper case, one thread for each connection. `leave` ends it.
const ECHO: &str = r#"
import socket, threading
hello = greet()
def echo(it):
    try:
        while data := it.recv(65536):
            if data == b"leave": os._exit(0)
            it.sendall(data.upper())
    except OSError: pass
    it.close()
def serve():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", hello["params"]["config"].get("port", PORT)))
    server.listen(128)
    while True:
        threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()
if LISTENS: threading.Thread(target=serve, daemon=True).start()
while True:
    message = receive()
    if "id" in message: send(id=message["id"], result=None)
"#;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn program(port: u16, listens: bool) -> String {
    ECHO.replace("PORT", &port.to_string()).replace("LISTENS", if listens { "True" } else { "False" })
}

async fn load(yard: &Yard, id: &str, port: u16, listens: bool) -> Arc<dyn Instance> {
    let listen = vec![ListenPort::try_from(port).unwrap()];
    let grants = Grants { listen, ..Grants::default() };
    yard.load_granted(id, &program(port, listens), "", grants).await.unwrap()
}

async fn step(it: &Arc<dyn Instance>, step: LifecycleCommand) -> Result<Reply, Fault> {
    it.call(Call::Lifecycle(step), Arc::new(Echo)).await
}

async fn begin(it: &Arc<dyn Instance>) {
    step(it, LifecycleCommand::Initialize).await.unwrap();
    step(it, LifecycleCommand::Start).await.unwrap();
}

/// Connects and exchanges a word; the program may not accept yet.
async fn connected(port: u16) -> TcpStream {
    let attempt = async {
        loop {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await {
                let mut answer = [0; 5];
                if stream.write_all(b"hello").await.is_ok() && stream.read_exact(&mut answer).await.is_ok() {
                    assert_eq!(&answer, b"HELLO");
                    return stream;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, attempt).await.expect("the program accepts")
}

/// What ends a connection from the other side: its end, or an error.
async fn ended(stream: &mut TcpStream) -> Option<ErrorKind> {
    let read = tokio::time::timeout(TIMEOUT, stream.read(&mut [0; 64])).await.expect("it ends");
    read.map_or_else(|error| Some(error.kind()), |bytes| (bytes > 0).then_some(ErrorKind::Other))
}

/// Connects and is refused: at once, or with what is read next.
async fn refused(port: u16) {
    let why = match TcpStream::connect(("127.0.0.1", port)).await {
        Ok(mut stream) => ended(&mut stream).await,
        Err(error) => Some(error.kind()),
    };
    assert!(matches!(why, None | Some(ErrorKind::ConnectionReset)), "{why:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_forwarded_both_ways_and_bounded() {
    let (yard, port) = (Yard::new(), free_port());
    let it = load(&yard, "echo", port, true).await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "not before it is started");
    begin(&it).await;
    // Much more than is in flight at a time, both ways.
    let mut stream = connected(port).await;
    let (mut reads, mut writes) = stream.split();
    let sent = tokio::join!(
        async {
            for _ in 0..64 {
                writes.write_all(&[b'a'; 64 << 10]).await.unwrap();
            }
            writes.shutdown().await.unwrap();
        },
        async {
            let mut all = Vec::new();
            reads.read_to_end(&mut all).await.unwrap();
            all
        }
    )
    .1;
    assert!(sent.len() == 4 << 20 && sent.iter().all(|byte| *byte == b'A'), "{} bytes", sent.len());
    drop(stream);
    // As many as may be open at a time, some of which say nothing; one more is refused, and room comes back.
    let mut open = Vec::new();
    for _ in 0..60 {
        open.push(connected(port).await);
    }
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    refused(port).await;
    drop((open, silent));
    for _ in 0..100 {
        drop(connected(port).await);
    }
    let counted = it.take_port_use();
    assert!(counted.len() == 1 && counted[0].port == port, "{counted:?}");
    assert!(counted[0].connections > 160 && counted[0].refused >= 1, "{counted:?}");
    assert!(counted[0].received > 4 << 20 && counted[0].sent > 4 << 20, "{counted:?}");
    assert!(it.take_port_use().is_empty(), "it is counted once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_close_with_the_program_and_go_to_the_next_generation() {
    let (yard, port) = (Yard::new(), free_port());
    let it = load(&yard, "echo", port, true).await;
    begin(&it).await;
    let mut stream = connected(port).await;
    let mut half_open = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // The next generation is loaded beside it, and has its own loopback: only one of them is reached.
    let next = load(&yard, "echo", port, true).await;
    assert_eq!(connected(port).await.peer_addr().unwrap().port(), port);
    step(&it, LifecycleCommand::Stop).await.unwrap();
    step(&it, LifecycleCommand::Destroy).await.unwrap();
    let _ended = (ended(&mut stream).await, ended(&mut half_open).await);
    begin(&next).await;
    let mut stream = connected(port).await;
    // A program that exits takes its port with it; the next start has it again.
    stream.write_all(b"leave").await.unwrap();
    ended(&mut stream).await;
    let gone = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.expect("the port is closed");
    begin(&next).await;
    drop(connected(port).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_connection_reaches_the_programs_port_and_nothing_else() {
    let (yard, port) = (Yard::new(), free_port());
    // Another service of the machine, at the same port of another address and at another port of the same.
    let others = [TcpListener::bind(("127.0.0.2", port)).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    let it = load(&yard, "deaf", port, false).await;
    begin(&it).await;
    for _ in 0..3 {
        refused(port).await;
    }
    for other in others {
        other.set_nonblocking(true).unwrap();
        assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nothing was connected there");
    }
    let counted = it.take_port_use();
    assert!(counted.iter().all(|it| it.connections == 0 && it.refused == 3), "{counted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_has_one_extension() {
    let (yard, port) = (Yard::new(), free_port());
    let (one, two) = (load(&yard, "one", port, true).await, load(&yard, "two", port, true).await);
    begin(&one).await;
    step(&two, LifecycleCommand::Initialize).await.unwrap();
    let fault = step(&two, LifecycleCommand::Start).await.unwrap_err();
    assert_eq!(fault.code, Code::PortUnavailable);
    assert!(fault.message.contains("`one` listens there"), "{fault}");
    drop(one);
    begin(&two).await;
    drop(connected(port).await);
}
