//! A relay between the provider library and a provider: it carries out one request with our own HTTP client and counts what comes back.
//!
//! The library keeps an event until it ends, and reads the body of an error whole; neither has a limit. So it gets a client that reaches
//! nothing but the relay's socket, in a folder that no other user can enter, and the relay gives it whole events only.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use reqwest::{Method, Response};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The most bytes of one event, which may repeat the whole answer.
pub const MAX_EVENT_BYTES: usize = 32 << 20;
/// The most bytes of all events of an answer. Each piece of a text comes with hundreds of bytes around it.
pub const MAX_STREAM_BYTES: usize = 256 << 20;
/// The bytes of an error's body that are read; a message is made of the first of them.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The most bytes of the head of a request.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// Where an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventEnd {
    /// At the end of a line.
    Line,
    /// At an empty line, as server-sent events do.
    EmptyLine,
}

/// Why a request failed, where the library would not know.
#[derive(Debug)]
pub(super) enum RelayFailure {
    /// Our own client's error.
    Transport(reqwest::Error),
    /// More came than is taken; this much is.
    TooLong(usize),
}

/// What a relay needs to know about a provider.
pub(super) struct RelayTarget {
    /// The client that reaches it.
    pub http: reqwest::Client,
    /// Whether it is reached with TLS.
    pub secure: Arc<AtomicBool>,
    pub event_end: EventEnd,
}

/// A relay of one request. It ends with this value, and the request with it.
pub(super) struct Relay {
    /// The client for the library.
    pub client: reqwest::Client,
    failure: Arc<Mutex<Option<RelayFailure>>>,
    task: JoinHandle<()>,
    _folder: TempDir,
}

impl Relay {
    pub(super) fn start(target: &Arc<RelayTarget>) -> io::Result<Self> {
        let (folder, listener) = listen(&std::env::temp_dir()).or_else(|_| listen(Path::new("/tmp")))?;
        // Nothing is encrypted on the way to the relay: no certificates are read from the disk.
        let tls =
            ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let client = reqwest::Client::builder()
            .unix_socket(folder.path().join(SOCKET))
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(io::Error::other)?;
        let failure: Arc<Mutex<Option<RelayFailure>>> = Arc::default();
        let (target, failed) = (target.clone(), failure.clone());
        let task = tokio::spawn(async move {
            let Ok((stream, _)) = listener.accept().await else { return };
            if let Err(Stopped::Failure(why)) = serve(stream, &target, &failed).await {
                failed.lock().get_or_insert(why);
            }
        });
        Ok(Self { client, failure, task, _folder: folder })
    }

