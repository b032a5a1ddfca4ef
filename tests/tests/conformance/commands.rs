//! Slash commands of an extension, through a runtime: every lane lists them, runs them and leaves the same frame.

use holdfast_contract::body::FrameKind;
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::NewSession;
use holdfast_testkit::Lab;
use holdfast_testkit::story::bodies;
use serde_json::{Value, json};

use super::lanes::{ConformingLane, MANIFEST};

/// Runs commands in every lane, and holds what they said and left against the same words.
pub async fn compare(lanes: &[Box<dyn ConformingLane>]) {
    for lane in lanes {
        let name = lane.name();
        let (lab, _) = lane.install(Lab::build().script([]), MANIFEST, lane.least());
        let lab = lab.start().await;
        lab.runtime.settled().await.unwrap();
        let listed: Vec<(String, String)> = lab
            .runtime
            .commands()
            .into_iter()
            .filter(|command| command.extension.as_ref().is_some_and(|id| id.as_str() == "conformance"))
            .map(|command| (command.name, command.description))
            .collect();
        assert_eq!(listed, [("obey".to_owned(), "Does what it is told.".to_owned())], "{name}");

        let session = lab.session().id().clone();
        let run = async |arguments: &str| lab.runtime.run_command(&session, "obey", arguments, nowhere).await;
        let done = run(" command text done ").await.unwrap();
        assert_eq!((done.output.to_text().as_str(), done.session), ("done", None), "{name}");
        assert_eq!(run("two words").await.unwrap().output.to_text(), "two words", "{name}");
        let refused = run("command invalid say more").await.unwrap_err();
        assert_eq!((refused.code, refused.what.as_str()), (Code::ToolArguments, "say more"), "{name}");

        let left: Vec<Value> = bodies(&lab.frames(), FrameKind::CommandRun)
            .iter()
            .map(|body| json!([body["command"], body["arguments"], body["output"]["json"]]))
            .collect();
        let expected =
            [json!(["obey", "command text done", "done"]), json!(["obey", "two words", "two words"])];
        assert_eq!(left, expected, "{name}: one that failed is not there");
        assert_eq!(lab.findings(), [], "{name}");
        assert!(lab.replay("s1").identical, "{name}");
        lab.stop().await;
    }
}

fn nowhere() -> Result<NewSession, Problem> {
    panic!("no session is needed here")
}
