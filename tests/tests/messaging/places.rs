//! Where a notice that names no channel goes: to where the user was last active, else to the default channel, else it waits.

use holdfast_bus::NewEvent;
use holdfast_home::Channels;
use holdfast_lane_native::NativeExtension;
use holdfast_policy::{Document, OwnerIdentity, Policy, Profile};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use crate::fixtures::{Mailbox, bus_story, later};

fn lab(phone: &Mailbox, desk: &Mailbox) -> LabBuilder {
    let phone = NativeExtension::new("phone", "1.0.0").channel(phone.clone());
    let desk = NativeExtension::new("desk", "1.0.0").channel(desk.clone());
    let answers = (0..8).map(|_| ScriptStep::says("Hello."));
    Lab::build().script(answers).extension(phone).extension(desk)
}

async fn says(lab: &Lab, channel: &str, user: &str) {
    let said = json!({ "text": "hello", "user_id": user, "channel_id": channel });
    lab.runtime.publish(NewEvent::new("user.message", said)).await.unwrap();
}

async fn notifies(lab: &Lab, notice: serde_json::Value) {
    lab.runtime.publish(NewEvent::new("system.user.notify", notice)).await.unwrap();
}

async fn has(lab: &Lab, mailbox: &Mailbox, text: &str) {
    later(lab, text, |_| mailbox.all().iter().any(|sent| sent == text)).await;
}

fn has_no_trouble(lab: &Lab) -> bool {
    lab.runtime.bus().status().subscribers.iter().all(|it| it.fault.is_none() && it.dead == 0)
}

#[tokio::test]
async fn a_notice_follows_the_user_from_channel_to_channel_and_across_a_restart() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let set = Channels { default: Some("desk".into()), ..Channels::default() };
    let first = lab(&phone, &desk).channels(set.clone()).start().await;
    says(&first, "phone", "ada").await;
    has(&first, &phone, "ada: Hello.").await;
    notifies(&first, json!({ "text": "rain" })).await;
    has(&first, &phone, "ada: rain").await;
    says(&first, "desk", "lovelace").await;
    has(&first, &desk, "lovelace: Hello.").await;
    notifies(&first, json!({ "text": "snow" })).await;
    has(&first, &desk, "lovelace: snow").await;
    // A user who is named is found where they were active.
    notifies(&first, json!({ "text": "hail", "user_id": "ada" })).await;
    has(&first, &phone, "ada: hail").await;
    assert!(has_no_trouble(&first));
    let path = first.path().to_owned();
    let directory = first.stop().await;

    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let second = lab(&phone, &desk).on(&path, Default::default()).start().await;
    notifies(&second, json!({ "text": "sun" })).await;
    has(&second, &desk, "lovelace: sun").await;
    assert_eq!(phone.all(), Vec::<String>::new());
    second.stop().await;
    drop(directory);
}

#[tokio::test]
async fn a_notice_waits_until_somebody_is_there_and_is_no_dead_letter() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let lab = lab(&phone, &desk).start().await;
    // Nobody has written yet, there are two channels and no default one; and one that is named knows nobody.
    notifies(&lab, json!({ "text": "rain" })).await;
    notifies(&lab, json!({ "text": "fog", "channel_id": "desk" })).await;
    let waits = |lab: &Lab| {
        let story = bus_story(&lab.runtime);
        story.iter().filter(|line| *line == "event.published system.user.terminal").count() == 2
    };
    later(&lab, "two waiting notices", waits).await;
    says(&lab, "phone", "ada").await;
    has(&lab, &phone, "ada: rain").await;
    assert_eq!(desk.all(), Vec::<String>::new());
    says(&lab, "desk", "lovelace").await;
    has(&lab, &desk, "lovelace: fog").await;
    assert!(has_no_trouble(&lab));
    let sent = [phone.all(), desk.all()].concat();
    assert_eq!(
        sent.iter().filter(|text| text.ends_with("rain") || text.ends_with("fog")).count(),
        2,
        "{sent:?}"
    );
    lab.stop().await;
}

#[tokio::test]
async fn where_owners_are_named_nobody_else_is_told() {
    let (phone, desk) = (Mailbox::default(), Mailbox { proactive: true, ..Mailbox::default() });
    let owners = vec![OwnerIdentity { channel: "phone".into(), user: "ada".to_owned() }];
    let policy = Policy::new(Document { owners, ..Document::of(Profile::FullAuto) }).unwrap();
    let lab = lab(&phone, &desk).policy(policy).start().await;
    says(&lab, "phone", "ada").await;
    has(&lab, &phone, "ada: Hello.").await;
    says(&lab, "phone", "mallory").await;
    has(&lab, &phone, "mallory: Hello.").await;
    says(&lab, "desk", "mallory").await;
    has(&lab, &desk, "mallory: Hello.").await;
    notifies(&lab, json!({ "text": "rain" })).await;
    has(&lab, &phone, "ada: rain").await;
    assert!(has_no_trouble(&lab));
    lab.stop().await;
}

#[tokio::test]
async fn the_default_channel_tells_nobody_but_the_owner() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let owners = vec![OwnerIdentity { channel: "phone".into(), user: "ada".to_owned() }];
    let policy = Policy::new(Document { owners, ..Document::of(Profile::FullAuto) }).unwrap();
    let set = Channels { default: Some("desk".into()), ..Channels::default() };
    let lab = lab(&phone, &desk).policy(policy).channels(set).start().await;
    says(&lab, "desk", "mallory").await;
    has(&lab, &desk, "mallory: Hello.").await;
    notifies(&lab, json!({ "text": "rain" })).await;
    let waits = "event.published system.user.terminal".to_owned();
    later(&lab, "the waiting notice", |lab| bus_story(&lab.runtime).contains(&waits)).await;
    says(&lab, "phone", "ada").await;
    has(&lab, &phone, "ada: rain").await;
    assert_eq!(desk.all(), ["mallory: Hello."]);
    lab.stop().await;
}
