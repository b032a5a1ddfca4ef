//! Requests and what is decided about them.

use holdfast_contract::tool::EffectClass::{Exec, Network, Pure, Read, Unknown, Write};
use serde_json::json;

use crate::profile::CLASSES;
use crate::testing::{Call, decide, policy, reason, short};
use crate::{Policy, Profile, Rule, Unattended};

#[test]
fn every_profile_has_a_rule_for_every_class() {
    let table = [
        (Profile::Safe, "safe", ["allow", "allow", "ask", "ask", "ask", "ask"]),
        (Profile::Standard, "standard", ["allow", "allow", "ask", "ask", "ask", "ask"]),
        (Profile::FullAuto, "full-auto", ["allow"; 6]),
        (Profile::Trusted, "trusted", ["allow"; 6]),
    ];
    for (profile, name, expected) in table {
        let policy = Policy::profile(profile);
        for ((class, class_name), decision) in
            CLASSES.into_iter().zip(["pure", "read", "write", "exec", "network", "unknown"]).zip(expected)
        {
            let verdict = decide(&policy, &Call::new("tool", class));
            assert_eq!(verdict, format!("{decision} {name}/{class_name}"));
        }
    }
}

#[test]
fn a_tool_that_says_nothing_is_treated_as_having_side_effects() {
    let mut call = Call::new("tool", Pure);
    call.tool = holdfast_contract::tool::ToolSpec::named("tool", "A tool.");
    assert_eq!(decide(&Policy::profile(Profile::Standard), &call), "ask standard/unknown");
}

#[test]
fn what_the_profiles_say_besides() {
    for (profile, native, remembers, routing, bounded) in [
        (Profile::Safe, false, false, "advisory", false),
        (Profile::Standard, false, true, "advisory", false),
        (Profile::FullAuto, false, true, "authoritative", true),
        (Profile::Trusted, true, true, "authoritative", true),
    ] {
        let policy = Policy::profile(profile);
        assert_eq!(policy.allows_native_plugins(), native, "{profile:?}");
        assert_eq!(policy.remembers_answers(), remembers, "{profile:?}");
        assert_eq!(serde_json::to_value(policy.routing()).unwrap(), routing, "{profile:?}");
        assert_eq!(!policy.caps().is_open(), bounded, "{profile:?}");
        assert_eq!(policy.unattended(), Unattended::Deny, "{profile:?}");
    }
}

const ALL_THREE: &str = "
rules:
  - { name: may, decision: allow, match: { tools: ['file_*'] } }
  - { name: second-may, decision: allow, match: { tools: [file_write] } }
  - { name: ask-first, decision: ask, match: { arguments: { /path: '/home/*' } } }
  - { name: never, decision: deny, match: { arguments: { /path: '*/.ssh/*' } }, reason: Keys stay where they are. }
";

#[test]
fn deny_beats_ask_beats_allow_whatever_the_order() {
    let forwards = policy(ALL_THREE);
    let mut lines: Vec<&str> = ALL_THREE.trim().lines().collect();
    lines[1..].reverse();
    let backwards = policy(&lines.join("\n"));
    for (path, expected) in [
        ("/tmp/a", "allow"),
        ("/home/me/a", "ask ask-first"),
        ("/home/me/.ssh/id", "deny never"),
        ("/root/.ssh/id", "deny never"),
    ] {
        let call = Call::new("file_write", Write).with(json!({ "path": path }));
        assert!(decide(&forwards, &call).starts_with(expected), "{path}");
        assert!(decide(&backwards, &call).starts_with(expected), "{path}");
    }
    let call = Call::new("file_write", Write).with(json!({ "path": "/tmp/a" }));
    assert_eq!(decide(&forwards, &call), "allow may", "among equals the first gives its name");
    assert_eq!(decide(&backwards, &call), "allow second-may");
}

#[test]
fn an_explicit_deny_or_ask_holds_under_every_profile() {
    let text = "
rules:
  - { name: never, decision: deny, match: { tools: [shell] } }
  - { name: ask-first, decision: ask, match: { tools: [mail] } }
";
    for profile in Profile::ALL {
        let policy = policy(text).with_profile(*profile);
        assert_eq!(decide(&policy, &Call::new("shell", Exec)), "deny never");
        assert_eq!(decide(&policy, &Call::new("shell", Pure)), "deny never");
        assert_eq!(decide(&policy, &Call::new("mail", Network)), "ask ask-first");
    }
}

