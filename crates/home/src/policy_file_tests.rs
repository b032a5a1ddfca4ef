//! The home's policy, and rules that are added to it without losing a word.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use holdfast_contract::manifest::Grants;
use holdfast_policy::{Condition, Examples, Grant, Profile, Rule, Ruling, Tie};

use crate::InitOptions;
use crate::testing::{empty, mode, scene, set_mode, write};

fn rule(name: &str) -> Rule {
    Rule {
        name: name.into(),
        decision: Ruling::Allow,
        condition: Condition {
            tools: vec!["shell".into()],
            arguments: [("/command".to_owned(), "git \"status\": # *".to_owned())].into(),
            ..Condition::default()
        },
        unless: Vec::new(),
        profiles: vec![Profile::Standard],
        reason: "Asked for on 3 May: \u{1f642} always".into(),
        examples: Examples::default(),
    }
}

#[test]
fn the_profile_is_the_files_or_the_one_asked_for() {
    let scene = scene();
    for (text, asked, expected) in [
        (None, None, Profile::Standard),
        (None, Some("full-auto"), Profile::FullAuto),
        (Some("profile: safe\n"), None, Profile::Safe),
        (Some("\u{feff}profile: safe\r\n"), None, Profile::Safe),
        (Some("profile: safe\n"), Some("full-auto"), Profile::FullAuto),
        (Some("profile: safe\n"), Some("trusted"), Profile::Trusted),
        (Some("profile: trusted\n"), None, Profile::Trusted),
    ] {
        if let Some(text) = text {
            write(scene.home.policy_file(), text);
        }
        assert_eq!(scene.home.policy(asked).unwrap().profile_name(), expected);
    }
    write(scene.home.policy_file(), "profile: safe\n");
    let problem = scene.home.policy(Some("fullauto")).unwrap_err();
    assert!(problem.to_string().contains("help: Did you mean `full-auto`?"), "{problem}");
    write(scene.home.policy_file(), "profile: saef\nrulse: []\n");
    let problem = scene.home.policy(None).unwrap_err().to_string();
    assert_eq!(problem.matches("error[HF-1201]").count(), 2, "{problem}");
}

