//! A guardrail that fails, hangs or makes no sense has closed: the text is stopped, a frame says so, and so is the user told.

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::{FnHook, NativeExtension};
use holdfast_testkit::pieces::{hanging_hook, hook, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

/// The ways of a guardrail to go wrong, and the code that stands in the frame.
const WAYS: &[(&str, &str)] =
    &[("fails", "HF-4003"), ("hangs", "HF-3201"), ("makes no sense", "HF-3203"), ("panics", "HF-4003")];

fn broken(way: &str, point: HookPoint) -> NativeExtension {
    let guard = NativeExtension::new("guard", "1.0.0");
    match way {
        "fails" => guard.hook(FnHook(HookSpec::at(point), |_: &HookInput| {
            Err(Fault::new(Code::ExtensionFault, "the list of words is gone"))
        })),
        "hangs" => guard.hook(hanging_hook(point, Millis(500))),
        "makes no sense" => {
            guard.hook(hook(HookSpec::at(point), |_| Decision::Ask { reason: "what?".to_owned() }))
        }
        _ => guard.hook(FnHook(HookSpec::at(point), |_: &HookInput| panic!("out of luck"))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_with_a_guardrail_stops_the_text_and_is_told() {
    use HookPoint as P;
    for (way, code) in WAYS {
        for point in [
            P::SanitizeInput,
            P::GuardInput,
            P::SanitizeResult,
            P::GuardResult,
            P::SanitizeOutput,
            P::GuardOutput,
        ] {
            let fetch = tool("fetch", EffectClass::Pure, |_| json!("fetched"));
            let lab = Lab::build()
                .script([ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("the answer")])
                .extension(NativeExtension::new("web", "1.0.0").tool(fetch).replayable())
                .extension(broken(way, point))
                .start()
                .await;
            let turn = lab.begin("hello");
            if *way == "hangs" {
                // The turn's timer and the guardrail's.
                lab.pass(Millis(500), 2).await;
            }
            let report = turn.await.unwrap();
            let of_result = matches!(point, P::SanitizeResult | P::GuardResult);
            match (&report.outcome, of_result) {
                (TurnOutcome::Blocked { reason }, false) => {
                    assert!(reason.starts_with(code), "{way} {point:?}: {reason}")
                }
                (TurnOutcome::Answered, true) => {
                    let settled = &bodies(&lab.frames(), FrameKind::ToolSettled)[0]["fault"];
                    assert_eq!(settled["code"], "HF-3204", "{way} {point:?}");
                    assert!(
                        settled["message"].as_str().unwrap().starts_with(code),
                        "{way} {point:?}: {settled}"
                    );
                }
                (other, _) => panic!("{way} {point:?}: {other:?}"),
            }
            let frames = lab.frames();
            assert_eq!(bodies(&frames, FrameKind::HookFaulted)[0]["fault"]["code"], *code, "{way} {point:?}");
            let closed: Vec<Value> = bodies(&frames, FrameKind::GuardVerdict)
                .into_iter()
                .filter(|it| it["blocked"] == true)
                .collect();
            assert_eq!(closed.len(), 1, "{way} {point:?}");
            assert_eq!(closed[0]["reasons"][0]["hook"], "guard/0", "{way} {point:?}");
            let verdict = lab.replay("s1");
            assert!(verdict.identical, "{way} {point:?}: {verdict:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sanitizers_come_first_one_after_the_other_and_then_the_worst_word_counts() {
    let add = |priority, letter: &'static str| {
        hook(HookSpec { priority, ..HookSpec::at(HookPoint::SanitizeOutput) }, move |input| {
            let text = input.subject.as_ref().unwrap().to_text();
            Decision::Replace { content: Content::text(format!("{text}{letter}")) }
        })
    };
    let judge = |decision: Decision| {
        hook(HookSpec::at(HookPoint::GuardOutput), move |input| {
            assert_eq!(
                input.subject.as_ref().unwrap().to_text(),
                "answer ab",
                "each sees what the sanitizers left"
            );
            decision.clone()
        })
    };
    let flag = Decision::Flag { reason: "odd".to_owned() };
    let block = Decision::Block { reason: "forbidden".to_owned() };
    for (worst, blocked) in [(Decision::Allow, false), (block, true)] {
        let lab = Lab::build()
            .script([ScriptStep::says("answer ")])
            .extension(NativeExtension::new("second", "1.0.0").hook(add(20, "b")).replayable())
            .extension(NativeExtension::new("first", "1.0.0").hook(add(10, "a")).replayable())
            .extension(NativeExtension::new("calm", "1.0.0").hook(judge(Decision::Allow)).replayable())
            .extension(NativeExtension::new("doubtful", "1.0.0").hook(judge(flag.clone())).replayable())
            .extension(NativeExtension::new("strict", "1.0.0").hook(judge(worst.clone())).replayable())
            .start()
            .await;
        let report = lab.say("hello").await;
        let verdict = bodies(&lab.frames(), FrameKind::GuardVerdict).pop().unwrap();
        assert_eq!(verdict["blocked"], blocked);
        let reasons: Vec<&Value> =
            verdict["reasons"].as_array().unwrap().iter().map(|it| &it["reason"]).collect();
        if blocked {
            assert_eq!(
                (report.outcome, reasons),
                (
                    TurnOutcome::Blocked { reason: "forbidden".to_owned() },
                    vec![&json!("forbidden"), &json!("odd")]
                )
            )
        } else {
            assert_eq!(
                (report.answer.unwrap().to_text().as_str(), reasons),
                ("answer ab", vec![&json!("odd")])
            )
        }
        assert!(lab.replay("s1").identical);
    }
}
