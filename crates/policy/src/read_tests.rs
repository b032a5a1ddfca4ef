//! What a person sees when a policy cannot be used.

use crate::testing::{policy, problems};
use crate::{Policy, Profile};

#[test]
fn nothing_written_is_the_standard_profile() {
    for text in ["", "# only a comment\n", "profile: standard", "rules: []\ngrants: []"] {
        let policy = policy(text);
        assert_eq!(policy.profile_name(), Profile::Standard);
        assert_eq!(policy.digest(), Policy::profile(Profile::Standard).digest(), "{text}");
    }
}

#[test]
fn every_problem_has_its_place_and_its_fix() {
    for (text, expected) in [
        (
            "profile: saef\n",
            "error[HF-1201]: `saef` is not a value of `profile`
  --> policy.yaml:1:10 (profile)
  help: Did you mean `safe`? Use one of `safe`, `standard`, `full-auto`, `trusted`.",
        ),
        (
            "rulse: []\n",
            "error[HF-1201]: unknown field `rulse`
  --> policy.yaml:1:1 (rulse)
  help: Did you mean `rules`?",
        ),
        (
            "rules:\n  - name: a\n    decision: deny\n    match: {}\n  - name: a\n    decision: ask\n    match: {}\n",
            "error[HF-1201]: two rules have the name `a`
  --> policy.yaml:5:11 (rules[1].name)
  help: Rename one of them.",
        ),
        (
            "rules:\n  - name: standard/exec\n    decision: deny\n    match: {}\n",
            "error[HF-1201]: `standard/exec` is a name that is kept for a profile's own rules
  --> policy.yaml:2:11 (rules[0].name)
  help: Give the rule another name.",
        ),
        (
            "rules:\n  - name: a\n    decision: forbid\n    tools: [shell]\n",
            "error[HF-1201]: `rules[0].match` is missing
  --> policy.yaml:2:5 (rules[0].match)
  help: Add `match: { tools: [shell] }`.
error[HF-1201]: `forbid` is not a value of `rules[0].decision`
  --> policy.yaml:3:15 (rules[0].decision)
  help: Use one of `allow`, `ask`, `deny`.
error[HF-1201]: unknown field `tools` in `rules[0]`
  --> policy.yaml:4:5 (rules[0].tools)
  help: Move it below `match:`.",
        ),
        (
            "rules:\n  - name: a\n    decision: deny\n    match: { tools: [], arguments: { path: /etc } }\n",
            "error[HF-1201]: `rules[0].match.tools` is empty
  --> policy.yaml:4:21 (rules[0].match.tools)
  help: Name something, or leave the field out.
error[HF-1201]: `path` is not a JSON pointer
  --> policy.yaml:4:44 (rules[0].match.arguments.path)
  help: Write `/path: pattern`.",
        ),
        (
            "rules:\n  - name: a\n    decision: deny\n    match: { tools: [x] }\n    unless: [{}]\n",
            "error[HF-1201]: `rules[0].unless[0]` is empty, and would except every call from the rule
  --> policy.yaml:5:14 (rules[0].unless[0])
  help: Say what is excepted, or leave `unless` out.",
        ),
        (
            "profile: safe\nprofile: full-auto\n",
            "error[HF-1201]: duplicate key `profile`, first at line 1
  --> policy.yaml:2:1 (profile)
  help: The last value counts; remove the others.",
        ),
        (
            "caps:\n  session: { dollars: lots, tokens: -1 }\n  extensions: { mail: { time: 5 } }\n",
            "error[HF-1201]: `caps.session.dollars` is not an amount of money
  --> policy.yaml:2:23 (caps.session.dollars)
  help: Write a number of dollars, such as `dollars: 2.50`.
error[HF-1201]: `caps.session.tokens` is -1, which is out of range
  --> policy.yaml:2:37 (caps.session.tokens)
  help: Use a whole number from 0 to 9007199254740991.
error[HF-1201]: unknown field `time` in `caps.extensions.mail`
  --> policy.yaml:3:25 (caps.extensions.mail.time)
  help: Did you mean `time_ms`?",
        ),
        (
            "grants:
  - extension: mail
    tied_to: { digest: abc }
    give: { network: ['*example.com'], files: [/srv/*, ../x], secrets: ['A*B'] }
",
            "error[HF-1201]: `grants[0].tied_to.digest` is not a digest
  --> policy.yaml:3:24 (grants[0].tied_to.digest)
  help: A digest has 64 lower-case hexadecimal digits; `holdfast ext show` prints it.
error[HF-1201]: `*example.com` cannot be granted: `*` is allowed only for whole labels at the front, as in `*.example.com`
  --> policy.yaml:4:23 (grants[0].give.network[0])
  help: Write a host such as `api.example.com`, `*.example.com` or `localhost:8080`.
error[HF-1201]: `/srv/*` has `*` in it
  --> policy.yaml:4:48 (grants[0].give.files[0])
  help: A folder is granted with everything in it; name the folder itself.
error[HF-1201]: `../x` has `..` in it
  --> policy.yaml:4:56 (grants[0].give.files[1])
  help: Write the folder that is meant.
error[HF-1201]: `A*B` cannot be granted: `*` is allowed only at the end of a name
  --> policy.yaml:4:73 (grants[0].give.secrets[0])
  help: Write the names one by one, or the beginning that they have in common.",
        ),
        (
            "grants:\n  - extension: mail\n    tied_to: {}\n    give: {}\n",
            "error[HF-1201]: `grants[0].tied_to.digest` is missing
  --> policy.yaml:3:14 (grants[0].tied_to.digest)
  help: Add `digest: …`; `holdfast ext grant` writes it for you.",
        ),
        (
            "grants:\n  - extension: mail\n    tied_to: { path: ~/src/mail }\n    give: {}\n",
            "error[HF-1201]: `~/src/mail` is not an absolute path
  --> policy.yaml:3:22 (grants[0].tied_to.path)
  help: Write the whole path, from `/`.",
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn a_glob_has_a_longest_length() {
    let text = format!("rules: [{{ name: a, decision: deny, match: {{ tools: [{}] }} }}]", "a".repeat(1025));
    assert!(problems(&text).contains("has 1025 bytes, and a glob may have 1024"));
}

#[test]
fn numbers_in_examples_are_exact() {
    let text = "
rules:
  - name: a
    decision: deny
    match: { tools: [t] }
    examples: { match: [{ tool: t, arguments: { id: 9007199254740993 } }] }
";
    assert!(problems(text).contains("has a number that JSON cannot carry exactly"));
}

#[test]
fn a_rule_that_contradicts_its_example_is_refused() {
    for (rule, expected) in [
        (
            "{ tools: ['file_*'], arguments: { /path: /etc/* } }
    examples:
      match:
        - { tool: file_write, arguments: { path: /etc/passwd } }
        - { tool: file_write, arguments: { path: /tmp/x } }
        - { tool: shell, arguments: { path: /etc/passwd } }
      not_match:
        - { tool: file_read, arguments: { path: /etc/hosts } }
        - { tool: file_write }",
            "error[HF-1202]: the rule `r` does not apply to its example `file_write {\"path\":\"/tmp/x\"}`: the argument `/path` does not match
  --> policy.yaml:8:11 (rules[0].examples.match[1])
  help: Change the rule or the example until they agree; a rule is loaded only when all its examples hold.
error[HF-1202]: the rule `r` does not apply to its example `shell {\"path\":\"/etc/passwd\"}`: the tool does not match
  --> policy.yaml:9:11 (rules[0].examples.match[2])
  help: Change the rule or the example until they agree; a rule is loaded only when all its examples hold.
error[HF-1202]: the rule `r` applies to `file_read {\"path\":\"/etc/hosts\"}`, which it says it does not
  --> policy.yaml:11:11 (rules[0].examples.not_match[0])
  help: Change the rule or the example until they agree; a rule is loaded only when all its examples hold.",
        ),
        (
            "{ tools: [shell], origins: [telegram] }
    examples:
      match: [{ tool: shell }, { tool: shell, origin: telegram }, { tool: shell, origin: cli }]
      not_match: [{ tool: shell }, { tool: shell, origin: web }]",
            "error[HF-1202]: the rule `r` does not apply to its example `shell`: the origin does not match
  --> policy.yaml:6:67 (rules[0].examples.match[2])
  help: Change the rule or the example until they agree; a rule is loaded only when all its examples hold.
error[HF-1202]: the rule `r` can apply to `shell`, which it says it does not
  --> policy.yaml:7:19 (rules[0].examples.not_match[0])
  help: The example says nothing about the origin; add that, or change the rule.",
        ),
        (
            "{ effects: [exec] }
    unless: [{ extensions: [trusted] }]
    examples:
      match: [{ tool: shell, effects: exec, extension: trusted }, { tool: shell, effects: exec }]
      not_match: [{ tool: shell, effects: exec, extension: trusted }, { tool: sum, effects: pure }]",
            "error[HF-1202]: the rule `r` does not apply to its example `shell`: the exception `unless[0]` applies
  --> policy.yaml:7:15 (rules[0].examples.match[0])
  help: Change the rule or the example until they agree; a rule is loaded only when all its examples hold.",
        ),
    ] {
        let text = format!("rules:\n  - name: r\n    decision: deny\n    match: {rule}\n");
        assert_eq!(problems(&text), expected, "{rule}");
    }
}

#[test]
fn a_star_without_quotes_is_explained() {
    let text = "rules: [{ name: a, decision: deny, match: { tools: [*] } }]";
    let problems = problems(text);
    assert!(problems.contains("must be quoted"), "{problems}");
}

#[test]
fn the_document_comes_back_as_it_was() {
    let text = "
profile: full-auto
unattended: wait
routing: advisory
rules:
  - name: a
    decision: ask
    match: { tools: ['x*'], arguments: { /n: '1' }, origins: [cli], users: [''], agents: [m], extensions: [e], effects: [exec] }
    unless: [{ tools: [xy] }]
    profiles: [full-auto]
    reason: Größe 💥
    examples: { match: [{ tool: x, arguments: { n: 1.5, m: null } , user: '' }] }
grants:
  - extension: e
    tied_to: { path: /home/me/src/e }
    give: { network: ['*.example.com:443'], files: [~/n, { path: ./w, access: write }], extensions: [kv], interfaces: ['*'] }
caps: { session: { tokens: 10, dollars: 0.1, time_ms: 5 }, day: { dollars: 3 }, extensions: { mail: { tokens: 1 } } }
";
    let text = text.replace("n: 1.5", "n: 1");
    let policy = policy(&text);
    let stored = Policy::from_document(policy.document()).unwrap();
    assert_eq!(stored.document, policy.document);
    assert_eq!(stored.document(), policy.document());
    assert_eq!(stored.digest(), policy.digest());
    assert_eq!(holdfast_contract::digest::Digest::of(policy.document()), policy.digest());
    assert_ne!(policy.digest(), policy.clone().with_profile(Profile::Safe).digest());
}

#[test]
fn a_stored_document_that_is_damaged_is_refused() {
    let rule = r#"{"name":"a","decision":"deny","match":{}}"#;
    for (bytes, expected) in [
        ("".to_owned(), "the stored policy cannot be read"),
        ("{}x".to_owned(), "the stored policy cannot be read"),
        (r#"{"profile":"lax"}"#.to_owned(), "unknown variant `lax`"),
        (r#"{"more":1}"#.to_owned(), "unknown field `more`"),
        (format!(r#"{{"rules":[{rule},{rule}]}}"#), "two rules have the name `a`"),
        (
            format!(r#"{{"rules":[{}]}}"#, rule.replace("\"a\"", "\"safe/a\"")),
            "kept for a profile's own rules",
        ),
    ] {
        let problem = Policy::from_document(bytes.as_bytes()).unwrap_err();
        assert!(problem.what.contains(expected), "{bytes}: {}", problem.what);
    }
    assert!(Policy::from_document(&[0xff, 0xfe]).is_err());
}

#[test]
fn owners_are_named_one_by_one() {
    let read = policy("owners:\n  - { channel: telegram, user: 4711 }\nanswer_within_ms: 60_000\n");
    let origin = holdfast_contract::message::Origin::channel(&"telegram".into(), "4711");
    assert!(read.owner_at(&origin).is_some());
    assert_eq!(read.answer_within().0, 60_000);
    for (channel, user) in [("telegram", "4712"), ("telegram", ""), ("slack", "4711"), ("telegram", "*")] {
        let other = holdfast_contract::message::Origin::channel(&channel.into(), user);
        assert!(read.owner_at(&other).is_none(), "{channel} {user}");
    }
    let none = policy("");
    assert!(none.owners().is_empty() && none.answer_within().0 == 86_400_000);
    assert_eq!(
        problems("owners:\n  - { channel: telegram, user: \"*\" }\n  - { channel: slack }\n"),
        "error[HF-1201]: `*` looks like a pattern, and a user is compared exactly
  --> policy.yaml:2:32 (owners[0].user)
  help: List each user who is the owner of the home.
error[HF-1201]: `owners[1].user` is missing
  --> policy.yaml:3:5 (owners[1].user)
  help: Add `user: \"4711\"`."
    );
}
