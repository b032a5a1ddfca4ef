//! What a process leaves behind that dies while code of extensions executes.

use std::pin::pin;

use holdfast_contract::digest::Digest;

use super::ExecutionMarker;

// Finding D8.
#[test]
fn what_was_executing_is_known_to_the_next_process_and_what_waited_is_not() {
    let path = std::env::temp_dir().join(format!("holdfast-executing-{}", std::process::id()));
    let (busy, waiting) = (Digest::of(b"busy"), Digest::of(b"waiting"));
    let marker = ExecutionMarker::open(Some(&path));
    assert_eq!(marker.left_behind(), Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seen = runtime.block_on(async {
        let mut idle = pin!(marker.marked(waiting, std::future::pending::<()>()));
        assert!(futures_util::poll!(idle.as_mut()).is_pending());
        // A process that dies in here leaves this behind.
        marker.marked(busy, async { std::fs::read_to_string(&path).unwrap() }).await
    });
    assert_eq!(seen, format!("{busy}\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    std::fs::write(&path, seen).unwrap();
    assert_eq!(ExecutionMarker::open(Some(&path)).left_behind(), [busy]);
    assert_eq!(ExecutionMarker::open(Some(&path)).left_behind(), Vec::new(), "once");
    std::fs::remove_file(path).unwrap();
}
