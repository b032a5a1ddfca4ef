//! What the system machine registers, and what it runs by the clock: stacks, overrides, schedules.

use std::collections::BTreeMap;

use holdfast_contract::hook::{HookPoint, HookSpec};
use holdfast_contract::ids::*;
use holdfast_contract::names::UnusedOverride;
use holdfast_contract::problem::Code;
use holdfast_contract::registry::*;
use holdfast_contract::system_frames::*;
use holdfast_contract::tool::ToolSpec;

use crate::system_tests::{Scene, ext};

fn tool(name: &str) -> Descriptor {
    Descriptor::tool(ToolSpec::named(name, "A tool."))
}

fn set(scene: &mut Scene, kind: &str, id: &str, overridden: Override) -> Vec<String> {
    let overrides = [(kind.into(), [(id.into(), overridden)].into())].into();
    scene.tell(OverridesSet { overrides })
}

#[test]
fn descriptors_stack_by_priority_and_then_by_age() {
    let mut scene = Scene::started();
    for id in ["a", "b", "c"] {
        scene.registers.insert(id, vec![tool("echo")]);
    }
    scene.find([FoundExtension { priority: Some(5), ..ext("a", &[]) }]);
    assert_eq!(scene.settle().last().unwrap(), "tool/echo = [a@1]");
    scene.find([ext("b", &[])]);
    assert_eq!(scene.settle().last().unwrap(), "tool/echo = [a@1 over b@1]");
    scene.find([ext("c", &[])]);
    assert_eq!(scene.settle().last().unwrap(), "tool/echo = [a@1 over c@1 over b@1]");

    let equal = Override { priority: Some(1), ..Override::default() };
    assert_eq!(set(&mut scene, "tool", "echo", equal), ["tool/echo = [c@1 over b@1 over a@1]"]);
    let off = Override { enabled: Some(false), ..Override::default() };
    assert_eq!(set(&mut scene, "tool", "echo", off), ["tool/echo = []"]);
    assert_eq!(
        scene.tell(OverridesSet { overrides: BTreeMap::new() }),
        ["tool/echo = [a@1 over c@1 over b@1]"]
    );

    assert_eq!(scene.remove("a"), ["a@1 Inactive", "stop a@1", "tool/echo = [c@1 over b@1]"], "uncovered");
    assert_eq!(scene.unhealthy("c", 1).last().unwrap(), "tool/echo = [b@1]");
}

fn built_in(id: &str, tools: &[&str]) -> FoundExtension {
    let tools = tools.iter().map(|name| ToolName::from(*name)).collect();
    FoundExtension { built_in: Some(BuiltIn { tools }), ..ext(id, &[]) }
}

/// The tools with who is in their stacks: `shell: helper, shell`.
fn tools(scene: &mut Scene) -> Vec<String> {
    let view = scene.system.pin().view.clone().unwrap();
    let line = |entry: &ToolEntry| {
        let stack: Vec<&str> = entry.stack.iter().map(|it| it.extension.id.as_str()).collect();
        format!("{}: {}", entry.name, stack.join(", "))
    };
    view.tools.iter().map(line).collect()
}

fn conflicts(scene: &Scene, id: &str) -> Vec<Code> {
    let mut views = scene.system.extensions().filter(|view| view.id.as_str() == id);
    views.next().unwrap().conflicts.iter().map(|fault| fault.code).collect()
}

fn give(scene: &mut Scene, tool: &str, extension: &str) -> Vec<String> {
    set(scene, "tool", tool, Override { extension: Some(extension.into()), ..Override::default() })
}

#[test]
fn the_names_of_built_in_tools_are_reserved() {
    let mut scene = Scene::started();
    scene.registers.insert("shell", vec![tool("shell")]);
    scene.registers.insert("helper", vec![tool("shell"), tool("file.read"), tool("count")]);
    let spec =
        AgentSpec { mode: AgentMode::Tool, ..AgentSpec::code(&"agent".into(), "shell", "Not the shell.") };
    scene.registers.insert("agent", vec![Descriptor::agent(spec)]);
    let first = FoundExtension { priority: Some(9), ..ext("helper", &[]) };
    scene.find([first, ext("agent", &[]), built_in("files", &["file_read"]), built_in("shell", &[])]);
    scene.settle();
    assert_eq!(tools(&mut scene), ["count: helper", "shell: shell"]);
    assert_eq!(conflicts(&scene, "helper"), [Code::ToolReserved, Code::ToolReserved]);
    assert_eq!(conflicts(&scene, "agent"), [Code::ToolReserved]);
    assert_eq!(scene.system.pin().view.clone().unwrap().agents.len(), 0);
    assert!(conflicts(&scene, "shell").is_empty());

    // The settings give one name to one extension, and take it back.
    give(&mut scene, "shell", "helper");
    assert_eq!(tools(&mut scene), ["count: helper", "shell: helper, shell"]);
    assert_eq!(conflicts(&scene, "helper"), [Code::ToolReserved], "`file.read`, and no duplicate");
    give(&mut scene, "shell", "nobody");
    assert_eq!(tools(&mut scene), ["count: helper", "shell: shell"]);
    give(&mut scene, "file.read", "helper");
    assert_eq!(tools(&mut scene), ["count: helper", "file.read: helper", "shell: shell"]);

    // A built-in extension that is down keeps its names.
    scene.unhealthy("shell", 1);
    scene.settle();
    assert_eq!(tools(&mut scene), ["count: helper", "file.read: helper"]);
}

