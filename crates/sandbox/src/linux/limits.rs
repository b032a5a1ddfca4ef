//! Resource limits of a program.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setpriority_process};

/// File descriptors that a process may have.
const DESCRIPTORS: u64 = 4096;

/// Resource limits of each process of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProcessLimits {
    /// Bytes that a file may grow to.
    pub file_bytes: u64,
    /// Bytes of data that a process may have.
    pub memory_bytes: u64,
    /// Seconds of a core's time; none where a program runs for as long as it likes.
    pub cpu_seconds: Option<u64>,
}

impl ProcessLimits {
    /// The limits as the kernel knows them, none higher than this process's own.
    pub(crate) fn list(&self) -> Vec<(Resource, Rlimit)> {
        let limits = [
            (Resource::Core, Some(0)),
            (Resource::Fsize, Some(self.file_bytes)),
            (Resource::Data, Some(self.memory_bytes)),
            (Resource::Nofile, Some(DESCRIPTORS)),
            (Resource::Cpu, self.cpu_seconds),
        ];
        let own = |resource, most: u64| getrlimit(resource).maximum.map_or(most, |own| own.min(most));
        let limited = limits.into_iter().filter_map(|(resource, most)| {
            let most = Some(own(resource, most?));
            Some((resource, Rlimit { current: most, maximum: most }))
        });
        limited.collect()
    }

    /// Sets them for a process and its later children.
    pub fn set(&self, process: Pid) -> rustix::io::Result<()> {
        for (resource, limit) in self.list() {
            prlimit(Some(process), resource, limit)?;
        }
        // A preference, not a limit: when memory or time is short, the program is affected first.
        let id = process.as_raw_nonzero();
        let _ = std::fs::write(format!("/proc/{id}/oom_score_adj"), "1000");
        let _ = setpriority_process(Some(process), 10);
        Ok(())
    }
}
