//! The fuzz targets without a fuzzer: every committed input of `fuzz/corpus/`, and mutations of them that follow from a fixed seed.
//!
//! `HOLDFAST_FUZZ_ROUNDS=100000` makes so many mutations; `just fuzz` does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use holdfast_tests::fuzz::TARGETS;
use holdfast_tests::generated::dice::Dice;
use holdfast_tests::generated::hooks::quiet_planned_panics;

/// What mutations put in: what the formats are made of, and what their parsers look for.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"\0",
    b"null",
    b"true",
    b"-0.0",
    b"1e308",
    b"9007199254740993",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xc3\xa9",
    b"- ",
    b"&a ",
    b"*a",
    b"!!binary ",
    b"<<: ",
    b"%",
    b"\"id\":",
    b"\"method\":",
    b"\"params\":",
    b"host: ",
    b"Host: x\r\n",
    b"content-length: 18446744073709551616",
    b"CONNECT ",
    b"http://",
    b"[::1]",
    b"@",
    b":0",
];

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let inputs: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

/// A change of one place, or a splice of two inputs.
fn mutate(input: &mut Vec<u8>, inputs: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(input.len() as u64 + 1) as usize;
    let end = (at + dice.between(1, 8) as usize).min(input.len());
    match dice.below(6) {
        0 if at < input.len() => input[at] ^= 1 << dice.below(8),
        1 => drop(input.drain(at..end)),
        2 => {
            let piece = input[at..end].to_vec();
            drop(input.splice(at..at, piece));
        }
        3 => input.truncate(at),
        4 => {
            let other = dice.pick(inputs);
            let from = dice.below(other.len() as u64 + 1) as usize;
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => drop(input.splice(at..at, dice.pick(TOKENS).iter().copied())),
    }
}

/// Runs a target with its corpus and so many mutations.
fn run(name: &str, usual: u64) {
    let (_, target) = TARGETS.into_iter().find(|(target, _)| *target == name).unwrap();
    let rounds = std::env::var("HOLDFAST_FUZZ_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap());
    let inputs = inputs(name);
    let mutations = (0..rounds).map(|round| {
        let mut dice = Dice::of(&format!("{name} {round}"));
        let mut input = dice.pick(&inputs);
        for _ in 0..dice.between(1, 4) {
            mutate(&mut input, &inputs, &mut dice);
        }
        input
    });
    let (mut valid, mut all) = (0, 0);
    for input in inputs.iter().cloned().chain(mutations) {
        let checked = catch_unwind(AssertUnwindSafe(|| target(&input)));
        valid += u64::from(checked.unwrap_or_else(|_| panic!("{name} fails with\n{}", input.escape_ascii())));
        all += 1;
    }
    println!("{valid} of {all} inputs were valid");
    assert!(
        valid * 20 >= all,
        "only {valid} of {all} inputs were valid: the oracle had hardly anything to check"
    );
}

#[test]
fn fuzz_canonical_json() {
    run("canonical_json", 2_000);
}

#[test]
fn fuzz_client_protocol() {
    run("client_protocol", 1_000);
}

#[test]
fn fuzz_gateway_head() {
    run("gateway_head", 5_000);
}

#[test]
fn fuzz_manifest() {
    run("manifest", 500);
}

#[test]
fn fuzz_process_protocol() {
    run("process_protocol", 1_000);
}

#[test]
fn fuzz_sessions() {
    quiet_planned_panics();
    run("sessions", 20);
}

/// A new target is a new test here and a new file in `fuzz/fuzz_targets/`.
#[test]
fn every_target_is_run_here_and_by_the_fuzzer() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    for (name, _) in TARGETS {
        assert!(!inputs(name).is_empty(), "{name}");
        assert!(
            include_str!("fuzz_corpus.rs").contains(&format!("run(\"{name}\"")),
            "{name} is not run here"
        );
        let target =
            std::fs::read_to_string(fuzz.join("fuzz_targets").join(name).with_extension("rs")).unwrap();
        assert!(target.contains(&format!("fuzz::{name}(")), "{target}");
    }
}
