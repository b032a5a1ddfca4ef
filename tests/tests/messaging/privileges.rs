//! Privileges are grants: a call of a privileged interface is refused with one code in every lane, and served where the interface is
//! granted, whoever the extension is.

use std::sync::Arc;

use holdfast_contract::host_call::{Capability, GrantRule, HostCallKind};
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_lane_native::NativeExtension;
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_testkit::wasm::MapVault;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Asking, outcomes};

/// A program whose one tool makes the host call that its arguments name, and answers with the error's code.
const PROGRAM: &str = r#"
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

TOOL = {"name": "ask", "description": "Makes a host call.", "input_schema": {"type": "object"}}
waiting = {}
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        error = message.get("error") or {}
        say(id=waiting.pop(message["id"]), result=(error.get("data") or {}).get("code", "served"))
    elif message["method"] == "hello":
        say(id=message["id"], result={"protocol": "0.1", "tools": [TOOL]})
    elif message["method"] == "tool":
        call = message["params"]["arguments"]
        waiting["q"] = message["id"]
        say(id="q", method="ask", params={"call": message["id"], **call})
    elif "id" in message:
        say(id=message["id"], result=None)
"#;

fn privileged() -> Vec<HostCallKind> {
    let all = HostCallKind::ALL.iter().copied();
    all.filter(|kind| kind.capability().grant() == GrantRule::Explicit).collect()
}

/// Arguments that each privileged call takes.
fn arguments(kind: HostCallKind) -> Value {
    match kind {
        HostCallKind::ResultRead => json!({ "call": "1.1", "limit": 10 }),
        HostCallKind::ToolsFind => json!({ "query": "anything" }),
        HostCallKind::SetupApply => json!({ "extension": "stranger", "name": "token", "value": "x" }),
        _ => json!({}),
    }
}

/// What a native extension of this name is answered.
async fn native(id: &str, kind: HostCallKind, interfaces: &[&str]) -> Option<Fault> {
    let extension = NativeExtension::new(id, "1.0.0").interfaces(interfaces).tool(Asking("ask", kind.name()));
    let lab = Lab::build()
        .script([ScriptStep::calls([("ask", arguments(kind))]), ScriptStep::says("done")])
        .extension(extension)
        .profile(Profile::FullAuto)
        .start()
        .await;
    lab.say("go").await;
    let outcome = outcomes(&lab).remove(0);
    lab.stop().await;
    outcome.err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_privileged_call_without_the_grant_is_refused_in_the_native_lane() {
    for kind in privileged() {
        // The id of a built-in extension gives nothing.
        for id in ["stranger", "setup", "results", "orchestrator"] {
            let fault = native(id, kind, &[]).await.unwrap();
            assert_eq!(fault.code, Code::ComponentImport, "{id} {kind}: {fault}");
            let expected = format!("ext grant {id} --interface {}", kind.capability());
            assert!(fault.message.contains(&expected), "{fault}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_with_the_grant_is_served() {
    for kind in privileged() {
        let fault = native("stranger", kind, &[kind.capability().name()]).await;
        let code = fault.map(|fault| fault.code);
        assert_ne!(code, Some(Code::ComponentImport), "{kind}");
        // Nothing was truncated, there is no extension `{}`, and the stranger has no such parameter: the call itself was served.
        let expected = match kind {
            HostCallKind::ResultRead => Some(Code::ResultUnknown),
            HostCallKind::SetupShow => Some(Code::ExtensionUnknown),
            HostCallKind::SetupApply => Some(Code::UsageInvalid),
            _ => None,
        };
        assert_eq!(code, expected, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_for_one_interface() {
    let fault = native("stranger", HostCallKind::SetupApply, &["results", "discovery"]).await.unwrap();
    assert_eq!(fault.code, Code::ComponentImport, "{fault}");
}

/// The codes that a program with these interfaces is answered, call by call.
async fn program(interfaces: Vec<String>) -> Vec<String> {
    let (vault, folder) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
    let lane = Arc::new(ProcessLane::new(vault.clone(), Places::within(folder.path())));
    let manifest = "id: stranger\nname: Stranger\nversion: 1.0.0\ndescription: Asks for anything.\ncommand: [python3, main.py]\n";
    let found = vault.add_files(manifest, "process", [("main.py", PROGRAM.as_bytes().to_vec())]);
    let call = |kind: &HostCallKind| {
        ScriptStep::calls([("ask", json!({ "name": kind.name(), "arguments": arguments(*kind) }))])
    };
    let lab = Lab::build()
        .script(privileged().iter().map(call).chain([ScriptStep::says("done")]))
        .lane(lane, [FoundExtension { interfaces, ..found }])
        .profile(Profile::FullAuto)
        .start()
        .await;
    lab.say("go").await;
    let answered =
        outcomes(&lab).into_iter().map(|outcome| outcome.unwrap().as_str().unwrap().to_owned()).collect();
    lab.stop().await;
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_refused_with_the_same_code_and_served_with_the_grant() {
    let refused = program(Vec::new()).await;
    assert_eq!(refused, vec![Code::ComponentImport.as_str(); privileged().len()]);

    let all = [Capability::Setup, Capability::Results, Capability::Discovery];
    let served = program(all.iter().map(|capability| capability.name().to_owned()).collect()).await;
    assert!(!served.iter().any(|code| code == Code::ComponentImport.as_str()), "{served:?}");
}
