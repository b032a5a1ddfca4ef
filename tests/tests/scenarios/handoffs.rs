//! A conversation that is handed over: the other agent answers with its own model, tools and limits until it gives the conversation back.

use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::{agent, echo, write};
use holdfast_testkit::{Lab, LabBuilder, Script, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

fn sage() -> AgentSpec {
    AgentSpec { mode: AgentMode::Handoff, ..agent("sage", "wise") }
}

/// What both models say, each in its turn: a script counts how often the conversation was answered, by any model.
fn in_turn(steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    let steps: Vec<ScriptStep> = steps.into_iter().collect();
    Lab::build().script(steps.clone()).model("wise", Script::new(steps))
}

/// The models that were asked.
fn asked(lab: &Lab) -> Vec<String> {
    let frames = lab.frames();
    let requests = frames.iter().filter(|frame| frame.envelope.kind.as_str() == "model.requested");
    requests.map(|frame| frame.body.as_ref().unwrap()["model"].as_str().unwrap().to_owned()).collect()
}

pub fn handed_over_and_back() -> Scenario {
    let lab = in_turn([
        ScriptStep::calls([("transfer_to_sage", json!({ "message": "a question about everything" }))]),
        ScriptStep::says("I am the sage, what is it?"),
        ScriptStep::says("forty-two"),
        ScriptStep::calls([("hand_back", json!({ "message": "it is 42" }))]),
        ScriptStep::says("the sage says 42"),
        ScriptStep::says("yes?"),
    ]);
    let lab = lab.extension(NativeExtension::new("hills", "1.0.0").agent(sage()));
    Scenario::new(lab, |lab| async {
        let mut answers = Vec::new();
        for text in ["ask the sage", "the answer to everything?", "thank you, bye", "hello"] {
            answers.push(lab.say(text).await.answer.unwrap().to_text());
        }
        assert_eq!(answers, ["I am the sage, what is it?", "forty-two", "the sage says 42", "yes?"]);
        assert_eq!(asked(&lab), ["script", "wise", "wise", "wise", "script", "script"]);
        lab
    })
}

pub fn an_agent_has_the_tools_it_names() -> Scenario {
    let reach =
        || ScriptStep::calls([("echo", json!({})), ("write", json!({})), ("transfer_to_sage", json!({}))]);
    let narrow = AgentSpec { tools: Some(vec!["kit".into()]), ..agent("clerk", "narrow") };
    let wise = AgentSpec { tools: Some(vec!["desk".into()]), ..sage() };
    let lab = in_turn([
        ScriptStep::calls([("clerk", json!({ "task": "try everything" }))]),
        ScriptStep::calls([("transfer_to_sage", json!({}))]),
        reach(),
        ScriptStep::says("only write"),
    ])
    .model("narrow", Script::new([reach(), ScriptStep::says("only echo")]))
    .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
    .extension(NativeExtension::new("desk", "1.0.0").tool(write()))
    .extension(NativeExtension::new("office", "1.0.0").agent(narrow).agent(wise));
    Scenario::new(lab, |lab| async {
        assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "only write");
        lab
    })
}

pub fn an_agent_that_takes_over_has_limits_of_its_own() -> Scenario {
    let hasty = AgentSpec { limits: Limits { max_turns: 2, ..Limits::default() }, ..sage() };
    let lab = in_turn([
        ScriptStep::calls([("transfer_to_sage", json!({}))]),
        ScriptStep::calls([("echo", json!({}))]),
        ScriptStep::says("too late"),
    ])
    .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
    .extension(NativeExtension::new("hills", "1.0.0").agent(hasty));
    Scenario::new(lab, |lab| async {
        assert_eq!(lab.say("go").await.outcome, TurnOutcome::Limited(LimitKind::Turns));
        lab
    })
}
