//! A plain Python file against the same tool in Rust. A file has one tool and no hooks, so it has an extension of its own to agree with.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::ToolSpec;
use holdfast_lane_native::{FnTool, NativeExtension};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_testkit::story::story;
use holdfast_testkit::wasm::MapVault;
use holdfast_testkit::{Lab, LabBuilder, Script};
use serde_json::{Value, json};

use super::directive::split;

/// What the model calls the tool with, in turn.
const CALLS: &[&str] = &[
    r#"{ "do": "tool text plain words" }"#,
    r#"{ "do": "tool json {\"z\":1,\"a\":{\"deep\":[null,true,1.5,23.0]}}" }"#,
    r#"{ "do": "tool é😀" }"#,
    r#"{ "do": "tool invalid count what" }"#,
    r#"{ "do": "tool refused not for you" }"#,
    r#"{ "do": "tool failed the wire is cut" }"#,
    r#"{ "done": true }"#,
    r#"{ "do": 3 }"#,
];

const MANIFEST: &str = "id: act\nname: act\nentrypoint: tools/act.py\n";

fn schema() -> Value {
    let properties = json!({ "do": { "type": "string" } });
    json!({ "type": "object", "properties": properties, "additionalProperties": false, "required": ["do"] })
}

fn obeys(arguments: &Content) -> Result<Content, Fault> {
    let told = arguments.value()["do"].as_str().unwrap().to_owned();
    let (verb, text) = split(&split(&told, " ").1, " ");
    match verb.as_str() {
        "text" => Ok(Content::text(text)),
        "json" => Ok(Content::new(serde_json::from_str(&text).unwrap())),
        "invalid" => Err(Fault::new(Code::ToolArguments, text)),
        "refused" | "failed" => Err(Fault::new(Code::ToolFailed, text)),
        _ => Ok(arguments.clone()),
    }
}

/// Runs the calls in both lanes, and holds the frames against each other.
pub async fn compare() {
    let spec = ToolSpec { input_schema: schema().into(), ..ToolSpec::named("act", "Does what it is told.") };
    let native = NativeExtension::new("act", "1.0.0").tool(FnTool(spec, obeys));
    let vault = Arc::new(MapVault::default());
    let file = include_bytes!("../../conformance/file/act.py").to_vec();
    let found = vault.add_python(MANIFEST, "tools/act.py", [("tools/act.py", file)]);
    let folder = tempfile::tempdir().unwrap();
    let places = Places::within(folder.path());
    let lane = Arc::new(ProcessLane::python(vault, places));
    let digests = [native.to_found().digest.to_string(), found.digest.to_string()];
    let stories = [
        told(Lab::build().extension(native), &digests).await,
        told(Lab::build().lane(lane, [found]), &digests).await,
    ];
    assert!(stories[0].contains("the wire is cut") && stories[0].contains("plain words"), "{}", stories[0]);
    assert_eq!(stories[0], stories[1]);
}

async fn told(lab: LabBuilder, digests: &[String]) -> String {
    let calls = CALLS.iter().map(|arguments| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        json!({ "calls": [{ "tool": "act", "arguments": arguments }] })
    });
    let steps: Vec<Value> = calls.chain([json!({ "says": "done" })]).collect();
    let script = Script::parse(Path::new("files"), &json!(steps).to_string()).unwrap();
    let lab = lab.model("script", script).start().await;
    lab.runtime.settled().await.unwrap();
    lab.say("go").await;
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
    let mut frames = lab.frames();
    for body in frames.iter_mut().filter_map(|frame| frame.body.as_mut()) {
        let mut text = body.to_string();
        for digest in digests {
            text = text.replace(digest, "(its lane's)");
        }
        *body = serde_json::from_str(&text).unwrap();
        if let Some(registry) = body.get_mut("registry") {
            *registry = "(its lane's)".into();
        }
    }
    story(&frames)
}
