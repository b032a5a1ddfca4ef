//! `holdfast ext dev`: builds, checks and tests an extension whenever a file of it changes. Where it lies in a home that somebody
//! owns, the owner swaps it by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holdfast_app::ApplicationConfig;
use holdfast_contract::manifest::{Manifest, parse};
use holdfast_contract::problem::Problem;
use holdfast_loader::FolderWatcher;
use tokio::signal::unix::SignalKind;

use super::test::cases_of;
use super::{build, check, grant, place, test};
use crate::arguments::GrantCommand;
use crate::commands::local::up::listen;
use crate::exit::Exit;
use crate::output::{Output, report};

/// The largest manifest that is read.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;
/// Folders of tools, which change with every build.
const TOOLS: &[&str] = &["target", "node_modules", "__pycache__"];

pub(crate) async fn dev(
    output: &Output,
    plan: &ApplicationConfig,
    named: &Path,
    grants: bool,
) -> Result<Exit, Problem> {
    let folder = place(&plan.home, named)?;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let watched = folder.clone();
    let _watch = FolderWatcher::begin(move || {
        let _nobody_listens = tell.send(());
        if watched.is_file() {
            watched.parent().map(Path::to_owned).into_iter().collect()
        } else {
            folders(&watched)
        }
    })?;
    let mut built = BTreeMap::new();
    let mut asked = grants;
    let mut interrupt = listen(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            changed = told.recv() => if changed.is_none() { return Ok(Exit::Done) },
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
        }
        let now = sources(&folder);
        if now == built {
            continue;
        }
        built = now;
        if let Err(problem) = round(output, plan, &folder, &mut asked).await {
            report(&problem);
        }
        output.line("waiting for a change; Ctrl-C ends")?;
    }
}

async fn round(
    output: &Output,
    plan: &ApplicationConfig,
    folder: &Path,
    asked: &mut bool,
) -> Result<(), Problem> {
    if is_built(folder) {
        tokio::task::block_in_place(|| build(output, &plan.home, Some(folder)))?;
    }
    if std::mem::take(asked) {
        let id = folder.display().to_string();
        let all = GrantCommand { id, folder: true, ..GrantCommand::default() };
        // One that asks for nothing needs nothing.
        if let Err(problem) = grant(output, plan, &all) {
            report(&problem);
        }
    }
    check(output, plan, folder).await?;
    if cases_of(folder).is_file() {
        test(output, plan, folder).await?;
    }
    Ok(())
}

/// Whether there is something to build: a component, and neither a single file, a Python class, a program nor an agent in words.
fn is_built(place: &Path) -> bool {
    // What cannot be read is reported by the build.
    let text = holdfast_untrusted_files::read_text(&place.join("manifest.yaml"), MAX_MANIFEST_BYTES);
    let text = text.unwrap_or_default();
    let Ok(parsed) = parse(Path::new("manifest.yaml"), &text) else { return !place.is_file() };
    let Manifest { entrypoint, command, agent, .. } = parsed.manifest;
    command.is_none() && entrypoint.map_or(agent.is_none(), |entrypoint| !entrypoint.contains(':'))
}

/// The extension's own files, by when they were changed. What a build makes is not among them.
fn sources(folder: &Path) -> BTreeMap<PathBuf, Option<SystemTime>> {
    if folder.is_file() {
        let changed = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        return [folder.to_owned(), cases_of(folder)]
            .into_iter()
            .map(|path| (path.clone(), changed(&path)))
            .collect();
    }
    let files =
        folders(folder).into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let own = files.map(|entry| entry.path()).filter(|path| {
        let built = path.extension().is_some_and(|extension| extension == "wasm" || extension == "lock");
        path.is_file() && !built && !is_hidden(path)
    });
    own.map(|path| (path.clone(), fs::metadata(&path).and_then(|about| about.modified()).ok())).collect()
}

/// The folder and those in it, without those of tools.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = inside.filter(|path| {
        let tools = path.file_name().is_some_and(|name| TOOLS.iter().any(|tool| name == *tool));
        path.is_dir() && !tools && !is_hidden(path)
    });
    std::iter::once(folder.to_owned()).chain(own.flat_map(|path| folders(&path))).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
