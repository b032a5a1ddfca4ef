//! Reading an SQLite database of another program, which stays as it is.

use std::error::Error;
use std::path::Path;

use holdfast_untrusted_files::check_regular;
use rusqlite::{Connection, OpenFlags, Row};

/// A database, opened to be read. SQLite opens the files beside it by their path, so none of them may be a link.
pub(super) fn open(database: &Path) -> Result<Connection, Box<dyn Error>> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut beside = database.as_os_str().to_owned();
        beside.push(suffix);
        check_regular(Path::new(&beside))?;
    }
    Ok(Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

/// Whether a table has a column. Earlier versions of a program have fewer.
pub(super) fn has_column(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    let query = "SELECT COUNT(*) FROM pragma_table_info(?1) WHERE name = ?2";
    let count: i64 = connection.query_row(query, [table, column], |row| row.get(0))?;
    Ok(count > 0)
}

/// What a query gives, row by row.
pub(super) fn rows<T>(
    connection: &Connection,
    query: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(query)?.query_map([], read)?.collect()
}
