//! Where a notice that names no channel goes: to where the user was last active, else to the default channel, else it waits.

use holdfast_bus::{Clock, NewEvent};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;
use holdfast_home::Channels;
use holdfast_lane_native::NativeExtension;
use holdfast_policy::{Document, OwnerIdentity, Policy, Profile};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use crate::fixtures::{Mailbox, bus_story, later, later_by};

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

async fn wait(lab: &Lab, count: usize) {
    later(lab, "so many waiting notices", |lab| {
        let story = bus_story(&lab.runtime);
        story.iter().filter(|line| *line == "event.published system.user.terminal").count() == count
    })
    .await;
}

#[tokio::test]
async fn a_notice_that_reaches_nobody_delays_none_for_another_place() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let lab = lab(&phone, &desk).start().await;
    // Nobody is known on the desk, and nobody ever will be; the others come after it.
    notifies(&lab, json!({ "text": "fog", "channel_id": "desk" })).await;
    wait(&lab, 1).await;
    notifies(&lab, json!({ "text": "rain" })).await;
    notifies(&lab, json!({ "text": "snow", "channel_id": "phone" })).await;
    wait(&lab, 3).await;
    says(&lab, "phone", "ada").await;
    has(&lab, &phone, "ada: rain").await;
    has(&lab, &phone, "ada: snow").await;
    assert_eq!(desk.all(), Vec::<String>::new());
    lab.stop().await;
}

#[tokio::test]
async fn a_notice_that_reaches_nobody_for_months_is_no_dead_letter() {
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    let lab = lab(&phone, &desk).start().await;
    notifies(&lab, json!({ "text": "fog", "channel_id": "desk" })).await;
    wait(&lab, 1).await;
    notifies(&lab, json!({ "text": "sun", "channel_id": "desk" })).await;
    wait(&lab, 2).await;
    let terminal = |lab: &Lab| {
        let status = lab.runtime.bus().status();
        status.subscribers.into_iter().find(|it| &*it.name == "router.terminal").unwrap()
    };
    // Each attempt waits for a day, and another follows. The status says why.
    let began = lab.clock.now();
    later_by(&lab, Millis(86_400_000), "three months without anybody", |lab| {
        lab.clock.now().since(began) >= Millis(90 * 86_400_000) && terminal(lab).fault.is_some()
    })
    .await;
    let status = terminal(&lab);
    assert_eq!((status.open, status.dead), (2, 0));
    let why =
        "nobody could be reached for a day: no user is known on `desk` yet, and it has no `send-message`";
    assert_eq!(status.fault.unwrap().message, why);
    let story = bus_story(&lab.runtime);
    assert!(!story.iter().any(|line| line.starts_with("event.dead")), "{story:?}");
    says(&lab, "desk", "lovelace").await;
    has(&lab, &desk, "lovelace: sun").await;
    let told: Vec<String> = desk.all().into_iter().filter(|text| !text.ends_with("Hello.")).collect();
    assert_eq!(told, ["lovelace: fog", "lovelace: sun"], "each once, and in order");
    lab.stop().await;
}

#[tokio::test]
async fn a_stuck_channel_holds_up_no_other() {
    // More users than messages that are on their way at once.
    const USERS: usize = 300;
    let (phone, desk) = (Mailbox { silent: true, ..Mailbox::default() }, Mailbox::default());
    let lab = lab(&phone, &desk).start().await;
    let notice = |user: usize| {
        let notice = json!({ "text": "fog", "channel_id": "phone", "user_id": format!("user{user}") });
        NewEvent::new("system.user.notify", notice)
    };
    lab.runtime.bus().publish_many((0..USERS).map(notice).collect()).await.unwrap();
    let open = |lab: &Lab, name: &str| {
        let status = lab.runtime.bus().status();
        status.subscribers.iter().find(|it| &*it.name == name).map(|it| it.open)
    };
    lab.until("a channel that takes no more", |lab| {
        phone.all().len() == 256 && open(lab, "router.deliveries/phone") == Some(USERS)
    })
    .await;
    notifies(&lab, json!({ "text": "sun", "channel_id": "desk", "user_id": "ada" })).await;
    // No time passes: the deadline of what is stuck frees nothing.
    lab.until("the other channel's notice", |_| desk.all() == ["ada: sun"]).await;
    assert_eq!(phone.all().len(), 256);
    assert_eq!(open(&lab, "router.deliveries"), Some(0));
}

#[tokio::test]
async fn a_flooded_channel_refuses_its_own_messages_and_no_others() {
    const LIMIT: usize = 10_000;
    let (phone, desk) = (Mailbox::default(), Mailbox::default());
    // The first turn never ends, and the messages behind it wait.
    let scripted = [ScriptStep::Hangs];
    let lab = Lab::build()
        .script(scripted)
        .extension(NativeExtension::new("phone", "1.0.0").channel(phone.clone()))
        .extension(NativeExtension::new("desk", "1.0.0").channel(desk.clone()))
        .start()
        .await;
    let said = |channel: &str, number: usize| {
        let said = json!({ "text": number.to_string(), "user_id": "ada", "channel_id": channel });
        NewEvent::new("user.message", said).key(channel)
    };
    for thousand in 0..LIMIT / 1_000 {
        let some = (0..1_000).map(|number| said("phone", thousand * 1_000 + number));
        lab.runtime.bus().publish_many(some.collect()).await.unwrap();
    }
    let refused = lab.runtime.publish(said("phone", LIMIT)).await.unwrap_err();
    assert_eq!(refused.code, Code::SubscriberBehind);
    assert!(refused.what.contains("`router.messages/phone` has 10000 events waiting"), "{refused}");
    lab.runtime.publish(said("desk", 1)).await.unwrap();
}
