//! How fast frames become durable on this machine: `cargo run --release -p holdfast-store --example throughput [folder]`.
//!
//! Prints the cost of handing a frame over, and for crowds of appenders that each wait for their own acknowledgement the
//! durable frames per second and the frames that share one commit.

#![allow(clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, Generation, Millis, Seq, StreamId};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::HookDecided;
use holdfast_store::{Store, StoreOptions};

const TIME: Duration = Duration::from_secs(4);

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    handing_over(folder.path());
    for (appenders, at_once) in [(1, 1), (8, 1), (64, 1), (64, 8), (64, 32), (1, 512)] {
        crowd(folder.path(), appenders, at_once);
    }
}

/// The time that the deciding thread spends in `append`.
fn handing_over(folder: &Path) {
    let store = Store::open(&folder.join("append.db"), StoreOptions::default()).expect("a log");
    let log = store.stream(&StreamId::from("s")).expect("a stream");
    let source = source();
    let batches: Vec<_> = (0..20_000).map(|seq| vec![draft(seq, &source)]).collect();
    let mut slowest = Duration::ZERO;
    let mut spent = Duration::ZERO;
    for (round, batch) in batches.into_iter().enumerate() {
        let began = Instant::now();
        log.append(batch).expect("handed over");
        let took = began.elapsed();
        spent += took;
        slowest = slowest.max(took);
        // A decision takes a while; the writer must not be measured as a queue that only grows.
        if round % 16 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    println!("append: {} ns on average, {slowest:?} at worst", spent.as_nanos() / 20_000);
    store.close();
}

fn crowd(folder: &Path, appenders: usize, at_once: u64) {
    let path = folder.join(format!("{appenders}x{at_once}.db"));
    let store = Store::open(&path, StoreOptions::default()).expect("a log");
    let source = source();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for appender in 0..appenders {
            let log = store.stream(&StreamId::from(format!("session-{appender}"))).expect("a stream");
            let source = &source;
            scope.spawn(move || {
                let mut next = 0;
                while began.elapsed() < TIME {
                    log.append((next..next + at_once).map(|seq| draft(seq, source)).collect())
                        .expect("handed over");
                    next += at_once;
                    log.wait_durable(Seq(next - 1)).expect("durable");
                }
            });
        }
    });
    let took = began.elapsed().as_secs_f64();
    let stats = store.stats();
    println!(
        "{appenders:>3} appenders, {at_once:>3} frames per acknowledgement: {:>7.0} durable frames/s, {:>6.1} frames per commit, {:>5.0} commits/s, {} checkpoints",
        stats.frames as f64 / took,
        stats.frames as f64 / stats.commits as f64,
        stats.commits as f64 / took,
        stats.checkpoints,
    );
    store.close();
}

fn source() -> FrameSource {
    FrameSource::Extension(Arc::new(ExtensionRef {
        id: "guard".into(),
        version: "1.2.3".into(),
        digest: Digest::of(b"guard"),
        generation: Generation(7),
    }))
}

fn draft(seq: u64, source: &FrameSource) -> Draft {
    let body = HookDecided {
        hook: "guard/tool_before/0".into(),
        point: HookPoint::ToolGate,
        call: Some(CallId { turn: 3, index: 1 }),
        subject: Some(DigestOf::Value(Content::text("what was judged"))),
        decision: Decision::Allow,
        rule: None,
    };
    Draft {
        seq: Seq(seq),
        at: Millis(1_763_000_000_000 + seq),
        source: source.clone(),
        cause: seq.checked_sub(1).map(Seq),
        body: body.into(),
    }
}
