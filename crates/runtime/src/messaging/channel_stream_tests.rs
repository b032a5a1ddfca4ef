//! What a output stream keeps while its channel is busy.

use super::{MAX_QUEUED_BYTES, MAX_STATUS_CHARS, OutputStream, StreamChunk};

fn text(text: &str) -> Option<StreamChunk> {
    Some(StreamChunk::Text(text.to_owned()))
}

#[tokio::test]
async fn pieces_of_text_that_wait_become_one_and_keep_their_place() {
    let output = OutputStream::default();
    output.text("one ");
    output.text("two");
    output.progress(&"kit".into(), "half");
    output.text("three ");
    output.text("four");
    output.close();
    assert_eq!(output.next().await, text("one two"));
    assert_eq!(output.next().await, Some(StreamChunk::Status("half".to_owned(), Some("kit".into()))));
    assert_eq!(output.next().await, text("three four"));
    assert_eq!(output.next().await, None);
}

#[tokio::test]
async fn of_an_extensions_progress_the_latest_line_waits() {
    let output = OutputStream::default();
    for round in 0..100 {
        output.progress(&"kit".into(), &format!("{round}\nof 100 {}", "x".repeat(MAX_STATUS_CHARS)));
        output.progress(&"other".into(), "busy");
    }
    output.close();
    let Some(StreamChunk::Status(line, _)) = output.next().await else { panic!("a line") };
    assert!(line.starts_with("99 of 100") && line.chars().count() == MAX_STATUS_CHARS);
    assert!(matches!(output.next().await, Some(StreamChunk::Status(line, _)) if line == "busy"));
    assert_eq!(output.next().await, None);
}

#[tokio::test]
async fn a_model_is_read_again_when_there_is_room_and_when_nobody_wants_more() {
    let output = OutputStream::default();
    output.text(&"x".repeat(MAX_QUEUED_BYTES));
    let reads = output.paced(Box::pin(std::future::ready(7)));
    let takes = async {
        tokio::task::yield_now().await;
        output.next().await
    };
    let (read, taken) = tokio::join!(reads, takes);
    assert_eq!((read, taken), (7, text(&"x".repeat(MAX_QUEUED_BYTES))));
    output.text(&"x".repeat(MAX_QUEUED_BYTES));
    let gives_up = async {
        tokio::task::yield_now().await;
        output.give_up();
    };
    assert_eq!(tokio::join!(output.paced(Box::pin(std::future::ready(8))), gives_up).0, 8);
    output.text("more");
    assert_eq!(output.next().await, None);
}
