//! `policy rules`, `policy grant` and `policy revoke`.

use std::fs;

use super::down_and_up;
use crate::shared::{Owner, Scene, until};

const POLICY: &str = "profile: standard\nrules:\n  # Keys stay.\n  - name: no-keys\n    decision: deny\n    \
    match: { tools: [file_*], arguments: { /path: '*/.ssh/*' } }\n    reason: Keys stay where they are.\n  \
    - name: always/kv/kv_set\n    decision: allow\n    match: { extensions: [kv], tools: [kv_set] }\n    \
    reason: The user answered that it is always allowed.\n";

#[test]
fn rules_are_numbered_and_removed_by_their_number() {
    down_and_up(&Scene::new(), |scene| {
        scene.policy(POLICY);
        let listed = scene.run(&["policy", "rules", "--json"]).ok().lines();
        let found: Vec<_> = listed
            .iter()
            .map(|rule| (rule["number"].as_u64(), rule["written_by"].as_str(), rule["line"].as_u64()))
            .collect();
        assert_eq!(
            found,
            [(Some(1), Some("user"), Some(4)), (Some(2), Some("answer"), Some(8))],
            "{listed:#?}"
        );
        let table = scene.run(&["policy", "rules"]).ok();
        assert!(table.out.contains("policy.yaml:8") && table.out.contains("no-keys"), "{table:#?}");

        let removed = scene.run(&["policy", "revoke", "--rule", "2"]).ok();
        assert_eq!(removed.out, "removed rule 2, `always/kv/kv_set`\n");
        let text = scene.policy_text();
        assert!(
            text.contains("# Keys stay.") && text.contains("no-keys") && !text.contains("always/"),
            "{text}"
        );
        let unknown = scene.run(&["policy", "revoke", "--rule", "2"]).fails(2, "HF-9001");
        assert!(unknown.err.contains("There are rules 1 to 1"), "{unknown:#?}");
        scene.run(&["policy", "revoke", "--rule", "0"]).fails(2, "HF-9001");
        let last = scene.run(&["policy", "revoke", "--rule", "1", "--json"]).ok().json();
        assert_eq!(last["removed"]["name"], "no-keys");
        let empty = scene.run(&["policy", "rules"]).ok();
        assert!(empty.out.contains("no rules; an answer of \"always\" adds one"), "{empty:#?}");
        assert_eq!(scene.run(&["policy", "rules", "--json"]).ok().out, "");
    });
}

#[test]
fn a_removed_rule_no_longer_decides_in_a_running_home() {
    let scene = Scene::new();
    scene.policy(POLICY);
    let _owner = Owner::begin(&scene);
    let decision =
        || scene.run(&["policy", "explain", "kv_set", "--json"]).ok().json()["verdict"]["rule"].clone();
    assert_eq!(decision(), "always/kv/kv_set");
    scene.run(&["policy", "revoke", "--rule", "2"]).ok();
    until("the profile decides", || decision() == "standard/write");
}

#[test]
fn grants_are_given_and_revoked_as_with_ext() {
    down_and_up(&Scene::new(), |scene| {
        let folder = scene.home().join("extensions/scout");
        fs::create_dir_all(&folder).unwrap();
        let manifest =
            "id: scout\nname: Scout\nagent: { instructions: Help. }\ngrants: { interfaces: [ui] }\n";
        fs::write(folder.join("manifest.yaml"), manifest).unwrap();
        let granted = scene.run(&["policy", "grant", "scout", "--interface", "ui"]).ok();
        assert!(granted.out.contains("`scout` may use"), "{granted:#?}");
        assert!(scene.policy_text().contains("extension: \"scout\""), "{}", scene.policy_text());
        let unknown = scene.run(&["policy", "revoke", "scuot"]).fails(2, "HF-9001");
        assert!(unknown.err.contains("Did you mean `scout`?"), "{unknown:#?}");
        assert_eq!(scene.run(&["policy", "revoke", "scout", "--json"]).ok().json()["revoked"], true);
        let none = scene.run(&["policy", "revoke", "scout"]).fails(2, "HF-9001");
        assert!(none.err.contains("No extension has grants."), "{none:#?}");
        let unknown = scene.run(&["policy", "grant", "scuot"]).fails(1, "HF-4005");
        assert!(unknown.err.contains("Did you mean `scout`?"), "{unknown:#?}");
        scene.run(&["policy", "revoke"]).fails(2, "HF-9001");
        scene.run(&["policy", "revoke", "scout", "--rule", "1"]).fails(2, "HF-9001");
    });
}
