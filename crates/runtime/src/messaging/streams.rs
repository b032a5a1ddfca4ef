//! Answers that are shown on a channel while they are written.
//!
//! A turn that a user's message leads to has an output stream (`channel_stream.rs`) if the channel shows answers as they are written, and what comes in there is
//! handed to the channel, one piece after another. All of it is provisional. What counts is the text at the end, once the turn's end is on disk:
//! it is an event like any message that goes out, and the end of the stream is its delivery. Where a function of the channel fails, or
//! the process has ended meanwhile, the text is delivered whole. The session says what became of it, with `delivery.reported`.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Weak};

use holdfast_bus::Delivery;
use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::{Frame, FrameSource};
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ChannelFeatures, OtherEntry};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{DeliveryReported, StreamLost, StreamShown};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use super::{OutputStream, StreamChunk};
use crate::history::find_last_before;
use crate::runtime::Inner;
use crate::session::{SessionCommand, TurnReport};

/// How long a channel may take for a piece, and how long an earlier stream to the same user may take to its end.
const CHUNK_TIMEOUT: Millis = Millis(10_000);
/// The chunks whose lengths are recorded.
const MAX_RECORDED_LENGTHS: usize = 64;
/// How long it may take for the end.
const END_TIMEOUT: Millis = Millis(60_000);

/// Held by a stream from its start to its end: one user of a channel has one stream at a time.
type StreamSlot = OwnedMutexGuard<()>;

/// A channel and its user.
type Recipient = (ExtensionId, String);

/// The streams under way.
#[derive(Default)]
pub(super) struct Streams {
    /// Those whose turns have ended, by the message that they answer, until the event with the answer is handed over.
    endings: Mutex<HashMap<String, StreamEnd>>,
    places: Mutex<HashMap<Recipient, Weak<tokio::sync::Mutex<()>>>>,
}

impl Streams {
    /// Keeps the end of a stream until its delivery, and returns its key.
    pub(super) fn keep(&self, ending: StreamEnd) -> String {
        let id = ending.stream.id.clone();
        self.endings.lock().insert(id.clone(), ending);
        id
    }

    /// The stream that answered a message and has not been ended.
    pub(super) fn take(&self, message: &str) -> Option<StreamEnd> {
        self.endings.lock().remove(message)
    }

    fn place(&self, of: Recipient) -> Arc<tokio::sync::Mutex<()>> {
        let mut places = self.places.lock();
        if let Some(place) = places.get(&of).and_then(Weak::upgrade) {
            return place;
        }
        places.retain(|_, place| place.strong_count() > 0);
        let place = Arc::default();
        places.insert(of, Arc::downgrade(&place));
        place
    }
}

/// An answer on its way to a user while it is written.
pub(super) struct AnswerStream {
    channel: ExtensionId,
    user: String,
    /// The message that it answers.
    id: String,
    output: Arc<OutputStream>,
    /// What the channel was given so far.
    shown: Mutex<ShownRecord>,
}

impl AnswerStream {
    /// Where the turn is shown.
    pub(super) fn output(&self) -> Arc<OutputStream> {
        self.output.clone()
    }
}

/// What a channel was given of a stream, as far as the log has it: in memory until the turn has ended, then one frame.
#[derive(Default)]
struct ShownRecord {
    chunks: u64,
    lengths: Vec<u32>,
    statuses: u64,
    text: blake3::Hasher,
    shown: blake3::Hasher,
}

impl ShownRecord {
    fn add(&mut self, piece: &StreamChunk) {
        let (function, text) = match piece {
            StreamChunk::Begins => ("stream-start", ""),
            StreamChunk::Text(text) => {
                self.chunks += 1;
                if self.lengths.len() < MAX_RECORDED_LENGTHS {
                    self.lengths.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
                }
                self.text.update(text.as_bytes());
                ("stream-chunk", text.as_str())
            }
            StreamChunk::Status(status, _) => {
                self.statuses += 1;
                ("stream-status", status.as_str())
            }
            // It is not given to the channel.
            StreamChunk::Call(_) => return,
        };
        for part in [function, text] {
            self.shown.update(part.as_bytes()).update(&[0]);
        }
    }

