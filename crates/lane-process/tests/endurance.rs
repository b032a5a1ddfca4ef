//! A thousand programs are loaded and end in all possible ways, each replacing the previous version while that may still run. No
//! process, descriptor or file leaks.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod support;

use std::fs;
use std::sync::Arc;

use holdfast_contract::wire::Instance;
use serde_json::json;
use support::{Yard, eventually, go};

const LIVES: usize = 1_000;
/// Concurrent programs.
const TOGETHER: usize = 4;

/// How they end: stopped by their owner, by exiting, by a signal, by a protocol violation, and in the middle of a call.
const ENDS: [&str; 5] = [
    "greet()\nwhile True:\n    m = receive()\n    if 'id' in m: send(id=m['id'], result='well')",
    "greet(); m = receive(); send(id=m['id'], result='well'); sys.exit(0)",
    "greet(); m = receive(); send(id=m['id'], result='well'); os.kill(os.getpid(), 9)",
    "greet(); m = receive(); send(id=m['id'], result='well'); print('nonsense'); time.sleep(9)",
    "greet(); receive(); os.fork(); os._exit(1)",
];

/// Open descriptors, zombie children and memory of this process, in kilobytes.
fn left() -> (usize, usize, u64) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    let own = std::process::id().to_string();
    let is_dead_child = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[0] == "Z" && fields[1] == own
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let zombies = stats.filter(is_dead_child).count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    (descriptors, zombies, anonymous.trim().trim_end_matches(" kB").parse().unwrap())
}

async fn live(yard: &Yard, number: usize) -> Arc<dyn Instance> {
    let script = format!("# version {number}\n{}", ENDS[number % ENDS.len()]);
    let it = yard.load(&format!("p{}", number % TOGETHER), &script).await.unwrap();
    let answer = go(&it, json!({})).await;
    assert_eq!(answer.is_ok(), number % ENDS.len() != 4, "{answer:?}");
    it
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_programs_leak_nothing() {
    let yard = Arc::new(Yard::new());
    for number in 0..ENDS.len() {
        drop(live(&yard, number).await);
    }
    yard.empties().await;
    let (descriptors, _, before) = left();
    let lives = (0..TOGETHER).map(|first| {
        let yard = yard.clone();
        tokio::spawn(async move {
            let mut serving = None;
            for number in (first..LIVES).step_by(TOGETHER) {
                // The previous version is dropped when the next one has answered.
                drop(serving.replace(live(&yard, number).await));
            }
        })
    });
    for life in lives.collect::<Vec<_>>() {
        life.await.unwrap();
    }
    yard.empties().await;
    eventually(|| left().0 <= descriptors && left().1 == 0).await;
    let (now, zombies, after) = left();
    assert!(now <= descriptors, "{now} descriptors, {descriptors} before");
    assert_eq!(zombies, 0);
    assert!(after < before + (16 << 10), "{after} kB, {before} before");
    let code = fs::read_dir(yard.path().join("code/process")).unwrap().count();
    assert_eq!(code, 0, "no files are left");
}
