use std::collections::BTreeMap;

use crate::budgets::{Budgets, Verdict, table};

fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

fn one_budget() -> Budgets {
    Budgets::read(r#"{"step": {"instructions": 1000, "tolerance_percent": 2}}"#).unwrap()
}

fn verdict(count: u64) -> Verdict {
    one_budget().judge(&counts(&[("step", count)]), |_| true)[0].verdict
}

#[test]
fn a_count_fails_only_past_the_tolerance() {
    assert_eq!(verdict(1000), Verdict::Within);
    assert_eq!(verdict(1020), Verdict::Within);
    assert_eq!(verdict(1021), Verdict::Over);
    assert_eq!(verdict(980), Verdict::Within);
    assert_eq!(verdict(979), Verdict::WellBelow);
    assert!(!Verdict::Over.passes());
    assert!(Verdict::WellBelow.passes());
}

#[test]
fn a_bench_without_a_budget_fails_and_so_does_a_budget_without_a_bench() {
    let lines = one_budget().judge(&counts(&[("append", 7)]), |_| true);
    let verdicts: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.verdict)).collect();
    assert_eq!(verdicts, [("append", Verdict::NoBudget), ("step", Verdict::NoBench)]);
    assert!(lines.iter().all(|line| !line.verdict.passes()));
}

#[test]
fn a_budget_that_was_not_asked_for_is_left_alone() {
    assert!(one_budget().judge(&counts(&[]), |name| name != "step").is_empty());
}

#[test]
fn accepting_lowers_and_adds_but_never_raises() {
    let mut budgets = one_budget();
    budgets.lower(&counts(&[("step", 1500), ("append", 7)]));
    assert_eq!(
        budgets,
        Budgets::read(
            r#"{"step": {"instructions": 1000, "tolerance_percent": 2},
                "append": {"instructions": 7, "tolerance_percent": 2}}"#
        )
        .unwrap()
    );
    budgets.lower(&counts(&[("step", 900)]));
    assert_eq!(budgets.judge(&counts(&[("step", 900)]), |name| name == "step")[0].verdict, Verdict::Within);
    assert_eq!(Budgets::read(&budgets.write().unwrap()).unwrap(), budgets);
}

#[test]
fn the_table_shows_counts_budgets_and_changes() {
    let lines = one_budget().judge(&counts(&[("step", 1100), ("append", 1234567)]), |_| true);
    let text = table(&lines);
    assert!(text.contains("1,234,567"), "{text}");
    assert!(text.contains("+10.00%"), "{text}");
    assert!(text.contains("OVER BUDGET"), "{text}");
}

#[test]
fn a_misspelt_field_is_refused() {
    assert!(Budgets::read(r#"{"step": {"instructions": 1, "tolerance": 2}}"#).is_err());
}
