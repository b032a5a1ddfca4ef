//! The operating system's error behind an SQLite error, which the safe interface does not expose. The only `unsafe` of the crate.

#![allow(unsafe_code)]

use std::io::ErrorKind;

use rusqlite::{Connection, ffi};

/// Whether the connection's last input or output failed because there is no space.
pub(crate) fn is_out_of_space(connection: &Connection) -> bool {
    // SAFETY: the handle is the connection's own and is open for as long as the connection is borrowed. The function reads one
    // integer from it and keeps nothing.
    let code = unsafe { ffi::sqlite3_system_errno(connection.handle()) };
    let kind = std::io::Error::from_raw_os_error(code).kind();
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
