//! Long results: the model is shown the beginning and reads on, the log has the whole once, and nothing can be read that was not shown.

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::registry::AgentSpec;
use holdfast_contract::tool::EffectClass;
use holdfast_ext_results::{ResultsOptions, extension};
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::{agent, hook, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, Script, ScriptStep};
use serde_json::{Value, json};

fn long(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line} of a long file\n")).collect()
}

fn lab(result: Value, steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    let fetch = tool("fetch", EffectClass::Pure, move |_| result.clone());
    Lab::build()
        .script(steps)
        .extension(NativeExtension::new("files", "1.0.0").tool(fetch).replayable())
        .extension(extension(ResultsOptions { limit_bytes: 2_048 }))
}

/// What the model was told of each call, in order.
fn told(lab: &Lab) -> Vec<String> {
    let frames = lab.frames();
    let mut told = Vec::new();
    for frame in &frames {
        match lab.runtime.store().body(frame).unwrap() {
            Body::ToolReturned(fact) => told.push(fact.outcome.told().to_text()),
            Body::HookDecided(fact) => {
                if let (Some(Decision::Enrich { result: Some(result), .. }), Some(last)) =
                    (Some(&fact.decision), told.last_mut())
                {
                    *last = result.to_text();
                }
            }
            _ => {}
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_cut_between_lines_and_read_on_to_its_end() {
    let whole = long(200);
    let read = |offset: u64| ScriptStep::calls([("read_result", json!({ "call": "1.1", "offset": offset }))]);
    let first = lab(json!(whole), [ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("done")])
        .start()
        .await;
    first.say("fetch").await;
    let cut = told(&first)[0].clone();
    let (shown, notice) = cut.rsplit_once('\n').unwrap();
    assert!(cut.len() <= 2_048 && whole.starts_with(shown) && shown.ends_with("of a long file"), "{cut}");
    let expected = format!(
        "[cut here: {} of {} bytes are shown. Call read_result with {{\"call\": \"1.1\", \"offset\": {}}} to read on.]",
        shown.len(),
        whole.len(),
        shown.len()
    );
    assert_eq!(notice, expected);

    // The model reads on until it is told that this is the end.
    let mut steps = vec![ScriptStep::calls([("fetch", json!({}))])];
    let mut offsets = vec![shown.len() as u64];
    let mut pieces = vec![shown.to_owned()];
    loop {
        let mut script = std::mem::take(&mut steps);
        script.extend(offsets.iter().map(|offset| read(*offset)));
        script.push(ScriptStep::says("done"));
        let lab = lab(json!(whole), script).start().await;
        lab.say("fetch").await;
        let last = told(&lab).last().unwrap().clone();
        assert!(last.len() <= 2_048, "a part is not cut itself: {}", last.len());
        let (text, footer) = last.rsplit_once('\n').unwrap();
        pieces.push(text.to_owned());
        let verdict = lab.replay("s1");
        assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
        assert_eq!(lab.findings(), []);
        if footer.ends_with("That is the end.]") {
            break;
        }
        let end = footer.split("\"offset\": ").nth(1).unwrap().split('}').next().unwrap();
        offsets.push(end.parse().unwrap());
        steps.push(ScriptStep::calls([("fetch", json!({}))]));
    }
    assert_eq!(
        pieces.concat(),
        whole.trim_end_matches('\n').to_owned() + if pieces.concat().ends_with('\n') { "\n" } else { "" }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_is_in_the_log_once_and_short_results_are_left_alone() {
    let whole =
        json!({ "rows": (0..500).map(|row| json!({ "row": row, "text": "some text" })).collect::<Vec<_>>() });
    let lab = lab(whole.clone(), [ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("done")])
        .start()
        .await;
    lab.say("fetch").await;
    let frames = lab.frames();
    let returned = frames.iter().find(|frame| frame.envelope.kind == FrameKind::ToolReturned).unwrap();
    let Body::ToolReturned(fact) = lab.runtime.store().body(returned).unwrap() else { panic!() };
    assert_eq!(fact.outcome.told(), Content::new(whole.clone()), "the fact has all of it");
    assert!(returned.body.as_ref().unwrap()["outcome"]["result"]["blob"].is_object(), "as a blob");
    assert!(told(&lab)[0].starts_with("{\"rows\":[{\"row\":0,"), "JSON is cut as its text");

    let short =
        self::lab(json!({ "n": 1 }), [ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("done")])
            .start()
            .await;
    short.say("fetch").await;
    assert_eq!(told(&short), ["{\"n\":1}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_read_that_the_model_was_not_to_see() {
    let secret = format!("SECRET {}", long(200));
    let steps = |call: &str| {
        let call = json!({ "call": call });
        [
            ScriptStep::calls([("fetch", json!({}))]),
            ScriptStep::calls([("read_result", call)]),
            ScriptStep::says("done"),
        ]
    };
    // A hook takes something out before the result is cut.
    let clean = hook(HookSpec::at(HookPoint::ToolAfter), |input| {
        let text = input.subject.as_ref().unwrap().to_text();
        if text.contains("SECRET") {
            Decision::Enrich {
                result: Some(text.replace("SECRET", "[removed]").as_str().into()),
                artifacts: Vec::new(),
                render: None,
            }
        } else {
            Decision::Continue
        }
    });
    let cleaned = lab(json!(secret), steps("1.1"))
        .extension(NativeExtension::new("cleaner", "1.0.0").hook(clean).replayable())
        .start()
        .await;
    cleaned.say("fetch").await;
    let told_of = told(&cleaned);
    assert!(told_of[1].starts_with("[removed] line 0"), "{}", told_of[1]);
    assert!(!told_of.iter().any(|text| text.contains("SECRET")));

    // A guardrail stops the result.
    let stop = hook(HookSpec::at(HookPoint::GuardResult), |input| {
        if input.subject.as_ref().unwrap().to_text().starts_with("SECRET") {
            Decision::Block { reason: "a secret".to_owned() }
        } else {
            Decision::Allow
        }
    });
    let stopped = lab(json!(secret), steps("1.1"))
        .extension(NativeExtension::new("guard", "1.0.0").hook(stop).replayable())
        .start()
        .await;
    stopped.say("fetch").await;
    assert!(told(&stopped)[1].contains("HF-3114: no result of call 1.1 was cut"), "{}", told(&stopped)[1]);

    // A call that there was not, one that was not cut, and a place behind the end.
    for (call, offset) in [("7.1", 0), ("1.1", 999_999)] {
        let asked = json!({ "call": call, "offset": offset });
        let steps = [
            ScriptStep::calls([("fetch", json!({}))]),
            ScriptStep::calls([("read_result", asked)]),
            ScriptStep::says("done"),
        ];
        let lab = lab(json!(long(200)), steps).start().await;
        lab.say("fetch").await;
        assert!(told(&lab)[1].contains("HF-3114"), "{}", told(&lab)[1]);
    }
    let short = lab(json!("short"), steps("1.1")).start().await;
    short.say("fetch").await;
    assert!(told(&short)[1].contains("HF-3114"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_read_in_its_own_session_only() {
    // A script starts over in each session: the call that is read is there in the first, and not yet in the second.
    let read = ScriptStep::calls([("read_result", json!({ "call": "1.2" }))]);
    let steps = [read, ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("done")];
    let lab = lab(json!(long(200)), steps).start().await;
    lab.say("fetch").await;
    assert!(told(&lab)[1].contains("[cut here"), "the first session has such a result");
    lab.open("s2").say("test", "fetch").await.unwrap();
    let returned = bodies(&lab.frames_of("s2"), FrameKind::ToolReturned);
    assert_eq!(returned[0]["outcome"]["failure"]["code"], "HF-3114", "a call is one of its own session");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_some_tools_reads_on_and_one_with_none_has_nothing_to_read() {
    let answers = async |tools: &[&str]| {
        let tools = Some(tools.iter().map(|id| (*id).into()).collect());
        let read = ScriptStep::calls([("read_result", json!({ "call": "1.1" }))]);
        let lab = lab(
            json!(long(200)),
            [ScriptStep::calls([("clerk", json!({ "task": "fetch" }))]), ScriptStep::says("done")],
        )
        .model(
            "narrow",
            Script::new([ScriptStep::calls([("fetch", json!({}))]), read, ScriptStep::says("read")]),
        )
        .extension(
            NativeExtension::new("office", "1.0.0").agent(AgentSpec { tools, ..agent("clerk", "narrow") }),
        )
        .start()
        .await;
        lab.say("go").await;
        let frames = lab.frames_of("s1.1.1");
        let settled = bodies(&frames, FrameKind::ToolSettled);
        settled
            .iter()
            .map(|body| body["fault"]["code"].as_str().unwrap_or("done").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(&["files"]).await, ["done", "done"]);
    assert_eq!(answers(&[]).await, ["HF-3101", "HF-3101"]);
}
