//! Gates whose extensions are not up: they stay in the registry as outages, across restarts, until they are up, disabled or removed.

use holdfast_contract::body::Body;
use holdfast_contract::effect::*;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::{HookPoint, HookSpec};
use holdfast_contract::ids::*;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::*;
use holdfast_contract::system_frames::*;
use holdfast_contract::tool::ToolSpec;

use crate::system_tests::{Scene, boom, edited, ext};

fn gate(id: &str) -> Descriptor {
    Descriptor::hook(&id.into(), 0, HookSpec::at(HookPoint::ToolGate))
}

/// A system with a gate and a tool up.
fn guarded() -> Scene {
    let mut scene = Scene::started();
    scene.registers.insert("guard", vec![gate("guard")]);
    scene.registers.insert("tools", vec![Descriptor::tool(ToolSpec::named("wipe", "Wipes."))]);
    scene.find(both());
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0"]);
    scene
}

fn both() -> [FoundExtension; 2] {
    [ext("guard", &[]), ext("tools", &[])]
}

/// The gates of the registry, with the state and the code of those that cannot be asked.
fn gates(scene: &mut Scene) -> Vec<String> {
    assert!(!scene.system.misses_outages(), "the registry says who is not up");
    assert!(scene.system.unlisted().is_empty());
    let view = scene.system.pin().view.clone().unwrap();
    let line = |hook: &HookEntry| match &hook.outage {
        Some(outage) => {
            let Fault { code, message } = &outage.fault;
            assert_eq!(*code, Code::GateUnavailable);
            assert!(
                message.contains("`guard`") && message.contains("holdfast ext restart guard"),
                "{message}"
            );
            let reason =
                message.split(['(', ':']).nth(1).filter(|it| it.starts_with("HF-")).unwrap_or_default();
            format!("{} {:?} {reason}", hook.id, outage.state).trim_end().to_owned()
        }
        None => hook.id.to_string(),
    };
    view.hooks_at(HookPoint::ToolGate).iter().map(line).collect()
}

#[test]
fn an_unhealthy_gate_stays_in_the_registry_while_it_is_restarted() {
    let mut scene = guarded();
    scene.unhealthy("guard", 1);
    assert_eq!(gates(&mut scene), ["guard/0 Restarting HF-4004"]);
    scene.settle();
    scene.fire();
    assert_eq!(gates(&mut scene), ["guard/0 Starting"]);
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0"]);
}

#[test]
fn a_gate_that_is_not_restarted_any_more_has_failed() {
    let mut scene = guarded();
    for generation in 1..=7 {
        scene.unhealthy("guard", generation);
        scene.settle();
        if generation < 7 {
            scene.fire();
            scene.settle();
        }
    }
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4004"]);
    scene.tell(ExtensionRetried { id: "guard".into(), reason: "test".into(), reload: false });
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0"]);
}

#[test]
fn after_a_restart_a_gate_is_expected_before_anything_was_found() {
    for graceful in [true, false] {
        let mut scene = guarded();
        if graceful {
            scene.stop();
            scene.settle();
        }
        scene.start();
        assert_eq!(gates(&mut scene), ["guard/0 Starting"], "graceful: {graceful}");
        assert_eq!(scene.system.judging().map(ExtensionId::as_str).collect::<Vec<_>>(), ["guard"]);
        scene.find(both());
        scene.done("tools");
        scene.done("tools");
        scene.done("tools");
        assert_eq!(gates(&mut scene), ["guard/0 Starting"], "the tool is up, the gate is not");
        assert!(scene.system.pin().view.as_ref().unwrap().tool(&"wipe".into()).is_some());
        scene.settle();
        assert_eq!(gates(&mut scene), ["guard/0"]);
    }
}

#[test]
fn a_quarantined_gate_is_an_outage() {
    let mut scene = guarded();
    for _ in 0..2 {
        scene.start();
        scene.find([ext("guard", &[])]);
        if scene.system.extensions().any(|view| view.fault.is_some()) {
            break;
        }
        scene.done("guard");
    }
    scene.start();
    scene.find(both());
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4006"]);
}

