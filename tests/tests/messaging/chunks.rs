//! Guardrails on what is streamed: nothing is shown that they have not let pass, whatever is wrong with them, and the record says what they
//! judged.

use std::sync::{Arc, Mutex};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::ids::Millis;
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::{StreamGuarded, TurnOutcome};
use holdfast_lane_native::NativeExtension;
use holdfast_replay::{Mode, replay};
use holdfast_testkit::pieces::{agent, failing_hook, hanging_hook, hook};
use holdfast_testkit::wasm::{MapVault, Objects, chunk_guard, lane, manifest};
use holdfast_testkit::{Lab, LabBuilder};

use crate::fixtures::later;
use crate::streaming_fixtures::{Screen, Writer, message};

/// A text of several windows with this somewhere in the middle, and the words before and after it.
fn around(middle: &str) -> String {
    format!("{}{middle} {}", "all is well ".repeat(40), "and so on ".repeat(40))
}

/// The text in pieces of so many characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// A guardrail that objects to a word, and keeps what it is shown.
fn against(word: &'static str, decision: Decision, shown: &Arc<Mutex<Vec<String>>>) -> NativeExtension {
    let shown = shown.clone();
    let judge = hook(HookSpec::at(HookPoint::GuardChunk), move |input| {
        let text = input.subject.as_ref().map(Content::to_text).unwrap_or_default();
        let objects = text.contains(word);
        shown.lock().unwrap().push(text);
        if objects { decision.clone() } else { Decision::Allow }
    });
    NativeExtension::new("guard", "1.0.0").hook(judge).replayable()
}

fn block() -> Decision {
    Decision::Block { reason: "that is not said".to_owned() }
}

fn built(writer: Writer, screen: &Screen) -> LabBuilder {
    // Somebody to hand over to, so that the model is not shown everything there is: what it is shown has no say in who judges.
    let sage = AgentSpec { mode: AgentMode::Handoff, ..agent("sage", "script") };
    let hills = NativeExtension::new("hills", "1.0.0").agent(sage);
    Lab::build().model("script", writer).extension(screen.extension()).extension(hills)
}

/// What was recorded of the guardrails' work.
fn guarded(lab: &Lab, session: &str) -> Vec<StreamGuarded> {
    let frames = lab.frames_of(session);
    let bodies = frames.iter().map(|frame| lab.runtime.store().body(frame).unwrap());
    let guarded = bodies.filter_map(|body| match body {
        Body::StreamGuarded(fact) => Some(fact),
        _ => None,
    });
    guarded.collect()
}

fn outcome(lab: &Lab, session: &str) -> TurnOutcome {
    let frames = lab.frames_of(session);
    let ended = frames.iter().rfind(|frame| frame.envelope.kind.as_str() == "turn.ended").unwrap();
    match lab.runtime.store().body(ended).unwrap() {
        Body::TurnEnded(ended) => ended.outcome,
        other => panic!("{other:?}"),
    }
}

/// Has a user ask, and waits for the end of the stream.
async fn ask(lab: &Lab, screen: &Screen) -> String {
    lab.runtime.publish(message("ada", "tell me")).await.unwrap();
    later(lab, "the end", |_| screen.told("ada", "end").len() == 1).await;
    screen.told("ada", "end").remove(0)
}

#[tokio::test]
async fn what_passes_is_shown_whole_and_the_record_says_who_judged_it() {
    let (screen, shown) = (Screen::default(), Arc::default());
    let text = around("nothing");
    let writer = Writer::new().writes(pieces(&text, 7));
    let lab = built(writer, &screen).extension(against("forbidden", block(), &shown)).start().await;
    assert_eq!(ask(&lab, &screen).await, text);
    assert_eq!(screen.text("ada"), text);
    assert_eq!(lab.shown(), text);
    let guarded = guarded(&lab, "chat.ada");
    assert_eq!(guarded.len(), 1);
    assert_eq!((guarded[0].text.to_text(), guarded[0].windows), (text, 5));
    assert_eq!(guarded[0].hooks.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["guard/0"]);
    assert!(guarded[0].words.is_empty());
    assert_eq!(lab.findings(), Vec::new());
    let verdict = lab.replay("chat.ada");
    assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
    lab.stop().await;
}

