//! Use this crate for reading the extensions of a home from disk: [`Loader`] scans `extensions/` and reports changes,
//! [`HomeVault`] stores every activated generation in the log's database, [`FolderWatcher`] reports changes of folders. It does
//! not run extensions, and it does not decide which generation is active: the lanes run them, and the kernel decides.
//!
//! | file | contents |
//! |---|---|
//! | `loader.rs` | a scan of all extensions, and what differs from the last scan |
//! | `candidate.rs` | one extension: manifest, files, configuration and grants |
//! | `disk.rs` | directory listings and file stamps that tell a missing file from an unreadable one |
//! | `embedded.rs` | extensions whose bytes are in the program |
//! | `python_head.rs` | what a single Python file declares of its needs |
//! | `servers.rs` | MCP servers and packs that the settings name, and what was approved of each server |
//! | `vault.rs` | stored generations, and what lanes derive from them |
//! | `watch.rs` | debounced notifications of changes |

mod candidate;
mod disk;
mod embedded;
mod loader;
mod python_head;
mod reader;
mod servers;
mod vault;
mod watch;

pub use candidate::{Candidate, candidate, extension_at, single, single_file};
pub use embedded::EmbeddedComponent;
pub use loader::{Changes, Loader, is_extension};
pub use vault::{HomeVault, InMemoryVault};
pub use watch::FolderWatcher;
