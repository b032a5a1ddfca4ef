//! What is granted when both sides are taken together, and what a holder can reach by it.

use std::path::Path;

use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::Capability;
use holdfast_contract::manifest::{Access, FileGrant, Grants, ListenPort, Profile};
use holdfast_contract::tool::EffectClass;

use crate::grants::implied_effects;
use crate::testing::policy;
use crate::{Grant, GrantedAccess, HeldInterfaces, Policy, Tie, effective_grant, granted_to, rooted};

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn network(list: &[&str]) -> Grants {
    Grants { network: texts(list), ..Grants::default() }
}

/// Files, written `r /path` or `w /path`.
fn files(list: &[&str]) -> Grants {
    let file = |text: &&str| match text.split_at(2) {
        ("w ", path) => FileGrant { path: path.to_owned(), access: Access::Write },
        (_, path) => FileGrant { path: path.to_owned(), access: Access::Read },
    };
    Grants { files: list.iter().map(file).collect(), ..Grants::default() }
}

#[test]
fn hosts_meet_where_both_sides_reach() {
    for (requested, given, expected) in [
        ("api.example.com", "api.example.com", &["api.example.com"][..]),
        ("API.Example.com.", "api.example.com", &["api.example.com"]),
        ("api.example.com", "*.example.com", &["api.example.com"]),
        ("*.example.com", "api.example.com", &["api.example.com"]),
        ("*.a.example.com", "*.example.com", &["*.a.example.com"]),
        ("*", "*.example.com", &["*.example.com"]),
        ("example.com", "*.example.com", &[]),
        ("evilexample.com", "*.example.com", &[]),
        ("example.com.evil.org", "*.example.com", &[]),
        ("*.com", "*.org", &[]),
        ("*", "*", &["*"]),
        ("example.com:8080", "example.com", &["example.com:8080"]),
        ("example.com:8080", "example.com:443", &[]),
        ("*:443", "*.example.com", &["*.example.com:443"]),
        ("[::1]:80", "0:0:0:0:0:0:0:1", &["[::1]:80"]),
        ("https://example.com", "*", &[]),
        ("exa*mple.com", "*", &[]),
        ("*.0.0.1", "127.0.0.1", &[]),
        ("bücher.example", "*", &[]),
        ("example.com:0", "*", &[]),
        ("example.com:+80", "*", &[]),
        ("user@example.com", "*", &[]),
        ("", "*", &[]),
    ] {
        let met = effective_grant(&network(&[requested]), &network(&[given]));
        assert_eq!(met.network, expected, "{requested} and {given}");
        let turned = effective_grant(&network(&[given]), &network(&[requested]));
        assert_eq!(turned, met, "{given} and {requested}");
        assert_eq!(effective_grant(&met, &met), met);
    }
}

#[test]
fn ports_meet_where_they_are_equal_and_are_given_where_a_manifest_asks_for_nothing() {
    let ports = |list: &[u16]| Grants {
        listen: list.iter().map(|port| ListenPort::try_from(*port).unwrap()).collect(),
        ..Grants::default()
    };
    for (requested, given, expected) in [
        (&[8080, 8081][..], &[8081, 8082][..], &[8081][..]),
        (&[8080], &[], &[]),
        (&[], &[8080], &[]),
        (&[9000, 8080, 8080], &[8080, 9000], &[8080, 9000]),
    ] {
        assert_eq!(effective_grant(&ports(requested), &ports(given)), ports(expected));
    }
    let manifest = |more: &str| {
        let text = format!("id: web\nname: Web\nentrypoint: main:Web\n{more}");
        holdfast_contract::manifest::parse(Path::new("manifest.yaml"), &text).unwrap().manifest
    };
    assert_eq!(granted_to(&manifest(""), &ports(&[8080])), ports(&[8080]));
    assert_eq!(granted_to(&manifest("grants: { listen: [8081] }\n"), &ports(&[8080])), ports(&[]));
    assert!(implied_effects(&ports(&[8080])).contains(&EffectClass::Network), "what it knows can leave it");
}

