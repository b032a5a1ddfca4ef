//! Servers on this machine that answer as providers do.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// An aimock with the scenarios of `fixtures.json`.
pub struct Aimock {
    pub base: String,
    child: Child,
}

impl Aimock {
    /// Starts one; it takes every key, or this one alone.
    pub async fn start(key: Option<&str>) -> Self {
        let Some(package) = std::env::var_os("HOLDFAST_AIMOCK").map(PathBuf::from) else {
            panic!(
                "HOLDFAST_AIMOCK is not set. `./scripts/test test` sets it; to run this test alone, call `./scripts/setup aimock` \
                 and export HOLDFAST_AIMOCK=…/tools/aimock/node_modules/@copilotkit/aimock in the target folder."
            );
        };
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/providers/fixtures.json");
        let mut command = Command::new("node");
        command.arg(package.join("dist/cli.js")).args(["--port", "0", "--fixtures", fixtures]);
        command.env_remove("AIMOCK_API_KEYS").stdout(Stdio::piped()).stderr(Stdio::inherit());
        if let Some(key) = key {
            command.env("AIMOCK_API_KEYS", key);
        }
        let mut child = command.spawn().unwrap_or_else(|error| panic!("node cannot be started: {error}"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let base = lines
            .by_ref()
            .find_map(|line| {
                Some(format!("http://{}", line.ok()?.split_once("listening on http://")?.1.trim()))
            })
            .unwrap_or_else(|| panic!("aimock in {} ended before it listened", package.display()));
        // Nobody reads on, and a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { base, child }
    }

    /// The body of the last request, as the server understood it, without spaces.
    pub async fn last_request(&self) -> String {
        let text = get(&self.base, "/__aimock/journal").await;
        let journal: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let last = journal.as_array().and_then(|entries| entries.last()).unwrap_or_else(|| panic!("{text}"));
        last["body"].to_string()
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn get(base: &str, path: &str) -> String {
    let host = base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A server that gives these answers, one to each connection.
pub struct Canned {
    pub base: String,
    requests: Arc<Mutex<Vec<String>>>,
    began: mpsc::UnboundedReceiver<()>,
    closed: mpsc::UnboundedReceiver<()>,
}

impl Canned {
    /// An answer with a status, a type and a body.
    pub fn answer(status: u16, content_type: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} Canned\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    }

    pub async fn start(answers: Vec<String>) -> Self {
        Self::serve(answers, false).await
    }

    /// Gives this answer as if there were more to come, and waits.
    pub async fn stalling(answer: String) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let head: Vec<&str> = head.lines().filter(|line| !line.starts_with("content-length")).collect();
        Self::serve(vec![format!("{}\r\n\r\n{body}", head.join("\r\n"))], true).await
    }

    /// Answers with this status and type, and then with this piece again and again until the other side has gone.
    pub async fn endless(status: u16, content_type: &str, piece: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (_, began) = mpsc::unbounded_channel();
        let (closes, closed) = mpsc::unbounded_channel();
        let head =
            format!("HTTP/1.1 {status} Endless\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                drop(read_request(&mut stream).await);
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(piece.as_bytes()).await;
                }
                closes.send(()).unwrap_or_default();
            }
        });
        Self { base, requests, began, closed }
    }

    async fn serve(answers: Vec<String>, stalls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        let (begins, began) = mpsc::unbounded_channel();
        let (closes, closed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                drop(stream.write_all(answer.as_bytes()).await);
                begins.send(()).unwrap_or_default();
                if stalls {
                    // Nothing more comes from the other side but its end.
                    drop(stream.read(&mut [0; 64]).await);
                    closes.send(()).unwrap_or_default();
                }
            }
        });
        Self { base, requests, began, closed }
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// An answer is under way.
    pub async fn began(&mut self) {
        self.began.recv().await;
    }

    /// The other side has gone.
    pub async fn closed(&mut self) {
        self.closed.recv().await;
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
