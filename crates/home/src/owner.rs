//! Ownership of the home: one process at a time, by a file lock that the operating system releases when the process ends.
//!
//! Only the lock counts. The content of the lock file tells users who has it.

pub(crate) mod socket;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::open_regular;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::home::Home;

/// How often, and after which pause, the lock is retried: a process that only asks for the owner takes it for a moment.
const LOCK_ATTEMPTS: u32 = 25;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Ownership of the home, until this is dropped or the process ends.
#[derive(Debug)]
pub struct HomeOwner {
    lock: File,
    home: Home,
}

/// Who owns a home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    /// The process id, if it is written already.
    pub pid: Option<u32>,
    /// Since when, in milliseconds of the wall clock.
    pub since: Option<Millis>,
}

impl Home {
    /// Locks the home; missing folders are created. If another process owns it, the error is `HF-1502`, and clients connect to the
    /// control socket.
    pub fn own(&self) -> Result<HomeOwner, Problem> {
        let path = self.lock_file();
        let failed = |error: io::Error| files::failed(Code::HomeUnavailable, &path, "locked", &error);
        if !self.exists() {
            self.ensure()?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut lock = open_regular(&mut options, &path).map_err(|error| failed(error.into()))?;
        let mut tries = 0;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let info = info(&mut lock);
            tries += 1;
            if tries >= LOCK_ATTEMPTS || info.pid.is_some_and(is_running) {
                return Err(owned(self, info));
            }
            thread::sleep(LOCK_RETRY_PAUSE);
        }
        sign(&mut lock).map_err(failed)?;
        let owner = HomeOwner { lock, home: self.clone() };
        self.clear_socket()?;
        Ok(owner)
    }

    /// The owner of the home, if there is one.
    pub fn owner(&self) -> Option<OwnerInfo> {
        let mut lock = open_regular(OpenOptions::new().read(true), &self.lock_file()).ok()?;
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(info(&mut lock)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

impl HomeOwner {
    /// What is owned.
    pub fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for HomeOwner {
    fn drop(&mut self) {
        // The lock ends with the file's last handle. The content would mislead users.
        let _ = fs::remove_file(self.home.control_socket());
        let _ = self.lock.set_len(0);
    }
}

fn info(lock: &mut File) -> OwnerInfo {
    let mut text = String::new();
    let read = lock.seek(SeekFrom::Start(0)).and_then(|_| lock.take(1024).read_to_string(&mut text));
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn sign(lock: &mut File) -> io::Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let info = OwnerInfo { pid: Some(std::process::id()), since: u64::try_from(since).ok().map(Millis) };
    lock.set_len(0)?;
    lock.seek(SeekFrom::Start(0))?;
    lock.write_all(serde_json::to_string(&info).unwrap_or_default().as_bytes())
}

fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

fn owned(home: &Home, info: OwnerInfo) -> Problem {
    let by = info.pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    let what = format!("the home {} is owned by {by}", home.root().display());
    Problem::in_file(Code::HomeOwned, &home.lock_file(), what)
}
