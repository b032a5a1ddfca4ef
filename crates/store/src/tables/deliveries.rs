//! Delivery rows, written in the same transactions as the frames.
//!
//! A row means that one subscriber has not finished one frame. The bus decides about deliveries, retries and dead letters; here rows
//! are put, removed and read, and keep their frames from being deleted. Idempotency keys are stored beside them.

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::{Fault, Problem};
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use serde::Serialize;

use crate::failure;
use crate::reader::find_stream;
use crate::store::Store;
use crate::tables::rows::{Unsigned, bounded, place};

/// What format 4 adds. The order of the key keeps what is put and removed together on the same few pages.
pub(crate) const DELIVERIES: &str = "
    CREATE TABLE subscribers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE deliveries (
        stream INTEGER NOT NULL REFERENCES streams (id),
        seq INTEGER NOT NULL,
        subscriber INTEGER NOT NULL REFERENCES subscribers (id),
        line INTEGER NOT NULL,
        state INTEGER NOT NULL,
        tries INTEGER NOT NULL,
        forgiven INTEGER NOT NULL,
        interrupted INTEGER NOT NULL,
        published INTEGER NOT NULL,
        moment INTEGER NOT NULL,
        fault TEXT,
        PRIMARY KEY (stream, seq, subscriber)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE event_names (
        name BLOB PRIMARY KEY NOT NULL,
        stream INTEGER NOT NULL REFERENCES streams (id),
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX event_names_by_age ON event_names (at);
";

const COLUMNS: &str = "seq, subscriber, line, state, tries, forgiven, interrupted, published, moment, fault";
/// Names that are deleted in one transaction.
const NAMES_PER_TRANSACTION: i64 = 4096;

/// A subscriber's number in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SubscriberKey(i64);

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It waits for its delivery.
    Waiting,
    /// It is in delivery, and there is no outcome yet.
    UnderWay,
    /// It is a dead letter.
    Dead,
}

/// The delivery of one frame to one subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryRow {
    /// The frame, in the stream that the row is put with.
    pub seq: Seq,
    /// To whom.
    pub subscriber: SubscriberKey,
    /// Deliveries to one subscriber with the same line keep their order.
    pub line: i64,
    /// Its state.
    pub state: DeliveryState,
    /// How often it was handed over, or was about to be.
    pub tries: u32,
    /// How many of these no longer count.
    pub forgiven: u32,
    /// How many of the last ones in a row ended with the process.
    pub interrupted: u32,
    /// When the frame was recorded.
    pub published: Millis,
    /// When it is due, or since when it is under way or dead.
    pub moment: Millis,
    /// What happened last, if it failed.
    pub fault: Option<Fault>,
}

/// A change that is written in the same transaction as frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The row is from now on this.
    Put(DeliveryRow),
    /// The row goes.
    Remove {
        /// The frame.
        seq: Seq,
        /// Whose row.
        subscriber: SubscriberKey,
    },
    /// The frame is found under this name from now on.
    Name {
        /// The name.
        name: Digest,
        /// The frame.
        seq: Seq,
        /// When.
        at: Millis,
    },
}

/// Changes to rows of the stream with this key.
pub(crate) type Changes = (i64, Vec<Change>);

/// Carries changes out, in order, within the running transaction.
pub(crate) fn carry_out(connection: &Connection, all: &[Changes]) -> rusqlite::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO deliveries (stream, seq, subscriber, line, state, tries, forgiven, interrupted,
                                            published, moment, fault)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut remove = connection
        .prepare_cached("DELETE FROM deliveries WHERE stream = ? AND seq = ? AND subscriber = ?")?;
    for (stream, changes) in all {
        for change in changes {
            match change {
                Change::Put(row) => self::put(&mut put, *stream, row)?,
                Change::Remove { seq, subscriber } => {
                    remove.execute(params![stream, place(*seq), subscriber.0])?;
                }
                Change::Name { name, seq, at } => {
                    let insert =
                        "INSERT OR REPLACE INTO event_names (name, stream, seq, at) VALUES (?, ?, ?, ?)";
                    let values = params![name.as_bytes(), stream, place(*seq), bounded(at.0)];
                    connection.prepare_cached(insert)?.execute(values)?;
                }
            }
        }
    }
    Ok(())
}

fn put(put: &mut Statement<'_>, stream: i64, row: &DeliveryRow) -> rusqlite::Result<()> {
    let fault = row.fault.as_ref().map(serde_json::to_string).transpose();
    let fault = fault.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    put.execute(params![
        stream,
        place(row.seq),
        row.subscriber.0,
        row.line,
        number(row.state),
        row.tries,
        row.forgiven,
        row.interrupted,
        bounded(row.published.0),
        bounded(row.moment.0),
        fault,
    ])
    .map(drop)
}

fn number(state: DeliveryState) -> i64 {
    match state {
        DeliveryState::Waiting => 0,
        DeliveryState::UnderWay => 1,
        DeliveryState::Dead => 2,
    }
}

/// The first frame of a stream that is still owed to someone: it and all after it must stay.
pub(crate) fn first_owed(connection: &Connection, stream: i64) -> rusqlite::Result<Option<Seq>> {
    let mut select = connection.prepare_cached("SELECT min(seq) FROM deliveries WHERE stream = ?")?;
    let first = select.query_row([stream], |row| row.get::<_, Option<Unsigned>>(0))?;
    Ok(first.map(|seq| Seq(seq.0)))
}

