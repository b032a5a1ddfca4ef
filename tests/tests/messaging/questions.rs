//! Approvals and questions that reach people: an owner answers with a code on a channel, on another one, or elsewhere; nobody else does.

use holdfast_bus::NewEvent;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::Millis;
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Asking, Mailbox, bus_story, inputs, later, outcomes_of};
use holdfast_policy::{Document, OwnerIdentity, Policy, Profile, Unattended};

fn owner(channel: &str, user: &str) -> OwnerIdentity {
    OwnerIdentity { channel: channel.into(), user: user.to_owned() }
}

fn policy(owners: &[OwnerIdentity], unattended: Unattended) -> Policy {
    let document = Document { owners: owners.to_vec(), unattended, ..Document::of(Profile::Standard) };
    Policy::new(document).unwrap()
}

/// A channel `phone`, where nobody else is there, and a tool that a person is asked about.
fn lab(phone: &Mailbox, policy: Policy, steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    let kit = NativeExtension::new("kit", "1.0.0")
        .tool(tool("wipe", EffectClass::Write, |_| json!("wiped")))
        .tool(Asking("ask", "ui"));
    let phone = NativeExtension::new("phone", "1.0.0").channel(phone.clone());
    Lab::build().script(steps).policy(policy).unattended().extension(phone).extension(kit)
}

fn wipes() -> [ScriptStep; 2] {
    [ScriptStep::calls([("wipe", json!({ "disk": "sda" }))]), ScriptStep::says("It is done.")]
}

async fn says(lab: &Lab, channel: &str, user: &str, text: &str) {
    let said = json!({ "text": text, "user_id": user, "channel_id": channel });
    lab.runtime.publish(NewEvent::new("user.message", said)).await.unwrap();
}

/// The code of the last message of a mailbox that has one.
fn code(mailbox: &Mailbox) -> String {
    let all = mailbox.all();
    let last =
        all.iter().rev().find_map(|text| text.split_once("`yes ")).unwrap_or_else(|| panic!("{all:?}"));
    last.1.chars().take(6).collect()
}

async fn asked(lab: &Lab, mailbox: &Mailbox) -> String {
    lab.until("the question", |_| mailbox.all().iter().any(|text| text.contains("`yes "))).await;
    code(mailbox)
}

/// Everything that the bus has recorded, as text.
fn bus_bodies(lab: &Lab) -> String {
    lab.runtime.store().flush().unwrap();
    let streams = holdfast_bus::streams();
    let frames = streams.flat_map(|stream| lab.runtime.store().frames(&stream, ..).unwrap());
    frames.map(|frame| format!("{:?}\n", lab.runtime.store().body(&frame).unwrap())).collect()
}

