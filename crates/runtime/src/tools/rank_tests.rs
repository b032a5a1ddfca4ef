//! The ranker: what counts, and that nothing but the tools themselves decides.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::registry::{ExtensionRef, Implementation, ToolEntry};
use holdfast_contract::tool::ToolSpec;
use serde_json::json;

use super::*;

fn tool(extension: &str, name: &str, description: &str, takes: &[&str]) -> ToolEntry {
    let properties: serde_json::Map<_, _> =
        takes.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let input_schema = Content::new(json!({ "type": "object", "properties": properties }));
    let spec = Arc::new(ToolSpec { input_schema, ..ToolSpec::named(name, description) });
    let extension = Arc::new(ExtensionRef { id: extension.into(), ..ExtensionRef::default() });
    ToolEntry { name: name.into(), stack: vec![Implementation { extension, spec, agent: None }] }
}

fn names(tools: &[ToolEntry], request: &str) -> Vec<String> {
    let ranker = Ranker::new(tools.iter(), |_| String::new());
    ranker.search(request, 5).into_iter().map(|entry| entry.name.to_string()).collect()
}

#[test]
fn a_name_counts_more_than_a_description_and_either_more_than_a_parameter() {
    let tools = [
        tool("a", "take_photo", "Uses the camera.", &["folder"]),
        tool("b", "albums", "Sorts every photo that there is.", &["name"]),
        tool("c", "print", "Prints on paper.", &["photo"]),
        tool("d", "weather", "Says what the sky is like.", &["place"]),
    ];
    assert_eq!(names(&tools, "photo"), ["take_photo", "albums", "print"]);
    assert_eq!(names(&tools, "takePhoto"), names(&tools, "taking photos"));
}

#[test]
fn equals_go_by_name_and_what_does_not_fit_is_left_out() {
    let tools = [tool("a", "zeta", "Counts sheep.", &[]), tool("a", "beta", "Counts sheep.", &[])];
    assert_eq!(names(&tools, "count sheep"), ["beta", "zeta"]);
    assert_eq!(names(&tools, "repair the roof"), Vec::<String>::new());
    assert_eq!(names(&tools, ""), Vec::<String>::new());
    assert_eq!(names(&[], "anything"), Vec::<String>::new());
}

#[test]
fn what_the_extension_does_helps_to_find_its_tools() {
    let tools = [tool("post", "send", "Sends one.", &[]), tool("radio", "transmit", "Sends one.", &[])];
    let about = |it: &Implementation| {
        if it.extension.id.as_str() == "radio" {
            "Amateur radio over short waves."
        } else {
            "Letters and parcels."
        }
        .to_owned()
    };
    let ranker = Ranker::new(tools.iter(), about);
    assert_eq!(ranker.search("send a parcel", 1)[0].name.as_str(), "send");
    assert_eq!(ranker.search("send by short wave", 1)[0].name.as_str(), "transmit");
}
