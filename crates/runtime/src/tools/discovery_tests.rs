//! Which tools are shown: all of few, and of many those that matter.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::AskedCall;
use holdfast_contract::registry::{AgentSpec, ExtensionRef};
use holdfast_contract::tool::ToolSpec;

use super::*;

/// An extension `always` with the search, an agent, and so many tools of ten extensions.
fn registry(others: usize) -> Arc<Registry> {
    let entry = |extension: &str, name: &str, agent: bool| {
        let extension = Arc::new(ExtensionRef { id: extension.into(), ..ExtensionRef::default() });
        let spec = Arc::new(ToolSpec::named(name, "Does something."));
        ToolEntry {
            name: name.into(),
            stack: vec![Implementation { extension, spec, agent: agent.then(|| AgentUse::Ask(name.into())) }],
        }
    };
    let mut tools = vec![
        entry("always", FIND_TOOLS, false),
        entry("always", "read_file", false),
        entry("ann", "ann", true),
    ];
    tools.extend(
        (0..others).map(|number| entry(&format!("ext{}", number % 10), &format!("tool_{number:03}"), false)),
    );
    let agents = vec![AgentSpec::named("ann", "Helps.")];
    let mut registry = Registry { tools, agents, ..Registry::default() };
    holdfast_kernel::registry::sort(&mut registry);
    Arc::new(registry)
}

fn settings(at_most: usize) -> ToolsShown {
    ToolsShown { always: ["always".into()].into(), at_most }
}

fn names(entries: &[&ToolEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.name.to_string()).collect()
}

fn all(_: &ToolEntry) -> bool {
    true
}

fn tools(numbers: impl IntoIterator<Item = usize>) -> Vec<ToolName> {
    numbers.into_iter().map(|number| format!("tool_{number:03}").as_str().into()).collect()
}

#[test]
fn few_tools_are_all_shown() {
    let registry = registry(17);
    assert_eq!(shown(&registry, all, &[], &settings(20)).len(), 20);
    assert_eq!(names(&shown(&registry, all, &[], &settings(19))), ["ann", "find_tools", "read_file"]);
}

#[test]
fn of_many_those_are_shown_that_are_built_in_or_agents_or_recent() {
    let registry = registry(100);
    let recent: Vec<ToolName> = [tools([7, 3]), vec!["gone".into(), "read_file".into()]].concat();
    let shown = shown(&registry, all, &recent, &settings(20));
    assert_eq!(names(&shown), ["ann", "find_tools", "read_file", "tool_003", "tool_007"]);
}

#[test]
fn the_limit_holds_and_leaves_room_for_a_search() {
    let registry = registry(100);
    let count = |at_most: usize| shown(&registry, all, &tools(0..90), &settings(at_most)).len();
    assert_eq!(count(40), 40);
    assert_eq!(count(2), 3 + MIN_FOUND_SLOTS);
    let first = shown(&registry, all, &tools((0..90).rev()), &settings(16));
    assert_eq!(names(&first)[3], "tool_077", "the most important come first");
}

#[test]
fn the_scope_of_an_agent_comes_before_everything() {
    let registry = registry(100);
    let of = |id: &'static str| move |entry: &ToolEntry| entry.stack[0].extension.id.as_str() == id;
    // Ten tools are few, and all of them are shown.
    assert_eq!(shown(&registry, of("ext1"), &tools(0..90), &settings(20)).len(), 10);
    // Nothing can be searched with here, so nothing is held back.
    assert_eq!(shown(&registry, of("ext1"), &[], &settings(5)).len(), 10);
}

#[test]
fn the_last_search_goes_before_what_was_used_and_that_before_earlier_searches() {
    let call =
        |name: &str| AskedCall { model_id: "1".into(), tool: name.into(), arguments: Content::default() };
    let says =
        |calls: Vec<AskedCall>| Message::Assistant { text: Content::default(), reasoning: None, calls };
    let messages = [
        says(vec![call("first"), call("tool_001")]),
        Message::Tool {
            call: CallId::default(),
            model_id: "1".into(),
            content: Content::default(),
            failed: false,
            attachments: Vec::new(),
            edited: None,
        },
        says(vec![call("second")]),
    ];
    let found = |search: u64, numbers: [usize; 2]| FoundTools { search, tools: tools(numbers) };
    let recent = recent(&messages, vec![found(7, [1, 2]), found(9, [5, 4]), found(8, [3, 5])]);
    let recent: Vec<&str> = recent.iter().map(|name| name.as_str()).collect();
    assert_eq!(recent, ["tool_005", "tool_004", "second", "first", "tool_001", "tool_003", "tool_002"]);
}

#[test]
fn a_summary_counts_what_is_not_shown() {
    let registry = registry(100);
    let within: Vec<&ToolEntry> = registry.tools.iter().collect();
    let seen = shown(&registry, all, &tools([11]), &settings(20));
    let told =
        capabilities(&registry, &within, &seen, &settings(20), |it| format!("About {}.", it.extension.id));
    assert_eq!(
        told["agents"],
        json!([{ "id": "ann", "description": "Helps.", "mode": "tool", "tool": "ann" }])
    );
    assert_eq!(told["extensions"].as_array().map(Vec::len), Some(10));
    assert_eq!(
        told["extensions"][0],
        json!({ "id": "ext0", "description": "About ext0.", "tools": 10, "hidden": 10, "names": [] })
    );
    assert_eq!(told["extensions"][1]["hidden"], 9);
    assert_eq!(told["extensions"][1]["names"], json!(["tool_011"]));
}

#[test]
fn a_search_does_not_find_itself_and_gives_no_more_than_it_may() {
    let registry = registry(100);
    let within: Vec<&ToolEntry> = registry.tools.iter().collect();
    let find = |request: &str, limit| search(&within, request, limit, |_| String::new()).0.len();
    assert_eq!(find("find tools", Some(500)), MAX_FOUND_TOOLS);
    assert_eq!((find("does something", None), find("does something", Some(0))), (5, 1));
    let (names, told) = search(&within, "read a file", Some(1), |_| String::new());
    assert_eq!((names[0].as_str(), told["tools"][0]["extension"].as_str()), ("read_file", Some("always")));
}
