//! The disk quota of a program. Usage is polled, so a program can exceed its quota between two checks.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast_untrusted_files::walk;

/// The pause between two checks: after a change, and after several checks without one.
const MIN_CHECK_PAUSE: Duration = Duration::from_secs(1);
const MAX_CHECK_PAUSE: Duration = Duration::from_secs(4);
/// The pause is at least this many times the duration of a check, up to a maximum, so that large folders cost little CPU time.
const CHECK_BACKOFF: u32 = 20;
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Bytes that each directory entry counts for, besides the file's blocks.
const ENTRY_BYTES: u64 = 1024;
/// How deep its folders may be nested. Measuring what is deeper would cost more than it is worth.
const MAX_DEPTH: usize = 256;

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
        let measured = self.used();
        let backoff = (began.elapsed() * CHECK_BACKOFF).min(MAX_BACKOFF);
        let used = match measured {
            Ok(used) => used,
            // What cannot be measured counts as too much: else hiding files would be a way around the limit.
            Err(why) => return Some(why),
        };
        let unchanged = self.last == Some(used);
        self.last = Some(used);
        self.pause =
            if unchanged { (self.pause * 2).min(MAX_CHECK_PAUSE) } else { MIN_CHECK_PAUSE }.max(backoff);
        let limit = self.max_bytes;
        (used > limit).then(|| format!("it uses {used} bytes on disk; its limit is {limit}"))
    }

    /// The bytes that its files use, or why they cannot be measured. A file with several links counts once. Stops above the limit.
    fn used(&self) -> Result<u64, String> {
        let (mut used, mut seen, mut too_deep) = (0u64, HashSet::new(), false);
        for folder in &self.folders {
            let walked = walk(folder, &mut |found| {
                used = used.saturating_add(ENTRY_BYTES);
                if !found.is_folder && (found.links == 1 || seen.insert(found.identity)) {
                    used = used.saturating_add(found.disk_bytes);
                }
                too_deep = found.depth > MAX_DEPTH;
                if too_deep || used > self.max_bytes {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            if too_deep {
                return Err(format!("its folders are nested more than {MAX_DEPTH} deep"));
            }
            walked.map_err(|error| format!("its disk usage cannot be measured: {error}"))?;
        }
        Ok(used)
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

    // Finding M9.
    #[test]
    fn what_cannot_be_measured_exceeds_the_limit() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (data, scratch) = (folder.path().join("data"), folder.path().join("scratch"));
        std::fs::create_dir_all(data.join("closed")).unwrap();
        std::fs::create_dir(&scratch).unwrap();
        let mut quota = Quota::new(1 << 20, [data.clone(), scratch.clone()]);
        std::fs::write(data.join("closed/file"), vec![1; 2 << 20]).unwrap();
        // Root reads it and counts it; for everybody else it is unreadable. Either way it is too much.
        std::fs::set_permissions(data.join("closed"), std::fs::Permissions::from_mode(0o300)).unwrap();
        assert!(quota.exceeded().is_some());
        holdfast_untrusted_files::remove_tree(&data.join("closed")).unwrap();
        assert_eq!(quota.exceeded(), None);

        let mut deep = scratch.clone();
        for _ in 0..=MAX_DEPTH {
            deep.push("d");
            std::fs::create_dir(&deep).unwrap();
        }
        assert!(quota.exceeded().unwrap().contains("nested more than"));
    }
}