#[test]
fn the_profile_safe_gives_no_ports() {
    let give = Grants { listen: vec![ListenPort::try_from(8080).unwrap()], ..network(&["a.example"]) };
    let tied_to = Tie::Path("/x/web".to_owned());
    let grant = Grant { extension: "web".into(), tied_to, give: give.clone() };
    for profile in Profile::ALL {
        let policy = Policy::profile(*profile).with_grants(|all| all.push(grant.clone())).unwrap();
        let given = policy.given(&"web".into(), &Digest::default(), Some("/x/web"));
        let expected = if *profile == Profile::Safe { network(&["a.example"]) } else { give.clone() };
        assert_eq!(given, expected, "{profile:?}");
    }
}

#[test]
fn trees_meet_in_the_deeper_one_with_the_lesser_access() {
    for (requested, given, expected) in [
        (&["r /srv/data"][..], &["r /srv"][..], &["r /srv/data"][..]),
        (&["r /"], &["r /srv"], &["r /srv"]),
        (&["w /srv/data"], &["r /srv"], &["r /srv/data"]),
        (&["r /srv/data"], &["w /srv"], &["r /srv/data"]),
        (&["w /srv"], &["w /srv/"], &["w /srv"]),
        (&["r /srvdata"], &["r /srv"], &[]),
        (&["r /srv/../etc"], &["r /srv"], &[]),
        (&["r /srv/./a//b/../c"], &["r /srv"], &["r /srv/a/c"]),
        (&["r /../etc"], &["r /"], &[]),
        (&["r ~/notes"], &["r ~"], &["r ~/notes"]),
        (&["r ~/notes"], &["r /home"], &[]),
        (&["r ~root/x"], &["r /", "r ~", "r ."], &[]),
        (&["r notes"], &["r ."], &["r notes"]),
        (&["r ../up"], &["r ."], &[]),
        (&["r ./~x"], &["r ."], &["r ./~x"]),
        (&["w /a", "r /b"], &["w /a/x", "r /a", "w /b"], &["r /a", "w /a/x", "r /b"]),
        (&["w /a"], &["w /a", "r /a/b", "r /a"], &["w /a"]),
    ] {
        let met = effective_grant(&files(requested), &files(given));
        assert_eq!(met, files(expected), "{requested:?} and {given:?}");
        assert_eq!(effective_grant(&files(given), &files(requested)), met, "{given:?} and {requested:?}");
        assert_eq!(effective_grant(&met, &met), met);
    }
}

#[test]
fn names_meet_and_may_end_in_a_star() {
    for (requested, given, expected) in [
        (&["A", "B"][..], &["B", "C"][..], &["B"][..]),
        (&["LC_ALL", "HOME"], &["LC_*"], &["LC_ALL"]),
        (&["LC_*"], &["*"], &["LC_*"]),
        (&["A*"], &["AB*", "AC"], &["AB*", "AC"]),
        (&["a"], &["A"], &[]),
        (&[], &["*"], &[]),
        (&["A"], &[], &[]),
    ] {
        let grants = |list: &[&str]| Grants {
            secrets: texts(list),
            environment: texts(list),
            interfaces: texts(list),
            extensions: texts(list).into_iter().map(Into::into).collect(),
            ..Grants::default()
        };
        let met = effective_grant(&grants(requested), &grants(given));
        assert_eq!(met, grants(expected), "{requested:?} and {given:?}");
    }
}

