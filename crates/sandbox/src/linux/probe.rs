//! What the kernel offers. A thread tries it on itself and ends.

use std::sync::OnceLock;

use landlock::{ABI, AccessFs, LandlockStatus, Ruleset, RulesetAttr};

use crate::linux::calls;
use crate::linux::program;
use crate::report::SandboxReport;

/// The first version that can keep a file from being emptied. With less, a program could wipe what it cannot write.
pub(crate) const MIN_LANDLOCK_ABI: u32 = 3;
/// The first version that holds connections back.
const PORTS: u32 = 4;
/// The first version that keeps signals inside.
pub(crate) const SIGNALS: u32 = 6;

/// The version of Landlock's interface; nothing where it is not there.
pub(crate) fn landlock() -> Option<u32> {
    static FOUND: OnceLock<Option<u32>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let tried = std::thread::spawn(|| {
            let ruleset = Ruleset::default().handle_access(AccessFs::Execute).ok()?.create().ok()?;
            match ruleset.restrict_self().ok()?.landlock {
                LandlockStatus::Available { effective_abi, kernel_abi } => {
                    let known = kernel_abi.and_then(|version| u32::try_from(version).ok());
                    known.or(match effective_abi {
                        ABI::Unsupported => None,
                        abi => Some(abi as u32),
                    })
                }
                _ => None,
            }
        });
        tried.join().ok().flatten()
    })
}

fn seccomp() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let tried = std::thread::spawn(|| {
            calls::filters(&calls::FilterOptions::default()).and_then(calls::apply).is_ok()
        });
        tried.join().unwrap_or(false)
    })
}

/// Why programs get no namespaces, if so.
fn namespaces() -> Result<(), &'static str> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    FOUND.get_or_init(program::try_namespaces).as_ref().copied().map_err(String::as_str)
}

/// What this machine offers.
pub(crate) fn report() -> SandboxReport {
    let (landlock, seccomp) = (landlock(), seccomp());
    let confined = seccomp && landlock.is_some_and(|version| version >= MIN_LANDLOCK_ABI);
    let namespaces = if confined { namespaces() } else { Err("nothing is started") };
    describe(landlock, seccomp, namespaces)
}

/// What follows from what a machine has.
pub(crate) fn describe(landlock: Option<u32>, seccomp: bool, namespaces: Result<(), &str>) -> SandboxReport {
    let mut notes = Vec::new();
    match landlock {
        None => {
            notes.push("the kernel has no Landlock, or it is not switched on (`lsm=landlock,…`)".to_owned())
        }
        Some(version) if version < MIN_LANDLOCK_ABI => {
            notes.push(format!("Landlock {version} is too old: {MIN_LANDLOCK_ABI} is needed (Linux 6.2)"));
        }
        Some(version) if version < SIGNALS => {
            if version < PORTS {
                notes.push(format!("Landlock {version} does not hold connections back: seccomp alone does (Linux 6.7 has both)"));
            }
            notes.push(format!(
                "Landlock {version} does not hold signals back: programs may signal their own group only (Linux 6.12 has no such limit)"
            ));
        }
        Some(_) => {}
    }
    if !seccomp {
        notes.push("the kernel does not filter system calls (seccomp)".to_owned());
    }
    let confined = seccomp && landlock.is_some_and(|version| version >= MIN_LANDLOCK_ABI);
    if let (true, Err(why)) = (confined, namespaces) {
        notes.push(format!(
            "programs get no namespaces of their own, and with them no network ({why}); the system may forbid them to users"
        ));
    }
    SandboxReport { confined, landlock, seccomp, namespaces: confined && namespaces.is_ok(), notes }
}
