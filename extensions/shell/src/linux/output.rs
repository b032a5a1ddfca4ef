//! Captures the output of a command: the beginning and the end are kept, the middle is counted, and the pipe is always drained.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a stream may stay open after all its writers were killed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream that is being read.
pub(crate) struct Stream(Receiver<CapturedOutput>);

impl Stream {
    /// Reads a stream to its end on its own thread, keeping at most `limit` bytes.
    pub(crate) fn read(source: impl Read + Send + 'static, limit: usize) -> std::io::Result<Self> {
        let (done, receiver) = channel();
        let run = move || {
            // The receiver is gone if the call was cancelled.
            let _ = done.send(CapturedOutput::of(source, limit));
        };
        std::thread::Builder::new().spawn(run)?;
        Ok(Self(receiver))
    }

    /// The captured output.
    pub(crate) fn finish(self) -> CapturedOutput {
        self.0.recv_timeout(DRAIN_TIMEOUT).unwrap_or_default()
    }
}

/// The beginning and the end of a stream.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl CapturedOutput {
    pub(crate) fn of(mut source: impl Read, limit: usize) -> Self {
        let (head_limit, tail_limit) = (limit / 2, limit - limit / 2);
        let mut kept = Self::default();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let room = (head_limit - kept.head.len()).min(read);
            kept.head.extend_from_slice(&chunk[..room]);
            // At most the length of the tail is kept of one chunk.
            let rest = &chunk[room..read];
            let (gone, rest) = rest.split_at(rest.len().saturating_sub(tail_limit));
            let over = (kept.tail.len() + rest.len()).saturating_sub(tail_limit);
            kept.tail.drain(..over);
            kept.tail.extend(rest);
            kept.dropped += (gone.len() + over) as u64;
        }
        kept
    }

    /// Whether something was left out.
    pub(crate) fn truncated(&self) -> bool {
        self.dropped > 0
    }

    /// The text, with a note where something was left out.
    pub(crate) fn into_text(self) -> String {
        let Self { mut head, tail, dropped } = self;
        if dropped > 0 {
            head.extend_from_slice(format!("\n[… {dropped} bytes left out …]\n").as_bytes());
        }
        head.extend(tail);
        String::from_utf8_lossy(&head).into_owned()
    }
}
