//! What a feed keeps while its channel is busy.

use super::{MAX_QUEUED_BYTES, MAX_STATUS_CHARS, OutputStream, StreamChunk};

fn text(text: &str) -> Option<StreamChunk> {
    Some(StreamChunk::Text(text.to_owned()))
}

#[tokio::test]
async fn pieces_of_text_that_wait_become_one_and_keep_their_place() {
    let feed = OutputStream::default();
    feed.text("one ");
    feed.text("two");
    feed.progress(&"kit".into(), "half");
    feed.text("three ");
    feed.text("four");
    feed.close();
    assert_eq!(feed.next().await, text("one two"));
    assert_eq!(feed.next().await, Some(StreamChunk::Status("half".to_owned(), Some("kit".into()))));
    assert_eq!(feed.next().await, text("three four"));
    assert_eq!(feed.next().await, None);
}

#[tokio::test]
async fn of_an_extensions_progress_the_latest_line_waits() {
    let feed = OutputStream::default();
    for round in 0..100 {
        feed.progress(&"kit".into(), &format!("{round}\nof 100 {}", "x".repeat(MAX_STATUS_CHARS)));
        feed.progress(&"other".into(), "busy");
    }
    feed.close();
    let Some(StreamChunk::Status(line, _)) = feed.next().await else { panic!("a line") };
    assert!(line.starts_with("99 of 100") && line.chars().count() == MAX_STATUS_CHARS);
    assert!(matches!(feed.next().await, Some(StreamChunk::Status(line, _)) if line == "busy"));
    assert_eq!(feed.next().await, None);
}

#[tokio::test]
async fn a_model_is_read_again_when_there_is_room_and_when_nobody_wants_more() {
    let feed = OutputStream::default();
    feed.text(&"x".repeat(MAX_QUEUED_BYTES));
    let reads = feed.paced(Box::pin(std::future::ready(7)));
    let takes = async {
        tokio::task::yield_now().await;
        feed.next().await
    };
    let (read, taken) = tokio::join!(reads, takes);
    assert_eq!((read, taken), (7, text(&"x".repeat(MAX_QUEUED_BYTES))));
    feed.text(&"x".repeat(MAX_QUEUED_BYTES));
    let gives_up = async {
        tokio::task::yield_now().await;
        feed.give_up();
    };
    assert_eq!(tokio::join!(feed.paced(Box::pin(std::future::ready(8))), gives_up).0, 8);
    feed.text("more");
    assert_eq!(feed.next().await, None);
}