    /// The record of a stream that was begun.
    fn close(&mut self, stream: &AnswerStream, fault: Option<Fault>) -> Option<StreamShown> {
        let Self { chunks, lengths, statuses, text, shown } = std::mem::take(self);
        let digest = |hasher: blake3::Hasher| Digest::from_bytes(*hasher.finalize().as_bytes());
        let (channel, id) = (stream.channel.clone(), stream.id.clone());
        let (text, begun) = (digest(text), shown.count() > 0);
        let record =
            StreamShown { channel, id, chunks, lengths, statuses, text, shown: digest(shown), fault };
        begun.then_some(record)
    }
}

/// A stream whose turn has ended.
pub(super) struct StreamEnd {
    stream: AnswerStream,
    /// The `turn.ended` frame.
    ended: Seq,
    _place: StreamSlot,
}

impl StreamEnd {
    /// The message that it answers.
    pub(super) fn id(&self) -> &str {
        &self.stream.id
    }
}

impl Inner {
    /// A stream for the answer to a message, if its channel shows them. One that came before may have been answered in part, and is not
    /// streamed again.
    pub(super) fn stream_for(
        &self,
        channel: &ExtensionId,
        user: &str,
        delivery: &Delivery,
    ) -> Option<AnswerStream> {
        let entry = self.channel(channel).ok().filter(|_| !delivery.repeat)?;
        ChannelFeatures::of(&entry.payload).streams.then(|| AnswerStream {
            channel: channel.clone(),
            user: user.to_owned(),
            id: delivery.event.id.to_string(),
            output: Arc::default(),
            shown: Mutex::default(),
        })
    }

    /// Runs a turn and shows it meanwhile. Gives the stream where it has still to be ended.
    pub(super) async fn stream(
        self: &Arc<Self>,
        stream: AnswerStream,
        turn: impl Future<Output = Result<TurnReport, Fault>>,
    ) -> Result<(TurnReport, Option<StreamEnd>), Fault> {
        let (report, shown) = {
            let (mut turn, mut showing) = (pin!(turn), pin!(self.show_stream(&stream)));
            let mut shown = None;
            let report = loop {
                tokio::select! {
                    biased;
                    report = &mut turn => break report,
                    done = &mut showing, if shown.is_none() => {
                        stream.output.give_up();
                        shown = Some(done);
                    }
                }
            };
            stream.output.close();
            let shown = match shown {
                Some(shown) => shown,
                None => showing.await,
            };
            (report, shown)
        };
        let ended = report.as_ref().ok().map(|report| report.ended);
        self.report_shown(&stream, ended, shown.as_ref().err().or(report.as_ref().err()));
        match (report, shown) {
            (Ok(report), Ok(Some(place))) => {
                let ended = report.ended;
                Ok((report, Some(StreamEnd { stream, ended, _place: place })))
            }
            (Ok(report), Ok(None)) => Ok((report, None)),
            (Ok(report), Err(fault)) => {
                self.report_stream(&stream, report.ended, Some(fault));
                Ok((report, None))
            }
            (Err(fault), shown) => {
                if let Ok(Some(_place)) = shown {
                    let text = format!(
                        "This could not be answered now and is tried again: {}",
                        self.told_of(fault.clone())
                    );
                    let delivery = json!({ "id": stream.id, "repeat": false });
                    let end = json!({ "text": text, "delivery": delivery });
                    drop(self.tell_channel(&stream, "stream-end", end, END_TIMEOUT).await);
                }
                Err(fault)
            }
        }
    }

    /// Hands what comes to the channel until no more comes. Gives the stream's place if it has begun.
    async fn show_stream(self: &Arc<Self>, stream: &AnswerStream) -> Result<Option<StreamSlot>, Fault> {
        let mut place = None;
        while let Some(piece) = stream.output.next().await {
            if piece == StreamChunk::Begins {
                place = Some(self.stream_place(stream).await?);
            }
            stream.shown.lock().add(&piece);
            let (function, more) = match piece {
                StreamChunk::Begins => ("stream-start", json!({})),
                StreamChunk::Text(text) => ("stream-chunk", json!({ "text": text })),
                StreamChunk::Status(status, _) => ("stream-status", json!({ "status": status })),
                // Its status says that it has started.
                StreamChunk::Call(_) => continue,
            };
            self.tell_channel(stream, function, more, CHUNK_TIMEOUT).await?;
        }
        Ok(place)
    }

