//! Imports from the SDK, by example.

use crate::language::scan::{SdkImports, javascript, python};

fn names(taken: SdkImports) -> Vec<String> {
    match taken {
        SdkImports::Names(names) => names.into_iter().collect(),
        SdkImports::Everything(line) => vec![format!("everything on line {line}")],
    }
}

#[test]
fn python_imports_are_read() {
    assert_eq!(names(python("from holdfast import tool, clock as now\n\nstate = 1\n")), ["clock", "tool"]);
    assert_eq!(
        names(python("from holdfast import (\n    tool,  # ui\n    log,\n)\nui = 2")),
        ["log", "tool"]
    );
    assert_eq!(names(python("import holdfast\n@holdfast.tool_gate\ndef f(c): pass")), ["tool_gate"]);
    assert_eq!(names(python("import holdfast as hf\nhf.secrets.reference('x')")), ["secrets"]);
    assert_eq!(names(python("import re\nholdfast.ui.input('')")), [""; 0]);
    assert_eq!(names(python("\"\"\"\nfrom holdfast import ui\n\"\"\"\n# import holdfast\n")), [""; 0]);
    assert_eq!(names(python("x = 1\nfrom holdfast import *\n")), ["everything on line 2"]);
}

#[test]
fn javascript_imports_are_read() {
    assert_eq!(names(javascript("import { tool, clock as now } from \"holdfast\";")), ["clock", "tool"]);
    assert_eq!(names(javascript("import {\n  toolGate, // ui\n} from 'holdfast';\nui.x()")), ["toolGate"]);
    assert_eq!(names(javascript("import * as hf from \"holdfast\";\nhf.tool({}, f); other.ui()")), ["tool"]);
    assert_eq!(
        names(javascript("/* import { ui } from \"holdfast\"; */ import { x } from \"./y.js\";")),
        [""; 0]
    );
    assert_eq!(
        names(javascript("import { a } from \"./a.js\";\nimport { log } from \"holdfast\";")),
        ["log"]
    );
}
