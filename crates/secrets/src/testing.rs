//! Homes for tests, names and values, and other processes of the same tests.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use secrecy::{ExposeSecret, SecretString};

use crate::{EncryptedFile, SecretName, SecretStore};

pub(crate) fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

pub(crate) fn secret(text: &str) -> SecretString {
    SecretString::from(text)
}

pub(crate) fn nothing(_: &str) -> Option<OsString> {
    None
}

/// The encrypted file of a home, with its identity.
pub(crate) fn encrypted(home: &Path) -> EncryptedFile {
    EncryptedFile::new(home, None)
}

pub(crate) fn put(store: &dyn SecretStore, secret_name: &str, value: &str) {
    store.set(&name(secret_name), &secret(value)).unwrap();
}

/// What a store has under a name.
pub(crate) fn got(store: &dyn SecretStore, secret_name: &str) -> Option<String> {
    let found = store.get(&name(secret_name)).unwrap_or_else(|problem| panic!("{problem}"));
    found.map(|value| value.expose_secret().to_owned())
}

/// The code of the problem that stands in the way of a secret, and what setting one says.
pub(crate) fn refused(store: &dyn SecretStore) -> (String, String) {
    let read = store.get(&name("TOKEN")).unwrap_err();
    let written = store.set(&name("TOKEN"), &secret("new value")).unwrap_err();
    assert_eq!(read.code, written.code, "{written}");
    (read.code.to_string(), read.to_string())
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Every file in a folder with its bytes.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// Set in the processes that tests start.
const CHILD: &str = "HOLDFAST_TEST_CHILD";

/// The folder and the word that the parent gave to this process, if it is such a child.
pub(crate) fn given_by_parent() -> Option<(PathBuf, String)> {
    let given = std::env::var(CHILD).ok()?;
    let (word, folder) = given.split_once('=')?;
    Some((PathBuf::from(folder), word.to_owned()))
}

/// Runs one test of this binary again in a process of its own, with a folder and a word.
pub(crate) fn rerun(test: &str, folder: &Path, word: &str, variables: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, format!("{word}={}", folder.display()))
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
