//! The operating system's error behind an SQLite error, which the safe interface does not expose. The only `unsafe` of the crate.

#![allow(unsafe_code)]

use std::io::ErrorKind;

use rusqlite::{Connection, ffi};

/// Why the connection's last input or output failed.
pub(crate) fn kind(connection: &Connection) -> ErrorKind {
    // SAFETY: the handle is the connection's own and is open for as long as the connection is borrowed. The function reads one
    // integer from it and keeps nothing.
    let code = unsafe { ffi::sqlite3_system_errno(connection.handle()) };
    std::io::Error::from_raw_os_error(code).kind()
}
