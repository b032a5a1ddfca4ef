use holdfast_contract::message::LimitKind;
use holdfast_rpc::{ExtensionProblem, LimitUsage, Queues, Status, UsageInfo};

use super::{lines, span};

#[test]
fn a_home_where_nothing_has_happened_says_so() {
    let status = Status { active: 3, ..Status::default() };
    let expected = [
        "3 extensions active, 0 down",
        "0 sessions open, 0 stored",
        "bus: nothing waits; no dead letters",
        "spent since it came up: nothing, no model was called",
        "every extension is healthy",
    ];
    assert_eq!(lines(&status), expected);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let troubled = |extension: &str| ExtensionProblem {
        extension: extension.to_owned(),
        code: "HF-4001".to_owned(),
        message: "it fell over".to_owned(),
        fix: "Pick it up.".to_owned(),
    };
    let status = Status {
        failed: vec![troubled("notes")],
        degraded: vec![troubled("mail")],
        queues: Queues { open: 7, under_way: 2, delayed: 3, dead: 1, trouble: Some("disk full".to_owned()) },
        spent: UsageInfo { model_calls: 4, tokens: 900, cost_micros: 1_500_000 },
        today: vec![LimitUsage { extension: None, limit: LimitKind::DayTokens, used: 900, allowed: 1_000 }],
        ..Status::default()
    };
    let text = lines(&status).join("\n");
    for part in [
        "1 down",
        "bus: 7 open, of these 2 under way and 3 delayed; 1 dead letter (`holdfast bus dead list`)",
        "spent since it came up: 4 model calls, 900 tokens, $1.500000",
        "today: 900 of 1000 tokens in a day (`caps.day.tokens`)",
        "nothing moves on the bus at the moment: disk full",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    let row = |of: &str| text.lines().find(|line| line.starts_with(of)).unwrap_or_default().to_owned();
    assert!(row("notes").contains("down") && row("mail").contains("as it was"), "{text}");
    assert!(row("mail").contains("Pick it up."), "{text}");
    assert!(!text.contains("every extension is healthy"));
}

#[test]
fn spans_are_said_in_two_units() {
    let all = [0, 59_999, 61_000, 3_660_000, 90_000_000].map(span);
    assert_eq!(all, ["0 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
}
