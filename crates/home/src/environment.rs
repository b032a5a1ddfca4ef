//! Variables: those of the process, and under them those of `.env`. Values are secrets from here on: they are never shown, and a message
//! about a line never quotes it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;

use holdfast_contract::problem::{Code, Location, Problem};
use secrecy::SecretString;

use crate::files::{self, Bounds, OTHERS};
use crate::home::Home;

const BOUNDS: Bounds = Bounds {
    unreadable: Code::EnvironmentInvalid,
    too_large: Code::EnvironmentInvalid,
    max_bytes: 256 * 1024,
};

type Process = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The variables that are in force. The environment of the process is read and never changed.
pub struct HomeEnvironment {
    process: Process,
    file: BTreeMap<String, SecretString>,
    warnings: Vec<Problem>,
}

impl HomeEnvironment {
    /// Reads `.env`. A file that others can read is not read, which is a warning.
    pub fn load(
        home: &Home,
        process: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Result<Self, Problem> {
        let path = home.env_file();
        let mut environment =
            Self { process: Box::new(process), file: BTreeMap::new(), warnings: Vec::new() };
        if let Some(warning) = exposed(&path) {
            environment.warnings.push(warning);
        } else if let Some(bytes) = files::read(&path, &BOUNDS)? {
            let text = files::text(&path, bytes, Code::EnvironmentInvalid)?;
            environment.file = parse(&path, &text)?;
        }
        Ok(environment)
    }

    /// A variable: the process's, or else the file's. One that is set to nothing counts as not set.
    pub fn get(&self, name: &str) -> Option<SecretString> {
        let process = (self.process)(name).and_then(|value| value.into_string().ok());
        let process = process.filter(|value| !value.is_empty()).map(SecretString::from);
        process.or_else(|| self.file.get(name).cloned())
    }

    /// The names that `.env` sets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.file.keys().map(String::as_str)
    }

    /// Warnings.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}

impl fmt::Debug for HomeEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("names", &self.file.keys()).finish_non_exhaustive()
    }
}

/// The warning about a file that others can read.
pub(crate) fn exposed(path: &Path) -> Option<Problem> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & OTHERS != 0).then(|| {
        let what =
            format!("others can read {} (mode {:03o}), so it was not read", path.display(), mode & 0o777);
        let location = Location { file: path.to_owned(), ..Location::default() };
        let help = format!("Take their access away: `chmod 600 {}`.", path.display());
        Problem::warning(Code::EnvironmentExposed, what).at(location).help(help)
    })
}

fn parse(path: &Path, text: &str) -> Result<BTreeMap<String, SecretString>, Problem> {
    let taken = Rc::new(Cell::new(0));
    let lines = Lines { rest: text.as_bytes(), taken: taken.clone() };
    let mut variables = BTreeMap::new();
    for next in dotenvy::from_read_iter(lines) {
        match next {
            Ok((_, value)) if value.is_empty() => {}
            Ok((name, value)) => {
                variables.insert(name, SecretString::from(value));
            }
            Err(error) => return Err(bad_line(path, text, taken.get(), &error)),
        }
    }
    Ok(variables)
}

/// Where a line is that cannot be read. It ends at the last line that was taken, and may have begun above: then a quote is open.
fn bad_line(path: &Path, text: &str, taken: usize, error: &dotenvy::Error) -> Problem {
    let spanned = match error {
        dotenvy::Error::LineParse(line, _) => line.lines().count().max(1),
        _ => 1,
    };
    let first = (taken + 1).saturating_sub(spanned).max(1);
    let line = u32::try_from(first).unwrap_or(u32::MAX);
    let location = Location { file: path.to_owned(), line, column: 1, field: None };
    let (what, help) = match (spanned > 1, text.lines().nth(first - 1)) {
        (true, _) => {
            ("a quote that begins here is not closed", "Close the quote, or put the value in single quotes.")
        }
        (_, Some(line)) if !line.contains('=') => {
            ("the line sets nothing", "Write `NAME=value`, or `#` before a comment.")
        }
        _ => ("the line cannot be understood", Code::EnvironmentInvalid.help()),
    };
    Problem::new(Code::EnvironmentInvalid, what).at(location).help(help)
}

/// A reader that returns a text line by line, so that the position of the parser is known.
struct Lines<'t> {
    rest: &'t [u8],
    taken: Rc<Cell<usize>>,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let line = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |end| end + 1);
        let count = line.min(buffer.len());
        let (taken, rest) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(taken);
        self.rest = rest;
        if count > 0 && count == line {
            self.taken.set(self.taken.get() + 1);
        }
        Ok(count)
    }
}
