//! A model that is a file is named by the owner of the home alone: never by a message, a task or an extension.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use holdfast_bus::NewEvent;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::Code;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::ScriptStep;
use holdfast_testkit::pieces::agent;
use rustix::fs::inotify;
use serde_json::json;

use crate::commands::{lab, nowhere, typed};
use crate::fixtures::Mailbox;

/// Sees which files of a folder are opened.
struct Opened(rustix::fd::OwnedFd);

impl Opened {
    fn of(folder: &Path) -> Self {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, folder, inotify::WatchFlags::OPEN).unwrap();
        Self(watch)
    }

    fn any(&self) -> bool {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        inotify::Reader::new(&self.0, &mut buffer).next().is_ok()
    }
}

#[tokio::test]
async fn a_model_that_is_a_file_is_not_named_by_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    fs::write(path("app.env"), "DB_PASSWORD=hunter2\n").unwrap();
    fs::write(path("script.yaml"), "- says: first of the file\n- says: second of the file\n").unwrap();
    let opened = Opened::of(folder.path());
    let mailbox = Mailbox::default();
    let spy = NativeExtension::new("spy", "1.0.0").agent(agent("spy", &format!("script:{}", path("fifo"))));
    let lab = lab(&mailbox, [ScriptStep::says("one"), ScriptStep::says("two")]).extension(spy).start().await;

    let plain = ["fifo", "app.env", "script.yaml", "missing"].map(path);
    for file in plain.iter().map(String::as_str).chain(["/dev/zero", "/dev/stdin", ""]) {
        for typed_name in [format!("script:{file}"), format!("cassette:{file}"), format!("  script:{file} ")]
        {
            let said = typed(&lab, &mailbox, &format!("/model@bot {typed_name}")).await;
            assert!(said.contains("names a file") && said.contains("--model"), "{typed_name}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    assert_eq!(typed(&lab, &mailbox, "hello").await, "ada: one", "the next message is answered");

    // Nor by the manifest of an extension's agent, which a task asks for.
    let before = mailbox.all().len();
    let task = json!({ "prompt": "look", "agent": "spy", "channel_id": "chat", "user_id": "ada" });
    lab.runtime.publish(NewEvent::new("system.agent.task", task)).await.unwrap();
    lab.until("the task's answer", |_| mailbox.all().len() > before).await;
    let said = mailbox.all().pop().unwrap();
    assert!(said.contains("HF-5013"), "{said}");
    assert!(!opened.any(), "no file was opened");

    // The owner may, and is told what is wrong with a file without what stands in it.
    let chat: StreamId = "chat.ada".into();
    let choose = async |name: &str| lab.runtime.run_command(&chat, "model", name, nowhere).await;
    for refused in ["fifo", "app.env"] {
        let problem = choose(&format!("script:{}", path(refused))).await.unwrap_err();
        assert_eq!(problem.code, Code::ScriptInvalid, "{problem}");
        assert!(!problem.to_string().contains("hunter2"), "{problem}");
    }
    choose(&format!("script:{}", path("script.yaml"))).await.unwrap();
    assert!(opened.any());
    assert_eq!(typed(&lab, &mailbox, "go on").await, "ada: second of the file");
    let model = typed(&lab, &mailbox, "/model").await;
    assert!(model.ends_with("There are: other, script."), "{model}");
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}
