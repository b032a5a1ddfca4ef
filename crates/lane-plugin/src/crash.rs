//! Finds out whose code ended the process. A thread that runs a plugin's code carries its mark. When that thread gets a deadly signal,
//! or ends the process, the mark is appended to a file, and the next process knows which plugin that was. A process that is killed from
//! outside leaves no mark.
//!
//! This module holds `unsafe`: it handles signals. The argument: the handler reads a thread-local cell without a destructor, atomics and
//! a table that was complete before it was installed, makes one system call on a file that is never closed, and ends the process, or
//! passes the signal on to the handler that was there before. It takes no lock and allocates nothing.

#![allow(unsafe_code, reason = "the argument is above")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use holdfast_contract::digest::Digest;

/// The signals that a fault in the code leads to.
const DEADLY: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP, libc::SIGSYS];

/// The longest list that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The file that the handler appends to; negative where there is none.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Who handled the signals before.
static PREVIOUS: OnceLock<[libc::sigaction; DEADLY.len()]> = OnceLock::new();

thread_local! {
    /// Whose code this thread runs.
    static RUNNING: Cell<Option<Mark>> = const { Cell::new(None) };
}

/// The mark of an activation: its digest as a line.
#[derive(Clone, Copy)]
pub(crate) struct Mark(&'static [u8]);

impl Mark {
    /// A mark stays in memory, as the library does that it stands for.
    pub(crate) fn of(activation: Digest) -> Self {
        Self(Box::leak(format!("{activation}\n").into_bytes().into_boxed_slice()))
    }
}

/// Runs a plugin's code under its mark.
pub(crate) fn marked<T>(mark: Mark, work: impl FnOnce() -> T) -> T {
    let before = RUNNING.replace(Some(mark));
    let done = work();
    RUNNING.set(before);
    done
}

/// The activations that ended earlier processes.
pub(crate) fn left_behind(path: &Path) -> Vec<Digest> {
    // A list that is not there or cannot be read is not evidence.
    let mut text = String::new();
    if let Ok(file) = holdfast_untrusted_files::open_regular(OpenOptions::new().read(true), path) {
        let _unread = file.take(MAX_BYTES).read_to_string(&mut text);
    }
    let mut crashed: Vec<Digest> = text.lines().filter_map(Digest::parse).collect();
    crashed.sort();
    crashed.dedup();
    crashed
}

/// Begins to write marks to an empty file. Without it no plugin is loaded.
pub(crate) fn watch(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        // Like everything in the home it is its owner's alone.
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let file = holdfast_untrusted_files::open_regular(&mut options, path).map_err(std::io::Error::other)?;
    file.set_len(0)?;
    write_to(file);
    install();
    Ok(())
}

/// The file before stays open: a handler may be about to write to it.
fn write_to(file: File) {
    FILE.store(file.into_raw_fd(), Ordering::SeqCst);
}

/// Handles the signals, once for the whole process.
fn install() {
    let mut first = false;
    PREVIOUS.get_or_init(|| {
        first = true;
        DEADLY.map(|signal| {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: this only asks. Where it fails, zeros stand for the default, which they are.
            unsafe {
                libc::sigaction(signal, ptr::null(), before.as_mut_ptr());
                before.assume_init()
            }
        })
    });
    if !first {
        return;
    }
    for signal in DEADLY {
        // SAFETY: zeros are a valid action, of which the fields that count are set. The handler has the type that `SA_SIGINFO` wants.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
            // A stack overflow leaves no room for the handler on the thread's own stack.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
    // SAFETY: the function has the type that is wanted, and is there as long as the program.
    unsafe {
        libc::atexit(on_exit);
    }
}

/// Appends the mark of this thread, if it has one. True if it has.
fn write_mark() -> bool {
    // A thread that is ending has no cell any more, and runs no plugin's code.
    let mark = RUNNING.try_with(Cell::take).ok().flatten();
    let file = FILE.load(Ordering::SeqCst);
    if let (Some(Mark(line)), true) = (mark, file >= 0) {
        // SAFETY: the bytes are never freed. Nothing can be done about a failure.
        let _unwritten = unsafe { libc::write(file, line.as_ptr().cast(), line.len()) };
    }
    mark.is_some()
}

/// Ends the process by this signal, as if nobody handled it.
fn end_by(signal: c_int) {
    // SAFETY: zeros are the default action. The signal is blocked in its handler, and ends the process when that returns.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, ptr::null_mut());
        libc::raise(signal);
    }
}

/// A plugin that calls `exit` does so on the thread that has its mark.
extern "C" fn on_exit() {
    let _marked = write_mark();
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // In a plugin's code it is nobody else's to handle: others would take it for theirs, or look at a stack that is not Rust's.
    if write_mark() {
        return end_by(signal);
    }
    let at = DEADLY.iter().position(|it| *it == signal);
    let before = PREVIOUS.get().zip(at).and_then(|(all, at)| all.get(at));
    match before.map(|before| (before.sa_sigaction, before.sa_flags)) {
        Some((libc::SIG_IGN, _)) => {}
        None | Some((libc::SIG_DFL, _)) => end_by(signal),
        Some((handler, flags)) if flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: a handler that was installed with `SA_SIGINFO` has this type.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        Some((handler, _)) => {
            // SAFETY: a handler that was installed without `SA_SIGINFO` has this type.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}
