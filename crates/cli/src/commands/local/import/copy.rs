//! Copying folders of another program. Links and special files are left, and what is there already is kept.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::read;

use super::{Importer, Outcome};

/// The largest file that is copied, and the most of one folder.
const MAX_FILE_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 10_000;

/// What became of the files of a folder.
#[derive(Default)]
pub(super) struct Copied {
    pub new: usize,
    pub kept: usize,
    /// What was left, and why; the first of them.
    pub left: Option<String>,
}

impl Importer<'_> {
    /// Copies a folder of the other program to a place in the home, and says so.
    pub(super) fn copy(
        &mut self,
        kind: &'static str,
        name: &str,
        from: &Path,
        to: &Path,
        note: &str,
    ) -> Result<(), Problem> {
        let mut copied = Copied::default();
        copy_folder(from, to, self.dry, &mut copied)?;
        let outcome = if copied.new > 0 { Outcome::Imported } else { Outcome::Present };
        let note = match copied.left {
            Some(left) if note.is_empty() => left,
            Some(left) => format!("{left}; {note}"),
            None => note.to_owned(),
        };
        self.line(kind, name, outcome, note);
        Ok(())
    }
}

fn copy_folder(from: &Path, to: &Path, dry: bool, copied: &mut Copied) -> Result<(), Problem> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Problem::in_file(Code::HomeUnavailable, path, format!("{} cannot be copied: {error}", path.display()))
    };
    let entries = fs::read_dir(from).map_err(|error| failed(from, &error))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let (source, target) = (from.join(&name), to.join(&name));
        let kind = fs::symlink_metadata(&source).map_err(|error| failed(&source, &error))?.file_type();
        let generated = name == "__pycache__" || name == ".git" || source.join("pyvenv.cfg").exists();
        if kind.is_dir() && generated {
            continue;
        }
        if kind.is_dir() {
            copy_folder(&source, &target, dry, copied)?;
            continue;
        }
        if !kind.is_file() {
            let what = if kind.is_symlink() { "a link" } else { "no regular file" };
            copied.left.get_or_insert(format!("left {}: {what}", source.display()));
            continue;
        }
        if copied.new + copied.kept >= MAX_FILES {
            copied.left.get_or_insert(format!("left all but {MAX_FILES} files"));
            return Ok(());
        }
        // A file that an extension has taken over has another name since.
        let mut taken_over = target.clone().into_os_string();
        taken_over.push(".imported");
        if [target.as_path(), Path::new(&taken_over)].iter().any(|path| fs::symlink_metadata(path).is_ok()) {
            copied.kept += 1;
            continue;
        }
        copied.new += 1;
        if dry {
            continue;
        }
        let bytes = read(&source, MAX_FILE_BYTES).map_err(|error| failed(&source, &error))?;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(to);
        made.and_then(|()| {
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(&target)?.write_all(&bytes)
        })
        .map_err(|error| failed(&target, &error))?;
    }
    Ok(())
}
