use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Envelope, FrameSource};
use holdfast_contract::ids::Millis;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};

use super::*;

fn frame(seq: u64) -> Frame {
    let digest = Digest::of(b"");
    let envelope = Envelope {
        stream: "one".into(),
        seq: Seq(seq),
        at: Millis(0),
        kind: FrameKind::TurnStarted,
        source: FrameSource::Host,
        cause: None,
        body_digest: digest,
        prev: digest,
    };
    Frame { envelope, body: None, erased: None, hash: digest }
}

fn wrote(feed: &SessionFeed, after: u64, text: &str) {
    let (session, after, text) = (feed.session.clone(), Seq(after), text.to_owned());
    feed.output(after, &Notification::Reasoning { session, after, text });
}

/// What was sent, in a few words: the number of a frame, or a text.
async fn sent(theirs: DuplexStream) -> Vec<String> {
    let mut lines = BufReader::new(theirs).lines();
    let mut sent = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        let params = &message["params"];
        sent.push(params["text"].as_str().map_or_else(|| params["seq"].to_string(), str::to_owned));
    }
    sent
}

#[tokio::test]
async fn output_waits_for_the_frame_that_it_follows() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (lines, write) = Outgoing::open(ours);
    tokio::spawn(write);
    let feed = SessionFeed::new("one".into(), &SessionOpen::default(), Seq(3), lines);
    // Nothing is sent before the client knows of the feed.
    wrote(&feed, 1, "early");
    feed.start();
    wrote(&feed, 2, "at once");
    wrote(&feed, 4, "after four");
    // It was written when the one before it had been, and stays behind it.
    wrote(&feed, 2, "also after four");
    feed.frame(frame(3));
    feed.frame(frame(4));
    wrote(&feed, 4, "at once too");
    wrote(&feed, 6, "after six");
    feed.frame(frame(5));
    feed.frame(frame(6));
    feed.frame(frame(7));
    drop(feed);
    let expected = [
        "early",
        "at once",
        "3",
        "4",
        "after four",
        "also after four",
        "at once too",
        "5",
        "6",
        "after six",
        "7",
    ];
    assert_eq!(sent(theirs).await, expected);
}