#[test]
fn an_allowance_counts_under_safe_only_if_it_says_so() {
    let text = "
rules:
  - { name: everywhere, decision: allow, match: { tools: [shell] } }
  - { name: safe-too, decision: allow, match: { tools: [note] }, profiles: [safe, standard] }
  - { name: full-only, decision: allow, match: { tools: [mail] }, profiles: [full-auto] }
";
    for (profile, tool, expected) in [
        (Profile::Safe, "shell", "ask safe/exec"),
        (Profile::Standard, "shell", "allow everywhere"),
        (Profile::FullAuto, "shell", "allow everywhere"),
        (Profile::Safe, "note", "allow safe-too"),
        (Profile::Standard, "note", "allow safe-too"),
        (Profile::Trusted, "note", "allow trusted/exec"),
        (Profile::Safe, "mail", "ask safe/exec"),
        (Profile::Standard, "mail", "ask standard/exec"),
        (Profile::FullAuto, "mail", "allow full-only"),
    ] {
        let policy = policy(text).with_profile(profile);
        assert_eq!(decide(&policy, &Call::new(tool, Exec)), expected, "{profile:?} {tool}");
    }
}

#[test]
fn rules_look_at_every_part_of_a_call() {
    let policy = policy(
        "
rules:
  - { name: tool, decision: deny, match: { tools: [rm, 'format_*'] } }
  - { name: argument, decision: deny, match: { arguments: { /options/force: 'true', /path: '/srv/*' } } }
  - { name: origin, decision: deny, match: { origins: ['schedule/*'] } }
  - { name: user, decision: deny, match: { users: [mallory] } }
  - { name: agent, decision: deny, match: { agents: [intern] } }
  - { name: extension, decision: deny, match: { extensions: ['untrusted_*'] } }
  - { name: effects, decision: deny, match: { effects: [network, unknown] } }
",
    );
    let call = || Call::new("file_write", Write);
    let mut intern = call();
    intern.turn.agent = "intern".into();
    for (call, expected) in [
        (call(), "ask standard/write"),
        (Call::new("rm", Write), "deny tool"),
        (Call::new("format_disk", Write), "deny tool"),
        (Call::new("reformat_disk", Write), "ask standard/write"),
        (call().with(json!({ "options": { "force": true }, "path": "/srv/x" })), "deny argument"),
        (call().with(json!({ "options": { "force": "true" }, "path": "/srv/x" })), "deny argument"),
        (call().with(json!({ "options": { "force": false }, "path": "/srv/x" })), "ask standard/write"),
        (call().with(json!({ "options": { "force": true } })), "ask standard/write"),
        (call().from("schedule/nightly", None), "deny origin"),
        (call().from("telegram", Some("mallory")), "deny user"),
        (call().from("telegram", Some("alice")), "ask standard/write"),
        (intern, "deny agent"),
        (call().of("untrusted_thing"), "deny extension"),
        (Call::new("fetch", Network), "deny effects"),
        (Call::new("fetch", Unknown), "deny effects"),
    ] {
        assert_eq!(decide(&policy, &call), expected, "{:?} {:?}", call.tool.name, call.arguments);
    }
}

#[test]
fn an_exception_takes_a_call_out_of_a_rule() {
    let policy = policy(
        "
profile: full-auto
rules:
  - name: only-in-work
    decision: deny
    match: { tools: [file_write] }
    unless:
      - { arguments: { /path: '/work/*' } }
      - { origins: [cli], arguments: { /path: '/tmp/*' } }
",
    );
    let write = |path: &str| Call::new("file_write", Write).with(json!({ "path": path }));
    for (call, expected) in [
        (write("/work/a"), "allow full-auto/write"),
        (write("/etc/a"), "deny only-in-work"),
        (write("/tmp/a"), "allow full-auto/write"),
        (write("/tmp/a").from("telegram", None), "deny only-in-work"),
        (write("/work/../etc/a"), "deny only-in-work"),
        (Call::new("file_write", Write), "deny only-in-work"),
    ] {
        assert_eq!(decide(&policy, &call), expected, "{:?}", call.arguments);
    }
}

#[test]
fn reasons_say_who_asks_and_why() {
    let standard = Policy::profile(Profile::Standard);
    let shell = Call::new("shell", Exec);
    let verdict = standard.evaluate(&shell.request());
    assert_eq!(reason(verdict.clone()), "`shell` runs programs, and the standard profile asks first");
    let unattended = standard.without_approver(verdict);
    assert_eq!(short(&unattended), "deny standard/exec");
    assert_eq!(
        reason(unattended),
        "`shell` runs programs, and the standard profile asks first; nobody is there to be asked"
    );
    let rule = policy("rules: [{ name: never, decision: deny, match: {} }]");
    assert_eq!(reason(rule.evaluate(&shell.request())), "the rule `never` says so");
}

