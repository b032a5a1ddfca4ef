//! What a person sees in the terminal, another client can do too: the chat and the owner's commands have nothing but the protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_chat_and_the_owners_commands_do_not_open_the_store() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![root.join("chat.rs"), root.join("client.rs"), root.join("commands/owner.rs")];
    for folder in ["chat", "client", "commands/owner"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 20, "{files:?}");
    let opens = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("holdfast_store");
    let users: Vec<&PathBuf> = files.iter().filter(|path| opens(path)).collect();
    assert!(users.is_empty(), "these use the store: {users:?}");
}
