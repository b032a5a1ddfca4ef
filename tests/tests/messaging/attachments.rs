//! Files that go with what is said: recorded once, shown to the model in every turn, there after a restart.

use std::sync::{Arc, Mutex};

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::hook::Artifact;
use holdfast_contract::message::Message;
use holdfast_contract::problem::Code;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_lane_native::NativeExtension;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_store::StoreOptions;
use holdfast_testkit::pieces::echo;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::json;

use crate::fixtures::Mailbox;

/// The files that each request had.
type Seen = Arc<Mutex<Vec<Vec<(String, u64)>>>>;

/// A model that keeps which files each request had, by name and size.
struct Seeing(Script, Seen);

impl Model for Seeing {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let files = ask.messages.iter().flat_map(|message| match message {
            Message::User { attachments, .. } => attachments.as_slice(),
            _ => &[],
        });
        self.1.lock().unwrap().push(files.map(|file| (file.name.clone(), file.size())).collect());
        self.0.complete(ask, deltas)
    }
}

fn picture(name: &str) -> Artifact {
    let content = Content::new(json!({ "base64": "iVBORw0K".repeat(1_000) }));
    Artifact { name: name.to_owned(), media_type: "image/png".to_owned(), content }
}

#[tokio::test]
async fn files_are_recorded_and_seen_also_after_a_restart() {
    let seen: Seen = Arc::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let model = |answer: &str| {
        Seeing(Script::new([ScriptStep::says(answer), ScriptStep::says("again")]), seen.clone())
    };
    let kit = || NativeExtension::new("kit", "1.0.0").tool(echo());
    let lab = Lab::build()
        .model("script", model("a cat"))
        .extension(kit())
        .on(&path, StoreOptions::default())
        .start()
        .await;
    lab.session().say_with("test", "what is this?", vec![picture("cat.png")]).await.unwrap();
    lab.session().say_with("test", "and this?", vec![picture("same.png")]).await.unwrap();
    let received = bodies(&lab.frames(), FrameKind::InputReceived);
    let (first, second) = (&received[0]["attachments"][0], &received[1]["attachments"][0]);
    assert_eq!((&first["name"], &first["media_type"]), (&json!("cat.png"), &json!("image/png")));
    assert_eq!(first["content"], second["content"], "the same bytes are kept once, and named twice");
    assert!(first["content"].to_string().len() < 200, "what is large is kept apart: {first}");
    assert!(lab.replay("s1").identical);
    lab.stop().await;

    let lab = Lab::build()
        .model("script", model("still a cat"))
        .extension(kit())
        .on(&path, StoreOptions::default())
        .start()
        .await;
    lab.say("what was it?").await;
    let size = 6_000;
    let (cat, same) = (("cat.png".to_owned(), size), ("same.png".to_owned(), size));
    let both = vec![cat.clone(), same];
    assert_eq!(*seen.lock().unwrap(), [vec![cat], both.clone(), both]);
    assert!(lab.replay("s1").identical);
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_attached_is_refused_before_anything_is_said() {
    let lab = Lab::build().script([ScriptStep::says("hello")]).start().await;
    let broken =
        Artifact { content: Content::new(json!({ "url": "file:///etc/passwd" })), ..picture("x.png") };
    let refused = lab.session().say_with("test", "look", vec![broken]).await.unwrap_err();
    assert_eq!(refused.code, Code::AttachmentInvalid);
    assert!(bodies(&lab.frames(), FrameKind::InputReceived).is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_brings_files_with_a_message() {
    let seen: Seen = Arc::default();
    let mailbox = Mailbox::default();
    let model = Seeing(Script::new([ScriptStep::says("a cat")]), seen.clone());
    let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
    let lab = Lab::build().model("script", model).extension(chat).start().await;
    let message = |bytes: &str| {
        let file = json!({ "name": "cat.png", "media_type": "image/png", "base64": bytes });
        let said =
            json!({ "text": "what is this?", "user_id": "ada", "channel_id": "chat", "attachments": [file] });
        NewEvent::new("user.message", said)
    };
    let refused = lab.runtime.publish(message("?")).await.unwrap_err();
    assert_eq!(refused.code, Code::AttachmentInvalid);
    lab.runtime.publish(message("iVBORw0K")).await.unwrap();
    lab.until("the answer", |_| !mailbox.all().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [[("cat.png".to_owned(), 6)]]);
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}
