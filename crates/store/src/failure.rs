//! Maps errors of SQLite to problems: one HF-20xx code for each kind.

use std::path::Path;

use holdfast_contract::problem::{Code, Location, Problem};
use rusqlite::{ErrorCode, ffi};

/// An error while opening the file at `path`.
pub(crate) fn opening(path: &Path, error: &rusqlite::Error) -> Problem {
    let code = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Code::StoreCorrupt,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::StoreLocked,
        Some(ErrorCode::DiskFull) => Code::StoreFull,
        _ => Code::StoreUnavailable,
    };
    at(path, Problem::new(code, format!("cannot open the log {}: {error}", path.display())))
}

/// The same problem with the file's path.
pub(crate) fn at(path: &Path, problem: Problem) -> Problem {
    problem.at(Location { file: path.to_owned(), ..Location::default() })
}

/// An error while writing a transaction.
pub(crate) fn writing(error: &rusqlite::Error) -> Problem {
    let out_of_space = match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            failure.code == ErrorCode::DiskFull || failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE
        }
        _ => false,
    };
    if out_of_space {
        return self::out_of_space();
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(error),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => locked(error),
        _ => Problem::new(Code::StoreWrite, format!("the log could not be written: {error}")),
    }
}

/// An error while reading.
pub(crate) fn reading(error: &rusqlite::Error) -> Problem {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(error),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => locked(error),
        Some(_) => Problem::new(Code::StoreUnavailable, format!("the log could not be read: {error}")),
        None => damaged(error),
    }
}

/// No space for another frame.
pub(crate) fn out_of_space() -> Problem {
    Problem::new(Code::StoreFull, "there is no space left for the log")
}

/// A file may not become larger.
pub(crate) fn file_too_large() -> Problem {
    Problem::new(Code::StoreFileLimit, "the log may not become larger: its file reached the size limit")
}

fn locked(error: &rusqlite::Error) -> Problem {
    Problem::new(Code::StoreLocked, format!("the log is held by someone else: {error}"))
}

/// Data that is not what was written.
pub(crate) fn damaged(detail: impl std::fmt::Display) -> Problem {
    Problem::new(Code::StoreCorrupt, format!("the log is damaged: {detail}"))
}

/// The log is closed.
pub(crate) fn closed() -> Problem {
    Problem::new(Code::StoreUnavailable, "the log has been closed").help("Open the log again.")
}

/// Compression failed.
pub(crate) fn unpackable(error: &std::io::Error) -> Problem {
    Problem::new(Code::StoreWrite, format!("a blob could not be compressed: {error}"))
}
