//! The log of a home, and what is said about one that is damaged.

use std::fmt::Display;

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_store::{LostFrames, Store, StoreOptions};

use crate::output::report;

/// Opens the log of a home that exists.
pub(crate) fn open(home: &Home) -> Result<Store, Problem> {
    let database = home.database();
    if !database.is_file() {
        let what = format!("there is no log in {}", home.root().display());
        let help = "Name another home with --home, or record something first: `holdfast demo`.";
        return Err(Problem::new(Code::StoreMissing, what).help(help));
    }
    let store = Store::open(&database, StoreOptions::default())?;
    if let Some(LostFrames { acknowledged, found }) = store.lost_frames() {
        let what = format!("the log had {acknowledged} frames and was found with {found}");
        report(&Problem::warning(Code::StoreCut, what));
    }
    Ok(store)
}

/// The problem of what was printed or copied from a damaged log; none if nothing was found.
pub(crate) fn damage(what: &str, findings: &[impl Display]) -> Option<Problem> {
    let first = findings.first()?;
    let more = match findings.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let what = format!("{what}: {first}{more}");
    Some(Problem::new(Code::StoreCorrupt, what))
}