#[test]
fn tools_of_one_name_are_reported_until_the_settings_decide() {
    let mut scene = Scene::started();
    scene.registers.insert("a", vec![tool("count"), tool("one")]);
    scene.registers.insert("b", vec![tool("count"), tool("two.words")]);
    scene.registers.insert("c", vec![tool("two_words")]);
    scene.find([ext("a", &[]), ext("b", &[]), ext("c", &[])]);
    scene.settle();
    assert_eq!(tools(&mut scene), ["count: b, a", "one: a", "two.words: b", "two_words: c"]);
    let codes = |scene: &Scene| ["a", "b", "c"].map(|id| conflicts(scene, id).len());
    assert_eq!((codes(&scene), conflicts(&scene, "a")), ([1, 2, 1], vec![Code::ToolDuplicate]));
    give(&mut scene, "count", "a");
    assert_eq!(tools(&mut scene)[0], "count: a, b", "the one that is named comes first");
    assert_eq!(codes(&scene), [0, 1, 1]);
    scene.remove("c");
    scene.settle();
    assert_eq!(conflicts(&scene, "b"), []);
}

#[test]
fn an_override_moves_a_hook_among_others() {
    let mut scene = Scene::started();
    for id in ["a", "b"] {
        let spec = HookSpec::at(HookPoint::ToolGate);
        scene.registers.insert(id, vec![Descriptor::hook(&id.into(), 0, spec)]);
    }
    scene.find([ext("a", &[]), ext("b", &[])]);
    scene.settle();
    let order = |scene: &mut Scene| -> Vec<String> {
        let view = scene.system.pin().view.clone().unwrap();
        view.hooks_at(HookPoint::ToolGate).iter().map(|hook| hook.id.to_string()).collect()
    };
    assert_eq!(order(&mut scene), ["a/0", "b/0"]);
    set(&mut scene, "hook", "b/0", Override { priority: Some(1), ..Override::default() });
    assert_eq!(order(&mut scene), ["b/0", "a/0"]);
}

#[test]
fn gate_0_keeps_its_name() {
    let mut scene = Scene::started();
    let spec = HookSpec::at(HookPoint::ToolGate);
    scene
        .registers
        .insert("a", vec![Descriptor { id: "policy".into(), ..Descriptor::hook(&"a".into(), 0, spec) }]);
    scene.find([ext("a", &[])]);
    scene.settle();
    assert_eq!(scene.system.pin().view.clone().unwrap().hooks.len(), 0);
}

fn due(scene: &mut Scene, schedule: &str, due: u64) -> Vec<String> {
    scene.tell(ScheduleDue { schedule: schedule.into(), due: Millis(due), ..ScheduleDue::default() })
}

fn with_schedule() -> FoundExtension {
    let (name, cron, task) = ("tick".into(), "* * * * *".into(), "count".into());
    let schedule = ScheduleSpec { name, cron, task, timezone: None, missed: MissedPolicy::RunOnce };
    FoundExtension { schedules: vec![schedule], ..ext("clock", &[]) }
}

#[test]
fn a_schedule_fires_once_for_each_due_time() {
    let mut scene = Scene::up([with_schedule()]);
    let ended = |due| ScheduleEnded { schedule: "clock/tick".into(), due: Millis(due), fault: None };
    assert_eq!(due(&mut scene, "clock/tick", 60), ["clock/tick fired for 60: count"]);
    assert_eq!(due(&mut scene, "clock/tick", 120), ["clock/tick skipped 120: the run before has not ended"]);
    scene.tell(ended(60));
    assert_eq!(due(&mut scene, "clock/tick", 60), ["clock/tick skipped 60: this run was made already"]);
    assert_eq!(due(&mut scene, "clock/tick", 120), ["clock/tick fired for 120: count"]);

    scene.start();
    assert_eq!(scene.tell(ended(120)), ["refused: nothing in the system waits for this fact"]);
    scene.find([with_schedule()]);
    scene.settle();
    assert_eq!(due(&mut scene, "clock/tick", 120), ["clock/tick skipped 120: this run was made already"]);
    assert_eq!(due(&mut scene, "clock/tick", 180), ["clock/tick fired for 180: count"]);
}