#[test]
fn a_reach_answers_the_questions_of_a_host_function() {
    let reach = GrantedAccess::of(&Grants {
        network: texts(&["*.example.com", "localhost:8080", "::1", "nonsense*"]),
        files: files(&["r /srv", "w /srv/out", "w ~/notes"]).files,
        secrets: texts(&["KEY", "MAIL_*"]),
        environment: texts(&["LANG"]),
        extensions: vec!["kv".into()],
        interfaces: texts(&["http", "state"]),
        listen: Vec::new(),
    });
    for (host, port, expected) in [
        ("api.example.com", 443, true),
        ("API.EXAMPLE.COM.", 1, true),
        ("example.com", 443, false),
        ("example.com.evil.org", 443, false),
        ("*.example.com", 443, false),
        (".example.com", 443, false),
        ("localhost", 8080, true),
        ("localhost", 80, false),
        ("[::1]", 80, true),
        ("::1", 80, true),
        ("127.0.0.1", 8080, false),
        ("", 443, false),
    ] {
        assert_eq!(reach.host(host, port), expected, "{host}:{port}");
    }
    for (path, read, write) in [
        ("/srv", true, false),
        ("/srv/a/b", true, false),
        ("/srv/out/x", true, true),
        ("/srv/out/../in", true, false),
        ("/srv/../etc/passwd", false, false),
        ("/srv/out/../../../etc", false, false),
        ("/srvx", false, false),
        ("srv", false, false),
        ("~/notes/today", true, true),
        ("~", false, false),
        ("/srv/\0", false, false),
        ("", false, false),
    ] {
        assert_eq!((reach.read(path), reach.write(path)), (read, write), "{path:?}");
    }
    assert!(reach.secret("KEY") && reach.secret("MAIL_PASSWORD") && !reach.secret("KEYS"));
    assert!(reach.environment("LANG") && !reach.environment("PATH"));
    assert!(reach.extension(&"kv".into()) && !reach.extension(&"memory".into()));
    assert!(reach.interface("http") && !reach.interface("process"));
    let anywhere = GrantedAccess::of(&network(&["*"]));
    assert!(anywhere.host("example.com", 1) && anywhere.host("10.0.0.1", 1) && !anywhere.host("", 1));
    let nothing = GrantedAccess::default();
    assert!(!nothing.host("example.com", 443) && !nothing.read("/") && !nothing.secret(""));
}

#[test]
fn paths_are_comparable_once_they_are_rooted() {
    let grants = files(&["r ~/notes", "w out", "r /srv", "r ."]);
    assert_eq!(
        rooted(&grants, "/home/me", "/work/"),
        files(&["r /home/me/notes", "w /work/out", "r /srv", "r /work"])
    );
    assert_eq!(rooted(&grants, "not/absolute", "~"), files(&["r /srv"]));
}

#[test]
fn grants_belong_to_one_content() {
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    let policy = policy(&format!(
        "
grants:
  - {{ extension: mail, tied_to: {{ digest: {old} }}, give: {{ network: [a.example.com] }} }}
  - {{ extension: mail, tied_to: {{ digest: {old} }}, give: {{ secrets: [KEY], network: [b.example.com] }} }}
  - {{ extension: mail, tied_to: {{ path: /src/mail }}, give: {{ interfaces: [state] }} }}
  - {{ extension: other, tied_to: {{ digest: {old} }}, give: {{ network: ['*'] }} }}
"
    ));
    let given = policy.given(&"mail".into(), &old, None);
    assert_eq!(given.network, ["a.example.com", "b.example.com"]);
    assert_eq!(given.secrets, ["KEY"]);
    assert!(given.interfaces.is_empty());
    assert!(policy.given(&"mail".into(), &new, None).is_empty());
    assert_eq!(policy.given(&"mail".into(), &new, Some("/src/./mail/")).interfaces, ["state"]);
    assert!(policy.given(&"mail".into(), &new, Some("/src/other")).is_empty());
    assert!(policy.given(&"unknown".into(), &old, None).is_empty());
}

