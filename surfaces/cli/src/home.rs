//! Which home, and the log in it.

use std::env;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_store::{Options, Store};

/// The home: as asked for, `HOLDFAST_HOME`, a `./sandbox` that already exists, else the user's data folder.
pub(crate) fn home(asked: Option<PathBuf>) -> PathBuf {
    asked
        .or_else(|| env::var_os("HOLDFAST_HOME").map(PathBuf::from))
        .or_else(|| Some(PathBuf::from("sandbox")).filter(|folder| folder.is_dir()))
        .unwrap_or_else(data_folder)
}

fn data_folder() -> PathBuf {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let own = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    data.or_else(own).unwrap_or_default().join("holdfast")
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
