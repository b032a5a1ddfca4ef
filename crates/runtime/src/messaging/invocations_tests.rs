use holdfast_contract::wire::Later;

use super::*;

/// Counts what it is told.
#[derive(Default)]
struct Counts(Mutex<usize>);

impl UpdateSink for Counts {
    fn send(&self, _: CallUpdate) -> Later<()> {
        *self.0.lock() += 1;
        Box::pin(std::future::ready(()))
    }
}

fn text(bytes: usize) -> CallUpdate {
    CallUpdate::Text(Content::text("a".repeat(bytes)))
}

#[tokio::test]
async fn updates_are_bounded_in_number_and_what_is_left_out_is_counted() {
    let sink = Arc::new(Counts::default());
    let updates = RecordedUpdates::new(sink.clone(), 3);
    for _ in 0..MAX_UPDATES + 7 {
        updates.pass_on(text(1)).await;
    }
    let streamed = updates.streamed();
    assert_eq!((streamed.begun, streamed.updates.len(), streamed.left_out), (3, MAX_UPDATES, 7));
    assert_eq!(*sink.0.lock(), MAX_UPDATES, "what is recorded is what was told");
}

#[tokio::test]
async fn updates_are_bounded_in_bytes_without_a_gap() {
    let sink = Arc::new(Counts::default());
    let updates = RecordedUpdates::new(sink.clone(), 1);
    for bytes in [10, MAX_UPDATE_BYTES as usize, 10] {
        updates.pass_on(text(bytes)).await;
    }
    let streamed = updates.streamed();
    assert_eq!((streamed.updates, streamed.left_out), (vec![text(10)], 2));
    assert_eq!(*sink.0.lock(), 1);
}