#[test]
fn a_rule_is_added_and_the_rest_stays() {
    const LAST: &str = "  - name: a\n    decision: deny\n    match: { tools: [x] }\n";
    let cases = [
        String::new(),
        "profile: safe # mine\n".to_owned(),
        "profile: safe".to_owned(),
        "# rules:\n#   - name: no\n".to_owned(),
        "rules: []\nprofile: safe\n".to_owned(),
        "rules: [] # none yet\n".to_owned(),
        "rules:\n# none\nprofile: safe\n".to_owned(),
        format!("# before\nrules: # these\n  # first\n{LAST}\n# after\nprofile: safe # last\n"),
        format!("rules:\n{LAST}"),
        format!("rules:\n{LAST}").replace('\n', "\r\n"),
        "rules:\n- name: a\n  decision: deny\n  match: {}\nprofile: safe\n".to_owned(),
        "rules:\n      - name: a\n        decision: deny\n        match: {}\n".to_owned(),
    ];
    for text in cases {
        let scene = scene();
        write(scene.home.policy_file(), &text);
        set_mode(&scene.home.policy_file(), 0o640);
        let before = scene.home.policy(None).unwrap();
        let after = scene.home.remember_rule(&rule("always-git")).unwrap();
        assert_eq!(after.digest(), scene.home.policy(None).unwrap().digest());
        assert_eq!(after.digest(), before.with_rule(rule("always-git")).unwrap().digest());
        let written = fs::read_to_string(scene.home.policy_file()).unwrap();
        for line in text.lines().filter(|line| !line.contains("[]")) {
            assert!(written.lines().any(|kept| kept == line), "{line}\n{written}");
        }
        assert_eq!(text.contains("# none yet"), written.contains("# none yet"));
        assert_eq!(text.contains('\r'), written.contains('\r'));
        assert_eq!(mode(&scene.home.policy_file()), 0o640);
        let names: Vec<_> = fs::read_dir(scene.home.config()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary file remains: {names:?}");
        // Once is enough, and a second one fits behind it.
        scene.home.remember_rule(&rule("always-git")).unwrap();
        assert_eq!(fs::read_to_string(scene.home.policy_file()).unwrap(), written);
        assert_eq!(
            scene.home.remember_rule(&rule("another")).unwrap().rules().len(),
            after.rules().len() + 1
        );
    }
}

#[test]
fn what_is_written_reads_well() {
    let scene = empty();
    scene.home.init(&InitOptions::default()).unwrap();
    scene.home.remember_rule(&rule("always-git")).unwrap();
    let text = fs::read_to_string(scene.home.policy_file()).unwrap();
    let added = "rules:
  - name: \"always-git\"
    decision: \"allow\"
    match: {\"arguments\":{\"/command\":\"git \\\"status\\\": # *\"},\"tools\":[\"shell\"]}
    profiles: [\"standard\"]
    reason: \"Asked for on 3 May: \u{1f642} always\"
";
    assert!(text.starts_with("# What agents may do without you.") && text.ends_with(added), "{text}");
}

#[test]
fn a_list_in_brackets_is_rewritten_and_the_old_text_is_kept() {
    let text = "profile: safe # mine\nrules: [{ name: a, decision: deny, match: { tools: [x] } }]\ncaps: { day: { dollars: 2.5 } }\n";
    let scene = scene();
    write(scene.home.policy_file(), text);
    let before = scene.home.policy(None).unwrap();
    let after = scene.home.remember_rule(&rule("b")).unwrap();
    assert_eq!(after.digest(), before.with_rule(rule("b")).unwrap().digest());
    assert_eq!(after.digest(), scene.home.policy(None).unwrap().digest());
    assert_eq!(fs::read_to_string(scene.home.config().join("policy.yaml.before")).unwrap(), text);
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let scene = scene();
    let text = "rules:\n  - name: taken\n    decision: deny\n    match: {}\n";
    write(scene.home.policy_file(), text);
    for name in ["taken", "standard/exec"] {
        scene.home.remember_rule(&rule(name)).unwrap_err();
    }
    write(scene.home.policy_file(), "profile: saef\n");
    scene.home.remember_rule(&rule("fine")).unwrap_err();
    assert_eq!(fs::read_to_string(scene.home.policy_file()).unwrap(), "profile: saef\n");
}

#[test]
fn a_linked_file_stays_linked() {
    let scene = scene();
    let elsewhere = scene.folder.path().join("policy.yaml");
    write(elsewhere.clone(), "profile: safe\n");
    symlink(&elsewhere, scene.home.policy_file()).unwrap();
    scene.home.remember_rule(&rule("a")).unwrap();
    assert!(scene.home.policy_file().is_symlink());
    assert!(fs::read_to_string(elsewhere).unwrap().contains("always"));
}

#[test]
fn answers_at_the_same_time_are_all_remembered() {
    let scene = scene();
    thread::scope(|scope| {
        for index in 0..20 {
            let home = &scene.home;
            scope.spawn(move || home.remember_rule(&rule(&format!("rule-{index}"))).unwrap());
        }
    });
    assert_eq!(scene.home.policy(None).unwrap().rules().len(), 20);
}

// Finding B9.
#[test]
fn a_revoked_grant_leaves_the_comments_and_no_kept_text_is_overwritten() {
    let scene = scene();
    let text = "# mine\nprofile: safe # as it is\ngrants:\n  # by hand\n  - extension: other\n    tied_to: { path: /x }\n    \
                give: { network: [a.example] }\n# the end\n";
    write(scene.home.policy_file(), text);
    let grant = |id: &str| {
        let give = Grants { network: vec!["h:1".to_owned()], ..Grants::default() };
        Grant { extension: id.into(), tied_to: Tie::Path("/y".to_owned()), give }
    };
    for _ in 0..2 {
        scene.home.remember_grant(&grant("mine")).unwrap();
        scene.home.revoke_grants(&"mine".into()).unwrap();
        assert_eq!(fs::read_to_string(scene.home.policy_file()).unwrap(), text);
    }
    scene.home.revoke_grants(&"other".into()).unwrap();
    let left = fs::read_to_string(scene.home.policy_file()).unwrap();
    assert_eq!(left, "# mine\nprofile: safe # as it is\ngrants: []\n  # by hand\n# the end\n");
    assert!(!scene.home.config().join("policy.yaml.before").exists());
    // In brackets the comments are lost, and every text before is kept.
    for id in ["one", "two"] {
        let text = format!("# {id}\ngrants: [{{ extension: {id}, tied_to: {{ path: /x }}, give: {{}} }}]\n");
        write(scene.home.policy_file(), &text);
        scene.home.revoke_grants(&id.into()).unwrap();
    }
    for (name, id) in [("policy.yaml.before", "one"), ("policy.yaml.before-2", "two")] {
        assert!(fs::read_to_string(scene.home.config().join(name)).unwrap().starts_with(&format!("# {id}")));
    }
}
