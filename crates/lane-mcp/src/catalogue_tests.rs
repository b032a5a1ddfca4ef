use super::*;
use crate::listing::PromptDefinition;

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({ "type": "object" }),
        output_schema: None,
        annotations: None,
    }
}

fn registered(tools: &[&str]) -> Vec<String> {
    let listing = Listing { tools: tools.iter().map(|name| tool(name)).collect(), ..Listing::default() };
    let catalogue = Catalogue::new("s", &listing, &McpOptions::default());
    catalogue.exports().tools.iter().map(|spec| spec.name.to_string()).collect()
}

#[test]
fn names_are_qualified_unique_and_accepted_by_every_provider() {
    assert_eq!(registered(&["read", "run_command"]), ["s__read", "s__run_command"]);
    let odd = registered(&["a.b", "a/b", "a b", "", &"x".repeat(200)]);
    let unique: BTreeSet<&String> = odd.iter().collect();
    assert_eq!(unique.len(), odd.len(), "{odd:?}");
    for name in &odd {
        let fits =
            name.len() <= 64 && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'-');
        assert!(fits && name.starts_with("s__"), "{name}");
    }
}

#[test]
fn a_tool_of_a_server_does_not_take_the_place_of_the_one_that_reads_resources() {
    let listing = Listing { tools: vec![tool("read_resource")], resources: true, ..Listing::default() };
    let catalogue = Catalogue::new("s", &listing, &McpOptions::default());
    assert_eq!(catalogue.tools.get(&ToolName::from("s__read_resource")), Some(&ToolTarget::ReadResource));
    assert_eq!(catalogue.tools.len(), 3);
}

#[test]
fn what_a_person_does_not_see_no_model_reads() {
    let hidden = "Adds.\u{E0041}\u{E0042}\u{200B}\u{202E} Numbers\u{1b}[2J.";
    assert_eq!(shown(hidden, 100), "Adds. Numbers[2J.");
    assert_eq!(shown("abcdef", 3), "abc…");
    let mut schema = json!({ "properties": { "a": { "description": "x\u{200B}y", "const": "x\u{200B}y" } } });
    clean(&mut schema);
    assert_eq!(schema["properties"]["a"], json!({ "description": "xy", "const": "x\u{200B}y" }));
}

#[test]
fn tools_are_filtered_by_their_own_names() {
    let listing = Listing { tools: ["read", "write", "write_all"].map(tool).into(), ..Listing::default() };
    let options = McpOptions { deny: vec!["write*".to_owned()], ..McpOptions::default() };
    let names = |options| Catalogue::new("s", &listing, options).tools.len();
    assert_eq!(names(&options), 1);
    let options = McpOptions { allow: Some(vec!["write".to_owned()]), ..McpOptions::default() };
    assert_eq!(names(&options), 1);
}

#[test]
fn prompts_are_commands() {
    let prompt = |name: &str| PromptDefinition {
        name: name.to_owned(),
        description: "Reviews.".to_owned(),
        arguments: vec!["path".to_owned()],
    };
    let listing = Listing { prompts: vec![prompt("review it"), prompt("review_it")], ..Listing::default() };
    let catalogue = Catalogue::new("s", &listing, &McpOptions::default());
    let commands = catalogue.exports().commands;
    assert_eq!(commands[0].name, "s:review_it");
    assert_eq!(commands[0].description, "Reviews. path=…");
    assert_ne!(commands[0].name, commands[1].name);
}
