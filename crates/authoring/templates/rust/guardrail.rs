//! A guardrail over answers. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.

use holdfast_extension::{Verdict, guard_output};

const FORBIDDEN: &[&str] = &["bluebird"];

/// Asked about each answer before anybody sees it. A guardrail that fails or is late has blocked.
#[guard_output]
fn guard(answer: String) -> Verdict {
    if FORBIDDEN.iter().any(|word| answer.contains(word)) {
        return Verdict::Block("the answer holds a forbidden word".into());
    }
    Verdict::Allow
}