#[test]
fn a_schedule_is_skipped_where_nobody_can_run_it() {
    let mut scene = Scene::up([with_schedule()]);
    assert_eq!(
        due(&mut scene, "clock/tock", 1),
        ["clock/tock skipped 1: the extension has no such schedule"]
    );
    assert_eq!(due(&mut scene, "nobody/tick", 1), ["nobody/tick skipped 1: the extension is not active"]);
    scene.unhealthy("clock", 1);
    assert_eq!(due(&mut scene, "clock/tick", 1), ["clock/tick skipped 1: the extension is not active"]);
    scene.stop();
    assert_eq!(due(&mut scene, "clock/tick", 1), ["clock/tick skipped 1: the system is stopping"]);
}

// Finding C4.
#[test]
fn a_hook_is_overridden_by_what_it_is_and_by_its_extension() {
    let guard = |index, point| Descriptor::hook(&"a".into(), index, HookSpec::at(point));
    let mut scene = Scene::started();
    scene
        .registers
        .insert("a", vec![guard(0, HookPoint::SanitizeOutput), guard(1, HookPoint::ResponseProcess)]);
    scene.find([ext("a", &[])]);
    scene.settle();
    let hooks = |scene: &mut Scene| -> Vec<String> {
        let view = scene.system.pin().view.clone().unwrap();
        view.hooks.iter().map(|hook| format!("{} {}", hook.id, hook.spec.priority)).collect()
    };
    let off = || Override { enabled: Some(false), ..Override::default() };
    assert_eq!(hooks(&mut scene), ["a/0 100", "a/1 100"]);
    set(&mut scene, "guardrail", "a", off());
    assert_eq!(hooks(&mut scene), ["a/1 100"]);
    assert!(scene.system.unused_overrides().is_empty());
    set(&mut scene, "response-processor", "a", Override { priority: Some(7), ..Override::default() });
    assert_eq!(hooks(&mut scene), ["a/0 100", "a/1 7"]);
    set(&mut scene, "guardrail", "aa", off());
    assert_eq!(hooks(&mut scene), ["a/0 100", "a/1 100"]);
    let unused = UnusedOverride { kind: "guardrail".into(), id: "aa".into(), similar: Some("a".into()) };
    assert_eq!(scene.system.unused_overrides(), [unused]);
}

/// The hooks of one guardrail: of questions and of answers.
fn guardrail(id: &str) -> Descriptor {
    let points = [HookPoint::SanitizeInput, HookPoint::SanitizeOutput];
    let hooks = points.map(HookSpec::at).to_vec();
    Descriptor {
        kind: "guardrail".into(),
        id: id.into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Hooks(hooks),
    }
}

fn hook_ids(scene: &mut Scene) -> Vec<String> {
    let view = scene.system.pin().view.clone().unwrap();
    view.hooks.iter().map(|hook| hook.id.to_string()).collect()
}

#[test]
fn the_hooks_of_one_descriptor_are_stacked_uncovered_and_overridden_as_a_whole() {
    let mut scene = Scene::started();
    for id in ["a", "b"] {
        scene.registers.insert(id, vec![guardrail("names")]);
    }
    scene.find([FoundExtension { priority: Some(5), ..ext("a", &[]) }]);
    scene.find([ext("b", &[])]);
    scene.settle();
    let of = |id: &str| [format!("{id}/guardrail/names/0"), format!("{id}/guardrail/names/1")];
    assert_eq!(hook_ids(&mut scene), of("a"), "the higher priority is active");
    set(&mut scene, "guardrail", "names", Override { extension: Some("b".into()), ..Override::default() });
    assert_eq!(hook_ids(&mut scene), of("b"), "or the one that the user names");
    set(&mut scene, "guardrail", "names", Override { enabled: Some(false), ..Override::default() });
    assert!(hook_ids(&mut scene).is_empty());
    assert!(scene.system.unused_overrides().is_empty());
    set(&mut scene, "guardrail", "names", Override::default());
    assert_eq!(hook_ids(&mut scene), of("a"));
    scene.tell(ExtensionRemoved { id: "a".into() });
    scene.settle();
    assert_eq!(hook_ids(&mut scene), of("b"), "removing the active one uncovers the next");
}

#[test]
fn what_nothing_consumes_is_reported_with_its_extension() {
    let other = |kind: &str| Descriptor {
        kind: kind.into(),
        id: "it".into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(holdfast_contract::content::Content::text("it")),
    };
    let mut scene = Scene::started();
    scene.registers.insert("a", vec![other("workflow"), other("guardrial"), other("channel")]);
    scene.registers.insert("b", vec![guardrail("names")]);
    scene.find([ext("a", &[]), ext("b", &[])]);
    scene.settle();
    let views: Vec<_> = scene.system.extensions().collect();
    let reasons: Vec<String> =
        views.iter().flat_map(|view| &view.conflicts).map(|fault| fault.message.clone()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("`workflow`") && reasons[0].contains("the workflow engine"), "{reasons:?}");
    assert!(reasons[1].contains("did you mean `guardrail`"), "{reasons:?}");
}
