//! Runs a command: a confined program, a temporary folder, limits, captured output, and killing every process that it started.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_contract::problem::{Code, Fault};
use holdfast_lane_native::Workspace;
use holdfast_sandbox::{
    ProcessLimits, Program, ProgramAccess, ProgramState, Running, Switch, threads_on_machine,
};
use holdfast_untrusted_files::TempFolder;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::ShellOptions;
use crate::linux::output::Stream;
use crate::linux::settings::WorkspaceSettings;

/// How often the number of processes is checked.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// How often the memory that they share is checked.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Entries of the workspace that are compared with hard-linked files of the home.
const MAX_COMPARED_ENTRIES: usize = 200_000;

/// Characters of a path that a warning shows.
const MAX_SHOWN_CHARS: usize = 120;
/// New entries that are named in a warning.
const MAX_NAMED_ENTRIES: usize = 10;

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
    /// What it created that can run programs on the host, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ToolFailed, format!("{what}: {error}"))
}

/// No command runs where the files that run programs on the host cannot all be protected from it.
fn unprotected(why: String) -> Fault {
    let what = format!(
        "no command runs here, because files that run programs on the host cannot all be protected: {why}. Start in a smaller folder, \
         or set `extensions.shell.protect_settings: false`"
    );
    Fault::new(Code::PathRefused, what)
}

impl Job<'_> {
    /// Runs it. When this returns, no process of it is left.
    pub(crate) fn run(&self, switch: &Switch) -> Result<Outcome, Fault> {
        self.check_hard_links()?;
        let folder = self.folder()?;
        let scratch = TempFolder::new();
        let scratch = scratch.map_err(|error| failed("could not create a temporary directory", error))?;
        let before = threads_on_machine();
        let settings = self.settings().map_err(unprotected)?;
        let read_only = settings.read_only(self.workspace.path()).map_err(unprotected)?;
        let Running { input, output, errors, life, .. } = self.start(&folder, scratch.path(), &read_only)?;
        // There is nothing to read.
        drop(input);
        let watched = if switch.connect(life.group()) {
            self.watch(&life, output, errors, before)
        } else {
            Err(Fault::new(Code::ToolCancelled, "the call was cancelled before it began"))
        };
        let ended = life.end(switch);
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
            warning: match self.settings() {
                Ok(now) => warning(&now.new_since(&settings)),
                Err(why) => Some(format!("what the command has created was not looked through: {why}")),
            },
        })
    }

    /// Starts the command, confined like a program of an extension.
    fn start(&self, folder: &OwnedFd, scratch: &Path, read_only: &[PathBuf]) -> Result<Running, Fault> {
        let temporary = |error| failed("could not create a temporary directory", error);
        let scratch_handle = open_folder(scratch).map_err(temporary)?;
        let working_folder = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))
            .map_err(|error| failed("the working directory cannot be found", error))?;
        let workspace = self.workspace.path();
        let environment: [(&str, OsString); 5] = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
            ("HOME", workspace.into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("TMPDIR", scratch.into()),
        ];
        let program = Program {
            words: &["/bin/sh", "-c", "--", self.command].map(str::to_owned),
            environment: &environment,
            folder: &working_folder,
            // Replacing the folder concurrently has no effect.
            folder_handle: Some(folder.as_fd()),
            reach: self.reach,
            writable: &[(workspace, self.workspace.as_fd()), (scratch, scratch_handle.as_fd())],
            read_only,
            limits: self.limits(),
            tasks: u32::try_from(self.options.tasks).unwrap_or(u32::MAX),
            socket: false,
        };
        program.start(&holdfast_sandbox::report())
    }

    /// What of the workspace commands must not change.
    fn settings(&self) -> Result<WorkspaceSettings, String> {
        if self.options.protect_settings {
            WorkspaceSettings::find(self.workspace.path())
        } else {
            Ok(WorkspaceSettings::default())
        }
    }

    /// Waits for the exit of the command, or for a reason to kill it.
    fn watch(
        &self,
        life: &ProgramState,
        output: OwnedFd,
        errors: OwnedFd,
        before: usize,
    ) -> Result<(Stream, Stream, Ending), Fault> {
        let limit = self.options.output_bytes;
        let read = |error| failed("the output cannot be read", error);
        let stdout = Stream::read(File::from(output), limit).map_err(read)?;
        let stderr = Stream::read(File::from(errors), limit).map_err(read)?;
        let deadline = Instant::now() + self.timeout;
        let mut next_memory_check = Instant::now() + MEMORY_CHECK_INTERVAL;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((stdout, stderr, Ending::Late));
            }
            let pause = if life.is_bounded() { MEMORY_CHECK_INTERVAL } else { PROCESS_CHECK_INTERVAL };
            if life.wait(left.min(pause)) {
                return Ok((stdout, stderr, Ending::Own));
            }
            if Instant::now() >= next_memory_check {
                if life.shares_too_much() {
                    return Ok((stdout, stderr, Ending::TooMuchMemory));
                }
                next_memory_check = Instant::now() + MEMORY_CHECK_INTERVAL;
            }
            // Counting the threads of the whole machine is cheap; counting the processes of one program is not.
            let more = threads_on_machine().saturating_sub(before);
            if more > self.options.tasks && life.is_crowded() {
                return Ok((stdout, stderr, Ending::TooMany));
            }
        }
    }

    fn limits(&self) -> ProcessLimits {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let cpu_seconds = Some((self.timeout.as_secs() + 1) * cores);
        let ShellOptions { file_bytes, memory_bytes, .. } = *self.options;
        ProcessLimits { file_bytes, memory_bytes, cpu_seconds }
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
            Ending::TooMuchMemory => Some(format!(
                "its processes shared more than {} bytes of memory and were killed",
                self.options.memory_bytes
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

/// What the model and the user are told about entries that a command has created.
fn warning(new: &[PathBuf]) -> Option<String> {
    let named: Vec<String> = new.iter().take(MAX_NAMED_ENTRIES).map(|path| shown(path)).collect();
    let more = match new.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!new.is_empty()).then(|| {
        format!(
            "the command created or replaced {}{more} in the workspace. Git, editors, shells and CI may run programs that such files \
             name: look at them before you use the folder.",
            named.join(", ")
        )
    })
}

/// A path, or its end where it is long.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let left_out = text.chars().count().saturating_sub(MAX_SHOWN_CHARS);
    let end: String = text.chars().skip(left_out).collect();
    format!("{:?}", if left_out > 0 { format!("…{end}") } else { end })
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Own,
    Late,
    TooMany,
    TooMuchMemory,
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
