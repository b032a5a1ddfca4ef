//! Memory that processes share with each other. The kernel counts it as data of none of them, so no resource limit holds it: one mapping is
//! limited by a filter of system calls, and the sum of them is counted here.

use std::collections::BTreeMap;

/// What the kernel calls such memory in a list of mappings.
const NAME: &str = " /dev/zero (deleted)";

/// Bytes of shared memory on the whole machine: a cheap look before an expensive one. Without an end where that is not known.
pub(crate) fn on_machine() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kibibytes(&text, "Shmem:").unwrap_or(u64::MAX)
}

/// Bytes that these processes share, each piece once and as large as it was mapped: what was taken out of a mapping again still has its
/// memory. Of a process that hides its mappings, what it holds at the moment.
pub(crate) fn of(processes: &[u32]) -> u64 {
    let (mut pieces, mut held) = (BTreeMap::<u64, u64>::new(), 0_u64);
    for id in processes {
        let Ok(mappings) = std::fs::read_to_string(format!("/proc/{id}/maps")) else {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            held = held.saturating_add(kibibytes(&status, "RssShmem:").unwrap_or_default());
            continue;
        };
        for (number, bytes) in mappings.lines().filter_map(piece) {
            let known = pieces.entry(number).or_default();
            *known = bytes.max(*known);
        }
    }
    pieces.values().fold(held, |sum, bytes| sum.saturating_add(*bytes))
}

/// The number of a piece of shared memory and the bytes up to the end of this mapping of it.
fn piece(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.strip_suffix(NAME)?.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = number(fields.nth(1)?)?;
    let piece = fields.nth(1)?.parse().ok()?;
    let bytes = number(end)?.checked_sub(number(start)?)?;
    Some((piece, offset.saturating_add(bytes)))
}

/// The bytes in a line such as `Shmem:   123 kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
