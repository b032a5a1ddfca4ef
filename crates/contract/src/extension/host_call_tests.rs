use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::protocol::HostQuestion;

#[test]
fn every_name_is_unique_and_found_again() {
    let names: BTreeSet<&str> = HostCallKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), HostCallKind::ALL.len());
    for kind in HostCallKind::ALL {
        assert_eq!(HostCallKind::from_name(kind.name()), Some(*kind));
    }
    assert_eq!(HostCallKind::from_name("moon.phase"), None);
}

#[test]
fn every_capability_has_calls_and_a_unique_name() {
    let of_topics = ["user.message", "channel.out.*", "system.dead_letter"].map(TopicRule::to_subscribe);
    let of_topics = of_topics.iter().filter_map(|rule| match rule {
        TopicRule::Needs(capability) => Some(*capability),
        _ => None,
    });
    let of_calls = HostCallKind::ALL.iter().map(|kind| kind.capability());
    let used: BTreeSet<Capability> = of_calls.chain(of_topics).collect();
    assert_eq!(used, Capability::ALL.iter().copied().collect());
    let names: BTreeSet<&str> = Capability::ALL.iter().map(|capability| capability.name()).collect();
    assert_eq!(names.len(), Capability::ALL.len());
}

#[test]
fn the_interface_of_a_wit_function_is_the_capability() {
    for kind in HostCallKind::ALL {
        for function in kind.wit_functions() {
            let interface = function.split('.').next();
            assert_eq!(interface, Some(kind.capability().wit_interface()), "{kind}");
        }
    }
}

#[test]
fn arguments_are_read_and_recorded_as_they_were_sent() {
    let sent = json!({ "prompt": "sum up", "channel_id": "mail", "agent": null });
    let call = HostCall::named("agent.task", sent.clone());
    let HostCall::AgentTask(arguments) = &call else { panic!("{call:?}") };
    assert_eq!((arguments.read.task.as_str(), &arguments.read.agent), ("sum up", &None));
    assert_eq!(call.record().arguments, Content::new(sent), "aliases and nulls stay as they were");
}

#[test]
fn an_unknown_name_and_invalid_arguments_are_recorded_too() {
    let unknown = HostCall::named("moon.phase", json!("now"));
    assert_eq!((unknown.kind(), unknown.name()), (None, "moon.phase"));
    assert_eq!(unknown.record().arguments, Content::text("now"));

    let misspelt = HostCall::named("event.publish", json!({ "topic": "a", "paylod": 1 }));
    let HostCall::Invalid(invalid) = &misspelt else { panic!("{misspelt:?}") };
    assert_eq!(invalid.kind, Some(HostCallKind::EventPublish));
    assert!(invalid.reason.contains("paylod"), "{}", invalid.reason);
}

#[test]
fn a_secret_value_is_neither_recorded_nor_printed() {
    for (kind, sent) in [
        (HostCallKind::SecretKeep, json!({ "name": "TOKEN", "value": "hunter2" })),
        (HostCallKind::SetupApply, json!({ "extension": "mail", "name": "TOKEN", "value": "hunter2" })),
        // Also where the arguments are invalid.
        (HostCallKind::SetupApply, json!({ "name": "TOKEN", "value": "hunter2" })),
    ] {
        assert_eq!(kind.redaction(), Redaction::ValueArgument);
        let call = HostCall::of(kind, sent);
        assert!(!format!("{call:?} {:?}", call.record()).contains("hunter2"), "{kind}");
        assert!(call.record().arguments.json().contains("TOKEN"), "{kind}");
    }
}

#[test]
fn calls_are_equal_where_a_frame_records_the_same() {
    let find = |sent| HostCall::of(HostCallKind::ToolsFind, sent);
    assert_eq!(find(json!({ "query": "mail" })), find(json!({ "query": "mail" })));
    assert_ne!(find(json!({ "query": "mail" })), find(json!({ "query": "post" })));
    assert_ne!(find(json!({ "query": "mail" })), HostCall::Clock);
    assert_ne!(HostCall::Random { bytes: 1 }, HostCall::Random { bytes: 2 });
    // What is recorded of it has no value.
    let recorded = HostCall::named("secret.keep", json!({ "name": "TOKEN" }));
    assert_eq!(recorded, HostCall::named("secret.keep", json!({ "name": "TOKEN", "value": "hunter2" })));
}

#[test]
fn a_question_of_a_process_is_a_host_call() {
    let ask = |name: &str, arguments: Value| {
        let (name, timeout_ms) = (name.to_owned(), None);
        HostCall::try_from(HostQuestion { call: 7, name, arguments, timeout_ms, updates: false })
    };
    assert_eq!(ask("clock", Value::Null), Ok(HostCall::Clock));
    assert_eq!(ask("state.get", json!({ "key": "k" })), Ok(HostCall::StateGet { key: "k".to_owned() }));
    let set = |value| HostCall::StateSet { key: "k".to_owned(), value };
    assert_eq!(ask("state.set", json!({ "key": "k" })), Ok(set(None)), "without a value it is removed");
    assert_eq!(ask("state.set", json!({ "key": "k", "value": null })), Ok(set(Some(Content::default()))));
    assert!(ask("random", json!({ "bites": 1 })).is_err(), "the process made a mistake in the protocol");
    assert!(matches!(ask("event.publish", json!({})), Ok(HostCall::Invalid(_))), "the host records it");
    assert!(matches!(ask("moon.phase", json!({})), Ok(HostCall::Invalid(_))), "the host records it");
}
