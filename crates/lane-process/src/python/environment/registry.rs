//! The package registry: the user's configuration of `pip` and `uv`, as far as a confined installer needs it, which has neither the
//! user's environment variables nor the user's home.
//!
//! Variables are selected from a list, so that no other program's key is passed on. Configuration files are copied into the
//! installer's own home. Files and folders that the configuration names, such as certificates and wheel folders, are readable in place.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::packages::configuration::{CollectedConfiguration, contents};
use crate::packages::installer::Configured;

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

/// Reads the configuration of a user with these variables, and copies its files into `home`. A folder that contains one of `closed`
/// is never made readable.
pub(crate) fn configured(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    home: &Path,
    closed: &[&Path],
) -> io::Result<Configured> {
    let all: Vec<(String, OsString)> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let value =
        |wanted: &str| all.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str());
    let folder = |name: &str| value(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = folder("HOME");
    let mut found = CollectedConfiguration::of(user.clone());
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
        found.configured.variables.push((name.to_owned(), seen));
    }
    let shared = value("XDG_CONFIG_DIRS").unwrap_or(OsStr::new("/etc/xdg"));
    let shared = std::env::split_paths(shared).filter(|folder| folder.is_absolute());
    let shared = shared.flat_map(|folder| SYSTEM_NAMES.iter().map(move |name| folder.join(name)));
    for file in SYSTEM_FILES.iter().map(PathBuf::from).chain(shared) {
        if let Some(text) = contents(&file) {
            found.named_in(&text);
            found.configured.readable.push(file);
        }
    }
    Ok(found.finish(closed))
}

fn is_passed_on(name: &str) -> bool {
    let of_index = |name: &str| name.ends_with("_USERNAME") || name.ends_with("_PASSWORD");
    VARIABLES.contains(&name) || name.strip_prefix("UV_INDEX_").is_some_and(of_index)
}
