//! The Python worker's own tests, which are in Python: `tests/python/`.

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
    let worker = here.join("src/python");
    let mut command = Command::new("/usr/bin/env");
    command.args(["python3", "-B", "-m", "unittest", "discover", "-s"]).arg(here.join("tests/python"));
    let ran = command.env("PYTHONPATH", &worker).env("WORKER", &worker).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
