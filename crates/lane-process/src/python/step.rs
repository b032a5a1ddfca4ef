//! Runs a program of the lane's own for a moment, confined and without network: it is given what it may read, and what it prints is
//! returned.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{Network, ProcessLimits, Program, ProgramAccess, SandboxReport, Switch};
use rustix::fs::{Mode, OFlags};

/// The longest output that is read. It fits a pipe, so that nothing has to read along.
const MAX_OUTPUT_BYTES: u64 = 32 << 10;
/// The largest file that it may write, its memory, and its processes.
const FILE_BYTES: u64 = 64 << 20;
const MEMORY_BYTES: u64 = 2 << 30;
const MAX_TASKS: u32 = 64;

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ToolFailed, error.to_string())
}

/// Runs a program until it ends; one that takes longer than this is killed. It may write one folder, if any. Blocks the thread, which the
/// program does not outlive.
pub(crate) fn confined_step(
    words: &[&str],
    readable: &[PathBuf],
    writable: Option<&Path>,
    timeout: Duration,
    report: &SandboxReport,
) -> Result<Vec<u8>, Fault> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = writable.map(|folder| Ok((folder, rustix::fs::open(folder, flags, Mode::empty())?)));
    let folder = folder.transpose().map_err(|error: rustix::io::Errno| failed(error))?;
    let writable: Vec<_> = folder.iter().map(|(path, handle)| (*path, handle.as_fd())).collect();
    let environment: [(&str, OsString); 3] = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
        ("HOME", "/nonexistent".into()),
        ("LANG", "C.UTF-8".into()),
    ];
    let program = Program {
        words: &words,
        environment: &environment,
        folder: Path::new("/"),
        folder_handle: None,
        reach: &ProgramAccess::new(readable, Network::Closed),
        writable: &writable,
        read_only: &[],
        limits: ProcessLimits {
            file_bytes: FILE_BYTES,
            memory_bytes: MEMORY_BYTES,
            cpu_seconds: Some(timeout.as_secs()),
        },
        tasks: MAX_TASKS,
        socket: false,
    };
    let running = program.start(report)?;
    drop(running.input);
    let ended = running.life.wait(timeout);
    let status = running.life.end(&Switch::default()).map_err(failed)?;
    if !ended {
        return Err(failed(format_args!("it was stopped after {} s", timeout.as_secs())));
    }
    let read = |stream| {
        let mut bytes = Vec::new();
        File::from(stream).take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).map(|_| bytes).map_err(failed)
    };
    let (output, errors) = (read(running.output)?, read(running.errors)?);
    if status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&errors);
    Err(failed(format_args!("{status}: {}", errors.trim().lines().next_back().unwrap_or_default())))
}
