//! What happened to a disk, in order, and what a crash at any point of it leaves. The model is told in [`super`].
//!
//! Every sync keeps the file's image of that moment, so a crash starts from the last sync before it and has only the few changes
//! since then to choose from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::image::Image;
use super::random::Random;
use super::{Operation, Survival};

/// The granularity at which a write is torn.
pub(super) const SECTOR: u64 = 512;

/// A file, whatever it is named: its place in the disk's list of files.
pub(super) type FileId = usize;

/// The files that a disk begins with.
pub(super) type Remains = BTreeMap<Arc<str>, Image>;

#[derive(Default)]
pub(super) struct Journal {
    entries: Vec<Entry>,
    files: Vec<History>,
    names: BTreeMap<Arc<str>, Vec<NameEvent>>,
    /// The steps at which the directory was synced, rising.
    directory_syncs: Vec<usize>,
}

struct Entry {
    file: FileId,
    action: Action,
}

enum Action {
    Create,
    Delete,
    Write { offset: u64, bytes: Box<[u8]> },
    Truncate { size: u64 },
    Sync { image: Image },
}

/// Where a file's own entries stand, so that a crash need not look at the others.
struct History {
    name: Arc<str>,
    base: Image,
    /// Created and not synced since: its first sync makes its name last.
    fresh: bool,
    changes: Vec<usize>,
    syncs: Vec<usize>,
}

/// From a step on, a name stands for a file or for none.
struct NameEvent {
    step: usize,
    file: Option<FileId>,
}

impl Journal {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A file that was there from the start.
    pub(super) fn begin_with(&mut self, name: &Arc<str>, image: &Image) {
        let file = self.add_history(name, image.clone());
        self.names.entry(name.clone()).or_default().push(NameEvent { step: 0, file: Some(file) });
    }

    pub(super) fn create(&mut self, name: &Arc<str>) -> FileId {
        let file = self.add_history(name, Image::default());
        self.files[file].fresh = true;
        self.rename(name, Some(file));
        self.push(file, Action::Create);
        file
    }

    /// A temporary file: it has a number, and nothing of it is recorded.
    pub(super) fn scratch(&mut self) -> FileId {
        self.add_history(&"".into(), Image::default())
    }

    pub(super) fn delete(&mut self, name: &Arc<str>, file: FileId, sync_directory: bool) {
        self.rename(name, None);
        self.push(file, Action::Delete);
        if sync_directory {
            self.directory_syncs.push(self.entries.len());
        }
    }

