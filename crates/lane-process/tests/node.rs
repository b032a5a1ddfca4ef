//! The Node worker's own tests, which are in JavaScript: `tests/node/`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_worker_passes_its_tests() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(here.join("tests/node")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let tests: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    assert!(!tests.is_empty());
    let mut command = Command::new("/usr/bin/env");
    command.args(["node", "--test"]).args(&tests);
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
}