#[test]
fn a_broken_edit_of_a_gate_is_an_outage_once_the_last_good_version_is_gone() {
    let mut scene = guarded();
    scene.find([edited(ext("guard", &[]), "broken")]);
    scene.report("guard", boom("a syntax error"));
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0"], "the generation before serves on");
    scene.start();
    scene.find([edited(ext("guard", &[]), "broken"), ext("tools", &[])]);
    scene.report("guard", boom("a syntax error"));
    scene.settle();
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4003"]);
}

#[test]
fn a_gate_that_cannot_be_read_or_lacks_a_dependency_is_an_outage() {
    let mut scene = guarded();
    scene.start();
    let fault = Fault::new(Code::ExtensionUnreadable, "permission denied");
    scene.tell(ExtensionRejected { id: "guard".into(), fault });
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4010"]);
    scene.find([ext("guard", &["base"])]);
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4001"]);
}

#[test]
fn a_gate_that_is_removed_or_no_longer_judges_is_not_expected() {
    let mut scene = guarded();
    scene.unhealthy("guard", 1);
    scene.remove("guard");
    assert_eq!(gates(&mut scene), [""; 0]);

    let mut scene = guarded();
    scene.remove("guard");
    scene.settle();
    scene.start();
    assert_eq!(gates(&mut scene), [""; 0]);

    let mut scene = guarded();
    scene.registers.insert("guard", Vec::new());
    scene.find([edited(ext("guard", &[]), "no gate")]);
    scene.settle();
    scene.start();
    assert_eq!(gates(&mut scene), [""; 0]);
}

#[test]
fn an_override_takes_out_a_gate_that_is_down() {
    let mut scene = guarded();
    let off = Override { enabled: Some(false), ..Override::default() };
    scene.tell(OverridesSet { overrides: [("hook".into(), [("guard/0".into(), off)].into())].into() });
    scene.unhealthy("guard", 1);
    assert_eq!(gates(&mut scene), [""; 0]);
}

#[test]
fn a_gate_that_was_loaded_and_never_came_up_is_an_outage() {
    let mut scene = Scene::started();
    scene.registers.insert("guard", vec![gate("guard")]);
    scene.find([ext("guard", &[])]);
    assert_eq!(gates(&mut scene), [""; 0], "nothing is known of it");
    scene.done("guard");
    assert_eq!(gates(&mut scene), ["guard/0 Starting"]);
    scene.report("guard", boom("no connection"));
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4003"]);
}

#[test]
fn a_manifest_that_declares_a_gate_is_believed_before_the_code_was_ever_loaded() {
    let mut scene = Scene::started();
    let declared = FoundExtension { judges: vec![HookSpec::at(HookPoint::ToolGate)], ..ext("guard", &[]) };
    scene.find([declared.clone()]);
    assert_eq!(gates(&mut scene), ["guard/0 Starting"]);
    scene.report("guard", boom("a syntax error"));
    assert_eq!(gates(&mut scene), ["guard/0 Failed HF-4003"]);

    let mut scene = Scene::started();
    scene.find([ext("guard", &[])]);
    scene.report("guard", boom("a syntax error"));
    assert_eq!(gates(&mut scene), [""; 0], "without a declaration it has never judged");
}

#[test]
fn a_registry_without_an_expected_gate_is_told_apart() {
    let mut scene = guarded();
    // As a driver does that does not ask for outages.
    for body in [
        Body::from(HealthReported { id: "guard".into(), generation: Generation(1), healthy: false }),
        SystemSettled::default().into(),
    ] {
        let input = Input { at: Millis(0), source: FrameSource::Host, cause: None, body };
        scene.system.step(input).unwrap();
    }
    assert!(scene.system.misses_outages());
    assert_eq!(scene.system.unlisted(), [HookId::from("guard/0")]);
    scene.tell(SystemSettled { outages: true });
    assert_eq!(gates(&mut scene), ["guard/0 Restarting HF-4004"]);
}
