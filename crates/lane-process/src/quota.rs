//! How much a program keeps on the disk. It is looked at from time to time, so what is written between two looks comes on top.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the pause between two looks is: after a change, and when nothing has changed for a while.
const MIN_CHECK_PAUSE: Duration = Duration::from_secs(1);
const MAX_CHECK_PAUSE: Duration = Duration::from_secs(4);
/// How many times as long as a look the pause after it is, at least, but no longer than this.
const EASE: u32 = 20;
const EASED: Duration = Duration::from_secs(10);
/// What a name costs, however little is in the file.
const NAME: u64 = 1024;

/// What a program may keep on the disk.
pub(crate) struct Quota {
    most: u64,
    folders: [PathBuf; 2],
    last: Option<u64>,
    pause: Duration,
}

impl Quota {
    /// So many bytes in these folders together.
    pub(crate) fn new(most: u64, folders: [PathBuf; 2]) -> Self {
        Self { most, folders, last: None, pause: MIN_CHECK_PAUSE }
    }

    /// How long to wait until the next look.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Looks, and says what is wrong if there is too much.
    pub(crate) fn exceeded(&mut self) -> Option<String> {
        let began = Instant::now();
        let used = self.used();
        let eased = (began.elapsed() * EASE).min(EASED);
        let calm = self.last == Some(used);
        self.last = Some(used);
        self.pause = if calm { (self.pause * 2).min(MAX_CHECK_PAUSE) } else { MIN_CHECK_PAUSE }.max(eased);
        let most = self.most;
        (used > most).then(|| format!("it keeps {used} bytes on the disk, and may keep {most}"))
    }

    /// The bytes that its files take, each counted once. What cannot be looked at is passed over; no more is counted than it takes to know.
    fn used(&self) -> u64 {
        let (mut used, mut seen) = (0u64, HashSet::new());
        let mut folders = self.folders.to_vec();
        while let (Some(folder), true) = (folders.pop(), used <= self.most) {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Ok(about) = entry.metadata() else { continue };
                used = used.saturating_add(NAME);
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
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop loudly")]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_once_and_rarely_when_nothing_changes() {
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
        assert_eq!(quota.exceeded(), None, "links lead nowhere");
        std::fs::write(scratch.join("more"), vec![1; 600 << 10]).unwrap();
        assert!(quota.exceeded().unwrap().ends_with("may keep 1048576"));
    }
}
