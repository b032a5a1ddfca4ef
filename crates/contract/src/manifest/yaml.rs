//! YAML with exact places: whoever reads a file for people gets every problem at once, each with file, line,
//! column, field and a fix.
//!
//! [`read`] parses a text into a tree that remembers where everything stands and hands its root to a function
//! of yours as a [`Field`]. Settings and policies are read with the same machinery; a [`Format`] says under
//! which codes. No file is opened here.

mod field;
mod nearest;
mod notes;
mod path;
mod scalar;
mod syntax;
mod tree;

use std::fmt;
use std::path::{Path, PathBuf};

pub use self::field::{Field, Object, Reported};
pub use self::nearest::nearest;
use self::notes::Notes;
use self::tree::{Mark, Node, NodeValue};
use crate::problem::{Code, Location, Problem, Severity};

/// What is being read, and under which codes its problems go.
#[derive(Debug)]
pub struct Format {
    /// What `holdfast schema` knows it by: `manifest`, `settings`, `policy`.
    pub name: &'static str,
    /// The most bytes it may have. What aliases unfold to may be four times as much.
    pub max_bytes: usize,
    /// The codes of its problems.
    pub codes: Codes,
}

/// The code for each sort of problem.
#[derive(Debug)]
pub struct Codes {
    /// It is not UTF-8.
    pub unreadable: Code,
    /// It is not YAML.
    pub syntax: Code,
    /// A field has the wrong type.
    pub wrong_type: Code,
    /// A field that nobody reads; a warning.
    pub unknown_field: Code,
    /// A key that stands twice; a warning.
    pub duplicate_key: Code,
    /// A required field is not there.
    pub missing_field: Code,
    /// A value of the right type that cannot be.
    pub value: Code,
    /// It is too large, or unfolds to something too large.
    pub too_large: Code,
}

impl Codes {
    /// One code for everything.
    pub const fn all(code: Code) -> Self {
        Self {
            unreadable: code,
            syntax: code,
            wrong_type: code,
            unknown_field: code,
            duplicate_key: code,
            missing_field: code,
            value: code,
            too_large: code,
        }
    }
}

/// What came of a text that could be read.
#[derive(Clone, Debug)]
pub struct YamlRead<T> {
    /// What it says.
    pub value: T,
    /// What is odd about it, in the order of the lines.
    pub warnings: Vec<Problem>,
    /// Where everything stands, for problems that show up later.
    pub source: YamlSource,
}

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlRejected {
    /// What must be mended: at least one, in the order of the lines.
    pub errors: Vec<Problem>,
    /// What is odd besides; often the cause of an error, such as a misspelt name.
    pub warnings: Vec<Problem>,
}

impl From<YamlRejected> for Problem {
    /// All of it as one problem.
    fn from(rejected: YamlRejected) -> Self {
        let all = Problem::all(rejected.errors.into_iter().chain(rejected.warnings));
        all.unwrap_or_else(|| Problem::new(Code::Internal, "a file was rejected without a reason"))
    }
}

impl fmt::Display for YamlRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.errors.iter().chain(&self.warnings).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for YamlRejected {}

/// Where the fields of a file stand.
#[derive(Clone, Debug)]
pub struct YamlSource {
    file: PathBuf,
    root: Node,
}

impl YamlSource {
    /// The place of a field, written `agent.limits.max_turns` or `depends_on[0]`. For a field that the file
    /// leaves out it is the place of the nearest one around it.
    pub fn locate(&self, field: &str) -> Location {
        let mut node = &self.root;
        for step in field.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match node.shape() {
                NodeValue::Map(entries) => {
                    entries.iter().find(|entry| *entry.key == *step).map(|entry| &entry.value)
                }
                NodeValue::List(items) => {
                    step.strip_suffix(']').and_then(|index| items.get(index.parse::<usize>().ok()?))
                }
                NodeValue::Scalar { .. } => None,
            };
            match next {
                Some(found) => node = found,
                None => break,
            }
        }
        let Mark { line, column } = node.mark;
        Location { file: self.file.clone(), line, column, field: Some(field.to_owned()) }
    }
}

/// Reads a text. All problems are found in one pass, unless it is no YAML at all.
pub fn read<T>(
    format: &Format,
    file: &Path,
    text: &str,
    read: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<YamlRead<T>, YamlRejected> {
    let notes = Notes::new(format, file);
    let outcome = notes.check_size(text.len()).and_then(|()| tree::build(text, &notes)).and_then(|root| {
        let value = read(&Field::root(&notes, &root));
        value.map(|value| (value, root))
    });
    finish(notes, outcome)
}

/// The same for bytes that may not be UTF-8.
pub fn read_bytes<T>(
    format: &Format,
    file: &Path,
    bytes: &[u8],
    body: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<YamlRead<T>, YamlRejected> {
    let notes = Notes::new(format, file);
    let text = notes.check_size(bytes.len()).and_then(|()| {
        std::str::from_utf8(bytes).map_err(|error| syntax::not_utf8(&notes, bytes, error.valid_up_to()))
    });
    match text {
        Ok(text) => read(format, file, text, body),
        Err(reported) => finish(notes, Err(reported)),
    }
}

/// A stricter reading: what is refused is an error, although the reader only warns of it.
pub fn stricter<T>(
    outcome: Result<YamlRead<T>, YamlRejected>,
    refused: impl Fn(&Problem) -> bool,
) -> Result<YamlRead<T>, YamlRejected> {
    let (mut errors, warnings, read) = match outcome {
        Ok(read) => (Vec::new(), read.warnings, Some((read.value, read.source))),
        Err(YamlRejected { errors, warnings }) => (errors, warnings, None),
    };
    let (stopping, warnings): (Vec<_>, Vec<_>) = warnings.into_iter().partition(refused);
    errors.extend(stopping.into_iter().map(|problem| problem.with(Severity::Error)));
    errors.sort_by_key(|problem| problem.location.as_ref().map(|at| (at.line, at.column)));
    match read {
        Some((value, source)) if errors.is_empty() => Ok(YamlRead { value, warnings, source }),
        _ => Err(YamlRejected { errors, warnings }),
    }
}

fn finish<T>(notes: Notes<'_>, outcome: Result<(T, Node), Reported>) -> Result<YamlRead<T>, YamlRejected> {
    let file = notes.file().to_owned();
    let (errors, warnings) = notes.into_problems();
    match outcome {
        Ok((value, root)) if errors.is_empty() => {
            Ok(YamlRead { value, warnings, source: YamlSource { file, root } })
        }
        _ => Err(YamlRejected { errors, warnings }),
    }
}
