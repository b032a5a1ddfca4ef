//! The worker's files are compiled when the third worker starts.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::python::interpreter::Interpreter;
use crate::python::worker::{COMPILE_THRESHOLD, Worker};

#[tokio::test]
async fn the_worker_is_compiled_from_the_third_start_on() {
    let place = tempfile::tempdir().unwrap();
    let report = holdfast_sandbox::report();
    let path = std::env::var_os("PATH");
    let python = Interpreter::find(path.as_deref(), &[], place.path(), &report).unwrap().interpreter;
    let worker = Worker::lay_out(place.path(), &python, &report, &None).unwrap();
    let compiled = worker.folder.join("holdfast_worker/__pycache__");
    for _ in 1..COMPILE_THRESHOLD {
        worker.count_start();
    }
    // A compiler that was started is a process by now, or has ended and left its files.
    assert!(!is_compiling(&worker.folder) && !compiled.exists(), "not compiled for one or two");
    worker.count_start();
    let all = || std::fs::read_dir(&compiled).map_or(0, Iterator::count) >= 14;
    let deadline = Instant::now() + Duration::from_secs(120);
    while !all() {
        assert!(Instant::now() < deadline, "the worker was not compiled");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process has this folder among its arguments.
fn is_compiling(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(folder))
}
