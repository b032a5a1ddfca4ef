//! A file that lists whose code is executing in this process while extensions start. If the process dies, the next one knows whose code
//! that was. An extension that merely waits, or runs in a process of its own, is not listed.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::future::{Future, poll_fn};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::pin::pin;

use holdfast_contract::digest::Digest;
use parking_lot::Mutex;

/// The longest list that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Lists the content whose code is executing.
#[derive(Default)]
pub(crate) struct ExecutionMarker {
    /// None where there is no home, or it cannot be written: then nothing is known after a crash.
    file: Option<File>,
    left_behind: Vec<Digest>,
    executing: Mutex<BTreeMap<Digest, usize>>,
}

impl ExecutionMarker {
    /// Opens the list, which has what an earlier process was executing when it died.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let open = |path: &Path| {
            // Like everything in the home it is its owner's alone.
            DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            holdfast_untrusted_files::open_regular(&mut options, path).ok()
        };
        let Some(mut file) = path.and_then(open) else { return Self::default() };
        let mut text = String::new();
        // A list that cannot be read is not evidence.
        let _unread = file.by_ref().take(MAX_BYTES).read_to_string(&mut text);
        let left_behind = text.lines().filter_map(Digest::parse).collect();
        let marker = Self { file: Some(file), left_behind, ..Self::default() };
        marker.write(&BTreeMap::new());
        marker
    }

    /// What an earlier process was executing when it died.
    pub(crate) fn left_behind(&self) -> Vec<Digest> {
        self.left_behind.clone()
    }

    /// Lists this content as long as its code is on the stack.
    pub(crate) async fn marked<T>(&self, content: Digest, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let _listed = self.enter(content);
            work.as_mut().poll(context)
        })
        .await
    }

    fn enter(&self, content: Digest) -> impl Drop {
        struct Listed<'a>(&'a ExecutionMarker, Digest);
        impl Drop for Listed<'_> {
            fn drop(&mut self) {
                self.0.change(self.1, |count| count.saturating_sub(1));
            }
        }
        self.change(content, |count| count + 1);
        Listed(self, content)
    }

    fn change(&self, content: Digest, change: impl Fn(usize) -> usize) {
        let mut executing = self.executing.lock();
        let count = executing.entry(content).or_default();
        *count = change(*count);
        executing.retain(|_, count| *count > 0);
        self.write(&executing);
    }

    /// What is written is there for the next process as soon as the call returns; only a power failure loses it, which is not a crash of an
    /// extension.
    fn write(&self, executing: &BTreeMap<Digest, usize>) {
        let Some(file) = &self.file else { return };
        let text: String = executing.keys().map(|content| format!("{content}\n")).collect();
        let _unwritten = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
    }
}

#[cfg(test)]
#[path = "execution_marker_tests.rs"]
mod tests;
