//! From an older format to the current one: a backup beside the file, then all steps in one transaction.

use std::path::PathBuf;

use holdfast_contract::body::FrameKind;
use holdfast_contract::problem::{Code, Problem};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::failure;
use crate::maintenance::upkeep::copy;
use crate::tables::deliveries::DELIVERIES;
use crate::tables::schema::{DERIVED, LogLocation, REFERENCES, VERSION};
use crate::tables::{blobs, rows};

/// A log that was carried forward when it was opened. The caller records it as `log.migrated`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The format it had.
    pub from: u32,
    /// The format it has.
    pub to: u32,
    /// The log as it was.
    pub backup: PathBuf,
}

type Step = fn(&Transaction<'_>) -> Result<(), rusqlite::Error>;

/// The steps in order: the first takes format 1 to format 2.
const STEPS: &[Step] = &[count_references, add_derived, add_deliveries];

pub(crate) fn run(place: &LogLocation, connection: &mut Connection, from: u32) -> Result<Migration, Problem> {
    let mut backup = place.path.clone().into_os_string();
    backup.push(format!(".v{from}.bak"));
    let backup = PathBuf::from(backup);
    copy(place, connection, &backup)?;

    carry_forward(connection, from).map_err(|error| {
        let what = format!(
            "{} could not be brought from format {from} to {VERSION}: {error}; its backup is {}",
            place.path.display(),
            backup.display()
        );
        failure::at(&place.path, Problem::new(Code::StoreMigration, what))
    })?;
    Ok(Migration { from, to: VERSION, backup })
}

fn carry_forward(connection: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in STEPS.iter().skip(from as usize - 1) {
        step(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    // So that the file itself says what it is, without its write-ahead log.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Format 1 did not know which frame refers to which blob, nor seal its snapshots. Those are thrown away: they are a cache.
fn count_references(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DROP TABLE snapshots")?;
    transaction.execute_batch(REFERENCES)?;
    let mut insert =
        transaction.prepare("INSERT OR IGNORE INTO blob_refs (stream, seq, digest) VALUES (?, ?, ?)")?;
    let mut select = transaction
        .prepare("SELECT stream, seq, kind, body, body_digest FROM frames WHERE erased_at IS NULL")?;
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        let (stream, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
        let kind: String = row.get(2)?;
        let inline: Option<Vec<u8>> = row.get(3)?;
        let digest = row.get(4).map(holdfast_contract::digest::Digest::from_bytes)?;
        let body = match inline {
            Some(body) => Some(body),
            None => {
                insert.execute(params![stream, seq, digest.as_bytes()])?;
                blobs::read(transaction, digest)?.and_then(Result::ok)
            }
        };
        // What cannot be read refers to nothing that could be found; `verify` names it.
        let refers =
            body.and_then(|body| blobs::references(FrameKind::parse(&kind)?, rows::json(&body).ok()?).ok());
        for digest in refers.unwrap_or_default() {
            insert.execute(params![stream, seq, digest.as_bytes()])?;
        }
    }
    Ok(())
}

fn add_derived(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(DERIVED)
}

fn add_deliveries(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(DELIVERIES)
}
