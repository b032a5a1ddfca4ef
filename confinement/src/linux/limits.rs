//! What a program may use up.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setpriority_process};

/// File descriptors that a process may have.
const DESCRIPTORS: u64 = 4096;

/// What each process of a program may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes that a file may grow to.
    pub file_bytes: u64,
    /// Bytes of data that a process may have.
    pub memory_bytes: u64,
    /// Seconds of a core's time; none where a program runs for as long as it likes.
    pub cpu_seconds: Option<u64>,
}

impl Limits {
    /// Sets them for a process and whatever it starts from now on.
    pub fn set(&self, process: Pid) -> rustix::io::Result<()> {
        let limits = [
            (Resource::Core, Some(0)),
            (Resource::Fsize, Some(self.file_bytes)),
            (Resource::Data, Some(self.memory_bytes)),
            (Resource::Nofile, Some(DESCRIPTORS)),
            (Resource::Cpu, self.cpu_seconds),
        ];
        for (resource, most) in limits {
            let Some(most) = most else { continue };
            // Never more than this process has itself.
            let most = getrlimit(resource).maximum.map_or(most, |own| own.min(most));
            prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        // Manners, not walls: when memory or time is short, the program feels it first.
        let id = process.as_raw_nonzero();
        let _ = std::fs::write(format!("/proc/{id}/oom_score_adj"), "1000");
        let _ = setpriority_process(Some(process), 10);
        Ok(())
    }
}
