use holdfast_contract::ids::Generation;
use holdfast_contract::message::{AskedCall, Spent, Usage};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::*;
use holdfast_contract::tool::{CallStatus, EffectClass};
use serde_json::json;

use super::*;

const CALL: CallId = CallId { turn: 1, index: 1 };

fn read(bodies: Vec<(FrameSource, Body)>) -> Vec<ReadFrame> {
    let numbered = bodies.into_iter().enumerate();
    numbered.map(|(seq, (source, body))| ReadFrame { seq: Seq(seq as u64), source, body }).collect()
}

fn started() -> Body {
    TurnStarted { turn: 1, registry: Default::default() }.into()
}

fn gate(hook: &str, decision: Decision, rule: Option<&str>) -> Body {
    let rule = rule.map(Into::into);
    let point = holdfast_contract::hook::HookPoint::ToolGate;
    HookDecided { hook: hook.into(), point, call: Some(CALL), subject: None, decision, rule }.into()
}

#[test]
fn a_call_is_explained_from_the_question_to_the_result() {
    let arguments = Content::new(json!({ "path": "a" }));
    let returned = ModelReturned {
        text: Content::text(""),
        reasoning: None,
        calls: vec![AskedCall { model_id: "1".into(), tool: "write".into(), arguments: arguments.clone() }],
        usage: Usage::default(),
    };
    let implementation = ExtensionRef {
        id: "files".into(),
        version: "1.0.0".into(),
        digest: arguments.digest(),
        generation: Generation(3),
    };
    let digest = || (&arguments).into();
    let ask = Decision::Ask { reason: "writes need a person\n[y] fake".to_owned() };
    let reasons = vec![GateReason { hook: "policy".into(), reason: "writes".to_owned() }];
    let person = FrameSource::Surface("chat".into());
    let frames = read(vec![
        (FrameSource::Host, returned.into()),
        (FrameSource::Kernel, ToolCalled { call: CALL, tool: "write".into(), arguments: digest() }.into()),
        (FrameSource::Host, gate("policy", ask, Some("ask-writes"))),
        (FrameSource::Host, gate("guard/tool_gate/0", Decision::Allow, None)),
        (
            FrameSource::Kernel,
            ToolDecided { call: CALL, arguments: digest(), verdict: ToolVerdict::Asked }.into(),
        ),
        (FrameSource::Kernel, ApprovalRequested { call: CALL, arguments: digest(), reasons }.into()),
        (
            person,
            ApprovalAnswered { approval: Seq(5), answer: Answer::Approve { scope: ApprovalScope::Once } }
                .into(),
        ),
        (
            FrameSource::Kernel,
            ToolDispatched {
                call: CALL,
                tool: "write".into(),
                implementation: implementation.into(),
                arguments: digest(),
                effects: EffectClass::Write,
                attempt: 1,
            }
            .into(),
        ),
        (
            FrameSource::Kernel,
            ToolSettled {
                call: CALL,
                status: CallStatus::Failed,
                content: digest(),
                fault: Some(Fault::new(Code::ToolFailed, "no such file")),
                artifacts: Vec::new(),
                render: None,
            }
            .into(),
        ),
    ]);
    let expected = [
        "    1  call 1.1: the model asked for write {\"path\":\"a\"}",
        "    2  policy decided (rule ask-writes): ask a person: writes need a person⏎[y] fake",
        "    3  guard/tool_gate/0 decided: allow",
        "    4  together: a person must say",
        "    5  a person was asked, for policy",
        "    6  chat approved it, this once",
        "    7  write ran: files 1.0.0 (generation 3)",
        "    8  it ended: failed: HF-3105: no such file",
    ];
    assert_eq!(why(&frames, None), expected);
    assert_eq!(why(&frames, Some(CALL)), expected);
    assert_eq!(why(&frames, Some(CallId { turn: 9, index: 9 })).len(), 1);
}

#[test]
fn a_turn_without_calls_is_explained_by_its_model_and_its_end() {
    let routed =
        ModelRouted { model: "small".into(), by: Some("router/model_route/0".into()), advice: Vec::new() };
    let ended = TurnEnded {
        turn: 1,
        outcome: TurnOutcome::Cancelled { reason: "the user".to_owned() },
        answer: None,
        spent: Spent::default(),
    };
    let frames = read(vec![
        (FrameSource::Kernel, started()),
        (FrameSource::Kernel, routed.into()),
        (FrameSource::Kernel, ended.into()),
    ]);
    let told = why(&frames, None);
    assert!(
        told.iter().any(|line| line.contains("model small (chosen by router/model_route/0)")),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line.contains("it ended: cancelled: the user")), "{told:?}");
}

#[test]
fn nothing_is_explained_by_saying_so() {
    assert_eq!(why(&[], None), ["nothing was decided yet"]);
}

// Finding B13.
#[test]
fn an_answer_for_the_session_is_named_where_it_let_a_call_pass() {
    let second = CallId { turn: 2, index: 1 };
    let digest = || (&Content::new(json!({}))).into();
    let called = |call| ToolCalled { call, tool: "shell".into(), arguments: digest() }.into();
    let ask = |call| {
        let Body::HookDecided(decided) = gate("policy", Decision::Ask { reason: "runs".to_owned() }, None)
        else {
            panic!("a gate decides")
        };
        Body::HookDecided(HookDecided { call: Some(call), ..decided })
    };
    let answer = Answer::Approve { scope: ApprovalScope::Session };
    let decided = ToolDecided { call: second, arguments: digest(), verdict: ToolVerdict::Allowed };
    let requested = ApprovalRequested { call: CALL, arguments: digest(), reasons: Vec::new() };
    let frames = read(vec![
        (FrameSource::Kernel, started()),
        (FrameSource::Kernel, called(CALL)),
        (FrameSource::Host, ask(CALL)),
        (FrameSource::Kernel, requested.into()),
        (FrameSource::Surface("chat".into()), ApprovalAnswered { approval: Seq(3), answer }.into()),
        (FrameSource::Kernel, started()),
        (FrameSource::Kernel, called(second)),
        (FrameSource::Host, ask(second)),
        (FrameSource::Kernel, decided.into()),
    ]);
    let lines = why(&frames, None);
    let last = lines.last().map(String::as_str).unwrap_or_default();
    assert_eq!(last, "    8  together: allowed, by the answer for the whole session at 4");
    assert_eq!(approved_for_session(&frames), [(Seq(4), "shell".to_owned())]);
}
