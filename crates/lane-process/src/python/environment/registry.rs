//! The package registry: the user's configuration of `pip` and `uv`, as far as a confined installer needs it, which has neither the
//! user's environment variables nor the user's home.
//!
//! Variables are selected from a list, so that no other program's key is passed on. Configuration files are copied into the
//! installer's own home. Files and folders that the configuration names, such as certificates and wheel folders, are readable in place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a configuration file that are read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Variables for index, proxy, certificates and version preference. None of them changes where packages are written or lets one be
/// built from source.
const VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONSTRAINT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_PRE",
    "PIP_PROXY",
    "PIP_REQUIRE_HASHES",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "PIP_USE_DEPRECATED",
    "PIP_USE_FEATURE",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SSL_CLIENT_CERT",
    "UV_CONSTRAINT",
    "UV_DEFAULT_INDEX",
    "UV_EXCLUDE_NEWER",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_HTTP_CONNECT_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_NATIVE_TLS",
    "UV_OFFLINE",
    "UV_PRERELEASE",
    "UV_REQUEST_TIMEOUT",
    "UV_REQUIRE_HASHES",
    "UV_RESOLUTION",
    "UV_SYSTEM_CERTS",
    "XDG_CONFIG_DIRS",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Configuration of the whole system, in `/etc` and in each folder of `XDG_CONFIG_DIRS`.
const SYSTEM_FILES: &[&str] = &["/etc/pip.conf", "/etc/uv/uv.toml"];
const SYSTEM_NAMES: &[&str] = &["pip/pip.conf", "uv/uv.toml"];

/// The user's configuration.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Variables for the installer.
    pub(crate) variables: Vec<(String, OsString)>,
    /// Paths that it may read besides its own folders.
    pub(crate) readable: Vec<PathBuf>,
}

/// Reads the configuration of a user with these variables, and copies its files into `home`. A folder that contains one of `closed`
/// is never made readable.
pub(crate) fn configured(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    home: &Path,
    closed: &[&Path],
) -> io::Result<Registry> {
    let all: Vec<(String, OsString)> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let value =
        |wanted: &str| all.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str());
    let folder = |name: &str| value(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = folder("HOME");
    let mut found = Collected { user: user.clone(), paths: Vec::new(), registry: Registry::default() };
    for (name, value) in all.iter().filter(|(name, _)| is_passed_on(name)) {
        found.variable(name, value);
    }
    // Each file is copied to where the installer looks for it when `home` is its home.
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(user.as_ref()?.join(".config")));
    let data = folder("XDG_DATA_HOME").or_else(|| Some(user.as_ref()?.join(".local/share")));
    let within = |folder: &Option<PathBuf>, name: &str| Some(folder.as_ref()?.join(name));
    let netrc = folder("NETRC").or_else(|| within(&user, ".netrc"));
    let credentials = "uv/credentials/credentials.toml";
    for (from, to) in [
        (within(&config, "pip/pip.conf"), ".config/pip/pip.conf"),
        (within(&user, ".pip/pip.conf"), ".pip/pip.conf"),
        (within(&config, "uv/uv.toml"), ".config/uv/uv.toml"),
        (within(&data, credentials), ".local/share/uv/credentials/credentials.toml"),
        (netrc, ".netrc"),
    ] {
        if let Some(from) = from {
            found.copy(&from, &home.join(to))?;
        }
    }
    for (name, to) in [("PIP_CONFIG_FILE", "pip.conf"), ("UV_CONFIG_FILE", "uv.toml")] {
        let Some(from) = value(name) else { continue };
        let copied = found.copy(Path::new(from), &home.join(to))?;
        // `/dev/null` is how `pip` is told to read no file.
        let seen = if copied { home.join(to).into_os_string() } else { OsString::from("/dev/null") };
        found.registry.variables.push((name.to_owned(), seen));
    }
    let shared = value("XDG_CONFIG_DIRS").unwrap_or(OsStr::new("/etc/xdg"));
    let shared = std::env::split_paths(shared).filter(|folder| folder.is_absolute());
    let shared = shared.flat_map(|folder| SYSTEM_NAMES.iter().map(move |name| folder.join(name)));
    for file in SYSTEM_FILES.iter().map(PathBuf::from).chain(shared) {
        if let Some(text) = contents(&file) {
            found.named_in(&text);
            found.registry.readable.push(file);
        }
    }
    Ok(found.finish(closed))
}

fn is_passed_on(name: &str) -> bool {
    let of_index = |name: &str| name.ends_with("_USERNAME") || name.ends_with("_PASSWORD");
    VARIABLES.contains(&name) || name.strip_prefix("UV_INDEX_").is_some_and(of_index)
}

struct Collected {
    /// The home that `~` means in the configuration.
    user: Option<PathBuf>,
    /// Paths that the configuration names.
    paths: Vec<PathBuf>,
    registry: Registry,
}

impl Collected {
    fn variable(&mut self, name: &str, value: &OsStr) {
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
        self.registry.variables.push((name.to_owned(), value));
    }

    /// Copies a configuration file; false if it does not exist.
    fn copy(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
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
    fn named_in(&mut self, text: &str) {
        let words = text.split(is_separator);
        let paths = words.map(|word| word.strip_prefix("file://").unwrap_or(word));
        self.paths.extend(paths.filter(|path| path.starts_with('/')).map(PathBuf::from));
    }

    fn finish(mut self, closed: &[&Path]) -> Registry {
        let mut closed: Vec<PathBuf> = closed.iter().filter_map(|path| path.canonicalize().ok()).collect();
        closed.extend(self.user.as_ref().and_then(|user| user.canonicalize().ok()));
        let paths = self.paths.iter().filter_map(|path| path.canonicalize().ok());
        let open = paths.filter(|path| !closed.iter().any(|closed| closed.starts_with(path)));
        self.registry.readable.extend(open);
        self.registry
    }
}

fn is_separator(char: char) -> bool {
    char.is_whitespace() || "'\"=,;[]{}".contains(char)
}

/// The text of a regular file, if it is readable.
fn contents(path: &Path) -> Option<String> {
    holdfast_untrusted_files::read_text(path, MAX_CONFIG_BYTES).ok()
}
