use tokio::io::AsyncReadExt;

use super::*;

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (outgoing, write) = Outgoing::open(ours);
    let write = tokio::spawn(write);
    for _ in 0..(MAX_QUEUED_BYTES >> 16) {
        outgoing.send("x".repeat(1 << 16));
    }
    assert!(!write.is_finished(), "so much may be queued");
    outgoing.send("x".repeat(2));
    outgoing.send("x".to_owned());
    assert!(write.await.unwrap());
    outgoing.closed().await;
    assert!(!outgoing.room().await);
    drop(theirs);
}

#[tokio::test]
async fn frames_wait_for_the_client_to_read_and_all_of_them_come() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 10);
    let (outgoing, write) = Outgoing::open(ours);
    tokio::spawn(write);
    const LINES: usize = 100;
    let sent = tokio::spawn(async move {
        for _ in 0..LINES {
            assert!(outgoing.room().await);
            outgoing.send("x".repeat(1 << 17));
            assert!(outgoing.queue.bytes.load(Ordering::Relaxed) < HIGH_WATER_BYTES + (1 << 17));
        }
    });
    let mut read = Vec::new();
    theirs.read_to_end(&mut read).await.unwrap();
    assert_eq!(read.len(), LINES << 17);
    sent.await.unwrap();
}

#[tokio::test]
async fn held_lines_count_towards_the_bound() {
    let (ours, _theirs) = tokio::io::duplex(1 << 10);
    let (outgoing, write) = Outgoing::open(ours);
    let write = tokio::spawn(write);
    outgoing.send("x".repeat(1 << 11));
    for _ in 0..=(MAX_QUEUED_BYTES >> 16) {
        outgoing.hold(&"x".repeat(1 << 16));
    }
    outgoing.hold("x");
    assert!(write.await.unwrap());
}
