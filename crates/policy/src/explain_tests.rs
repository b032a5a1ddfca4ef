//! The story of a verdict, as a person reads it.

use holdfast_contract::tool::EffectClass::{Exec, Write};
use serde_json::json;

use crate::testing::{Call, policy};
use crate::{Policy, Profile};

const RULES: &str = "
rules:
  - { name: other-tool, decision: deny, match: { tools: [shell] } }
  - { name: work, decision: allow, match: { tools: [file_write], arguments: { /path: '/work/*' } } }
  - name: no-config
    decision: deny
    match: { tools: [file_*], arguments: { /path: '*.toml' } }
    unless: [{ origins: [cli] }]
    reason: Settings are for people.
  - { name: ask-first, decision: ask, match: { tools: [file_write] } }
  - { name: lax, decision: allow, match: {}, profiles: [full-auto] }
";

#[test]
fn the_strongest_rule_decides_and_the_others_are_named() {
    let call = Call::new("file_write", Write).with(json!({ "path": "/work/a.toml" })).from("telegram", None);
    assert_eq!(
        policy(RULES).explain(&call.request()).to_string(),
        "denied by `no-config`: Settings are for people.
profile standard, judged as write
  1. other-tool      deny   does not apply: another tool
  2. work            allow  applies, but `no-config` decides
  3. no-config       deny   decides
  4. ask-first       ask    applies, but `no-config` decides
  5. lax             allow  does not count under this profile
  6. standard/write  ask    applies, but `no-config` decides"
    );
}

#[test]
fn what_does_not_apply_says_why() {
    let call = Call::new("file_write", Write).with(json!({ "path": "/a.toml" }));
    assert_eq!(
        policy(RULES).explain(&call.request()).to_string(),
        "a person is asked by `ask-first`: the rule `ask-first` says so
profile standard, judged as write
  1. other-tool      deny   does not apply: another tool
  2. work            allow  does not apply: the argument `/path` does not match
  3. no-config       deny   does not apply: the exception `unless[0]` applies
  4. ask-first       ask    decides
  5. lax             allow  does not count under this profile
  6. standard/write  ask    applies, but `ask-first` decides"
    );
}

#[test]
fn a_profile_alone_explains_itself() {
    let explanation = Policy::profile(Profile::FullAuto).explain(&Call::new("shell", Exec).request());
    assert_eq!(
        explanation.to_string(),
        "allowed by `full-auto/exec`
profile full-auto, judged as exec
  1. full-auto/exec  allow  decides"
    );
    assert_eq!(
        serde_json::to_value(&explanation).unwrap(),
        json!({
            "verdict": { "decision": "allow", "rule": "full-auto/exec" },
            "policy": Policy::profile(Profile::FullAuto).digest(),
            "profile": "full-auto",
            "effects": ["exec"],
            "steps": [{ "rule": "full-auto/exec", "decision": "allow", "outcome": "decided" }],
        })
    );
}
