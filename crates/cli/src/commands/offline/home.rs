//! The log of a home.

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_store::{Store, StoreOptions};

/// Opens the log of a home that exists.
pub(crate) fn open(home: &Home) -> Result<Store, Problem> {
    let database = home.database();
    if !database.is_file() {
        let what = format!("there is no log in {}", home.root().display());
        let help = "Name another home with --home, or record something first: `holdfast demo`.";
        return Err(Problem::new(Code::StoreMissing, what).help(help));
    }
    Store::open(&database, StoreOptions::default())
}
