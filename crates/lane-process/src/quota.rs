//! The disk quota of a program. Usage is polled, so a program can exceed its quota between two checks.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The pause between two checks: after a change, and after several checks without one.
const MIN_CHECK_PAUSE: Duration = Duration::from_secs(1);
const MAX_CHECK_PAUSE: Duration = Duration::from_secs(4);
/// The pause is at least this many times the duration of a check, up to a maximum, so that large folders cost little CPU time.
const CHECK_BACKOFF: u32 = 20;
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Bytes that each directory entry counts for, besides the file's blocks.
const ENTRY_BYTES: u64 = 1024;

/// The disk usage of a program, and its limit.
pub(crate) struct Quota {
    max_bytes: u64,
    folders: [PathBuf; 2],
    last: Option<u64>,
    pause: Duration,
}

impl Quota {
    /// A limit on the bytes in these folders together.
    pub(crate) fn new(max_bytes: u64, folders: [PathBuf; 2]) -> Self {
        Self { max_bytes, folders, last: None, pause: MIN_CHECK_PAUSE }
    }

    /// How long to wait until the next check.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Checks the usage; returns a message if it exceeds the limit.
    pub(crate) fn exceeded(&mut self) -> Option<String> {
        let began = Instant::now();
        let used = self.used();
        let backoff = (began.elapsed() * CHECK_BACKOFF).min(MAX_BACKOFF);
        let unchanged = self.last == Some(used);
        self.last = Some(used);
        self.pause =
            if unchanged { (self.pause * 2).min(MAX_CHECK_PAUSE) } else { MIN_CHECK_PAUSE }.max(backoff);
        let limit = self.max_bytes;
        (used > limit).then(|| format!("it uses {used} bytes on disk; its limit is {limit}"))
    }

    /// The bytes that its files use. A file with several links counts once, an unreadable one not at all. Stops above the limit.
    fn used(&self) -> u64 {
        let (mut used, mut seen) = (0u64, HashSet::new());
        let mut folders = self.folders.to_vec();
        while let (Some(folder), true) = (folders.pop(), used <= self.max_bytes) {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Ok(about) = entry.metadata() else { continue };
                used = used.saturating_add(ENTRY_BYTES);
                if about.is_dir() {
                    folders.push(entry.path());
                } else if about.nlink() == 1 || seen.insert((about.dev(), about.ino())) {
                    used = used.saturating_add(about.blocks().saturating_mul(512));
                }
            }
        }
        used
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test panics")]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_hard_links_once_and_is_polled_less_often_when_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (data, scratch) = (folder.path().join("data"), folder.path().join("scratch"));
        std::fs::create_dir_all(data.join("deep/er")).unwrap();
        std::fs::create_dir(&scratch).unwrap();
        let mut quota = Quota::new(1 << 20, [data.clone(), scratch.clone()]);
        assert_eq!(quota.exceeded(), None);
        std::fs::write(data.join("deep/er/file"), vec![1; 600 << 10]).unwrap();
        std::fs::hard_link(data.join("deep/er/file"), scratch.join("again")).unwrap();
        assert_eq!(quota.exceeded(), None, "one file with two names");
        assert_eq!(quota.pause(), MIN_CHECK_PAUSE);
        for _ in 0..5 {
            assert_eq!(quota.exceeded(), None);
        }
        assert_eq!(quota.pause(), MAX_CHECK_PAUSE);
        std::os::unix::fs::symlink("/usr", data.join("link")).unwrap();
        assert_eq!(quota.exceeded(), None, "symbolic links are not followed");
        std::fs::write(scratch.join("more"), vec![1; 600 << 10]).unwrap();
        assert!(quota.exceeded().unwrap().ends_with("its limit is 1048576"));
    }
}