#[tokio::test]
async fn what_is_stopped_reaches_nobody_wherever_the_provider_cut_it() {
    let text = around("the forbidden word");
    let mut seen = Vec::new();
    for size in [1, 3, 64, 5_000] {
        let (screen, shown) = (Screen::default(), Arc::default());
        let writer = Writer::new().writes(pieces(&text, size));
        let lab = built(writer, &screen).extension(against("forbidden", block(), &shown)).start().await;
        assert_eq!(ask(&lab, &screen).await, "This was blocked: that is not said");
        for shown in [screen.text("ada"), lab.shown()] {
            assert!(text.starts_with(&shown) && !shown.contains("forbid"), "{shown}");
            assert!(!shown.contains("so on"), "nothing that came later was shown: {shown}");
        }
        assert_eq!(screen.text("ada"), lab.shown());
        assert_eq!(outcome(&lab, "chat.ada"), TurnOutcome::Blocked { reason: "that is not said".to_owned() });
        let guarded = guarded(&lab, "chat.ada");
        assert_eq!(guarded[0].objection().as_deref(), Some("that is not said"));
        assert!(guarded[0].text.to_text().contains("the forbidden word"), "what was stopped is on record");
        assert_eq!(lab.findings(), Vec::new());
        assert!(lab.replay("chat.ada").identical);
        seen.push((screen.text("ada"), shown.lock().unwrap().clone()));
        lab.stop().await;
    }
    assert!(seen.iter().all(|it| *it == seen[0]), "the same was judged and shown each time");
}

