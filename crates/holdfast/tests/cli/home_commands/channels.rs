//! `channels`.

use std::fs;

use super::down_and_up;
use crate::shared::{Owner, Scene, until};

/// A channel that takes the messages in a folder.
const SPOOL: &str = r#"
"""A spool folder."""
import asyncio, os, pathlib

HOME = pathlib.Path.home()


async def connect() -> None:
    (HOME / "connected").touch()


async def recv() -> Message:
    while True:
        for name in sorted(os.listdir(HOME)):
            if name.endswith(".msg"):
                sender, _, text = (HOME / name).read_text().partition(" ")
                (HOME / name).unlink()
                return Message(text=text, sender=sender, channel="spool", metadata={"message_id": name})
        await asyncio.sleep(0.02)


async def send(message: Message) -> None:
    with open(HOME / "sent", "a") as file:
        file.write(message.text + "\n")
"#;

#[test]
fn active_channels_are_listed_with_their_users() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let file = scene.home().join("extensions/channels/spool.py");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, SPOOL).unwrap();
    down_and_up(&scene, |scene| {
        let listed = scene.run(&["channels", "--json"]).ok().lines();
        assert_eq!(listed.len(), 1, "{listed:#?}");
        let spool = &listed[0];
        assert_eq!(
            (&spool["id"], &spool["extension"], &spool["lane"]),
            (&"spool".into(), &"spool".into(), &"python".into())
        );
        assert_eq!((&spool["default"], &spool["files"]), (&true.into(), &false.into()));
        assert_eq!((&spool["users"], &spool["sessions"]), (&0.into(), &0.into()));
        let table = scene.run(&["channels"]).ok();
        assert!(table.out.starts_with("channel") && table.out.contains("generation"), "{table:#?}");
    });
    let folder = scene.home().join("data/spool");
    let _owner = Owner::begin(&scene);
    until("it is connected", || folder.join("connected").exists());
    for user in ["ann", "bob"] {
        fs::write(folder.join(format!(".{user}")), format!("{user} hello")).unwrap();
        fs::rename(folder.join(format!(".{user}")), folder.join(format!("{user}.msg"))).unwrap();
    }
    let counts = || {
        let spool = scene.run(&["channels", "--json"]).ok().json();
        (spool["users"].as_u64(), spool["sessions"].as_u64())
    };
    until("both have a session", || counts() == (Some(2), Some(2)));
}

#[test]
fn a_home_without_channels_says_so() {
    let scene = Scene::new();
    let empty = scene.run(&["channels"]).ok();
    assert!(empty.out.contains("no channels; an extension with the `channel` role"), "{empty:#?}");
    assert_eq!(scene.run(&["channels", "--json"]).ok().out, "");
}
