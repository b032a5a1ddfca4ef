//! `holdfast ext …`: the commands for one extension and its author. What is installed is listed in `owner/list.rs`.

mod check;
mod dev;
mod grant;
mod make;
mod progress;
mod test;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_app::{ApplicationConfig, Progress, secrets};
use holdfast_authoring::harness::LoadedExtension;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Home, Settings};
use holdfast_loader::{is_extension, single_file};

use crate::chat::one_line;
use crate::output::report;

pub(crate) use check::check;
pub(crate) use dev::dev;
pub(crate) use grant::{grant, revoke};
pub(crate) use make::{build, new};
pub(crate) use test::test;

/// The folder that an id or a path means. An id is looked for in the home first, so that a file of its name is not taken for it.
pub(crate) fn folder(home: &Home, subject: Option<&Path>) -> Result<PathBuf, Problem> {
    let whole = |path: &Path| {
        path.canonicalize().map_err(|error| {
            Problem::new(Code::ExtensionUnknown, format!("{} cannot be used: {error}", path.display()))
        })
    };
    let Some(subject) = subject else { return whole(Path::new(".")) };
    let installed = home.extensions().join(subject);
    if subject.components().count() == 1 && installed.is_dir() && is_extension(&installed) {
        return whole(&installed);
    }
    if subject.is_dir() {
        return whole(subject);
    }
    let what = format!(
        "there is no extension `{}` in {}, and no such folder",
        subject.display(),
        home.extensions().display()
    );
    let others = installed_folders(home);
    let names: Vec<&str> = others.iter().map(String::as_str).collect();
    let empty = "`holdfast ext new` creates an extension.";
    let name = subject.to_string_lossy();
    Err(Problem { what, ..Problem::unknown(Code::ExtensionUnknown, "extension", &name, &names, empty) })
}

/// The names of the folders in the home that are extensions.
fn installed_folders(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.extensions()).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir() && is_extension(&entry.path()));
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Where an extension lies, by its id or path: a folder, or a single file.
pub(crate) fn place(home: &Home, subject: &Path) -> Result<PathBuf, Problem> {
    let all = home.extensions();
    match subject.to_str().and_then(|id| single_file(&all, id)) {
        Some(file) => Ok(all.join(file)),
        None if subject.is_file() && subject.extension().is_some_and(|kind| kind == "py") => {
            Ok(subject.to_owned())
        }
        None => folder(home, Some(subject)),
    }
}

/// An extension on the workbench, as this home would have it.
pub(crate) async fn load_extension(
    plan: &ApplicationConfig,
    place: &Path,
) -> Result<LoadedExtension, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let policy = plan.home.policy(plan.profile.as_deref())?;
    let named = if place.is_file() { place.file_stem() } else { place.file_name() };
    let id = named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let set = settings.extensions.get(&id.as_str().into());
    let wanted = plan.log_level.unwrap_or(settings.log.level);
    let log = Arc::new(move |id: &ExtensionId, level: LogLevel, line: &str| {
        if wanted.includes(level) {
            logged(id, level, line);
        }
    });
    // Where it is not known what to redact, nothing is shown.
    let log = match secrets(&plan.home, &settings, plan.environment) {
        Ok(secrets) => Some(Arc::new(secrets).redacted_log(log)),
        Err(problem) => {
            report(&problem.with(Severity::Warning));
            None
        }
    };
    let places = (log, plan.home.environments(), plan.home.root());
    LoadedExtension::open(place, &policy, set, &settings.wasm, places).await
}

/// Shows a message of an extension's log, on one line.
pub(crate) fn logged(id: &ExtensionId, level: LogLevel, line: &str) {
    eprintln!("{}", log_line(id, level, line));
}

/// The same with the time before it, for a home that is up.
pub(crate) fn logged_with_time(id: &ExtensionId, level: LogLevel, line: &str) {
    eprintln!("{} {}", crate::time::now(), log_line(id, level, line));
}

fn log_line(id: &ExtensionId, level: LogLevel, line: &str) -> String {
    let line = one_line(line);
    match level {
        LogLevel::Printed => format!("{id}: {line}"),
        LogLevel::Debug => format!("{id} debug: {line}"),
        LogLevel::Info => format!("{id} info: {line}"),
        LogLevel::Warning => format!("{id} warning: {line}"),
        LogLevel::Error => format!("{id} error: {line}"),
    }
}

/// Says what takes long while extensions come up.
pub(crate) fn progress(id: &ExtensionId, progress: Progress) {
    match progress {
        Progress::Compiling { bytes } if bytes > 256 << 10 => {
            eprintln!("compiling {id} ({:.1} MiB), once", bytes as f64 / f64::from(1 << 20));
        }
        Progress::Compiled { millis } if millis > 500 => {
            eprintln!("compiled {id} in {:.1} s", millis as f64 / 1e3)
        }
        Progress::Compiling { .. } | Progress::Compiled { .. } => {}
        Progress::Installing { packages } => eprintln!("installing for {id}, once: {}", packages.join(", ")),
        Progress::Installed { millis } => eprintln!("installed for {id} in {:.1} s", millis as f64 / 1e3),
    }
}
