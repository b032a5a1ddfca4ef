//! What may be used up in a day, by everything and by each extension: a model or a tool is not asked when nothing is left, the user is told
//! which budget it was, and the books are made again from the log after a restart.

use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::{LimitKind, Limits, Spent};
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_home::{AgentSettings, LimitSettings};
use holdfast_lane_native::NativeExtension;
use holdfast_policy::{Cap, Caps, Document, Dollars, Policy};
use holdfast_runtime::TurnReport;
use holdfast_store::StoreOptions;
use holdfast_testkit::pieces::{agent, echo};
use holdfast_testkit::{FakeClock, Lab, LabBuilder, Script, ScriptStep};
use serde_json::json;

const DAY: u64 = 86_400_000;

fn day(day: Cap) -> Caps {
    Caps { day, ..Caps::default() }
}

fn of(extension: &str, budget: Cap) -> Caps {
    Caps { extensions: [(extension.into(), budget)].into(), ..Caps::default() }
}

fn tokens(tokens: u64) -> Cap {
    Cap { tokens: Some(tokens), ..Cap::default() }
}

fn lab(caps: Caps, script: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    Lab::build()
        .policy(Policy::new(Document { caps, ..Document::of(Profile::FullAuto) }).unwrap())
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
}

/// How a lab's turns end, one after the other.
async fn outcomes(lab: &Lab, turns: usize) -> Vec<TurnOutcome> {
    let mut outcomes = Vec::new();
    for _ in 0..turns {
        outcomes.push(lab.say("go").await.outcome);
    }
    outcomes
}

#[tokio::test]
async fn a_days_tokens_and_money_end_turns_in_every_session_until_midnight() {
    for (budget, limit) in [
        (tokens(100), LimitKind::DayTokens),
        (Cap { dollars: Some(Dollars { micros: 100 }), ..Cap::default() }, LimitKind::DayCost),
    ] {
        let steps = [ScriptStep::says("one").costing(100, 100), ScriptStep::says("tomorrow")];
        let lab = lab(day(budget), steps).start().await;
        assert_eq!(outcomes(&lab, 2).await, [TurnOutcome::Answered, TurnOutcome::Limited(limit)]);
        let other = lab.open("other").say("lab", "and here?").await.unwrap();
        assert_eq!(other.outcome, TurnOutcome::Limited(limit));
        assert!(lab.story().contains("limit.reached"), "{}", lab.story());
        assert!(lab.replay("s1").identical && lab.replay("other").identical);
        lab.clock.advance(Millis(DAY));
        assert_eq!(outcomes(&lab, 1).await, [TurnOutcome::Answered]);
        lab.stop().await;
    }
}

#[tokio::test]
async fn the_books_are_made_again_from_the_log() {
    let clock = FakeClock::default();
    let first =
        lab(day(tokens(100)), [ScriptStep::says("one").costing(100, 0)]).clock(clock.clone()).start().await;
    assert_eq!(outcomes(&first, 1).await, [TurnOutcome::Answered]);
    let path = first.path().to_owned();
    let _folder = first.stop().await;
    let again = lab(day(tokens(100)), [ScriptStep::says("two")])
        .clock(clock)
        .on(&path, StoreOptions::default())
        .start()
        .await;
    let handle = again.open("next");
    let report = handle.say("lab", "go").await.unwrap();
    assert_eq!(report.outcome, TurnOutcome::Limited(LimitKind::DayTokens));
    again.stop().await;
}

#[tokio::test]
async fn tool_calls_of_a_day_and_of_an_extension_are_refused_and_the_model_is_told() {
    for budgets in [
        day(Cap { tool_calls: Some(1), ..Cap::default() }),
        of("kit", Cap { tool_calls: Some(1), ..Cap::default() }),
    ] {
        let twice = ScriptStep::calls([("echo", json!({})), ("echo", json!({}))]);
        let lab = lab(budgets, [twice, ScriptStep::says("one of two")]).start().await;
        assert_eq!(outcomes(&lab, 1).await, [TurnOutcome::Answered]);
        let returned =
            lab.frames_of("s1").into_iter().filter(|frame| frame.envelope.kind.as_str() == "tool.returned");
        let refused = returned.filter(|frame| frame.body.as_ref().unwrap().to_string().contains("3008"));
        assert_eq!(refused.count(), 1);
        assert!(lab.replay("s1").identical);
        lab.stop().await;
    }
}

