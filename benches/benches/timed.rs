//! The published figures, measured on this machine: `cargo bench -p holdfast-benches --bench timed`, or with names of
//! measures behind `--`. Times never gate.

use std::error::Error;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use holdfast_benches::workload::{Loop, drafts, lab};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_kernel::Session;
use holdfast_replay::{Mode, replay};
use holdfast_runtime::rebuild::rebuild;
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::history;

type Outcome = Result<(), Box<dyn Error>>;

/// A measure: its name and how it is taken.
type Measure = (&'static str, fn() -> Outcome);

fn main() -> Outcome {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let measures: [Measure; 5] = [
        ("kernel", kernel),
        ("deciding", || [0, 1, 10, 100].into_iter().try_for_each(deciding)),
        ("append", || [1, 32].into_iter().try_for_each(append)),
        ("replay", replayed),
        ("resume", || resume(100_000)),
    ];
    println!("{:<58} {:>12} {:>12}", "figure", "p50", "p99");
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|part| name.contains(part));
    measures.iter().filter(|(name, _)| wanted(name)).try_for_each(|(_, measure)| measure())
}

fn show(name: &str, mut samples: Vec<Duration>) {
    samples.sort();
    let at = |part: usize| samples[(samples.len() - 1) * part / 100];
    println!("{name:<58} {:>12} {:>12}", format!("{:.2?}", at(50)), format!("{:.2?}", at(99)));
}

/// The machine alone: a no-op tool call is four steps.
fn kernel() -> Outcome {
    let mut machine = Loop::default();
    let mut samples = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        for _ in 0..100 {
            std::hint::black_box(machine.tool_call().map_err(|fault| fault.to_string())?);
        }
        samples.push(begun.elapsed() / 400);
    }
    show("kernel: one step", samples);
    Ok(())
}

/// From the model's answer to the last tool's run, on the deciding thread, spread over 32 calls at once. The log's thread works
/// beside it.
fn deciding(gates: usize) -> Outcome {
    const CALLS: u32 = 32;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (builder, answered, ran) = lab(CALLS as usize, gates);
    let _inside = runtime.enter();
    let lab = runtime.block_on(builder.start());
    let session = lab.session();
    let mut samples = Vec::new();
    for _ in 0..(if gates > 10 { 60 } else { 400 }) {
        runtime.block_on(session.say("bench", "go"))?;
        let (ran, answered) = (ran.lock().map_err(|_| "poisoned")?, answered.lock().map_err(|_| "poisoned")?);
        samples.push(ran.duration_since(*answered) / CALLS);
    }
    show(&format!("tool call through all phases, {gates} gates, deciding thread"), samples);
    Ok(())
}

/// 64 threads that append and wait for their acknowledgement.
fn append(batch: u64) -> Outcome {
    const APPENDERS: u64 = 64;
    let rounds = if batch == 1 { 200 } else { 40 };
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default())?;
    let start = Arc::new(Barrier::new(APPENDERS as usize + 1));
    let mut threads = Vec::new();
    for appender in 0..APPENDERS {
        let log = store.stream(&StreamId::from(format!("s{appender}")))?;
        let start = start.clone();
        threads.push(std::thread::spawn(move || -> Result<(), String> {
            let mut batches: Vec<_> = (0..rounds).map(|round| drafts(round * batch, batch)).collect();
            start.wait();
            for (round, drafts) in (0..rounds).zip(batches.drain(..)) {
                log.append(drafts).map_err(|problem| problem.to_string())?;
                log.wait_durable(Seq((round + 1) * batch - 1)).map_err(|problem| problem.to_string())?;
            }
            Ok(())
        }));
    }
    start.wait();
    let begun = Instant::now();
    for thread in threads {
        thread.join().map_err(|_| "an appender panicked")??;
    }
    let frames = APPENDERS * batch * rounds;
    let rate = frames as f64 / begun.elapsed().as_secs_f64();
    let name = format!("durable append, 64 appenders, {batch} frame(s) an acknowledgement");
    println!(
        "{name:<58} {:>12} {:>12}",
        format!("{rate:.0}/s"),
        format!("{} commits", store.stats().commits)
    );
    Ok(())
}

/// Strict replay of the committed history: reading, the kernel, and everything that runs again.
fn replayed() -> Outcome {
    let history = history::open();
    let store = history.store();
    let begun = Instant::now();
    let verdict = replay(&store, &history.session.into(), Mode::Strict, &history::lab().lanes())?;
    let rate = verdict.frames as f64 / begun.elapsed().as_secs_f64();
    let name = format!("strict replay of {} frames", verdict.frames);
    println!(
        "{name:<58} {:>12} {:>12}",
        format!("{rate:.0}/s"),
        if verdict.identical { "identical" } else { "DIFFERS" }
    );
    Ok(())
}

/// Taking up a long session reads its snapshot and its tail.
fn resume(frames: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (builder, _, _) = lab(32, 0);
    let _inside = runtime.enter();
    let lab = runtime.block_on(builder.start());
    let session = lab.session();
    while lab.runtime.store().head(session.id())?.is_none_or(|head| head.seq.0 < frames) {
        runtime.block_on(session.say("bench", "go"))?;
    }
    lab.runtime.store().flush()?;
    let before = lab.runtime.store().stats().rows_read;
    let begun = Instant::now();
    let refolded = rebuild::<Session>(lab.runtime.store(), session.id())?;
    let took = begun.elapsed();
    let rows = lab.runtime.store().stats().rows_read - before;
    let name = format!("resume of a session of {} frames", refolded.machine.next_seq());
    println!("{name:<58} {:>12} {:>12}", format!("{took:.2?}"), format!("{rows} rows"));
    Ok(())
}
