//! `holdfast ext …`: what is installed is in `listing.rs`; here is what an author and a careful user do with one extension.

mod check;
mod grant;
mod test;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::{Home, Settings};
use holdfast_runtime::house::Plan;
use holdfast_runtime::house::{LogLevel, Progress};
use holdfast_runtime::workshop::Workbench;

pub(crate) use check::check;
pub(crate) use grant::{grant, revoke};
pub(crate) use test::test;

/// The folder of an extension that is named by its id or by its path.
pub(crate) fn folder(home: &Home, named: &str) -> Result<PathBuf, Problem> {
    let installed = home.extensions().join(named);
    let plain = !named.contains(['/', '.']);
    let path = if plain && installed.is_dir() { installed } else { PathBuf::from(named) };
    path.canonicalize().map_err(|error| {
        let problem =
            Problem::new(Code::ExtensionUnknown, format!("there is no extension `{named}`: {error}"));
        problem.help("Name the id of an installed extension, or a folder with a `manifest.yaml`.")
    })
}

/// An extension on the workbench, as this home would have it.
pub(crate) async fn workbench(plan: &Plan, folder: &Path) -> Result<Workbench, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let policy = plan.home.policy(plan.profile.as_deref())?;
    let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let set = settings.extensions.get(&id.as_str().into());
    let log = Arc::new(|id: &ExtensionId, level: LogLevel, line: &str| {
        eprintln!("{id} {level:?}: {}", crate::chat::harmless(line));
    });
    Workbench::open(folder, &policy, set, &settings.wasm, Some(log)).await
}

/// Says what takes long while extensions come up.
pub(crate) fn progress(id: &ExtensionId, progress: Progress) {
    match progress {
        Progress::Started { bytes } if bytes > 256 << 10 => {
            eprintln!("compiling {id} ({:.1} MiB), once", bytes as f64 / f64::from(1 << 20));
        }
        Progress::Done { millis } if millis > 500 => {
            eprintln!("compiled {id} in {:.1} s", millis as f64 / 1e3)
        }
        Progress::Started { .. } | Progress::Done { .. } => {}
    }
}
