//! What the agent can do for the system that it runs in: see what is wrong with extensions, and have everything started again.

use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_lane_native::NativeExtension;
use holdfast_runtime::ShutdownRequest;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use crate::fixtures::{Asking, outcomes};

fn lab(calls: ScriptStep) -> LabBuilder {
    let lab = Lab::build().profile(Profile::Standard).script([calls, ScriptStep::says("there")]);
    lab.extension(holdfast_ext_setup::extension())
}

#[tokio::test]
async fn the_agent_is_told_what_went_wrong_as_the_command_tells_it() {
    let asked = [("extensions_doctor", json!({})), ("extensions_doctor", json!({ "extension_id": "mail" }))];
    let lab = lab(ScriptStep::calls(asked)).start().await;
    lab.runtime.rejected("notes".into(), Fault::new(Code::ManifestSyntax, "line 3 is not YAML"));
    lab.runtime.settled().await.unwrap();
    lab.say("what is wrong?").await;
    let told: Vec<_> = outcomes(&lab).into_iter().map(Result::unwrap).collect();
    let expected = serde_json::to_value(lab.runtime.recent_faults(None).unwrap()).unwrap();
    assert_eq!(told[0], expected);
    let first = &told[0][0];
    let fields = ["extension", "phase", "code", "message"].map(|name| first[name].as_str().unwrap());
    assert_eq!(fields, ["notes", "discovery", "HF-1002", "line 3 is not YAML"]);
    assert_eq!(first["fix"], Code::ManifestSyntax.help());
    assert_eq!(told[1], "There are no recent failures.");
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_restart_is_asked_for_once_a_person_allows_it() {
    let lab =
        lab(ScriptStep::calls([("request_restart", json!({ "reason": "new settings" }))])).start().await;
    let wanted = lab.runtime.shutdown_requests();
    let turn = lab.begin("start again");
    let pending = lab.approval().await;
    assert_eq!(*wanted.borrow(), ShutdownRequest::GoOn, "nothing before it is allowed");
    lab.session().approve(pending.approval, Answer::Approve { scope: ApprovalScope::Once }).await.unwrap();
    turn.await.unwrap();
    assert_eq!(*wanted.borrow(), ShutdownRequest::Restart("`setup` asked for it: new settings".to_owned()));
    lab.stop().await;
}

#[tokio::test]
async fn where_nobody_can_restart_anything_the_agent_is_told_so() {
    let calls = ScriptStep::calls([("request_restart", json!({ "reason": "new settings" }))]);
    let lab = lab(calls).profile(Profile::FullAuto).start().await;
    lab.say("start again").await;
    let told = outcomes(&lab).remove(0).unwrap_err();
    assert!(told.message.contains("holdfast up"), "{told}");
    lab.stop().await;
}

#[tokio::test]
async fn other_extensions_may_not_ask_how_extensions_are_doing() {
    let nosy = NativeExtension::new("nosy", "1.0.0").tool(Asking("look", "extension.doctor"));
    let lab = Lab::build().script([ScriptStep::calls([("look", json!({}))])]).extension(nosy).start().await;
    lab.say("look").await;
    let told = outcomes(&lab).remove(0).unwrap_err();
    assert_eq!(told.code, Code::ComponentImport, "{told}");
    assert!(told.message.contains("the interface `setup` is not granted"), "{told}");
    lab.stop().await;
}
