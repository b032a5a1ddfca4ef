//! Which home, and the log in it.

use std::env;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_store::{Options, Store};

/// The home: as asked for, or found as [`Home::locate`] says.
pub(crate) fn home(asked: Option<PathBuf>) -> PathBuf {
    Home::locate(asked, &|name| env::var_os(name)).root().to_owned()
}

/// Opens the log of a home that exists.
pub(crate) fn open(home: &Path) -> Result<Store, Problem> {
    let database = home.join("holdfast.db");
    if !database.is_file() {
        let what = format!("there is no log in {}", home.display());
        let help = "Name another home with --home, or record something first: `holdfast demo`.";
        return Err(Problem::new(Code::StoreMissing, what).help(help));
    }
    Store::open(&database, Options::default())
}

/// Opens the log of a home, which is made if it does not exist.
pub(crate) fn create(home: &Path) -> Result<Store, Problem> {
    std::fs::create_dir_all(home).map_err(|error| {
        Problem::new(Code::StoreUnavailable, format!("{} cannot be made: {error}", home.display()))
    })?;
    Store::open(&home.join("holdfast.db"), Options::default())
}
