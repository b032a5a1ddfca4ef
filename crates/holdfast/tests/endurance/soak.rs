//! A home in steady use: memory, descriptors and threads stay as they are.

use std::fs;
use std::time::{Duration, Instant};

use crate::examination::examine;
use crate::kills::Up;
use crate::shared::until;
use crate::traffic::Traffic;

/// What the owner's process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    anonymous_kib: u64,
    descriptors: usize,
    threads: u64,
}

fn held(process: u64) -> Held {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    Held { anonymous_kib: field("RssAnon:"), descriptors, threads: field("Threads:") }
}

#[test]
fn memory_descriptors_and_threads_stay_flat_while_a_home_is_in_use() {
    let minutes: f64 =
        std::env::var("HOLDFAST_SOAK_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(0.4);
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
    let (began, mut samples, mut reloads) = (Instant::now(), Vec::new(), 0);
    let tool = traffic.scene.home().join("extensions/tools/book.py");
    let code = fs::read_to_string(&tool).unwrap();
    while began.elapsed() < length {
        traffic.post();
        if traffic.messages.is_multiple_of(40) {
            reloads += 1;
            fs::write(&tool, format!("{code}\n# version {reloads}\n")).unwrap();
        }
        if traffic.messages.is_multiple_of(10) {
            samples.push(held(process));
        }
        // A new message when at most five wait: the load is what the home can do.
        until("it keeps up", || traffic.sent().len() + 5 >= traffic.messages);
    }
    until("every message is answered", || traffic.sent().len() >= traffic.messages);
    // A replaced version stays loaded for a minute, in case the new one has to be rolled back.
    let before = samples[0].descriptors;
    until("the processes of replaced versions have ended", || held(process).descriptors <= before + 8);
    samples.push(held(process));
    up.down(&traffic);
    let findings = examine(&traffic);
    let (middle, end) = (samples[samples.len() / 2], samples[samples.len() - 1]);
    println!(
        "{minutes} minutes, {reloads} reloads: {findings:#?}\nfirst {:?}\nmiddle {middle:?}\nend {end:?}",
        samples[0]
    );
    assert!(end.threads <= middle.threads + 4, "threads grow: {middle:?} to {end:?}");
    // Conversations grow with their messages; beyond that, memory may not.
    let allowed = middle.anonymous_kib + middle.anonymous_kib / 4 + 16 * 1024;
    assert!(end.anonymous_kib <= allowed, "memory grows: {middle:?} to {end:?}");
}
