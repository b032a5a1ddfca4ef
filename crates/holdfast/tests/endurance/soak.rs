//! A home in steady use: memory, descriptors and threads stay as they are.

use std::fs;
use std::time::{Duration, Instant};

use crate::examination::examine;
use crate::kills::{Up, drain};
use crate::shared::until;
use crate::traffic::Traffic;

/// What the owner's process may hold more at the end than at the beginning, while it serves the same load.
const MAX_MORE_DESCRIPTORS: usize = 8;
/// The same at any moment, while replaced versions are still loaded.
const MAX_MORE_DESCRIPTORS_FOR_A_MOMENT: usize = 96;
/// Threads, from the middle to the end, and at any moment since the middle.
const MAX_MORE_THREADS: u64 = 4;
const MAX_MORE_THREADS_FOR_A_MOMENT: u64 = 12;
/// Memory, from the middle to the end: a fixed part, and what conversations need that grow with every message.
const MAX_MORE_KIB: u64 = 16 * 1024;
const MAX_KIB_PER_MESSAGE: u64 = 6;
/// Memory at any moment.
const MAX_KIB: u64 = 384 * 1024;

/// What the owner's process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    messages: usize,
    anonymous_kib: u64,
    descriptors: usize,
    threads: u64,
}

fn held(process: u64, messages: usize) -> Held {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    Held { messages, anonymous_kib: field("RssAnon:"), descriptors, threads: field("Threads:") }
}

#[test]
fn memory_descriptors_and_threads_stay_flat_while_a_home_is_in_use() {
    let minutes: f64 =
        std::env::var("HOLDFAST_SOAK_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(0.25);
    if minutes == 0.0 {
        return;
    }
    let mut traffic = Traffic::new();
    let up = Up::start(&traffic);
    let mut process = 0;
    until("it is up", || {
        let status = traffic.scene.run(&["status", "--json"]);
        process = serde_json::from_str::<serde_json::Value>(&status.out)
            .ok()
            .and_then(|status| status["process"].as_u64())
            .unwrap_or_default();
        process != 0
    });
    let length = Duration::from_secs_f64(minutes * 60.0);
    let (began, mut samples) = (Instant::now(), Vec::new());
    while began.elapsed() < length {
        traffic.post();
        if traffic.messages.is_multiple_of(40) {
            traffic.edit();
        }
        if traffic.messages.is_multiple_of(10) {
            samples.push(held(process, traffic.messages));
        }
        // A new message when at most five wait: the load is what the home can do.
        until("it keeps up", || traffic.answers() + 5 >= traffic.messages);
    }
    drain(&traffic);
    // A replaced version stays loaded for a minute, in case the new one has to be rolled back.
    let before = samples[0].descriptors;
    let now = || held(process, traffic.messages);
    until("the processes of replaced versions have ended", || {
        now().descriptors <= before + MAX_MORE_DESCRIPTORS
    });
    samples.push(now());
    up.down(&traffic);
    let (middle, end) = (samples[samples.len() / 2], samples[samples.len() - 1]);
    let (first, reloads) = (samples[0], traffic.edits);
    println!("{minutes} minutes, {reloads} reloads\nfirst {first:?}\nmiddle {middle:?}\nend {end:?}");
    println!("{:#?}", examine(&traffic));
    let late = &samples[samples.len() / 2..];
    assert!(end.threads <= middle.threads + MAX_MORE_THREADS, "threads grow: {middle:?} to {end:?}");
    for held in late {
        let most = middle.threads + MAX_MORE_THREADS_FOR_A_MOMENT;
        assert!(held.threads <= most, "threads grow: {middle:?} to {held:?}");
    }
    for held in &samples {
        let most = samples[0].descriptors + MAX_MORE_DESCRIPTORS_FOR_A_MOMENT;
        assert!(held.descriptors <= most, "descriptors grow: {:?} to {held:?}", samples[0]);
        assert!(held.anonymous_kib <= MAX_KIB, "too much memory: {held:?}");
    }
    let messages = (end.messages - middle.messages) as u64;
    let allowed = middle.anonymous_kib + MAX_MORE_KIB + MAX_KIB_PER_MESSAGE * messages;
    assert!(
        end.anonymous_kib <= allowed,
        "memory grows: {middle:?} to {end:?}, and {allowed} KiB is allowed"
    );
}
