//! Values that everything else is made of: ids, contents, digests, and their canonical form.

pub mod attachment;
pub(crate) mod canonical;
pub mod content;
pub mod digest;
pub(crate) mod event_json;
pub mod ids;
pub mod schema;
pub mod text;