#[tokio::test]
async fn what_is_split_over_a_border_is_seen_whole_and_none_of_it_is_shown() {
    // The first window ends between the two words.
    let text = format!("{}launch codes {}", "all is well ".repeat(16), "and so on ".repeat(40));
    assert_eq!(text.find("codes"), Some(199), "the border is after the space before it");
    let (screen, shown) = (Screen::default(), Arc::default());
    let lab = built(Writer::new().writes(pieces(&text, 11)), &screen);
    let lab = lab.extension(against("launch codes", block(), &shown)).start().await;
    ask(&lab, &screen).await;
    assert!(!screen.text("ada").contains("launch"), "{}", screen.text("ada"));
    assert!(!lab.shown().contains("launch"));
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_guardrail_that_is_no_good_lets_nothing_through() {
    let panics = || hook(HookSpec::at(HookPoint::GuardChunk), |_| panic!("broken"));
    let senseless = || {
        hook(HookSpec::at(HookPoint::GuardChunk), |_| Decision::Replace {
            content: Content::text("nice words"),
        })
    };
    let cases = [
        ("panicked", NativeExtension::new("guard", "1.0.0").hook(panics())),
        ("no answer to GuardChunk", NativeExtension::new("guard", "1.0.0").hook(senseless())),
        (
            "out of order",
            NativeExtension::new("guard", "1.0.0").hook(failing_hook(HookPoint::GuardChunk, "out of order")),
        ),
        (
            "no answer within 700 ms",
            NativeExtension::new("guard", "1.0.0").hook(hanging_hook(HookPoint::GuardChunk, Millis(700))),
        ),
    ];
    for (why, guard) in cases {
        let screen = Screen::default();
        let writer = Writer::new().writes(pieces(&around("nothing"), 50));
        let lab = built(writer, &screen).extension(guard).start().await;
        let end = ask(&lab, &screen).await;
        assert!(end.starts_with("This was blocked: ") && end.contains(why), "{end}");
        assert_eq!((screen.text("ada"), lab.shown()), (String::new(), String::new()));
        assert!(matches!(outcome(&lab, "chat.ada"), TurnOutcome::Blocked { reason } if reason.contains(why)));
        assert_eq!(lab.findings(), Vec::new());
        assert!(lab.replay("chat.ada").identical);
        lab.stop().await;
    }
}

#[tokio::test]
async fn the_worst_of_several_wins_and_all_are_heard() {
    let (screen, shown) = (Screen::default(), Arc::default());
    let flag = Decision::Flag { reason: "mind the word".to_owned() };
    let mild =
        NativeExtension::new("mild", "1.0.0").replayable().hook(hook(HookSpec::at(HookPoint::GuardChunk), {
            let flag = flag.clone();
            move |input| {
                if input.subject.as_ref().unwrap().to_text().contains("forbidden") {
                    flag.clone()
                } else {
                    Decision::Allow
                }
            }
        }));
    let writer = Writer::new().writes(pieces(&around("the forbidden word"), 20));
    let lab =
        built(writer, &screen).extension(against("forbidden", block(), &shown)).extension(mild).start().await;
    assert_eq!(ask(&lab, &screen).await, "This was blocked: that is not said");
    let guarded = guarded(&lab, "chat.ada");
    let reasons: Vec<_> =
        guarded[0].reasons().iter().map(|it| format!("{}: {}", it.hook, it.reason)).collect();
    assert_eq!(reasons, ["guard/0: that is not said", "mild/0: mind the word"]);
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_remark_is_recorded_and_the_text_goes_on() {
    let (screen, shown) = (Screen::default(), Arc::default());
    let text = around("a curious word");
    let flag = Decision::Flag { reason: "mind the word".to_owned() };
    let lab = built(Writer::new().writes(pieces(&text, 9)), &screen);
    let lab = lab.extension(against("curious", flag, &shown)).start().await;
    assert_eq!(ask(&lab, &screen).await, text);
    assert_eq!(screen.text("ada"), text);
    assert_eq!(guarded(&lab, "chat.ada")[0].reasons()[0].reason, "mind the word");
    let verdict =
        lab.frames_of("chat.ada").into_iter().find(|it| it.envelope.kind.as_str() == "guard.verdict");
    assert_eq!(verdict.unwrap().body.unwrap()["blocked"], false);
    lab.stop().await;
}

#[tokio::test]
async fn a_text_that_breaks_off_is_judged_as_far_as_it_was_shown() {
    let (screen, shown) = (Screen::default(), Arc::default());
    let half: String = around("nothing").chars().take(500).collect();
    let broken = Writer::new().writes(pieces(&half, 30)).breaks_off();
    let whole = Writer::new().writes(["short and good"]);
    let lab = built(broken, &screen)
        .model("second", whole)
        .settings(|settings| settings.models.push("second".into()))
        .extension(against("forbidden", block(), &shown))
        .start()
        .await;
    assert_eq!(ask(&lab, &screen).await, "short and good");
    let guarded = guarded(&lab, "chat.ada");
    assert_eq!(guarded.iter().map(|it| it.windows).collect::<Vec<_>>(), [2, 1]);
    assert!(half.starts_with(&guarded[0].text.to_text()));
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn what_a_model_returns_and_did_not_write_is_judged_as_well() {
    for (written, returned) in
        [("", "the forbidden word"), ("all is well", "the forbidden word"), ("the ", "the forbidden word")]
    {
        let (screen, shown) = (Screen::default(), Arc::default());
        let writer = Writer::new().writes([written]).returns(returned);
        let lab = built(writer, &screen).extension(against("forbidden", block(), &shown)).start().await;
        assert_eq!(ask(&lab, &screen).await, "This was blocked: that is not said");
        assert!(!lab.shown().contains("forbidden"));
        assert_eq!(lab.findings(), Vec::new());
        assert!(lab.replay("chat.ada").identical, "{written} / {returned}");
        lab.stop().await;
    }
    let (screen, shown) = (Screen::default(), Arc::default());
    let writer = Writer::new().writes(["All is well"]).returns("all is very well");
    let lab = built(writer, &screen).extension(against("forbidden", block(), &shown)).start().await;
    assert_eq!(ask(&lab, &screen).await, "all is very well");
    assert_eq!(guarded(&lab, "chat.ada").len(), 2);
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_guardrail_that_says_something_else_now_is_found_by_a_replay() {
    let (screen, shown) = (Screen::default(), Arc::default());
    let writer = || Writer::new().writes(pieces(&around("a word"), 9));
    let lab = built(writer(), &screen).extension(against("forbidden", block(), &shown)).start().await;
    ask(&lab, &screen).await;
    lab.runtime.store().flush().unwrap();
    let other = built(writer(), &screen).extension(against("a word", block(), &shown)).lanes();
    let verdict = replay(lab.runtime.store(), &"chat.ada".into(), Mode::Strict, &other).unwrap();
    assert_eq!(verdict.divergence.unwrap().kind.as_str(), "stream.guarded");
    lab.stop().await;
}

#[tokio::test]
async fn nothing_is_recorded_where_nobody_judges() {
    let screen = Screen::default();
    let lab = built(Writer::new().writes(["short ", "words"]), &screen).start().await;
    ask(&lab, &screen).await;
    assert!(guarded(&lab, "chat.ada").is_empty());
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_judges_what_is_streamed_and_a_replay_runs_it_again() {
    let text = around("the forbidden word");
    for (does, why) in [
        (Objects::Blocks, Some("a word that is not said")),
        (Objects::Traps, Some("")),
        (Objects::Loops, Some("")),
        (Objects::Flags, None),
    ] {
        let vault = Arc::new(MapVault::default());
        let component = chunk_guard("forbidden", &does);
        let found = vault.add(&manifest("guard", ""), component, &SandboxOptions::small());
        let screen = Screen::default();
        let writer = Writer::new().writes(pieces(&text, 13));
        let lab = built(writer, &screen).lane(lane(&vault), [found]).start().await;
        let end = ask(&lab, &screen).await;
        match why {
            Some(why) => {
                assert!(end.starts_with("This was blocked: ") && end.contains(why), "{end}");
                for shown in [screen.text("ada"), lab.shown()] {
                    assert!(text.starts_with(&shown) && !shown.contains("forbid"), "{shown}");
                }
                assert!(!screen.text("ada").is_empty(), "what came before was shown");
            }
            None => assert_eq!((end, screen.text("ada")), (text.clone(), text.clone())),
        }
        assert_eq!(guarded(&lab, "chat.ada")[0].reasons().len(), 1);
        assert_eq!(lab.findings(), Vec::new());
        let verdict = lab.replay("chat.ada");
        assert!(verdict.identical && !verdict.mocked.contains(&"guard".into()), "{verdict:#?}");
        lab.stop().await;
    }
}