    pub(super) fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        self.files[file].changes.push(self.entries.len());
        self.push(file, Action::Write { offset, bytes: bytes.into() });
    }

    pub(super) fn truncate(&mut self, file: FileId, size: u64) {
        self.files[file].changes.push(self.entries.len());
        self.push(file, Action::Truncate { size });
    }

    pub(super) fn sync(&mut self, file: FileId, image: &Image) {
        self.files[file].syncs.push(self.entries.len());
        self.push(file, Action::Sync { image: image.clone() });
        if std::mem::take(&mut self.files[file].fresh) {
            self.directory_syncs.push(self.entries.len());
        }
    }

    fn add_history(&mut self, name: &Arc<str>, base: Image) -> FileId {
        self.files.push(History {
            name: name.clone(),
            base,
            fresh: false,
            changes: Vec::new(),
            syncs: Vec::new(),
        });
        self.files.len() - 1
    }

    fn rename(&mut self, name: &Arc<str>, file: Option<FileId>) {
        // The event holds in a crash that comes after the entry which is about to be pushed.
        let step = self.entries.len() + 1;
        self.names.entry(name.clone()).or_default().push(NameEvent { step, file });
    }

    fn push(&mut self, file: FileId, action: Action) {
        self.entries.push(Entry { file, action });
    }

    pub(super) fn operations(&self) -> Vec<Operation> {
        let describe = |entry: &Entry| {
            let name = self.files[entry.file].name.clone();
            match &entry.action {
                Action::Create => Operation::Create { name },
                Action::Delete => Operation::Delete { name },
                Action::Write { offset, bytes } => {
                    Operation::Write { name, offset: *offset, bytes: bytes.len() }
                }
                Action::Truncate { size } => Operation::Truncate { name, size: *size },
                Action::Sync { .. } => Operation::Sync { name },
            }
        };
        self.entries.iter().map(describe).collect()
    }

    /// What is there after a crash when exactly the first `step` operations had been carried out.
    pub(super) fn crash_at(&self, step: usize, survival: Survival) -> Remains {
        let mut choice = match survival {
            Survival::NothingUnsynced => Choice::Nothing,
            Survival::Everything => Choice::Everything,
            Survival::Random(seed) => {
                Choice::Random(Random::seeded(seed ^ (step as u64).wrapping_mul(0xd134_2543_de82_ef95)))
            }
        };
        let synced = self.directory_syncs.partition_point(|at| *at <= step);
        let directory = synced.checked_sub(1).map_or(0, |last| self.directory_syncs[last]);
        let mut remains = Remains::new();
        for (name, events) in &self.names {
            let durable = events.partition_point(|event| event.step <= directory);
            let happened = events.partition_point(|event| event.step <= step);
            let kept = durable + choice.prefix(happened - durable);
            if let Some(file) = kept.checked_sub(1).and_then(|last| events[last].file) {
                remains.insert(name.clone(), self.file_at(file, step, &mut choice));
            }
        }
        remains
    }

    fn file_at(&self, file: FileId, step: usize, choice: &mut Choice) -> Image {
        let history = &self.files[file];
        let synced =
            history.syncs.partition_point(|at| *at < step).checked_sub(1).map(|last| history.syncs[last]);
        let mut image = match synced.map(|at| &self.entries[at].action) {
            Some(Action::Sync { image }) => image.clone(),
            _ => history.base.clone(),
        };
        let from = history.changes.partition_point(|at| synced.is_some_and(|synced| *at < synced));
        let until = history.changes.partition_point(|at| *at < step);
        let pending = history.changes[from..until].iter().map(|at| &self.entries[*at].action).collect();
        choice.apply(&mut image, pending);
        image
    }
}

enum Choice {
    Nothing,
    Everything,
    Random(Random),
}

impl Choice {
    /// How many of a name's unsynced events are kept.
    fn prefix(&mut self, events: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Everything => events,
            Self::Random(random) => random.below(events + 1),
        }
    }

    fn apply(&mut self, image: &mut Image, pending: Vec<&Action>) {
        match self {
            Self::Nothing => {}
            Self::Everything => pending.into_iter().for_each(|action| apply(image, action)),
            Self::Random(random) => apply_some(image, pending, random),
        }
    }
}

fn apply(image: &mut Image, action: &Action) {
    match action {
        Action::Write { offset, bytes } => image.write(*offset, bytes),
        Action::Truncate { size } => image.resize(*size),
        Action::Create | Action::Delete | Action::Sync { .. } => {}
    }
}

fn apply_some(image: &mut Image, mut pending: Vec<&Action>, random: &mut Random) {
    pending.retain(|_| random.coin());
    random.shuffle(&mut pending);
    if pending.is_empty() {
        return;
    }
    if random.coin() {
        grow_with_noise(image, &pending, random);
    }
    let torn = random.coin().then(|| random.below(pending.len()));
    for (index, action) in pending.into_iter().enumerate() {
        match action {
            Action::Write { offset, bytes } if torn == Some(index) => tear(image, *offset, bytes, random),
            whole => apply(image, whole),
        }
    }
}

/// The file's new size arrived before its bytes: what no kept write covers is whatever the medium held.
fn grow_with_noise(image: &mut Image, kept: &[&Action], random: &mut Random) {
    let end = kept.iter().map(|action| match action {
        Action::Write { offset, bytes } => offset + bytes.len() as u64,
        _ => 0,
    });
    let end = end.max().unwrap_or(0);
    let length = image.length();
    if end > length {
        let noise = random.noise(usize::try_from(end - length).unwrap_or(0));
        image.write(length, &noise);
    }
}

/// Writes only some of the sectors that a write touches.
fn tear(image: &mut Image, offset: u64, bytes: &[u8], random: &mut Random) {
    let mut done = 0;
    while done < bytes.len() {
        let place = offset + done as u64;
        let count = ((SECTOR - place % SECTOR) as usize).min(bytes.len() - done);
        if random.coin() {
            image.write(place, &bytes[done..done + count]);
        }
        done += count;
    }
}
