//! What is read of a file's head, and what is refused.

use std::path::Path;

use serde_json::json;

use super::PythonHead;

#[track_caller]
fn refused(text: &str) -> String {
    PythonHead::read(Path::new("x.py"), text).expect_err("it cannot be read").to_string()
}

#[test]
fn literals_are_read_without_running_the_file() {
    let text = r#""""A doc.

__secrets__ = ["NOT_THIS"]
"""
import os  # """

__secrets__ = [
    "TOKEN",  # why
    'OTHER',
]
__hosts__ = ("api.example.com", "localhost:80",)
__settings__ = {"units": "metric", "places": 3, "ratio": -0.5, "deep": {"on": True, "list": [None, "a\"b"]}}
__effects__ = "network"

def run():
    __secrets__ = compute()
"#;
    let head = PythonHead::read(Path::new("x.py"), text).expect("read");
    assert_eq!(head.secrets, ["TOKEN", "OTHER"]);
    assert_eq!(head.hosts, ["api.example.com", "localhost:80"]);
    let settings = json!({ "units": "metric", "places": 3, "ratio": -0.5, "deep": { "on": true, "list": [null, "a\"b"] } });
    assert_eq!(serde_json::Value::Object(head.settings), settings);
    assert_eq!(PythonHead::read(Path::new("x.py"), "x = 1\n").expect("read"), PythonHead::default());
}

#[test]
fn what_is_no_literal_is_refused_with_its_line() {
    let computed = refused("\n\n__secrets__ = names()\n");
    assert!(computed.contains("`__secrets__`") && computed.contains("line 3"), "{computed}");
    assert!(refused("__hosts__ = \"api.example.com\"\n").contains("list of texts"));
    assert!(refused("__hosts__ = [\"a\", 1]\n").contains("list of texts"));
    assert!(refused("__settings__ = [\"a\"]\n").contains("dictionary"));
    assert!(refused("__settings__ = {1: 2}\n").contains("must be a text"));
    assert!(refused("__secrets__ = [\"a\"\n").contains("missing"));
    assert!(refused("__secrets__ = [\"a\"] + more\n").contains("unexpected"));
    assert!(refused(&format!("__secrets__ = {}\n", "[".repeat(99))).contains("too deep"));
}
