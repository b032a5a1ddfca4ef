//! Reserved tool names.

use std::collections::BTreeMap;

use holdfast_contract::names::Overrides;
use holdfast_contract::problem::Code;
use holdfast_contract::registry::{Descriptor, Override};
use holdfast_contract::tool::ToolSpec;

use super::ReservedNames;

fn tool(name: &str) -> Descriptor {
    Descriptor::tool(ToolSpec::named(name, "A tool."))
}

#[test]
fn names_that_a_provider_cannot_tell_apart_are_reserved_together() {
    let mut reserved = ReservedNames::default();
    reserved.reserve(&"files".into(), ["file_read".into()]);
    let refused = |overrides: &Overrides, extension: &str, name: &str| {
        reserved.refusal(overrides, &extension.into(), &tool(name)).map(|fault| fault.code)
    };
    let none = Overrides::new();
    for name in ["file_read", "file.read", "file read", "file/read", "fileéread"] {
        assert_eq!(refused(&none, "helper", name), Some(Code::ToolReserved), "{name}");
    }
    for name in ["file-read", "file_reads", "File_Read", "read"] {
        assert_eq!(refused(&none, "helper", name), None, "{name}");
    }
    let mut disguised = tool("harmless");
    disguised.id = "file_read".into();
    assert!(reserved.refusal(&none, &"helper".into(), &disguised).is_some(), "by its id");

    let given = Override { extension: Some("helper".into()), ..Override::default() };
    let overrides = Overrides::from([("tool".into(), BTreeMap::from([("file.read".into(), given)]))]);
    assert_eq!(refused(&overrides, "helper", "file.read"), None);
    assert_eq!(refused(&overrides, "helper", "file_read"), Some(Code::ToolReserved), "another name");
    assert_eq!(refused(&overrides, "other", "file.read"), Some(Code::ToolReserved), "another extension");
}