    /// Why the request failed, if it did here.
    pub(super) fn failure(&self) -> Option<RelayFailure> {
        self.failure.lock().take()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const SOCKET: &str = "relay";

fn listen(folder: &Path) -> io::Result<(TempDir, UnixListener)> {
    // Only this user can enter it.
    let folder = tempfile::Builder::new().prefix("holdfast-").tempdir_in(folder)?;
    let listener = UnixListener::bind(folder.path().join(SOCKET))?;
    Ok((folder, listener))
}

/// Why a relay stops before the end of an answer.
enum Stopped {
    Failure(RelayFailure),
    /// The library has gone, or asked for something that it never asks for.
    Gone,
}

impl From<io::Error> for Stopped {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<reqwest::Error> for Stopped {
    fn from(error: reqwest::Error) -> Self {
        Self::Failure(RelayFailure::Transport(error))
    }
}

async fn serve(
    mut stream: UnixStream,
    target: &RelayTarget,
    failure: &Mutex<Option<RelayFailure>>,
) -> Result<(), Stopped> {
    let asked = Asked::read(&mut stream).await?;
    let scheme = if target.secure.load(Ordering::Relaxed) { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", asked.host, asked.path);
    let answer =
        target.http.request(asked.method, url).headers(asked.headers).body(asked.body).send().await?;
    write_head(&mut stream, &answer).await?;
    if let Err(Stopped::Failure(why)) = pass_on(&mut stream, answer, target.event_end).await {
        // Before the connection is closed, so that the reason is there when that is noticed.
        failure.lock().get_or_insert(why);
        return Err(Stopped::Gone);
    }
    Ok(())
}

/// A request of the library.
struct Asked {
    method: Method,
    host: String,
    path: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Asked {
    async fn read(stream: &mut UnixStream) -> io::Result<Self> {
        let invalid = || io::Error::from(ErrorKind::InvalidData);
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if (&mut reader).take(MAX_HEAD_BYTES).read_line(&mut head).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let method = first.next().and_then(|word| word.parse().ok()).ok_or_else(invalid)?;
        let path = first.next().ok_or_else(invalid)?.to_owned();
        let mut headers = HeaderMap::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").ok_or_else(invalid)?;
            let name: HeaderName = name.parse().map_err(|_| invalid())?;
            headers.append(name, HeaderValue::from_str(value).map_err(|_| invalid())?);
        }
        let text =
            |value: Option<HeaderValue>| value.and_then(|value| value.to_str().ok().map(str::to_owned));
        let host = text(headers.remove(HOST)).ok_or_else(invalid)?;
        let length = text(headers.remove(CONTENT_LENGTH)).and_then(|length| length.parse().ok()).unwrap_or(0);
        headers.remove(CONNECTION);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await?;
        Ok(Self { method, host, path, headers, body })
    }
}

async fn write_head(stream: &mut UnixStream, answer: &Response) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {}\r\n", answer.status()).into_bytes();
    let of_connection = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];
    for (name, value) in answer.headers().iter().filter(|(name, _)| !of_connection.contains(name)) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    stream.write_all(&head).await
}

/// Passes the body on: whole events, or the beginning of an error.
async fn pass_on(stream: &mut UnixStream, mut answer: Response, event_end: EventEnd) -> Result<(), Stopped> {
    let is_error = !answer.status().is_success();
    let (mut held, mut total, mut ends) = (Vec::new(), 0, EventEnds::new(event_end));
    while let Some(piece) = answer.chunk().await? {
        total += piece.len();
        if is_error {
            held.extend_from_slice(&piece[..piece.len().min(MAX_ERROR_BYTES - held.len())]);
            if held.len() == MAX_ERROR_BYTES {
                break;
            }
            continue;
        }
        if total > MAX_STREAM_BYTES {
            return Err(Stopped::Failure(RelayFailure::TooLong(MAX_STREAM_BYTES)));
        }
        let whole = ends.last_in(&piece).map(|end| held.len() + end);
        held.extend_from_slice(&piece);
        if let Some(whole) = whole {
            write_chunk(stream, &held[..whole]).await?;
            held.drain(..whole);
        }
        if held.len() > MAX_EVENT_BYTES {
            return Err(Stopped::Failure(RelayFailure::TooLong(MAX_EVENT_BYTES)));
        }
    }
    write_chunk(stream, &held).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(stream.shutdown().await?)
}

async fn write_chunk(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    // An empty chunk would be the end.
    if bytes.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await
}

/// Finds the ends of events in a stream that comes in pieces.
struct EventEnds {
    event_end: EventEnd,
    previous: u8,
    /// Whether nothing came since a line ended.
    at_line_start: bool,
}

impl EventEnds {
    fn new(event_end: EventEnd) -> Self {
        Self { event_end, previous: 0, at_line_start: false }
    }

    /// Where the last event that ends in this piece ends.
    fn last_in(&mut self, piece: &[u8]) -> Option<usize> {
        let mut last = None;
        for (at, byte) in piece.iter().enumerate() {
            // A line ends with `\n`, `\r\n` or `\r`.
            let completes_line = *byte == b'\n' && self.previous == b'\r';
            match *byte {
                _ if completes_line => last = last.map(|end| if end == at { at + 1 } else { end }),
                b'\n' | b'\r' => {
                    if self.at_line_start || self.event_end == EventEnd::Line {
                        last = Some(at + 1);
                    }
                    self.at_line_start = true;
                }
                _ => self.at_line_start = false,
            }
            self.previous = *byte;
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(event_end: EventEnd, pieces: &[&str]) -> Vec<Option<usize>> {
        let mut ends = EventEnds::new(event_end);
        pieces.iter().map(|piece| ends.last_in(piece.as_bytes())).collect()
    }

    #[test]
    fn an_event_ends_at_an_empty_line_however_lines_end() {
        use EventEnd::{EmptyLine, Line};
        assert_eq!(ends(EmptyLine, &["a\n\nb\n"]), [Some(3)]);
        assert_eq!(ends(EmptyLine, &["a\r\n\r\nb"]), [Some(5)]);
        assert_eq!(ends(EmptyLine, &["a\r\rb"]), [Some(3)]);
        assert_eq!(ends(EmptyLine, &["a\r\n", "\r\n"]), [None, Some(2)]);
        assert_eq!(ends(EmptyLine, &["a\n", "\n", "b\nc\n"]), [None, Some(1), None]);
        assert_eq!(ends(EmptyLine, &["a\nb\nc"]), [None]);
        assert_eq!(ends(Line, &["a\nb\nc"]), [Some(4)]);
    }
}
