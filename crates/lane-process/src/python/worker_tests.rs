//! The worker's files are compiled when the third worker starts.

use std::time::Duration;

use crate::python::interpreter::Interpreter;
use crate::python::worker::{COMPILE_THRESHOLD, Worker};

#[tokio::test]
async fn the_worker_is_compiled_from_the_third_start_on() {
    let place = tempfile::tempdir().unwrap();
    let python = Interpreter::find().await.unwrap().executable;
    let worker = Worker::lay_out(place.path(), &python).unwrap();
    let compiled = worker.folder.join("holdfast_worker/__pycache__");
    for _ in 1..COMPILE_THRESHOLD {
        worker.count_start();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!compiled.exists(), "not compiled for one or two");
    worker.count_start();
    let all = || std::fs::read_dir(&compiled).map_or(0, Iterator::count) >= 14;
    for _ in 0..3_000 {
        if all() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the worker was not compiled");
}
