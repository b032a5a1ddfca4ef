//! The user's configuration of installers, which have neither the user's environment variables nor the user's home: selected variables are
//! passed on, files are copied into the installer's own home, and what they name, such as certificates, is readable in place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::packages::installer::Configured;

/// Bytes of a configuration file that are read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Configuration of the user that is collected for an installer.
pub(crate) struct CollectedConfiguration {
    /// The home that `~` means in the configuration.
    user: Option<PathBuf>,
    /// Paths that the configuration names.
    paths: Vec<PathBuf>,
    pub(crate) configured: Configured,
}

impl CollectedConfiguration {
    /// Nothing yet, of a user with this home.
    pub(crate) fn of(user: Option<PathBuf>) -> Self {
        Self { user, paths: Vec::new(), configured: Configured::default() }
    }

    /// Passes a variable on.
    pub(crate) fn variable(&mut self, name: &str, value: &OsStr) {
        if name == "SSL_CERT_DIR" {
            self.paths.extend(std::env::split_paths(value));
        }
        let value = match value.to_str() {
            Some(text) => {
                let text = self.with_home(text);
                self.named_in(&text);
                OsString::from(text)
            }
            None => value.to_owned(),
        };
        self.configured.variables.push((name.to_owned(), value));
    }

    /// Copies a configuration file; false if it does not exist.
    pub(crate) fn copy(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
        let Some(text) = contents(from) else { return Ok(false) };
        let text = self.with_home(&text);
        self.named_in(&text);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        // It may hold a password.
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).mode(0o600).open(to)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        Ok(true)
    }

    /// Replaces `~/` at the beginning of a word by the user's home, since the installer has another one.
    fn with_home(&self, text: &str) -> String {
        let Some(user) = self.user.as_deref().and_then(Path::to_str) else { return text.to_owned() };
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("~/") {
            let (before, after) = rest.split_at(at);
            expanded.push_str(before);
            let begins = expanded.chars().next_back().is_none_or(is_separator);
            expanded.push_str(if begins { user } else { "~" });
            rest = after.strip_prefix('~').unwrap_or_default();
        }
        expanded.push_str(rest);
        expanded
    }

    /// Collects the absolute paths and `file:` URLs in a text.
    pub(crate) fn named_in(&mut self, text: &str) {
        let words = text.split(is_separator);
        let paths = words.map(|word| word.strip_prefix("file://").unwrap_or(word));
        self.paths.extend(paths.filter(|path| path.starts_with('/')).map(PathBuf::from));
    }

    /// What the installer has. A folder that contains one of `closed` is not readable.
    pub(crate) fn finish(mut self, closed: &[&Path]) -> Configured {
        let mut closed: Vec<PathBuf> = closed.iter().filter_map(|path| path.canonicalize().ok()).collect();
        closed.extend(self.user.as_ref().and_then(|user| user.canonicalize().ok()));
        let paths = self.paths.iter().filter_map(|path| path.canonicalize().ok());
        let open = paths.filter(|path| !closed.iter().any(|closed| closed.starts_with(path)));
        self.configured.readable.extend(open);
        self.configured
    }
}

fn is_separator(char: char) -> bool {
    char.is_whitespace() || "'\"=,;[]{}".contains(char)
}

/// The text of a regular file, if it is readable.
pub(crate) fn contents(path: &Path) -> Option<String> {
    holdfast_untrusted_files::read_text(path, MAX_CONFIG_BYTES).ok()
}