// Finding H6: who holds what without a grant, by lane and profile.
#[test]
fn an_interface_is_held_by_lane_and_profile_or_by_a_grant() {
    let held = |lane: &str, profile, granted: &[&str], capability| {
        HeldInterfaces::new(lane, profile, texts(granted)).hold(capability)
    };
    for capability in [Capability::Agents, Capability::System, Capability::UserMessages, Capability::Answers]
    {
        for (lane, profile, expected) in [
            ("native", Profile::Safe, true),
            ("python", Profile::Safe, false),
            ("python", Profile::Standard, true),
            ("python", Profile::FullAuto, true),
            ("process", Profile::Standard, false),
            ("process", Profile::Trusted, false),
            ("plugin", Profile::Trusted, false),
            ("wasm", Profile::Trusted, false),
            ("declarative", Profile::Standard, false),
            ("unheard of", Profile::Trusted, false),
            ("", Profile::Trusted, false),
        ] {
            assert_eq!(held(lane, profile, &[], capability), expected, "{lane} {profile:?} {capability}");
            assert!(held(lane, profile, &[capability.name()], capability), "{lane} {profile:?} {capability}");
        }
    }
    for lane in ["native", "python", "process", "plugin", "wasm"] {
        let all: Vec<&str> = Capability::ALL.iter().map(|it| it.name()).chain(["*"]).collect();
        assert!(!held(lane, Profile::Trusted, &all, Capability::Shutdown), "{lane}");
        assert!(!held(lane, Profile::Trusted, &[], Capability::SystemEvents), "{lane}");
        assert!(held(lane, Profile::Safe, &["system-events"], Capability::SystemEvents), "{lane}");
    }
}

#[test]
fn interfaces_are_listed_as_held_or_lacking() {
    let asked = ["events", "agents", "setup", "moon"].map(str::to_owned);
    let held = |lane, granted: &[&str]| {
        let granted = granted.iter().map(|name| (*name).to_owned()).collect();
        HeldInterfaces::new(lane, Profile::Standard, granted)
    };
    assert_eq!(held("wasm", &[]).lacking(&asked), asked);
    assert_eq!(held("wasm", &["events", "setup"]).lacking(&asked), ["agents", "moon"]);
    assert_eq!(held("python", &[]).lacking(&asked), ["setup", "moon"]);
    assert!(held("python", &[]).names().contains(&"agents"));
    assert!(!held("process", &[]).names().contains(&"agents"));
    assert!(!held("python", &["*"]).names().contains(&"shutdown"), "nobody holds it");
}

#[test]
fn a_manifest_without_grants_gets_the_hosts_and_secrets_that_are_named() {
    let manifest = |more: &str| {
        let text = format!("id: it\nname: It\nentrypoint: main:It\n{more}");
        holdfast_contract::manifest::parse(std::path::Path::new("m.yaml"), &text).unwrap().manifest
    };
    let mut given = Grants { secrets: texts(&["KEY"]), ..network(&["api.example.com:443", "no host"]) };
    given.interfaces = texts(&["ui"]);
    let expected = Grants { secrets: texts(&["KEY"]), ..network(&["api.example.com:443"]) };
    assert_eq!(granted_to(&manifest(""), &given), expected, "interfaces need a request");
    let asks = manifest("grants: { network: [other.example.com] }\n");
    assert_eq!(granted_to(&asks, &given), Grants::default(), "a manifest with grants is a limit");
}

#[test]
fn what_a_lane_holds_by_default_is_told_apart_from_what_is_granted() {
    let of =
        |lane, profile, granted: &[&str]| HeldInterfaces::new(lane, profile, texts(granted)).by_default();
    let ordinary = ["ui", "events", "subscriptions", "channels", "extensions", "services", "context"];
    let names = |more: &[&'static str]| {
        let listed = Capability::ALL.iter().map(|it| it.name());
        listed.filter(|name| ordinary.contains(name) || more.contains(name)).collect::<Vec<_>>()
    };
    let with_agents = names(&["agents", "system", "conversations", "user-messages", "answers"]);
    for profile in [Profile::Standard, Profile::FullAuto, Profile::Trusted] {
        assert_eq!(of("python", profile, &["setup"]), with_agents, "{profile:?}");
        assert_eq!(of("process", profile, &["agents"]), names(&[]), "{profile:?}");
    }
    assert_eq!(of("python", Profile::Safe, &[]), names(&[]));
    assert!(of("wasm", Profile::Standard, &["agents"]).is_empty());
}