    /// Waits until no earlier stream to the same user is left.
    async fn stream_place(&self, stream: &AnswerStream) -> Result<StreamSlot, Fault> {
        let place = self.messaging.streams.place((stream.channel.clone(), stream.user.clone()));
        tokio::select! {
            biased;
            place = place.lock_owned() => Ok(place),
            () = self.clock.sleep(CHUNK_TIMEOUT) => {
                Err(Fault::new(Code::ExtensionFault, "an earlier stream to the same user has not come to its end"))
            }
        }
    }

    /// Ends a stream with the text that counts, and has it recorded what became of it.
    pub(super) async fn end_stream(
        self: &Arc<Self>,
        ending: &StreamEnd,
        text: &str,
        delivery: Value,
    ) -> Result<(), Fault> {
        let end = json!({ "text": text, "delivery": delivery });
        let ended = self.tell_channel(&ending.stream, "stream-end", end, END_TIMEOUT).await;
        self.report_stream(&ending.stream, ending.ended, ended.clone().err());
        ended
    }

    async fn tell_channel(
        self: &Arc<Self>,
        stream: &AnswerStream,
        function: &str,
        mut arguments: Value,
        limit: Millis,
    ) -> Result<(), Fault> {
        let AnswerStream { channel, user, id, .. } = stream;
        arguments["user"] = json!(user);
        arguments["id"] = json!(id);
        let call = self.call_role(channel, Role::StreamingChannel, function, arguments.into());
        tokio::select! {
            biased;
            answer = call => answer.map(drop),
            () = self.clock.sleep(limit) => {
                let message = format!("`{channel}` did not answer `{function}` within {} ms", limit.0);
                Err(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// Has the session record what the channel was given before the end of a stream, if it was given anything.
    fn report_shown(&self, stream: &AnswerStream, ended: Option<Seq>, fault: Option<&Fault>) {
        let fault = fault.map(|fault| self.told_of(fault.clone()));
        let Some(shown) = stream.shown.lock().close(stream, fault) else { return };
        let (at, source) = (self.clock.now(), FrameSource::Host);
        let input = Input { at, source, cause: ended, body: shown.into() };
        stream.output.session().map(|session| session.send(SessionCommand::Fact(Box::new(input))));
    }

    /// Has the session record that a channel may have been shown part of an answer, if nothing says what: the process ended that showed it.
    /// The answer to a message that is repeated is sent whole.
    pub(super) fn report_lost_stream(
        self: &Arc<Self>,
        session: &StreamId,
        channel: &ExtensionId,
        message: &str,
        ended: Seq,
    ) -> Result<(), Problem> {
        let streams = |entry: OtherEntry| ChannelFeatures::of(&entry.payload).streams;
        if !self.channel(channel).is_ok_and(streams) {
            return Ok(());
        }
        // What a stream leaves in the log comes after its message.
        let is_about = |frame: &Frame| {
            let Some(body) = &frame.body else { return false };
            match frame.envelope.kind {
                FrameKind::InputReceived => body["message_id"] == message,
                FrameKind::StreamShown | FrameKind::StreamLost => body["id"] == message,
                _ => false,
            }
        };
        let last = find_last_before(&self.store, session, Seq(u64::MAX), is_about)?;
        if last.is_none_or(|frame| frame.envelope.kind != FrameKind::InputReceived) {
            return Ok(());
        }
        let body = StreamLost { channel: channel.clone(), id: message.to_owned() }.into();
        let input = Input { at: self.clock.now(), source: FrameSource::Host, cause: Some(ended), body };
        let told = self.resume(session)?.inbox.send(SessionCommand::Fact(Box::new(input)));
        // A session that has ended meanwhile is told nothing more; its log says that it was resumed.
        drop(told);
        Ok(())
    }

    /// Has the session record what became of a stream.
    fn report_stream(&self, stream: &AnswerStream, ended: Seq, fault: Option<Fault>) {
        let fault = fault.map(|fault| self.told_of(fault));
        let body = DeliveryReported { delivery: ended, fault }.into();
        let input = Input { at: self.clock.now(), source: FrameSource::Host, cause: Some(ended), body };
        // A session that was closed meanwhile is told nothing more; the event says that the text arrived.
        stream.output.session().map(|session| session.send(SessionCommand::Fact(Box::new(input))));
    }
}