#[tokio::test]
async fn an_extensions_agents_stop_at_its_budget_and_others_go_on() {
    let ask = || ScriptStep::calls([("sage", json!({ "task": "think" }))]);
    let lab = lab(of("hills", tokens(50)), [ask(), ask(), ScriptStep::says("done")])
        .model("wise", Script::new([ScriptStep::says("42").costing(60, 0), ScriptStep::says("43")]))
        .extension(NativeExtension::new("hills", "1.0.0").agent(agent("sage", "wise")))
        .start()
        .await;
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "done");
    let story = lab.story();
    assert!(story.contains("extension_tokens") || story.contains("tokens of an extension"), "{story}");
    lab.stop().await;
}

#[tokio::test]
async fn an_agent_that_took_over_is_paid_by_its_extension() {
    let steps = [
        ScriptStep::calls([("transfer_to_sage", json!({}))]).costing(500, 0),
        ScriptStep::says("42").costing(60, 0),
    ];
    let lab = lab(of("hills", tokens(50)), steps.clone())
        .model("wise", Script::new(steps))
        .extension(
            NativeExtension::new("hills", "1.0.0")
                .agent(AgentSpec { mode: AgentMode::Handoff, ..agent("sage", "wise") }),
        )
        .start()
        .await;
    assert_eq!(outcomes(&lab, 1).await, [TurnOutcome::Answered]);
    let report = lab.say("go").await;
    assert_eq!(report.outcome, TurnOutcome::Limited(LimitKind::ExtensionTokens));
    assert_eq!(report.limit_set_in.unwrap(), "`caps.extensions.hills.tokens` in the policy");
    lab.stop().await;
}

#[tokio::test]
async fn the_settings_of_an_agent_go_before_its_own() {
    let set = AgentSettings {
        model: Some("other".into()),
        fallback: vec!["third".into()],
        instructions: Some("Be brief.".to_owned()),
        limits: LimitSettings { max_turns: Some(3), ..LimitSettings::default() },
    };
    let fails = ScriptStep::Fails { times: 9, retryable: false, then: Box::new(ScriptStep::says("never")) };
    let lab = lab(
        Caps::default(),
        [ScriptStep::calls([("sage", json!({ "task": "think" }))]), ScriptStep::says("done")],
    )
    .model("other", Script::new([fails]))
    .model("third", Script::new([ScriptStep::says("42")]))
    .extension(NativeExtension::new("hills", "1.0.0").agent(agent("sage", "wise")))
    .agent_settings("sage", set)
    .start()
    .await;
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "done");
    let child = lab.frames_of("s1.1.1");
    let started = child.first().unwrap().body.clone().unwrap().to_string();
    assert!(started.contains("Be brief.") && started.contains("\"max_turns\":3"), "{started}");
    assert!(
        child.iter().any(|frame| frame.body.as_ref().is_some_and(|body| body.to_string().contains("42")))
    );
    lab.stop().await;
}

/// Where the limit is set that ends a lab's first turn that is ended by one.
async fn set_in(lab: LabBuilder) -> String {
    let lab = lab.start().await;
    let mut report = lab.say("go").await;
    if report.outcome == TurnOutcome::Answered {
        report = lab.say("go").await;
    }
    assert!(matches!(report.outcome, TurnOutcome::Limited(_)), "{}", lab.story());
    lab.stop().await;
    report.limit_set_in.unwrap()
}

#[tokio::test]
async fn the_user_is_told_where_the_limit_is_set_that_was_reached() {
    let one = LimitSettings { max_turns: Some(1), ..LimitSettings::default() };
    let call = || ScriptStep::calls([("echo", json!({}))]);
    let calls = || lab(Caps::default(), [call(), call()]);
    assert_eq!(set_in(calls().limit_settings(one)).await, "`limits.max_turns` in the settings");

    let main = AgentSettings { limits: one, ..AgentSettings::default() };
    let lab_of_main = calls().agent_settings("main", main).limits(one.over(Limits::default()));
    assert_eq!(set_in(lab_of_main).await, "`agents.main.limits.max_turns` in the settings");

    let capped = Caps { session: tokens(100), ..Caps::default() };
    let costly = || [ScriptStep::says("one").costing(100, 0), ScriptStep::says("two")];
    assert_eq!(set_in(lab(capped.clone(), costly())).await, "`caps.session.tokens` in the policy");
    let less = LimitSettings { session_tokens: Some(60), ..LimitSettings::default() };
    let narrower = lab(capped, costly()).limit_settings(less);
    assert_eq!(set_in(narrower).await, "`limits.session_tokens` in the settings", "the narrower one counts");

    assert_eq!(set_in(lab(day(tokens(100)), costly())).await, "`caps.day.tokens` in the policy");
    let unknown = Limits { max_turns: 1, ..Limits::default() };
    assert_eq!(set_in(calls().limits(unknown)).await, "what the session began with");
}

