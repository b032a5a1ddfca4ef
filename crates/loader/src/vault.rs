//! The vault: every activated generation of an extension, content-addressed in the log's database, and beside it what lanes derive
//! from them.
//!
//! What is derived, such as compiled code, lies in `generations/` and is used only if its bytes still have the digest that the
//! database noted when it was made.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_store::{ObjectKind, Store};
use parking_lot::Mutex;

/// The largest derived file that is read: compiled code is some times larger than its component.
const MAX_DERIVED_BYTES: u64 = 2 << 30;

/// The vault of a home.
pub struct HomeVault {
    store: Store,
    folder: PathBuf,
    /// How many extensions there are.
    installed: AtomicUsize,
}

/// Derived files that are kept: for each extension that is installed, and besides. An extension has two at most.
const FILES_PER_EXTENSION: usize = 3;
const FILES_BESIDES: usize = 16;

/// How the names of derived files begin.
const DERIVED: [&str; 3] = ["compiled-", "descriptors-", "welcome-"];

impl HomeVault {
    /// A vault that keeps generations in the log, and what is derived from them in this folder.
    pub fn new(store: Store, folder: PathBuf) -> Self {
        Self { store, folder, installed: AtomicUsize::new(0) }
    }

    /// So many extensions are installed, which decides how many derived files are kept.
    pub(crate) fn set_installed(&self, count: usize) {
        self.installed.store(count, Ordering::Relaxed);
    }

    /// Removes the derived files that were used least recently, if there are too many: every reload adds some.
    fn collect(&self) -> std::io::Result<()> {
        let is_derived = |name: &str| DERIVED.iter().any(|kind| name.starts_with(kind));
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_derived) {
                files.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        let limit = FILES_BESIDES + FILES_PER_EXTENSION * self.installed.load(Ordering::Relaxed);
        files.sort();
        let surplus = files.len().saturating_sub(limit);
        files.drain(..surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// Keeps a generation with the bytes of its files, and gives its digest. What is there already is not written again.
    pub fn keep(&self, bundle: &Bundle, files: BTreeMap<Digest, Vec<u8>>) -> Result<Digest, Problem> {
        let bytes = canonical(bundle).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let digest = Digest::of(&bytes);
        for (digest, bytes) in files {
            if !self.store.has_object(digest)? {
                self.store.put(ObjectKind::Generation, bytes)?;
            }
        }
        if !self.store.has_object(digest)? {
            self.store.put(ObjectKind::Generation, bytes)?;
        }
        Ok(digest)
    }

    fn object(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        let gone = || Fault::new(Code::ExtensionGone, format!("{digest} is not in the store"));
        self.store.object(digest).map_err(|problem| problem.to_fault())?.ok_or_else(gone)
    }
}

impl Vault for HomeVault {
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault> {
        let unknown = || Fault::new(Code::ExtensionUnknown, format!("no generation {digest} was ever kept"));
        let bytes = self.store.object(digest).map_err(|problem| problem.to_fault())?.ok_or_else(unknown)?;
        let unreadable = |error| Fault::new(Code::ExtensionGone, format!("generation {digest}: {error}"));
        serde_json::from_slice(&bytes).map_err(unreadable)
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        self.object(digest)
    }

    fn derived(&self, name: &str) -> Option<Vec<u8>> {
        let noted = self.store.derived(name).ok()??;
        let path = self.folder.join(name);
        let bytes = holdfast_untrusted_files::read(&path, MAX_DERIVED_BYTES).ok()?;
        // What is used stays longest. Where that cannot be noted, it is made again one day.
        let _unnoted =
            fs::File::options().append(true).open(&path).and_then(|it| it.set_modified(SystemTime::now()));
        (Digest::of(&bytes) == noted).then_some(bytes)
    }

    fn keep_derived(&self, name: &str, bytes: &[u8]) {
        // A cache: where it cannot be written, the work is done again next time.
        let write = || -> std::io::Result<()> {
            // Like everything in the home it is its owner's alone.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            holdfast_atomic_file::replace(&self.folder.join(name), bytes, 0o600)
        };
        if write().is_ok() {
            drop(self.store.note_derived(name, Digest::of(bytes)));
            drop(self.collect());
        }
    }
}

/// A vault for one extension that is tried out: nothing is written anywhere.
pub struct InMemoryVault {
    digest: Digest,
    bundle: Bundle,
    files: BTreeMap<Digest, Vec<u8>>,
    derived: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl InMemoryVault {
    /// A vault that has this and nothing else.
    pub fn new(bundle: Bundle, files: BTreeMap<Digest, Vec<u8>>) -> Self {
        let digest = Digest::of_json(&bundle).unwrap_or_default();
        Self { digest, bundle, files, derived: Mutex::default() }
    }

    /// The digest under which it has it.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Vault for InMemoryVault {
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault> {
        let unknown = || Fault::new(Code::ExtensionUnknown, format!("{digest} is not being tried out"));
        (digest == self.digest).then(|| self.bundle.clone()).ok_or_else(unknown)
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        let gone = || Fault::new(Code::ExtensionGone, format!("{digest} is not stored"));
        self.files.get(&digest).cloned().ok_or_else(gone)
    }

    fn derived(&self, name: &str) -> Option<Vec<u8>> {
        self.derived.lock().get(name).cloned()
    }

    fn keep_derived(&self, name: &str, bytes: &[u8]) {
        let mut derived = self.derived.lock();
        derived.insert(name.to_owned(), bytes.to_vec());
    }
}
