//! Variables: the process's, which are read only, and under them those of `.env`, which can be written. Read as the rest of the program reads them.

mod edit;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;

use crate::files::{self, WriteLock};
use crate::name::SecretName;
use crate::store::{Description, SecretStore, SecretStoreState, StoreKind};

type Process = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// `.env` as it may have it, which is what the home's settings allow as well.
const MAX_BYTES: u64 = 256 * 1024;

/// The variables of the process and of a home's `.env`.
pub struct EnvironmentStore {
    home: PathBuf,
    process: Process,
}

impl EnvironmentStore {
    /// The `.env` of this home, under variables that are looked up by name.
    pub fn new(home: &Path, process: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self { home: home.to_owned(), process: Box::new(process) }
    }

    fn path(&self) -> PathBuf {
        self.home.join(".env")
    }

    fn process(&self, name: &SecretName) -> Option<SecretString> {
        let value = (self.process)(&name.to_string())?.into_string().ok()?;
        Some(value).filter(|value| !value.is_empty()).map(SecretString::from)
    }

    /// The text of `.env`; none if there is no file.
    fn text(&self) -> Result<Option<Zeroizing<String>>, Problem> {
        let path = self.path();
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|error| files::failed(&path, "read", &error))?,
        };
        if !found.is_file() || found.len() > MAX_BYTES {
            let what = format!("{} is not a file of variables", path.display());
            return Err(Problem::in_file(Code::EnvironmentInvalid, &path, what));
        }
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let what =
                format!("other users can access {} (mode {mode:03o}), so it was not used", path.display());
            let help = format!("Take their access away: `chmod 600 {}`.", path.display());
            return Err(Problem::in_file(Code::EnvironmentExposed, &path, what).help(help));
        }
        let text = holdfast_untrusted_files::read_text(&path, MAX_BYTES)
            .map_err(|error| files::failed(&path, "read", &error.into()))?;
        Ok(Some(Zeroizing::new(text)))
    }

    fn file(&self) -> Result<edit::Variables, Problem> {
        match self.text()? {
            Some(text) => edit::parse(&text).ok_or_else(|| {
                let what = format!("{} has a line that cannot be understood", self.path().display());
                Problem::in_file(Code::EnvironmentInvalid, &self.path(), what)
            }),
            None => Ok(edit::Variables::new()),
        }
    }

    /// Rewrites `.env` with a variable set or removed. The rest of the file stays.
    fn write(&self, name: &SecretName, value: Option<&SecretString>) -> Result<(), Problem> {
        let _lock = WriteLock::take(&self.home)?;
        let text = self.text()?.unwrap_or_default();
        let changed = edit::change(&text, &name.to_string(), value).ok_or_else(|| {
            let what = format!("{name} cannot be changed in {} without touching more", self.path().display());
            Problem::in_file(Code::SecretReadOnly, &self.path(), what).help("Change the line by hand.")
        })?;
        files::write_draft(&self.path(), changed.as_bytes())?.commit()
    }
}

impl SecretStore for EnvironmentStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Environment
    }

    fn get(&self, name: &SecretName) -> Result<Option<SecretString>, Problem> {
        match self.process(name) {
            Some(value) => Ok(Some(value)),
            None => Ok(self.file()?.remove(&name.to_string())),
        }
    }

    fn set(&self, name: &SecretName, value: &SecretString) -> Result<(), Problem> {
        if self.process(name).is_some() {
            let what = format!("{name} is a variable of the process, which comes before .env");
            return Err(Problem::new(Code::SecretReadOnly, what).help("Unset the variable first."));
        }
        if name.to_string().contains('-') {
            let what = format!("a variable cannot be called `{name}`");
            return Err(Problem::new(Code::SecretReadOnly, what).help("Keep it in another store."));
        }
        self.write(name, Some(value))
    }

    fn remove(&self, name: &SecretName) -> Result<bool, Problem> {
        if !self.file()?.contains_key(&name.to_string()) {
            return Ok(false);
        }
        self.write(name, None)?;
        Ok(true)
    }

    /// The names in `.env`: which of the process's variables are secrets is not known.
    fn names(&self) -> Result<Vec<SecretName>, Problem> {
        Ok(self.file()?.keys().filter_map(|name| name.parse().ok()).collect())
    }

    fn describe(&self) -> Description {
        let place = format!("{}, under the process's variables", self.path().display());
        Description { kind: self.kind(), place, state: SecretStoreState::of(self.names()) }
    }
}

impl fmt::Debug for EnvironmentStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({})", self.path().display())
    }
}
