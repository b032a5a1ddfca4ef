//! A component as a subscriber and as a channel.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::manifest::{Grants, Handler};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_lane_native::Extension;
use holdfast_testkit::wasm::{MapVault, lane, manifest, radio};
use holdfast_testkit::{Lab, Step};
use serde_json::json;

use crate::pieces::Takes;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_takes_events_and_delivers_messages() {
    let vault = Arc::new(MapVault::default());
    let subscribes = "events: { subscribes: [{ topic: shop.sold, handler: custom }] }\n";
    let grants = Grants { interfaces: vec!["events".to_owned()], ..Grants::default() };
    let options = SandboxOptions::small();
    let found = vault.add_granted(&manifest("radio", subscribes), radio(), &options, grants);
    let takes = Takes::default();
    let probe = Extension::new("probe", "1.0.0")
        .subscribes("heard", Handler::Custom)
        .subscribes("sent", Handler::Custom)
        .subscriber(takes.clone());
    let lab = Lab::build()
        .script([Step::says("good evening")])
        .extension(probe)
        .lane(lane(&vault), [found])
        .start()
        .await;

    lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": 1 }))).await.unwrap();
    lab.until("the event", |_| takes.all().len() == 1).await;
    assert_eq!((&takes.all()[0]["topic"], &takes.all()[0]["payload"]), (&json!("heard"), &json!({ "n": 1 })));

    let message = json!({ "text": "hello", "user_id": 7, "channel_id": "radio" });
    lab.runtime.publish(NewEvent::new("user.message", message)).await.unwrap();
    lab.until("the answer", |_| takes.all().len() == 2).await;
    assert_eq!(takes.all()[1]["payload"], "good evening");
    assert!(!lab.frames_of("radio.7").is_empty());
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}
