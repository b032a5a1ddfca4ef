//! Hostile and odd arguments: nothing panics, nothing takes long, nothing slips through.

use std::time::{Duration, Instant};

use holdfast_contract::tool::EffectClass::{Exec, Write};
use serde_json::{Value, json};

use crate::testing::{Call, decide, long, policy};
use crate::{Policy, Profile};

fn gate() -> Policy {
    policy(
        "
rules:
  - { name: never, decision: deny, match: { arguments: { /path: '/etc/*' } } }
  - { name: may, decision: allow, match: { arguments: { /path: '/tmp/*' } } }
",
    )
}

#[test]
fn a_path_that_climbs_is_denied_where_it_leads_and_never_allowed() {
    for (path, expected) in [
        ("/tmp/a", "allow may"),
        ("/tmp/a..b/c...", "allow may"),
        ("/tmp/../etc/passwd", "deny never"),
        ("/tmp/x/../../etc/passwd", "deny never"),
        ("//etc//passwd", "deny never"),
        ("/./etc/./passwd", "deny never"),
        ("/../../etc/passwd", "deny never"),
        ("/etc/../tmp/a", "deny never"),
        ("/tmp/../home/a", "ask standard/write"),
        ("/tmp/..", "ask standard/write"),
        ("/tmp/..\\..\\etc", "ask standard/write"),
        ("/tmp/a/../b", "ask standard/write"),
        ("/tmp/../etc/", "deny never"),
        ("/etc", "ask standard/write"),
    ] {
        let call = Call::new("file_write", Write).with(json!({ "path": path }));
        assert_eq!(decide(&gate(), &call), expected, "{path}");
    }
}

#[test]
fn an_allowance_of_exactly_this_text_counts_even_if_it_climbs() {
    let policy = policy("rules: [{ name: up, decision: allow, match: { arguments: { /command: cd .. } } }]");
    assert_eq!(decide(&policy, &Call::new("shell", Exec).with(json!({ "command": "cd .." }))), "allow up");
}

#[test]
fn odd_arguments_are_compared_as_their_json_or_not_at_all() {
    let policy = policy(
        "
rules:
  - { name: whole, decision: deny, match: { tools: [whole], arguments: { '': '*secret*' } } }
  - { name: part, decision: deny, match: { tools: [part], arguments: { /a/0/b~1c: '1*' } } }
  - { name: 'null', decision: deny, match: { tools: ['null'], arguments: { /a: 'null' } } }
",
    );
    for (tool, arguments, expected) in [
        ("whole", json!({ "deep": [{ "x": "a secret" }] }), "deny whole"),
        ("whole", json!("a secret"), "deny whole"),
        ("whole", json!({}), "ask standard/exec"),
        ("part", json!({ "a": [{ "b/c": 12 }] }), "deny part"),
        ("part", json!({ "a": [{ "b/c": "12" }] }), "deny part"),
        ("part", json!({ "a": [{ "b/c": [1] }] }), "ask standard/exec"),
        ("part", json!({ "a": "text" }), "ask standard/exec"),
        ("part", json!([]), "ask standard/exec"),
        ("part", Value::Null, "ask standard/exec"),
        ("null", json!({ "a": null }), "deny null"),
        ("null", json!({}), "ask standard/exec"),
    ] {
        let call = Call::new(tool, Exec).with(arguments.clone());
        assert_eq!(decide(&policy, &call), expected, "{tool} {arguments}");
    }
}

#[test]
fn globs_count_letters_and_not_bytes() {
    let policy = policy("rules: [{ name: one, decision: deny, match: { arguments: { /name: 'gr?n*' } } }]");
    for (name, expected) in [
        ("grün", "deny one"),
        ("gr💥n", "deny one"),
        ("grn", "ask standard/write"),
        ("gru\u{308}n", "ask standard/write"),
        ("\u{202e}grün", "ask standard/write"),
        ("\0", "ask standard/write"),
    ] {
        assert_eq!(
            decide(&policy, &Call::new("t", Write).with(json!({ "name": name }))),
            expected,
            "{name:?}"
        );
    }
}

#[test]
fn deep_and_huge_arguments_are_judged_quickly() {
    let stars = "*a".repeat(400);
    let policy = policy(&format!(
        "
rules:
  - {{ name: stars, decision: deny, match: {{ arguments: {{ /text: '{stars}*b' }} }} }}
  - {{ name: all-stars, decision: deny, match: {{ arguments: {{ /text: '{}b' }} }} }}
  - {{ name: whole, decision: deny, match: {{ arguments: {{ '': '*needle*' }} }} }}
",
        "*".repeat(1000)
    ));
    let mut deep = json!("bottom");
    for _ in 0..1000 {
        deep = json!([deep]);
    }
    let started = Instant::now();
    for arguments in [
        json!({ "text": &*long("a", 1_000_000) }),
        json!({ "text": &*long("aé", 300_000) }),
        json!({ "text": &*long("/..", 300_000) }),
        json!({ "text": &*long("/.", 300_000) }),
        json!({ "text": deep }),
    ] {
        let call = Call::new("t", Write).with(arguments);
        assert_eq!(decide(&policy, &call), "ask standard/write");
    }
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

#[test]
fn the_same_call_is_always_judged_the_same() {
    let policy = gate().with_profile(Profile::FullAuto);
    let call = Call::new("file_write", Write).with(json!({ "path": "/etc/x" }));
    let first = policy.evaluate(&call.request());
    assert!((0..1000).all(|_| policy.evaluate(&call.request()) == first));
}
