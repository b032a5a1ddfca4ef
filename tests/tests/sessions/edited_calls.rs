//! What a model is told of a call whose arguments the user changed.

use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Message;
use holdfast_contract::session_frames::{Answer, ApprovalScope, ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_lane_native::NativeExtension;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_testkit::pieces::write;
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::json;

/// A script that keeps what it is shown of results.
struct Recording(Script, Arc<Mutex<Vec<Option<Content>>>>);

impl Model for Recording {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let edits = ask.messages.iter().filter_map(|message| match message {
            Message::Tool { edited, .. } => Some(edited.clone()),
            _ => None,
        });
        *self.1.lock().unwrap() = edits.collect();
        self.0.complete(ask, deltas)
    }
}

// Finding B7.
#[tokio::test]
async fn the_model_is_told_the_arguments_that_the_user_put_in_place_of_its_own() {
    let own = || Content::new(json!({ "to": "eve" }));
    let edit = |to: &str| Answer::Edit { arguments: Content::new(json!({ "to": to })) };
    let cases = [
        ("edited", edit("bob"), Some(json!({ "to": "bob" }))),
        ("edited to the same", Answer::Edit { arguments: own() }, None),
        ("approved", Answer::Approve { scope: ApprovalScope::Once }, None),
        ("denied", Answer::Deny { reason: "no".to_owned() }, None),
    ];
    for (what, answer, told) in cases {
        let received = Arc::default();
        let steps = [ScriptStep::calls([("write", json!({ "to": "eve" }))]), ScriptStep::says("done")];
        let lab = Lab::build()
            .profile(Profile::Standard)
            .model("script", Recording(Script::new(steps), Arc::clone(&received)))
            .extension(NativeExtension::new("kit", "1.0.0").tool(write()))
            .start()
            .await;
        let turn = lab.begin("send it");
        let asked = lab.approval().await;
        lab.session().approve(asked.approval, answer).await.unwrap();
        turn.await.unwrap();
        assert_eq!(*received.lock().unwrap(), [told.map(Content::new)], "{what}");
        assert!(lab.replay("s1").identical, "{what}");
        lab.stop().await;
    }
}

/// A model whose prices nobody knows.
struct Unpriced(Script);

impl Model for Unpriced {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        self.0.complete(ask, deltas)
    }

    fn price_known(&self) -> bool {
        false
    }
}

// Finding F7.
#[tokio::test]
async fn a_model_without_a_price_is_not_asked_where_the_user_limits_money() {
    use holdfast_contract::message::Limits;
    use holdfast_contract::problem::Code;
    use holdfast_contract::session_frames::TurnOutcome;
    use holdfast_policy::{Cap, Caps, Document, Dollars, Policy};
    let dollars = Cap { dollars: Some(Dollars { micros: 1 }), ..Cap::default() };
    let tokens = Cap { tokens: Some(1_000_000), ..Cap::default() };
    let cases = [
        ("nothing is limited", Caps::default(), None, true),
        ("a day's tokens", Caps { day: tokens, ..Caps::default() }, None, true),
        ("a day's money", Caps { day: dollars, ..Caps::default() }, None, false),
        ("a session's money", Caps { session: dollars, ..Caps::default() }, None, false),
        (
            "an extension's money",
            Caps { extensions: [("kit".into(), dollars)].into(), ..Caps::default() },
            None,
            false,
        ),
        ("a turn's money", Caps::default(), Some(5), false),
    ];
    for (what, caps, max_cost_micros, answers) in cases {
        for profile in [Profile::Standard, Profile::FullAuto] {
            let lab = Lab::build()
                .policy(Policy::new(Document { caps: caps.clone(), ..Document::of(profile) }).unwrap())
                .limits(Limits { max_cost_micros, ..Limits::default() })
                .model("script", Unpriced(Script::new([ScriptStep::says("done"), ScriptStep::says("done")])))
                .start()
                .await;
            match lab.say("go").await.outcome {
                TurnOutcome::Answered => {
                    assert!(answers, "{what}, {profile:?}");
                    // The profile's own limit cannot hold, and the user is told so once.
                    lab.say("again").await;
                    let told =
                        lab.progress().iter().filter(|text| text.contains("limit of 20 dollars")).count();
                    assert_eq!(told, usize::from(profile == Profile::FullAuto), "{what}, {profile:?}");
                }
                TurnOutcome::Failed(fault) => {
                    assert!(!answers, "{what}, {profile:?}: {fault}");
                    assert_eq!(fault.code, Code::PriceUnknown, "{what}: {fault}");
                    assert!(fault.code.help().contains("price_in"), "{fault}");
                }
                other => panic!("{what}: {other:?}"),
            }
            lab.stop().await;
        }
    }
}
