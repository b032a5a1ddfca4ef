//! The worker's files are compiled for the third and those after it, by the machine's own Python.

use std::time::Duration;

use crate::python::interpreter::Interpreter;
use crate::python::worker::{SEVERAL, Worker};

#[tokio::test]
async fn it_is_compiled_where_several_run() {
    let place = tempfile::tempdir().unwrap();
    let python = Interpreter::find().await.unwrap().executable;
    let worker = Worker::lay_out(place.path(), &python).unwrap();
    let compiled = worker.folder.join("holdfast_worker/__pycache__");
    for _ in 1..SEVERAL {
        worker.one_more();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!compiled.exists(), "one or two do without");
    worker.one_more();
    let all = || std::fs::read_dir(&compiled).map_or(0, Iterator::count) >= 14;
    for _ in 0..3_000 {
        if all() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is not compiled");
}
