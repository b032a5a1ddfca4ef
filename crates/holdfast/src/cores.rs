//! Disables core files. The memory of this program has secrets in it, and a dump of it on the disk would have them too.

use holdfast_home::Check;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Has the system write no dump of this program's memory, however it ends: neither as a file nor, on Linux, for a program that
/// takes core files. On Linux, other programs of this user cannot look into it either. What it starts can make no core files.
pub fn forbid() {
    // Where that cannot be had, `doctor` says so.
    let _done = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    #[cfg(target_os = "linux")]
    let _done = nix::sys::prctl::set_dumpable(false);
}

/// Whether it is so.
pub fn check() -> Check {
    let limited = getrlimit(Resource::RLIMIT_CORE) == Ok((0, 0));
    let (ok, detail) = match (limited, closed()) {
        (true, true) => (true, "none is made, and no other program of yours looks into this one"),
        (true, false) => (false, "none is written, but a program that takes them could be given one"),
        (false, _) => (false, "one may be written when the program crashes"),
    };
    let help = (!ok).then(|| "A core file holds secrets. Start the program with `ulimit -c 0`.".to_owned());
    Check { name: "core files", ok, detail: detail.to_owned(), help }
}

#[cfg(target_os = "linux")]
fn closed() -> bool {
    nix::sys::prctl::get_dumpable() == Ok(false)
}

#[cfg(not(target_os = "linux"))]
fn closed() -> bool {
    true
}
