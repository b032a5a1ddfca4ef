//! The client's side.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::{BlobRef, load_references, to_whole_json};
use holdfast_contract::frame::Frame;
use holdfast_contract::problem::{Code, Problem};
use holdfast_jsonrpc::{Completion, PendingRequests};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use crate::line::{self, Response};
use crate::protocol::{
    ClientHello, ClientRequest, FramePage, Notification, ServerHello, SessionContent, SessionFrames,
    SessionMethod, SystemMethod, VERSION,
};

/// The requests without an answer; none once the owner has gone.
type Waiting = Arc<Mutex<Option<PendingRequests<oneshot::Sender<Response>>>>>;

/// A connection to an owner. Clones share it.
#[derive(Clone)]
pub struct Client {
    lines: mpsc::UnboundedSender<String>,
    waiting: Waiting,
}

impl Client {
    /// Speaks over this connection. The second value gives the notifications, in their order; it ends when the owner has gone.
    pub fn new(
        connection: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> (Self, mpsc::UnboundedReceiver<Notification>) {
        let (lines, mut outgoing) = mpsc::unbounded_channel::<String>();
        let (notices, noticed) = mpsc::unbounded_channel();
        let waiting: Waiting = Arc::new(Mutex::new(Some(PendingRequests::default())));
        let (reader, mut writer) = tokio::io::split(connection);
        tokio::spawn(async move {
            while let Some(line) = outgoing.recv().await {
                if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                    return;
                }
            }
        });
        let answers = waiting.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(reader);
            while let Ok(Some(line)) = line::read(&mut reader).await {
                let Ok(message) = serde_json::from_slice::<Value>(&line) else { break };
                if message.get("method").is_some() {
                    // A notification of a later version is ignored.
                    if let Ok(notice) = serde_json::from_value::<Notification>(message) {
                        // A client need not read notifications.
                        let _unheard = notices.send(notice);
                    }
                } else if let Ok(answer) = serde_json::from_value::<Response>(message) {
                    let id = answer.id.as_u64().unwrap_or(u64::MAX);
                    let completed = answers.lock().as_mut().map(|waiting| waiting.complete(id));
                    if let Some(Completion::Pending(sender)) = completed {
                        drop(sender.send(answer));
                    }
                }
            }
            // Requests without an answer fail.
            answers.lock().take();
        });
        (Self { lines, waiting }, noticed)
    }

    /// Asks, and waits for the answer.
    pub async fn ask<T: DeserializeOwned>(&self, request: &impl ClientRequest) -> Result<T, Problem> {
        let gone = || {
            Problem::new(Code::ConnectionLost, "disconnected from the process that owns the home")
                .help("What was acknowledged is on disk; run the command again.")
        };
        let mut message = to_whole_json(request).map_err(internal)?;
        let (sender, answer) = oneshot::channel();
        let id = self.waiting.lock().as_mut().map(|waiting| waiting.insert(sender)).ok_or_else(gone)?;
        if let Some(fields) = message.as_object_mut() {
            fields.insert("id".to_owned(), json!(id));
        }
        self.lines.send(line::write(message)).map_err(|_| gone())?;
        let answer = answer.await.map_err(|_| gone())?;
        match answer.error {
            Some(refusal) => {
                let unnamed = || Problem::new(Code::Internal, refusal.message.clone());
                Err(refusal.data.clone().unwrap_or_else(unnamed))
            }
            None => serde_json::from_value(answer.result.unwrap_or_default()).map_err(internal),
        }
    }

    /// The first request: compares versions.
    pub async fn hello(&self, client: &str) -> Result<ServerHello, Problem> {
        let client = client.to_owned();
        self.introduce(ClientHello { version: VERSION, client, folder: None, profile: None }).await
    }

    /// The first request, with where the client was started and the profile that it asks for.
    pub async fn introduce(&self, hello: ClientHello) -> Result<ServerHello, Problem> {
        self.ask(&SystemMethod::Hello(hello)).await
    }

    /// All frames of a session that are asked for, as they are stored.
    pub async fn frames(&self, mut asked: SessionFrames) -> Result<Vec<Frame>, Problem> {
        let mut frames = Vec::new();
        loop {
            let page: FramePage = self.ask(&SessionMethod::Frames(asked.clone())).await?;
            frames.extend(page.frames);
            match page.next {
                Some(next) => asked.from = next,
                None => return Ok(frames),
            }
        }
    }

    /// A frame with every value that it refers to in its place.
    pub async fn whole(&self, mut frame: Frame) -> Result<Frame, Problem> {
        let Some(body) = &mut frame.body else { return Ok(frame) };
        let mut missing = Vec::new();
        let mut note = |blob: BlobRef| {
            missing.push(blob.digest);
            Ok::<_, Problem>(Value::Null)
        };
        load_references(&mut body.clone(), &mut note)?;
        let mut values = HashMap::new();
        for digest in missing {
            let session = frame.envelope.stream.clone();
            let fetch = SessionMethod::Content(SessionContent { session, digest });
            let mut answer: Value = self.ask(&fetch).await?;
            values.insert(digest, answer["value"].take());
        }
        let mut load =
            |blob: BlobRef| Ok::<_, Problem>(values.get(&blob.digest).cloned().unwrap_or_default());
        load_references(body, &mut load)?;
        Ok(frame)
    }

    /// What a frame says, typed, with every value that it refers to.
    pub async fn body(&self, frame: &Frame) -> Result<Body, Problem> {
        let frame = self.whole(frame.clone()).await?;
        let name = || format!("frame {} of {}", frame.envelope.seq, frame.envelope.stream);
        let erased = || Problem::new(Code::StoreErased, format!("{} was erased", name()));
        let body = frame.body.clone().ok_or_else(erased)?;
        Body::read(frame.envelope.kind, body)
            .map_err(|error| Problem::new(Code::Internal, format!("{}: {error}", name())))
    }
}

fn internal(error: serde_json::Error) -> Problem {
    Problem::new(Code::Internal, format!("a message does not fit the protocol: {error}"))
}
