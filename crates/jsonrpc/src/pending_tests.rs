//! Tests of matching responses to requests.

use crate::{Completion, PendingRequests};

#[test]
fn a_response_completes_its_request_once() {
    let mut pending = PendingRequests::default();
    let (first, second) = (pending.insert("first"), pending.insert("second"));
    assert_eq!((first, second, pending.len()), (1, 2, 2));
    assert_eq!(pending.oldest_by_mut(|_| 0), Some(&mut "first"));
    assert_eq!(
        pending.oldest_by_mut(|name| *name == "first"),
        Some(&mut "second"),
        "the smallest key comes first"
    );
    assert_eq!(pending.complete(first), Completion::Pending("first"));
    assert_eq!(pending.complete(first), Completion::Unknown);
    assert_eq!(pending.oldest_by_mut(|_| 0), Some(&mut "second"));
    assert_eq!(pending.drain().collect::<Vec<_>>(), ["second"]);
    assert!(pending.is_empty());
}

#[test]
fn the_response_to_a_cancelled_request_is_expected_once() {
    let mut pending = PendingRequests::default();
    let id = pending.insert(());
    pending.cancel(id);
    pending.cancel(9);
    assert_eq!(pending.complete(id), Completion::Cancelled);
    assert_eq!(pending.complete(id), Completion::Unknown);
    assert_eq!(pending.complete(9), Completion::Unknown);
}
