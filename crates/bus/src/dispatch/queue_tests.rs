//! The order of events for one subscriber.

use holdfast_contract::ids::Seq;

use super::*;

fn item(seq: u64) -> Item {
    Item {
        id: EventId::new(0, Seq(seq)),
        event: None,
        published: Millis(seq),
        tries: 0,
        forgiven: 0,
        interrupted: 0,
        due: None,
        stale: false,
    }
}

/// A queue in which each line's events have been added in turn.
fn queue(events: &[(i64, u64)]) -> Queue {
    let mut queue = Queue::default();
    for (line, seq) in events {
        queue.add(*line, item(*seq), false);
    }
    queue
}

/// Starts all deliveries that can start; returns the sequence numbers.
fn take_all(queue: &mut Queue) -> Vec<u64> {
    let mut taken = Vec::new();
    while let Some(next) = queue.next(true) {
        taken.push(queue.head(next.line).unwrap().id.seq().0);
    }
    taken
}

#[test]
fn only_the_first_event_of_each_line_is_delivered() {
    let mut queue = queue(&[(1, 10), (2, 20), (1, 11), (3, 30), (1, 12)]);
    assert_eq!(take_all(&mut queue), [10, 20, 30]);
    assert_eq!(queue.open(), 5);
    assert_eq!(queue.finish(1).unwrap().id.seq(), Seq(10));
    assert_eq!(take_all(&mut queue), [11]);
    queue.finish(2);
    queue.finish(3);
    queue.finish(1);
    assert_eq!(take_all(&mut queue), [12]);
    queue.finish(1);
    assert_eq!((queue.open(), queue.oldest()), (0, None));
}

#[test]
fn an_event_is_delivered_immediately_only_if_its_line_is_free() {
    let mut queue = Queue::default();
    assert!(queue.add(1, item(1), true), "nothing is there");
    assert!(!queue.add(1, item(2), true), "its line is busy");
    assert!(queue.add(2, item(3), true), "another line is free");
    assert!(!queue.add(3, item(4), false), "it may not start");
    assert!(!queue.add(4, item(5), true), "line 3 was first");
    assert_eq!(take_all(&mut queue), [4, 5]);
    assert_eq!(queue.head(1).unwrap().tries, 1);
}

#[test]
fn a_delayed_event_blocks_only_its_own_line_until_its_retry_time() {
    let mut queue = queue(&[(1, 1), (1, 2), (2, 3)]);
    take_all(&mut queue);
    queue.delay(1, Millis(50));
    queue.finish(2);
    queue.wake(Millis(49), Millis(1_000));
    assert_eq!((take_all(&mut queue), queue.next_due(), queue.delayed()), (vec![], Some(Millis(50)), 2));
    queue.wake(Millis(50), Millis(1_000));
    assert_eq!((take_all(&mut queue), queue.next_due()), (vec![1], None));
    assert_eq!(queue.head(1).unwrap().tries, 2);
}

#[test]
fn an_event_that_crashed_two_processes_is_delivered_alone() {
    let mut queue = queue(&[(1, 1)]);
    for (line, seq) in [(2, 2), (3, 3)] {
        queue.add(line, Item { interrupted: 2, ..item(seq) }, true);
    }
    let mut taken = Vec::new();
    while let Some(next) = queue.next(false) {
        taken.push(next);
    }
    assert_eq!(taken, [Next { line: 1, alone: false }]);
    assert_eq!(queue.next(true), Some(Next { line: 2, alone: true }));
    assert_eq!(queue.next(false), None);
    queue.finish(2);
    assert_eq!(queue.next(true), Some(Next { line: 3, alone: true }));
}

#[test]
fn a_retried_dead_letter_returns_to_its_position_but_not_before_the_first() {
    let mut queue = queue(&[(1, 5), (1, 7)]);
    queue.bring_back(1, item(2));
    queue.bring_back(1, item(6));
    queue.bring_back(2, item(1));
    let mut order = Vec::new();
    while let Some(next) = queue.next(true) {
        order.push(queue.finish(next.line).unwrap().id.seq().0);
    }
    order.sort_by_key(|seq| *seq == 1);
    assert_eq!(order, [5, 2, 6, 7, 1]);
}

#[test]
fn a_stale_delivery_stays_in_delivery_until_an_outcome_is_reported() {
    let mut queue = Queue::default();
    queue.add(1, Item { tries: 1, stale: true, ..item(1) }, false);
    queue.add(1, item(2), false);
    queue.add(2, item(3), false);
    assert_eq!(queue.take_stale(), [1]);
    assert!(queue.take_stale().is_empty());
    assert_eq!(take_all(&mut queue), [3]);
    queue.delay(1, Millis(9));
    queue.wake(Millis(9), Millis(1_000));
    assert_eq!(take_all(&mut queue), [1]);
}

#[test]
fn old_events_are_removed_unless_they_are_in_delivery() {
    let mut queue = queue(&[(1, 1), (1, 2), (1, 30), (2, 3), (2, 40), (3, 4)]);
    queue.next(true);
    let removed = queue.remove_where(|item| item.id.seq().0 < 10);
    assert_eq!(removed.iter().map(|item| item.id.seq().0).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(queue.open(), 3);
    queue.finish(1);
    let mut rest = take_all(&mut queue);
    rest.sort_unstable();
    assert_eq!(rest, [30, 40]);
}
