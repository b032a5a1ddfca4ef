//! Digests of data that is derived from objects, such as compiled code: the bytes are in a file, and this table has their digest.

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use rusqlite::{OptionalExtension, params};

use crate::failure;
use crate::store::Store;
use crate::tables::rows::Bytes32;

impl Store {
    /// The digest that was noted last under this name.
    pub fn derived(&self, name: &str) -> Result<Option<Digest>, Problem> {
        self.inner.readers.with(|connection| {
            let select = connection.prepare_cached("SELECT digest FROM derived WHERE name = ?");
            let found = select
                .and_then(|mut select| select.query_row([name], |row| row.get::<_, Bytes32>(0)).optional());
            Ok(found.map_err(|error| failure::reading(&error))?.map(|digest| digest.0))
        })
    }

    /// Notes a digest under this name, durably.
    pub fn note_derived(&self, name: &str, digest: Digest) -> Result<(), Problem> {
        let name = name.to_owned();
        self.on_writer(move |writer| {
            writer.in_transaction(|writer| {
                let insert = "INSERT INTO derived (name, digest) VALUES (?, ?)
                              ON CONFLICT (name) DO UPDATE SET digest = excluded.digest";
                let written = writer.connection.execute(insert, params![name, digest.as_bytes()]);
                written.map(drop).map_err(|error| failure::writing(&error))
            })
        })
    }
}
