//! The tables of the database file.
//!
//! - `schema`, `migrations`: opening the file, its format and the steps from older formats
//! - `rows`: a frame as a row
//! - `blobs`, `objects`: content-addressed data
//! - `deliveries`: the delivery rows of the bus
//! - `derived`: data that can be computed again

pub(crate) mod blobs;
pub(crate) mod deliveries;
pub(crate) mod derived;
pub(crate) mod migrations;
pub(crate) mod objects;
pub(crate) mod rows;
pub(crate) mod schema;
