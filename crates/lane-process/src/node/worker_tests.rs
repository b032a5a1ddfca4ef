//! The files of the worker.

use std::fs;
use std::path::{Path, PathBuf};

use super::worker::{FILES, NodeWorker, digest, standin_name};

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

#[test]
fn every_file_of_the_worker_is_in_the_program() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/node/holdfast_worker");
    let mut there = Vec::new();
    files(&source, &mut there);
    let mut there: Vec<_> =
        there.iter().map(|path| path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned()).collect();
    there.sort();
    let mut listed: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(listed, there);
}

#[test]
fn the_worker_is_laid_out_where_a_stale_one_lies() {
    let folder = tempfile::tempdir().unwrap();
    let first = NodeWorker::lay_out(folder.path()).unwrap();
    fs::write(first.main(), "stale").unwrap();
    let second = NodeWorker::lay_out(folder.path()).unwrap();
    assert_ne!(fs::read_to_string(second.main()).unwrap(), "stale");
    assert!(second.peers().is_file() && second.standin().join("package.json").is_file());
    assert!(!standin_name().is_empty());
    assert_eq!(digest(), digest());
}
