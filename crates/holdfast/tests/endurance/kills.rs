//! Kills at any moment: of the whole tree, of the owner alone, of the extensions' processes alone.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::examination::{examine, unanswered};
use crate::shared::until;
use crate::traffic::Traffic;

/// The processes below one.
fn below(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all = children.collect::<Vec<_>>().join(" ");
    let found: Vec<u32> = all.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    found.iter().flat_map(|child| std::iter::once(*child).chain(below(*child))).collect()
}

fn kill(processes: &[u32]) {
    let mut command = Command::new("kill");
    command.arg("-9").args(processes.iter().map(u32::to_string));
    drop(command.stderr(Stdio::null()).status());
}

/// A home that is kept up by its supervisor. A test that fails takes it down.
pub struct Up(Child);

impl Up {
    pub fn start(traffic: &Traffic) -> Self {
        let mut command = traffic.scene.command(&["up"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Kills the supervisor, the owner and every process below it.
    pub fn kill(&mut self) {
        let mut all = vec![self.0.id()];
        all.extend(below(self.0.id()));
        kill(&all);
        self.0.wait().unwrap();
    }

    /// Ends it in good order.
    pub fn down(mut self, traffic: &Traffic) {
        traffic.scene.run(&["down"]).ok();
        self.0.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.kill();
        }
    }
}

/// A number that looks random and is the same in every run.
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// Waits until every message is answered, as long as further answers arrive: after many kills the queue is long, and how fast it gets
/// shorter is the machine's.
fn drain(traffic: &Traffic) {
    let inbox = traffic.scene.home().join("data/spool/inbox");
    let waiting = || fs::read_dir(&inbox).unwrap().flatten().filter(|file| is_message(&file.path())).count();
    let mut answers = traffic.sent().len();
    while waiting() > 0 || answers < traffic.messages || !unanswered(traffic).is_empty() {
        until(&format!("more than {answers} answers to {} messages", traffic.messages), || {
            traffic.sent().len() > answers
        });
        answers = traffic.sent().len();
    }
}

fn is_message(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "msg")
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_when_a_home_in_use_is_killed_at_any_moment() {
    let kills: u64 = std::env::var("HOLDFAST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    let mut traffic = Traffic::new();
    let began = Instant::now();
    let mut up = Up::start(&traffic);
    for number in 0..kills {
        // From the middle of a start to some seconds of work.
        let life = Duration::from_millis(200 + scatter(number) % 5_000);
        let end = Instant::now() + life;
        while Instant::now() < end {
            traffic.post();
            std::thread::sleep(Duration::from_millis(300));
        }
        let tree = below(up.0.id());
        match scatter(number ^ 0xffff) % 4 {
            // The extensions' processes: the home goes on.
            0 => {
                let worker = |process: &&u32| {
                    fs::read_to_string(format!("/proc/{process}/comm"))
                        .is_ok_and(|name| name.starts_with("python"))
                };
                kill(&tree.iter().filter(worker).copied().collect::<Vec<_>>());
            }
            // The owner: its supervisor starts the next one.
            1 => kill(&tree.iter().take(1).copied().collect::<Vec<_>>()),
            _ => {
                up.kill();
                up = Up::start(&traffic);
            }
        }
    }
    drain(&traffic);
    up.down(&traffic);
    let findings = examine(&traffic);
    println!("{kills} kills in {:?}: {findings:#?}", began.elapsed());
}
