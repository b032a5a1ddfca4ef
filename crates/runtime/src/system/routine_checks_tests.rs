use super::*;

fn activation(id: &str, generation: u64) -> ExtensionRef {
    ExtensionRef { id: id.into(), generation: Generation(generation), ..ExtensionRef::default() }
}

fn counts(record: Option<ExtensionsChecked>) -> Vec<(String, u32, u32)> {
    let checks = record.map(|record| record.checks).unwrap_or_default();
    checks.into_iter().map(|it| (it.id.to_string(), it.healthy, it.setup)).collect()
}

#[test]
fn health_checks_are_recorded_at_first_and_then_once_an_hour() {
    let (checks, mut records) = (RoutineChecks::default(), Vec::new());
    for round in 0..121 {
        let now = Millis(round * 30_000);
        for id in ["b", "a"] {
            checks.passed(&activation(id, 1), now);
        }
        records.extend(checks.due(now).map(|it| counts(Some(it))));
    }
    let both = |healthy| vec![("a".to_owned(), healthy, 0), ("b".to_owned(), healthy, 0)];
    assert_eq!(records, [both(1)]);
    checks.passed(&activation("a", 1), Millis(121 * 30_000));
    assert_eq!(
        counts(checks.due(Millis(121 * 30_000))),
        [("a".to_owned(), 121, 0), ("b".to_owned(), 120, 0)]
    );
    assert_eq!(checks.due(Millis(u64::MAX)), None, "nothing was counted since");
}

#[test]
fn another_activation_is_recorded_at_its_first_check() {
    let checks = RoutineChecks::default();
    checks.passed(&activation("a", 1), Millis(0));
    assert!(checks.due(Millis(0)).is_some());
    checks.passed(&activation("a", 1), Millis(1));
    assert_eq!(checks.due(Millis(1)), None);
    checks.passed(&activation("a", 2), Millis(2));
    assert_eq!(counts(checks.due(Millis(2))).len(), 2);
}

#[test]
fn set_up_answers_that_are_the_same_are_counted() {
    let (checks, it) = (RoutineChecks::default(), activation("a", 1));
    let differs =
        |answer: &str, of| checks.setup_differs(of, "schema", Digest::of(answer.as_bytes()), Millis(0));
    assert!(differs("one", &it));
    assert!(!differs("one", &it));
    assert!(!differs("one", &it));
    assert!(differs("two", &it));
    assert!(differs("two", &activation("a", 2)), "another activation");
    assert_eq!(counts(checks.take()), [("a".to_owned(), 0, 2)]);
}

#[test]
fn what_leaves_no_frame_of_its_own_is_counted() {
    let (checks, it) = (RoutineChecks::default(), activation("a", 1));
    checks.handed_event(&it, 0, false, Millis(0));
    checks.handed_event(&it, 3, true, Millis(1));
    checks.enriched(&it, false, Millis(2));
    checks.enriched(&it, true, Millis(3));
    checks.enriched(&activation("b", 1), false, Millis(4));
    let counted = checks.due(Millis(5)).unwrap().checks;
    let of =
        |it: &CheckCount| (it.events, it.events_failed, it.events_missed, it.enriched, it.enriched_failed);
    assert_eq!(counted.iter().map(of).collect::<Vec<_>>(), [(2, 1, 3, 2, 1), (0, 0, 0, 1, 0)]);
    // Both are known, so that the next record is due in an hour.
    checks.handed_event(&it, 0, false, Millis(6));
    assert_eq!(checks.due(Millis(7)), None);
    checks.enriched(&activation("b", 1), false, Millis(8));
    assert_eq!(checks.due(Millis(9)), None);
}
