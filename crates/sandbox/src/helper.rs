//! Work on untrusted input that may take too long or too much memory, done by this program in a process of its own. The process is
//! limited, has no environment and no open files but its streams, and ends with its work.
//!
//! The binary calls [`Helper::install`] when it starts and serves the work when it is started with [`HELPER_ARGUMENT`]. A program that
//! does neither, such as a test, does the work itself.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The first argument of a program that is started to help; the second names the work.
pub const HELPER_ARGUMENT: &str = "--holdfast-helper";

/// Bytes of its standard error that are part of the message.
const MAX_MESSAGE_BYTES: u64 = 2 << 10;

/// Processes that do the same work at the same time. Each may use a lot of memory, and what they work on decides how much.
const MAX_CONCURRENT: usize = 2;

static INSTALLED: OnceLock<Helper> = OnceLock::new();

/// How many processes there are for each work.
static RUNNING: (Mutex<BTreeMap<String, usize>>, Condvar) = (Mutex::new(BTreeMap::new()), Condvar::new());

/// A program that does one piece of work in a process of its own.
#[derive(Clone, Debug)]
pub struct Helper {
    pub(crate) program: PathBuf,
}

/// What one piece of work may use up.
#[derive(Clone, Copy, Debug)]
pub struct HelperLimits {
    /// Bytes of data.
    pub memory_bytes: u64,
    /// How long it may take.
    pub timeout: Duration,
    /// Bytes that it may answer.
    pub output_bytes: u64,
}

/// Why a piece of work was not done.
#[derive(Debug)]
pub enum HelperFailure {
    /// It took longer than it may.
    Late,
    /// It ended without an answer, as a process does that is out of memory.
    Died(String),
    /// It could not be started.
    Unavailable(std::io::Error),
}

impl Helper {
    /// Makes this program its own helper. The file that runs is used, also after another has its path.
    pub fn install() {
        let program = if cfg!(target_os = "linux") {
            Some("/proc/self/exe".into())
        } else {
            std::env::current_exe().ok()
        };
        if let Some(program) = program {
            // The first one stays.
            let _ = INSTALLED.set(Self { program });
        }
    }

    /// The helper of this program, if it serves as one.
    pub fn installed() -> Option<&'static Self> {
        INSTALLED.get()
    }

    /// Does a piece of work on an input, and returns its answer. Blocks until it is done, and before that until there is a free place for
    /// this work. The timeout counts from then.
    pub fn run(&self, work: &str, input: Vec<u8>, limits: &HelperLimits) -> Result<Vec<u8>, HelperFailure> {
        let _place = Place::take(work);
        let mut command = Command::new(&self.program);
        command.args([HELPER_ARGUMENT, work]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(HelperFailure::Unavailable)?;
        let answer = converse(&mut child, input, limits);
        // One that has ended already cannot be killed, and is waited for all the same.
        let _ = child.kill();
        let status = child.wait().map_err(HelperFailure::Unavailable)?;
        match answer? {
            (answer, _) if status.success() => Ok(answer),
            (_, message) => {
                let message = message.lines().last().unwrap_or_default().to_owned();
                Err(HelperFailure::Died(format!("{status} {message}").trim_end().to_owned()))
            }
        }
    }
}

/// One of the few processes that may do a work at the same time.
struct Place<'a>(&'a str);

impl<'a> Place<'a> {
    fn take(work: &'a str) -> Self {
        let (running, freed) = &RUNNING;
        let mut running = running.lock();
        while running.get(work).is_some_and(|processes| *processes >= MAX_CONCURRENT) {
            freed.wait(&mut running);
        }
        *running.entry(work.to_owned()).or_default() += 1;
        Self(work)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(processes) = RUNNING.0.lock().get_mut(self.0) {
            *processes -= 1;
        }
        // Those that wait may wait for a place of another work.
        RUNNING.1.notify_all();
    }
}

/// Sends the input and reads the answer and the messages until both are at their end.
fn converse(
    child: &mut Child,
    input: Vec<u8>,
    limits: &HelperLimits,
) -> Result<(Vec<u8>, String), HelperFailure> {
    let missing = || HelperFailure::Unavailable(std::io::Error::other("a stream is missing"));
    let (Some(mut to), Some(from), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(missing());
    };
    limit(child, limits).map_err(HelperFailure::Unavailable)?;
    let output_bytes = limits.output_bytes;
    let (done, answered) = channel();
    // The threads end with the process, whose streams are then closed.
    std::thread::spawn(move || drop(to.write_all(&input)));
    std::thread::spawn(move || {
        let (mut answer, mut message) = (Vec::new(), Vec::new());
        let read = from.take(output_bytes).read_to_end(&mut answer);
        let _ = errors.take(MAX_MESSAGE_BYTES).read_to_end(&mut message);
        let message = String::from_utf8_lossy(&message).into_owned();
        // Nobody waits any more if it was late.
        let _ = done.send(read.map(|_| (answer, message)));
    });
    match answered.recv_timeout(limits.timeout) {
        Ok(Ok(answer)) => {
            // Its streams are closed; what it does after that is of no interest, but its status is.
            wait_briefly(child);
            Ok(answer)
        }
        Ok(Err(error)) => Err(HelperFailure::Unavailable(error)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(HelperFailure::Late),
    }
}

/// Gives a process that has closed its streams the time to end by itself.
fn wait_briefly(child: &mut Child) {
    for _ in 0..200 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Limits a process before it has its input.
#[cfg(target_os = "linux")]
fn limit(child: &Child, limits: &HelperLimits) -> std::io::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let most = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let cpu_seconds = (limits.timeout.as_secs() + 1) * cores;
    for (resource, limit) in [
        (Resource::Data, most(limits.memory_bytes)),
        (Resource::Cpu, most(cpu_seconds)),
        (Resource::Core, most(0)),
        (Resource::Fsize, most(0)),
    ] {
        prlimit(Some(Pid::from_child(child)), resource, limit)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn limit(_: &Child, _: &HelperLimits) -> std::io::Result<()> {
    Ok(())
}
