//! Runs a command: a process group, a temporary folder, limits, captured output, and killing every process that it started.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_contract::problem::{Code, Fault};
use holdfast_lane_native::Workspace;
use holdfast_sandbox::{Group, ProcessLimits, ProgramAccess, Switch, threads_on_machine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;

use crate::ShellOptions;
use crate::linux::output::Stream;

/// How often the number of processes is checked.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// Entries of the workspace that are compared with hard-linked files of the home.
const MAX_COMPARED_ENTRIES: usize = 200_000;

/// The wrapper waits until its limits are set, closes its standard input, and then executes the command.
const WRAPPER: &str = r#"read -r _ || exit 125; exec </dev/null; exec /bin/sh -c -- "$1""#;

/// What to run, and where.
pub(crate) struct Job<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) options: &'a ShellOptions,
    pub(crate) reach: &'a ProgramAccess,
    pub(crate) command: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) timeout: Duration,
}

/// The result of a command.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    exit_code: Option<i32>,
    signal: Option<i32>,
    timed_out: bool,
    stdout: String,
    stderr: String,
    truncated: bool,
    /// Why it was killed, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ToolFailed, format!("{what}: {error}"))
}

impl Job<'_> {
    /// Runs it. When this returns, no process of it is left.
    pub(crate) fn run(&self, switch: &Switch) -> Result<Outcome, Fault> {
        self.check_hard_links()?;
        let folder = self.folder()?;
        let scratch = tempfile::Builder::new().prefix("holdfast-").tempdir();
        let scratch = scratch.map_err(|error| failed("could not create a temporary directory", error))?;
        let mut group = Group::start().map_err(|error| failed("could not create a process group", error))?;
        let outcome = if switch.connect(group.id()) {
            self.run_in(&mut group, &folder, scratch.path())
        } else {
            Err(Fault::new(Code::ToolCancelled, "the call was cancelled before it began"))
        };
        switch.disconnect();
        group.end();
        outcome
    }

    fn run_in(&self, group: &mut Group, folder: &OwnedFd, scratch: &Path) -> Result<Outcome, Fault> {
        let scratch_handle =
            open_folder(scratch).map_err(|error| failed("could not create a temporary directory", error))?;
        let command = self.command(folder, scratch);
        let handles = [self.workspace.as_fd(), scratch_handle.as_fd()];
        let began = threads_on_machine();
        let mut child = self.reach.start(command, &handles, group)?;
        let watched = self.watch(group, &mut child, began);
        group.kill();
        let ended = child.wait();
        let (stdout, stderr, ending) = watched?;
        let status = ended.map_err(|error| failed("could not wait for the command", error))?;
        let (stdout, stderr) = (stdout.finish(), stderr.finish());
        let truncated = stdout.truncated() || stderr.truncated();
        Ok(Outcome {
            exit_code: status.code(),
            signal: status.signal(),
            timed_out: ending == Ending::Late,
            stdout: stdout.into_text(),
            stderr: stderr.into_text(),
            truncated,
            note: self.note(&ending),
        })
    }

    fn command(&self, folder: &OwnedFd, scratch: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", WRAPPER, "sh", self.command])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.workspace.path())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("TMPDIR", scratch)
            // By its handle, so that replacing the folder concurrently has no effect.
            .current_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Sets the limits, starts the command, and waits for its exit or for a reason to kill it.
    fn watch(
        &self,
        group: &Group,
        child: &mut Child,
        before: usize,
    ) -> Result<(Stream, Stream, Ending), Fault> {
        self.limit(Pid::from_child(child)).map_err(|error| failed("the limits cannot be set", error))?;
        let lost = || Fault::new(Code::Internal, "a stream of the command is missing");
        let limit = self.options.output_bytes;
        let read = |error| failed("the output cannot be read", error);
        let stdout = Stream::read(child.stdout.take().ok_or_else(lost)?, limit).map_err(read)?;
        let stderr = Stream::read(child.stderr.take().ok_or_else(lost)?, limit).map_err(read)?;
        let mut begin = child.stdin.take().ok_or_else(lost)?;
        // An error means that it has exited already, which is detected below.
        let _ = begin.write_all(b"\n");
        drop(begin);

        let deadline = Instant::now() + self.timeout;
        let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
        let handle = handle.map_err(|error| failed("the command cannot be watched", error))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((stdout, stderr, Ending::Late));
            }
            let pause = left.min(PROCESS_CHECK_INTERVAL);
            let pause = Timespec { tv_sec: 0, tv_nsec: pause.as_nanos() as _ };
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok((stdout, stderr, Ending::Own)),
                Err(error) => return Err(failed("the command cannot be watched", error)),
            }
            let more = threads_on_machine().saturating_sub(before);
            if more > self.options.tasks && group.tasks() > self.options.tasks {
                return Ok((stdout, stderr, Ending::TooMany));
            }
        }
    }

    fn limit(&self, process: Pid) -> rustix::io::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let cpu_seconds = Some((self.timeout.as_secs() + 1) * cores);
        let ShellOptions { file_bytes, memory_bytes, .. } = *self.options;
        ProcessLimits { file_bytes, memory_bytes, cpu_seconds }.set(process)
    }

    fn note(&self, ending: &Ending) -> Option<String> {
        match ending {
            Ending::Own => None,
            Ending::Late => Some(format!(
                "it ran longer than {} ms and was killed with all it had started",
                self.timeout.as_millis()
            )),
            Ending::TooMany => Some(format!(
                "it had more than {} processes and was killed with all of them",
                self.options.tasks
            )),
        }
    }

    /// A handle on the working directory, inside the workspace.
    fn folder(&self) -> Result<OwnedFd, Fault> {
        let inside = Path::new(self.folder);
        let inside = inside.strip_prefix(self.workspace.path()).unwrap_or(inside);
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(self.workspace, inside, flags, Mode::empty(), resolve);
        opened.map_err(|error| {
            let why = match error {
                Errno::XDEV => "it leads out of the workspace".to_owned(),
                other => other.to_string(),
            };
            Fault::new(Code::PathRefused, format!("commands cannot start in {:?}: {why}", self.folder))
        })
    }

    /// Landlock checks paths, and a hard link is a second path. So no hard link to a file of the home may be in the workspace.
    fn check_hard_links(&self) -> Result<(), Fault> {
        let home = self.workspace.linked_home_files();
        let home = home.map_err(|error| failed("the home cannot be compared with the workspace", error))?;
        if home.is_empty() {
            return Ok(());
        }
        let refused =
            |why: String| Err(Fault::new(Code::PathRefused, format!("no command runs here: {why}")));
        let mut folders = vec![self.workspace.path().to_owned()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                seen += 1;
                if seen > MAX_COMPARED_ENTRIES {
                    return refused(
                        "the home has files with two names, and the workspace is too large to look for them"
                            .to_owned(),
                    );
                }
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else if home.contains(&(metadata.dev(), metadata.ino())) {
                    return refused(format!(
                        "{} is a file of the home folder, under a second name",
                        entry.path().display()
                    ));
                }
            }
        }
        Ok(())
    }
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Own,
    Late,
    TooMany,
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
