//! The process group that a program lives in. It is led by a small process of its own that is not confined and that waits: when
//! this process has ended, for any reason, it kills the group. Nothing in the group can leave it, so ending the group ends everything.

use std::collections::BTreeSet;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The timeout for killed processes to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// A process group and its leader.
pub struct Group {
    leader: Child,
    /// While this is open, the leader waits.
    _alive: Option<ChildStdin>,
    id: Pid,
}

impl Group {
    /// Starts the leader.
    pub fn start() -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt;

        let mut leader = Command::new("/bin/sh")
            .args(["-c", "read -r _; kill -9 0"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let id = Pid::from_child(&leader);
        Ok(Self { _alive: leader.stdin.take(), leader, id })
    }

    /// Its id.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Kills everything in it.
    pub fn kill(&self) {
        // An error means that the group is empty already.
        let _ = kill_process_group(self.id, Signal::KILL);
    }

    /// Kills everything in it, and waits until it is gone.
    pub fn end(&mut self) {
        self.kill();
        let _ = self.leader.wait();
        let began = Instant::now();
        while members(self.id).next().is_some() && began.elapsed() < KILL_TIMEOUT {
            self.kill();
            std::thread::sleep(Duration::from_millis(1));
        }
        // Children of this process that are in the group and were not waited for.
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(self.id)), exited) {}
    }
}

/// How many processes and threads are in a group.
pub(crate) fn tasks_of(group: Pid) -> usize {
    members(group).map(|process| process.threads).sum()
}

/// How many processes and threads descend from a process, itself included.
pub(crate) fn tasks_below(first: Pid) -> usize {
    tree(first).iter().map(|process| process.threads).sum()
}

/// The numbers of the processes in a group.
pub(crate) fn processes_of(group: Pid) -> Vec<u32> {
    members(group).map(|process| process.id).collect()
}

/// The numbers of the processes that descend from a process, itself included.
pub(crate) fn processes_below(first: Pid) -> Vec<u32> {
    tree(first).iter().map(|process| process.id).collect()
}

/// The living processes that descend from a process, itself included.
fn tree(first: Pid) -> Vec<ProcessEntry> {
    let first = first.as_raw_nonzero().get().unsigned_abs();
    let (mut left, mut within): (Vec<ProcessEntry>, _) =
        (live_processes().collect(), BTreeSet::from([first]));
    let mut all = Vec::new();
    loop {
        let (found, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|process| process.id == first || within.contains(&process.parent));
        if found.is_empty() {
            return all;
        }
        within.extend(found.iter().map(|process| process.id));
        all.extend(found);
        left = others;
    }
}

/// A living process, as `/proc` has it.
struct ProcessEntry {
    id: u32,
    parent: u32,
    group: u32,
    threads: usize,
}

/// The group's living processes.
fn members(group: Pid) -> impl Iterator<Item = ProcessEntry> {
    let wanted = group.as_raw_nonzero().get().unsigned_abs();
    live_processes().filter(move |process| process.group == wanted)
}

/// The living processes of the machine. Empty where `/proc` cannot be read.
fn live_processes() -> impl Iterator<Item = ProcessEntry> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name is in parentheses and may contain anything; the following fields do not.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse().ok();
        let alive = !["Z", "X"].contains(fields.first()?);
        let (parent, group, threads) = (number(1)?, number(2)?, number(17)?);
        alive.then_some(ProcessEntry { id, parent, group, threads: threads as usize })
    })
}

/// Threads on the whole machine: a cheap look before an expensive one.
pub fn threads_on_machine() -> usize {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = load.split(['/', ' ']).nth(4);
    total.and_then(|total| total.parse().ok()).unwrap_or(usize::MAX)
}

/// Lets a call be ended from outside while it runs.
#[derive(Default)]
pub struct Switch(Mutex<State>);

#[derive(Default)]
struct State {
    off: bool,
    group: Option<Pid>,
}

impl Switch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Connects the group, and says whether the call is still wanted.
    pub fn connect(&self, group: Pid) -> bool {
        let mut state = self.state();
        state.group = Some(group);
        !state.off
    }

    /// Called before the group's id can be reused.
    pub fn disconnect(&self) {
        self.state().group = None;
    }

    /// Ends the call.
    pub fn turn_off(&self) {
        let mut state = self.state();
        state.off = true;
        if let Some(group) = state.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