#[test]
fn a_question_can_wait_for_somebody() {
    let patient = policy("unattended: wait");
    let verdict = patient.evaluate(&Call::new("shell", Exec).request());
    assert_eq!(short(&patient.without_approver(verdict)), "ask standard/exec");
    let allowed = patient.evaluate(&Call::new("sum", Pure).request());
    assert_eq!(short(&patient.without_approver(allowed)), "allow standard/pure");
}

#[test]
fn a_grant_weighs_more_than_a_declaration() {
    let digest = Call::new("tool", Read).extension.digest;
    let policy = policy(&format!(
        "
rules:
  - {{ name: read, decision: allow, match: {{ tools: [peek], effects: [read] }} }}
  - {{ name: fetch, decision: allow, match: {{ tools: [fetch], effects: [read, network, unknown] }} }}
  - {{ name: no-network, decision: deny, match: {{ origins: [web], effects: [network] }} }}
grants:
  - extension: weather
    tied_to: {{ digest: {digest} }}
    give: {{ network: [api.example.com], secrets: [KEY] }}
  - extension: notes
    tied_to: {{ path: /home/me/src/notes }}
    give: {{ files: [{{ path: ~/notes, access: write }}] }}
  - extension: harmless
    tied_to: {{ digest: {digest} }}
    give: {{ files: [~/notes], interfaces: [state] }}
"
    ));
    let mut changed = Call::new("tool", Read).of("weather");
    changed.extension.digest = holdfast_contract::digest::Digest::of(b"other content");
    for (call, expected) in [
        (Call::new("tool", Read).of("other"), "allow standard/read"),
        (Call::new("tool", Read).of("weather"), "ask standard/network"),
        (Call::new("tool", Exec).of("weather"), "ask standard/exec"),
        (changed, "ask standard/network"),
        (Call::new("tool", Pure).of("notes"), "ask standard/write"),
        (Call::new("tool", Read).of("harmless"), "allow standard/read"),
        (Call::new("peek", Read).of("weather"), "ask standard/network"),
        (Call::new("fetch", Read).of("weather"), "allow fetch"),
        (Call::new("tool", Read).of("weather").from("web", None), "deny no-network"),
    ] {
        assert_eq!(decide(&policy, &call), expected, "{} of {}", call.tool.name, call.extension.id);
    }
    assert_eq!(
        reason(policy.evaluate(&Call::new("tool", Read).of("weather").request())),
        "`tool` is declared `read`, but `weather` holds a grant to use the network, and the standard profile asks first"
    );
    let full = policy.with_profile(Profile::FullAuto);
    assert_eq!(decide(&full, &Call::new("tool", Read).of("weather")), "allow full-auto/network");
}

#[test]
fn always_is_an_allowance_for_one_tool_of_one_extension() {
    let call = Call::new("file_write", Write);
    let rule = Rule::always(&"file_write".into(), &"files".into()).unwrap();
    let standard = Policy::profile(Profile::Standard).with_rule(rule.clone()).unwrap();
    assert_eq!(decide(&standard, &call), "allow always/files/file_write");
    assert_eq!(decide(&standard, &Call::new("file_write", Write).of("other")), "ask standard/write");
    assert_eq!(decide(&standard, &Call::new("file_remove", Write)), "ask standard/write");
    assert_eq!(decide(&standard.clone().with_profile(Profile::Safe), &call), "ask safe/write");
    assert_eq!(
        standard.with_rule(rule).unwrap_err().what,
        "two rules have the name `always/files/file_write`"
    );
    assert_eq!(Rule::always(&"file_*".into(), &"files".into()), None);
}

// Finding E1: `policy.ask` of a manifest.
#[test]
fn an_authors_advice_makes_a_profile_stricter_and_never_a_rule_looser() {
    let mut call = Call::new("tool", Pure);
    call.tool.asks = true;
    for profile in [Profile::Safe, Profile::Standard, Profile::FullAuto] {
        let verdict = decide(&Policy::profile(profile), &call);
        assert!(verdict.starts_with("ask "), "{profile:?}: {verdict}");
    }
    let rule = |decision: &str| {
        policy(&format!("rules: [{{ name: mine, decision: {decision}, match: {{ tools: [tool] }} }}]"))
    };
    for decision in ["allow", "ask", "deny"] {
        assert_eq!(decide(&rule(decision), &call), format!("{decision} mine"));
    }
}
