//! The package registry: the user's configuration of `npm`, as far as a confined installer needs it, which has neither the user's
//! environment variables nor the user's home. Variables are selected from a list, so that no other program's key is passed on.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::packages::configuration::CollectedConfiguration;
use crate::packages::installer::Configured;

/// Variables of every program that connects to something.
const VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Settings of `npm` that are passed on as variables, in small letters behind `npm_config_`. None of them changes where packages are
/// written, or lets code of a package run.
const SETTINGS: &[&str] = &[
    "before",
    "ca",
    "cafile",
    "fetch_retries",
    "fetch_retry_maxtimeout",
    "fetch_retry_mintimeout",
    "fetch_timeout",
    "https_proxy",
    "maxsockets",
    "noproxy",
    "offline",
    "prefer_offline",
    "proxy",
    "registry",
    "strict_ssl",
];

/// Reads the configuration of a user with these variables, and copies its files into `home`, as `.npmrc` and `global.npmrc`. A folder that
/// contains one of `closed` is never made readable.
pub(super) fn configured(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    home: &Path,
    closed: &[&Path],
    prefix: Option<&Path>,
) -> io::Result<Configured> {
    let all: Vec<(String, OsString)> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let setting = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.strip_prefix("npm_config_").map(str::to_owned)
    };
    let path = |wanted: &dyn Fn(&str) -> bool| {
        let found = all.iter().find(|(name, _)| wanted(name)).map(|(_, value)| PathBuf::from(value));
        found.filter(|path| path.is_absolute())
    };
    let user = path(&|name| name == "HOME");
    let mut found = CollectedConfiguration::of(user.clone());
    for (name, value) in &all {
        let is_setting = setting(name).is_some_and(|name| SETTINGS.contains(&name.as_str()));
        if VARIABLES.contains(&name.as_str()) || is_setting {
            found.variable(name, value);
        }
    }
    let named = |wanted: &str| path(&|name| setting(name).is_some_and(|name| name == wanted));
    let own = named("userconfig").or_else(|| Some(user.as_ref()?.join(".npmrc")));
    let global = named("globalconfig").or_else(|| Some(prefix?.join("etc/npmrc")));
    for (from, to) in [(own, ".npmrc"), (global, "global.npmrc")] {
        if let Some(from) = from {
            found.copy(&from, &home.join(to))?;
        }
    }
    Ok(found.finish(closed))
}
