//! A guardrail over answers. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

use holdfast_extension::{Verdict, guard_output};

const FORBIDDEN: &[&str] = &["bluebird"];

/// Called for each answer before it is shown. A guardrail that fails or times out blocks the answer.
#[guard_output]
fn guard(answer: String) -> Verdict {
    if FORBIDDEN.iter().any(|word| answer.contains(word)) {
        return Verdict::Block("the answer holds a forbidden word".into());
    }
    Verdict::Allow
}