fn answers(lab: &Lab, session: &str) -> Vec<(FrameSource, Answer)> {
    let frames = lab.frames_of(session);
    let answered = frames.iter().filter(|frame| frame.envelope.kind == FrameKind::ApprovalAnswered);
    answered
        .map(|frame| match lab.runtime.store().body(frame).unwrap() {
            Body::ApprovalAnswered(body) => (frame.envelope.source.clone(), body.answer),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn an_owner_approves_on_the_channel_with_the_code_and_nobody_else_does() {
    let phone = Mailbox::default();
    let lab = lab(&phone, policy(&[owner("phone", "ada")], Unattended::Deny), wipes()).start().await;
    says(&lab, "phone", "ada", "wipe it").await;
    let code = asked(&lab, &phone).await;
    let question = phone.all().remove(0);
    assert!(
        question.starts_with("ada: ? `wipe` of `kit` wants to run (session phone.ada)\n{\"disk\":\"sda\"}\n"),
        "{question}"
    );
    assert!(!bus_bodies(&lab).contains(&code), "only the channel has the code");
    let frames: String = lab.frames_of("phone.ada").iter().map(|frame| format!("{frame:?}")).collect();
    assert!(!frames.contains(&code));

    // Somebody else says the same words: they are a message of theirs.
    says(&lab, "phone", "mallory", &format!("yes {code}")).await;
    lab.until("an answer for Mallory", |lab| inputs(lab, "phone.mallory").len() == 1).await;
    assert_eq!(answers(&lab, "phone.ada"), []);
    // What does not answer it leaves the question open.
    says(&lab, "phone", "ada", &format!("perhaps {code}")).await;
    lab.until("a remark", |_| phone.all().iter().any(|text| text.contains("does not answer this question")))
        .await;
    assert_eq!(lab.ledger.count("tool phone.ada"), 0);

    says(&lab, "phone", "ada", &format!("Yes {}", code.to_lowercase())).await;
    lab.until("the answer", |_| phone.all().iter().any(|text| text == "ada: It is done.")).await;
    let by = FrameSource::Surface("phone/ada".into());
    assert_eq!(answers(&lab, "phone.ada"), [(by, Answer::Approve { scope: ApprovalScope::Once })]);
    assert_eq!(inputs(&lab, "phone.ada"), ["wipe it"], "an answer is not a message to the agent");
    assert!(phone.all().contains(&"ada: `wipe` was approved.".to_owned()), "{:?}", phone.all());
    // The code counts once.
    says(&lab, "phone", "ada", &format!("yes {code}")).await;
    later(&lab, "a remark", |_| phone.all().iter().any(|text| text.contains("No question waits"))).await;
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("phone.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_question_is_answered_on_another_channel_and_the_first_is_told() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let owners = [owner("phone", "ada"), owner("desk", "lovelace")];
    let second = NativeExtension::new("desk", "1.0.0").channel(desk.clone());
    let lab = lab(&phone, policy(&owners, Unattended::Deny), wipes()).extension(second).start().await;
    says(&lab, "phone", "ada", "wipe it").await;
    let first = asked(&lab, &phone).await;
    says(&lab, "desk", "lovelace", "/questions").await;
    let code = asked(&lab, &desk).await;
    assert_ne!(first, code, "a code is bound to its user");
    says(&lab, "desk", "lovelace", &format!("yes {first}")).await;
    later(&lab, "a remark", |_| desk.all().iter().any(|text| text.contains("No question waits"))).await;
    assert_eq!(answers(&lab, "phone.ada"), []);

    says(&lab, "desk", "lovelace", &format!("no not that disk {code}")).await;
    lab.until("the end", |_| phone.all().iter().any(|text| text == "ada: It is done.")).await;
    lab.until("the remark", |_| phone.all().iter().any(|text| text.contains("answered elsewhere: denied")))
        .await;
    let denied = Answer::Deny { reason: "not that disk".to_owned() };
    assert_eq!(answers(&lab, "phone.ada"), [(FrameSource::Surface("desk/lovelace".into()), denied)]);
    assert!(lab.replay("phone.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn what_others_ask_for_is_denied_or_waits_for_the_owner_as_the_policy_says() {
    let phone = Mailbox::default();
    let owners = [owner("phone", "ada")];
    let denies = lab(&phone, policy(&owners, Unattended::Deny), wipes()).start().await;
    says(&denies, "phone", "bob", "wipe it").await;
    denies.until("the end", |_| phone.all() == ["bob: It is done."]).await;
    let nobody = Answer::Deny { reason: "nobody is there to ask".to_owned() };
    assert_eq!(answers(&denies, "phone.bob"), [(FrameSource::Host, nobody)]);
    denies.stop().await;

    let phone = Mailbox::default();
    let waits = lab(&phone, policy(&owners, Unattended::Wait), wipes()).start().await;
    says(&waits, "phone", "ada", "/cost").await;
    waits.until("an answer", |_| phone.all().len() == 1).await;
    says(&waits, "phone", "bob", "wipe it").await;
    let code = asked(&waits, &phone).await;
    let question = phone.all().remove(1);
    assert!(question.starts_with("ada: ? `wipe` of `kit` wants to run (session phone.bob)"), "{question}");
    says(&waits, "phone", "bob", &format!("yes {code}")).await;
    says(&waits, "phone", "ada", &format!("yes {code}")).await;
    waits.until("the end", |_| phone.all().contains(&"bob: It is done.".to_owned())).await;
    let approved = Answer::Approve { scope: ApprovalScope::Once };
    assert_eq!(answers(&waits, "phone.bob"), [(FrameSource::Surface("phone/ada".into()), approved)]);
    waits.stop().await;
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_denied_after_its_time() {
    let phone = Mailbox::default();
    let mut document = Document::of(Profile::Standard);
    document.owners = vec![owner("phone", "ada")];
    document.answer_within_ms = Some(Millis(600_000));
    let lab = lab(&phone, Policy::new(document).unwrap(), wipes()).start().await;
    says(&lab, "phone", "ada", "wipe it").await;
    let code = asked(&lab, &phone).await;
    later(&lab, "the end", |lab| {
        lab.clock.advance(Millis(30_000));
        phone.all().iter().any(|text| text == "ada: It is done.")
    })
    .await;
    let late = Answer::Deny { reason: "nobody answered in time".to_owned() };
    assert_eq!(answers(&lab, "phone.ada"), [(FrameSource::Host, late)]);
    lab.until("the remark", |_| phone.all().iter().any(|text| text.contains("not answered in time"))).await;
    says(&lab, "phone", "ada", &format!("yes {code}")).await;
    later(&lab, "a remark", |_| phone.all().iter().any(|text| text.contains("No question waits"))).await;
    assert!(lab.replay("phone.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_with_choices_shows_them_and_an_extensions_question_is_answered() {
    let phone = Mailbox { questions: true, ..Mailbox::default() };
    let asks = json!({ "select": { "prompt": "Which colour?", "options": ["red", "dark blue"] } });
    let steps = [ScriptStep::calls([("ask", asks)]), ScriptStep::says("It is done.")];
    // Extensions may ask without an approval here.
    let document = Document { owners: vec![owner("phone", "ada")], ..Document::of(Profile::FullAuto) };
    let lab = lab(&phone, Policy::new(document).unwrap(), steps).start().await;
    says(&lab, "phone", "ada", "paint it").await;
    lab.until("the question", |_| !phone.all().is_empty()).await;
    let question = phone.all().remove(0);
    let (text, choices) = question.split_once(" [").unwrap();
    assert_eq!(text, "ada: ? `kit` asks (session phone.ada):\n> Which colour?");
    assert!(choices.starts_with("red=1 ") && choices.contains(", dark blue=2 "), "{choices}");
    let chosen = choices.split("dark blue=").nth(1).unwrap().trim_end_matches(']');
    says(&lab, "phone", "ada", chosen).await;
    lab.until("the end", |_| phone.all().contains(&"ada: It is done.".to_owned())).await;
    assert_eq!(outcomes_of(&lab, "phone.ada"), [Ok(json!("dark blue"))]);
    assert!(lab.replay("phone.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_secret_is_not_asked_for_on_a_channel() {
    let phone = Mailbox { questions: true, ..Mailbox::default() };
    let steps = [
        ScriptStep::calls([("ask", json!({ "input": { "prompt": "The password?", "secret": true } }))]),
        ScriptStep::says("It is done."),
    ];
    let document = Document { owners: vec![owner("phone", "ada")], ..Document::of(Profile::FullAuto) };
    let lab = lab(&phone, Policy::new(document).unwrap(), steps).start().await;
    says(&lab, "phone", "ada", "log in").await;
    lab.until("the question", |_| !phone.all().is_empty()).await;
    let question = phone.all().remove(0);
    assert!(question.contains("not sent over a channel") && !question.contains("code"), "{question}");
    let waiting = lab.runtime.questions().await.unwrap().remove(0);
    assert!(question.contains(&format!("holdfast questions answer {}", waiting.id())), "{question}");
    let session = lab.runtime.resume(&waiting.session).unwrap();
    session.answer(waiting.request, Some(json!("hunter2").into())).await.unwrap();
    lab.until("the end", |_| phone.all().contains(&"ada: It is done.".to_owned())).await;
    assert!(phone.all().iter().any(|text| text.contains("answered elsewhere")), "{:?}", phone.all());
    assert!(
        phone.all().iter().all(|text| !text.contains("hunter2")) && !bus_bodies(&lab).contains("hunter2")
    );
    lab.stop().await;
}

#[tokio::test]
async fn what_is_typed_in_a_chat_is_a_message_and_one_turn() {
    let phone = Mailbox::default();
    let received = crate::fixtures::Takes::default();
    let listener = NativeExtension::new("listener", "1.0.0")
        .subscribes("user.message", holdfast_contract::manifest::HandlerSpec::Custom)
        .subscriber(received.clone());
    let lab = lab(&phone, policy(&[], Unattended::Deny), [ScriptStep::says("Hello.")])
        .extension(listener)
        .start()
        .await;
    let session = lab.open("s1");
    let said =
        lab.runtime.say_on_surface(session.id(), "chat", "hello".to_owned(), Vec::new()).await.unwrap();
    assert_eq!(said.answer.unwrap().to_text(), "Hello.");
    lab.until("the event", |_| received.all().len() == 1).await;
    let event = received.all().remove(0);
    let payload = json!({ "text": "hello", "user_id": "owner", "channel_id": "chat", "session": "s1" });
    assert_eq!(event["payload"], payload);
    assert_eq!(inputs(&lab, "s1"), ["hello"]);
    let frames = lab.frames_of("s1");
    let received = frames.iter().find(|frame| frame.envelope.kind == FrameKind::InputReceived).unwrap();
    assert_eq!(received.body.as_ref().unwrap()["message_id"], event["id"], "the turn names its event");
    assert!(bus_story(&lab.runtime).contains(&"event.delivered router.messages".to_owned()));
    // What others say of a session is not taken: it is a message on the channel.
    let forged: Value = json!({ "text": "hi", "user_id": "bob", "channel_id": "phone", "session": "s1" });
    lab.runtime.publish(NewEvent::new("user.message", forged)).await.unwrap();
    lab.until("the answer", |_| phone.all() == ["bob: Hello."]).await;
    assert_eq!(inputs(&lab, "s1"), ["hello"]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}
