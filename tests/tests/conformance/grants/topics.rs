//! Topics of the bus: which of them an extension may publish on and subscribe to, in each lane, with and without grants.

use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::manifest::Profile;
use serde_json::json;

use super::asks::{Asked, Grounds, Made};
use crate::conformance::lanes::{self, ConformingLane};

/// How a topic may be used, in the order: with every grant; and without any, native code, Python, a program, a component. `+` is not
/// refused, `G` needs a grant (`HF-4103`), `R` is refused whatever is granted (`HF-8010`).
const TOPICS: [(&str, &str, &str); 9] = [
    // The topic; publishing; subscribing.
    ("conformance.said", "+ +++G", "+ +++G"),
    ("somebody.said", "+ +++G", "+ +++G"),
    ("user.message", "R RRRG", "+ ++GG"),
    ("system.user.notify", "+ +++G", "+ GGGG"),
    ("system.agent.task", "+ ++GG", "+ GGGG"),
    ("system.dead_letter", "R RRRG", "+ GGGG"),
    ("channel.out.chat", "R RRRG", "+ ++GG"),
    ("system.*", "R RRRG", "R RRRG"),
    (">", "R RRRG", "R RRRG"),
];

/// The letter of an outcome.
fn letter(made: &Made) -> &'static str {
    match made.outcome.as_str() {
        "HF-4103" => "G",
        "HF-8010" if made.why.contains("may not") => "R",
        _ => "+",
    }
}

/// Publishes on every topic and subscribes to it.
async fn letters(lane: &dyn ConformingLane, is_granted: bool) -> Vec<&'static str> {
    if lane.name() == "wasm" && !is_granted {
        // It is not loaded: `table.rs` shows that.
        return vec!["G"; 2 * TOPICS.len()];
    }
    let calls: Vec<Asked> = TOPICS
        .iter()
        .flat_map(|(topic, ..)| {
            // What is not refused has a payload that no subscriber of the program takes.
            let publish = json!({ "topic": topic, "payload": 1, "key": null });
            [(HostCallKind::EventPublish, publish), (HostCallKind::EventSubscribe, json!({ "topic": topic }))]
        })
        .collect();
    let place = tempfile::tempdir().unwrap();
    let grounds = Grounds { lane, profile: Profile::Standard, is_granted, place: place.path() };
    grounds.make(&calls).await.iter().map(letter).collect()
}

/// Every extension may use the same topics in every lane, with the same grants; by default a program has fewer than Python, and a
/// component has none.
pub async fn compare() {
    let lanes = lanes::of_every_profile();
    let lane = |name: &str| &**lanes.iter().find(|lane| lane.name() == name).unwrap();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for name in ["native", "python", "process", "wasm"] {
        with.push(letters(lane(name), true).await);
        without.push(letters(lane(name), false).await);
    }
    for (place, (topic, publishing, subscribing)) in TOPICS.iter().enumerate() {
        for (way, expected) in [(0, publishing), (1, subscribing)] {
            let at = 2 * place + way;
            let granted: Vec<&str> = with.iter().map(|letters| letters[at]).collect();
            let what = format!("{} `{topic}`", ["publishing on", "subscribing to"][way]);
            assert!(granted.iter().all(|letter| *letter == granted[0]), "{what}: {granted:?}");
            let ungranted: String = without.iter().map(|letters| letters[at]).collect();
            assert_eq!(format!("{} {ungranted}", granted[0]), **expected, "{what}");
        }
    }
}