impl Store {
    /// The number of a subscriber, which gets one when it is first asked for, durably.
    pub fn subscriber(&self, name: &str) -> Result<SubscriberKey, Problem> {
        let name = name.to_owned();
        self.on_writer(move |writer| {
            let known =
                find_subscriber(&writer.connection, &name).map_err(|error| failure::reading(&error))?;
            if let Some(key) = known {
                return Ok(key);
            }
            writer.in_transaction(|writer| {
                let mut insert = writer
                    .connection
                    .prepare_cached("INSERT INTO subscribers (name) VALUES (?)")
                    .map_err(|error| failure::writing(&error))?;
                insert.insert([&name]).map(SubscriberKey).map_err(|error| failure::writing(&error))
            })
        })
    }

    /// Every subscriber that ever had a number, with its name.
    pub fn subscribers(&self) -> Result<Vec<(SubscriberKey, String)>, Problem> {
        self.inner.readers.with(|connection| {
            let list = || {
                let mut select = connection.prepare_cached("SELECT id, name FROM subscribers ORDER BY id")?;
                let rows = select.query_map([], |row| Ok((SubscriberKey(row.get(0)?), row.get(1)?)))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            list().map_err(|error| failure::reading(&error))
        })
    }

    /// The delivery rows of a stream in the order of their frames, of which those that `wanted` says yes to.
    pub fn deliveries(
        &self,
        stream: &StreamId,
        mut wanted: impl FnMut(&DeliveryRow) -> bool,
    ) -> Result<Vec<DeliveryRow>, Problem> {
        self.inner.readers.with(|connection| {
            let Some(found) = find_stream(connection, stream)? else { return Ok(Vec::new()) };
            let read = |error| failure::reading(&error);
            let select =
                format!("SELECT {COLUMNS} FROM deliveries WHERE stream = ? ORDER BY seq, subscriber");
            let mut select = connection.prepare_cached(&select).map_err(read)?;
            let mut rows = select.query([found.key]).map_err(read)?;
            let mut list = Vec::new();
            while let Some(row) = rows.next().map_err(read)? {
                let row = delivery(row).map_err(read)?;
                if wanted(&row) {
                    list.push(row);
                }
            }
            Ok(list)
        })
    }

    /// One delivery row.
    pub fn delivery(
        &self,
        stream: &StreamId,
        seq: Seq,
        subscriber: SubscriberKey,
    ) -> Result<Option<DeliveryRow>, Problem> {
        self.inner.readers.with(|connection| {
            let Some(found) = find_stream(connection, stream)? else { return Ok(None) };
            let find = || {
                let select = format!(
                    "SELECT {COLUMNS} FROM deliveries WHERE stream = ? AND seq = ? AND subscriber = ?"
                );
                let mut select = connection.prepare_cached(&select)?;
                select.query_row(params![found.key, place(seq), subscriber.0], delivery).optional()
            };
            find().map_err(|error| failure::reading(&error))
        })
    }

    /// The frame that was last published under this name.
    pub fn named(&self, name: Digest) -> Result<Option<(StreamId, Seq)>, Problem> {
        self.inner.readers.with(|connection| {
            let find = || {
                let mut select = connection.prepare_cached(
                    "SELECT streams.name, seq FROM event_names JOIN streams ON streams.id = stream WHERE event_names.name = ?",
                )?;
                let read = |row: &Row<'_>| {
                    Ok((StreamId::from(row.get::<_, String>(0)?), Seq(row.get::<_, Unsigned>(1)?.0)))
                };
                select.query_row([name.as_bytes()], read).optional()
            };
            find().map_err(|error| failure::reading(&error))
        })
    }

    /// Forgets the names that were given before this moment. Returns how many.
    pub fn forget_names(&self, before: Millis) -> Result<u64, Problem> {
        let mut forgotten = 0;
        loop {
            let slice = self.on_writer(move |writer| {
                writer.in_transaction(|writer| {
                    let delete = "DELETE FROM event_names WHERE name IN
                                  (SELECT name FROM event_names WHERE at < ? ORDER BY at LIMIT ?)";
                    let gone =
                        writer.connection.execute(delete, params![bounded(before.0), NAMES_PER_TRANSACTION]);
                    gone.map_err(|error| failure::writing(&error))
                })
            })?;
            forgotten += slice as u64;
            if (slice as i64) < NAMES_PER_TRANSACTION {
                return Ok(forgotten);
            }
        }
    }
}

fn find_subscriber(connection: &Connection, name: &str) -> rusqlite::Result<Option<SubscriberKey>> {
    let mut select = connection.prepare_cached("SELECT id FROM subscribers WHERE name = ?")?;
    select.query_row([name], |row| row.get(0).map(SubscriberKey)).optional()
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    let state = match row.get(3)? {
        0 => DeliveryState::Waiting,
        1 => DeliveryState::UnderWay,
        2 => DeliveryState::Dead,
        other => return Err(rusqlite::Error::IntegralValueOutOfRange(3, other)),
    };
    let fault = row.get::<_, Option<String>>(9)?.map(|fault| serde_json::from_str(&fault)).transpose();
    let unreadable =
        |error| rusqlite::Error::FromSqlConversionFailure(9, rusqlite::types::Type::Text, Box::new(error));
    Ok(DeliveryRow {
        seq: Seq(row.get::<_, Unsigned>(0)?.0),
        subscriber: SubscriberKey(row.get(1)?),
        line: row.get(2)?,
        state,
        tries: row.get(4)?,
        forgiven: row.get(5)?,
        interrupted: row.get(6)?,
        published: Millis(row.get::<_, Unsigned>(7)?.0),
        moment: Millis(row.get::<_, Unsigned>(8)?.0),
        fault: fault.map_err(unreadable)?,
    })
}
