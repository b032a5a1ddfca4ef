//! Gives the space of deleted rows back to the file system.
//!
//! SQLite keeps the pages of deleted rows for later ones. After a collection that may be most of the file.

use holdfast_contract::problem::Problem;
use rusqlite::Connection;

use crate::failure;
use crate::maintenance::upkeep::scrub;
use crate::store::Store;

/// The file is rewritten if this many bytes of it are free, and this share.
const MIN_FREE_BYTES: u64 = 1 << 20;
const MIN_FREE_SHARE: u64 = 4;

impl Store {
    /// Rewrites the file without its free pages if they are at least a quarter of it. Returns by how many bytes it has become
    /// smaller. Writing waits meanwhile; reading does not. Needs space for a second copy while it runs: if there is none, it fails
    /// and nothing has changed.
    pub fn shrink(&self) -> Result<u64, Problem> {
        self.on_writer(|writer| {
            let write = |error: rusqlite::Error| failure::writing(&error);
            let before = Pages::read(&writer.connection).map_err(write)?;
            if before.free * before.size < MIN_FREE_BYTES || before.free * MIN_FREE_SHARE < before.all {
                return Ok(0);
            }
            writer.connection.execute_batch("VACUUM").map_err(write)?;
            // The file itself becomes shorter when the write-ahead log is copied into it.
            scrub(writer)?;
            let after = Pages::read(&writer.connection).map_err(write)?;
            Ok(before.all.saturating_sub(after.all) * before.size)
        })
    }
}

/// The pages of a file.
struct Pages {
    all: u64,
    free: u64,
    size: u64,
}

impl Pages {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let (all, free, size) = (pragma("page_count")?, pragma("freelist_count")?, pragma("page_size")?);
        Ok(Self { all: all.into(), free: free.into(), size: size.into() })
    }
}