#[tokio::test]
async fn of_an_agent_that_took_over_its_own_settings_are_named() {
    let steps =
        [ScriptStep::calls([("transfer_to_sage", json!({}))]), ScriptStep::calls([("echo", json!({}))])];
    let steps = || steps.clone().into_iter().chain([ScriptStep::says("too late")]);
    let hasty = AgentSpec {
        mode: AgentMode::Handoff,
        limits: Limits { max_turns: 2, ..Limits::default() },
        ..agent("sage", "wise")
    };
    let lab = |spec: AgentSpec| {
        lab(Caps::default(), steps())
            .model("wise", Script::new(steps()))
            .extension(NativeExtension::new("hills", "1.0.0").agent(spec))
    };
    assert_eq!(set_in(lab(hasty.clone())).await, "`agent.limits.max_turns` in the manifest of `hills`");
    let limits = LimitSettings { max_turns: Some(2), ..LimitSettings::default() };
    let set = AgentSettings { limits, ..AgentSettings::default() };
    let lab_of_settings =
        lab(AgentSpec { limits: Limits::default(), ..hasty.clone() }).agent_settings("sage", set);
    assert_eq!(set_in(lab_of_settings).await, "`agents.sage.limits.max_turns` in the settings");

    let few = LimitSettings { max_tool_calls: Some(0), ..LimitSettings::default() };
    let lab_of_all = lab(AgentSpec { limits: Limits::default(), ..hasty }).limit_settings(few);
    assert_eq!(set_in(lab_of_all).await, "`limits.max_tool_calls` in the settings", "it has none of its own");
}

#[tokio::test]
async fn of_an_agent_that_was_asked_the_limit_is_its_own_or_what_its_caller_had_left() {
    let told = async |limits: Limits, main: LimitSettings| {
        let ask = ScriptStep::calls([("sage", json!({ "task": "think" }))]).costing(40, 0);
        let costly = ScriptStep::calls([("echo", json!({}))]).costing(70, 0);
        let lab = lab(Caps::default(), [ask, ScriptStep::says("done")])
            .limit_settings(main)
            .model("wise", Script::new([costly, ScriptStep::says("never")]))
            .extension(
                NativeExtension::new("hills", "1.0.0").agent(AgentSpec { limits, ..agent("sage", "wise") }),
            )
            .start()
            .await;
        lab.say("go").await;
        let frames = lab.frames();
        let ended = frames.iter().find(|frame| frame.envelope.kind.as_str() == "child.ended").unwrap();
        let message =
            ended.body.as_ref().unwrap()["outcome"]["failure"]["message"].as_str().unwrap().to_owned();
        lab.stop().await;
        message
    };
    let own = Limits { max_tokens: 50, ..Limits::default() };
    assert_eq!(
        told(own, LimitSettings::default()).await,
        "the agent was ended by a limit on tokens in a turn (`agent.limits.max_tokens_per_invocation` in the manifest of `hills`)"
    );
    let callers = LimitSettings { max_tokens: Some(100), ..LimitSettings::default() };
    assert_eq!(
        told(Limits::default(), callers).await,
        "the agent was ended by a limit on tokens in a turn (what was left of `limits.max_tokens` in the settings)"
    );
}

// A client adds up what each turn used, so a turn's report must not hold what the turns before it used.
#[tokio::test]
async fn a_turn_reports_what_it_used_itself_live_and_from_the_log() {
    let steps = [
        ScriptStep::calls([("echo", json!({ "text": "a" }))]).costing(40, 4),
        ScriptStep::says("one").costing(20, 2),
        ScriptStep::says("two").costing(7, 3),
    ];
    let lab = lab(Caps::default(), steps).start().await;
    let (first, second) = (lab.say("go").await, lab.say("again").await);
    let used = |report: &TurnReport| {
        let Spent { turns, tokens, cost_micros, tool_calls, .. } = report.spent;
        (turns, tokens, cost_micros, tool_calls)
    };
    assert_eq!([used(&first), used(&second)], [(2, 60, 6, 1), (1, 7, 3, 0)]);
    for live in [first, second] {
        assert_eq!(lab.runtime.ended_turn(&"s1".into(), live.ended).unwrap(), live);
    }
    lab.stop().await;
}
