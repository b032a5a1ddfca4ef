//! `holdfast ext …`: what authors do. Making and building are here; both need nobody who owns the home.

mod progress;

use std::path::{Path, PathBuf};

use holdfast_authoring::Built;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;

use crate::arguments::ExtNew;
use crate::exit::Exit;
use crate::output::Output;
use progress::Progress;

/// Makes a folder for a new extension.
pub(crate) fn new(output: &Output, home: &Home, command: &ExtNew) -> Result<Exit, Problem> {
    let folder = command.path.clone().unwrap_or_else(|| home.extensions().join(&command.id));
    let made = holdfast_authoring::new(command.language, &command.id, command.role, &folder)?;
    if output.json {
        output.document(&made)?;
        return Ok(Exit::Done);
    }
    output.line(made.folder.display().to_string())?;
    if !output.quiet {
        made.files.iter().try_for_each(|name| output.line(format!("  {name}")))?;
        let subject = match &command.path {
            Some(path) => path.display().to_string(),
            None => command.id.clone(),
        };
        output.line(format!("next: holdfast ext build {subject}"))?;
    }
    Ok(Exit::Done)
}

/// Builds an extension's component.
pub(crate) fn build(output: &Output, home: &Home, subject: Option<&Path>) -> Result<Exit, Problem> {
    let folder = folder(home, subject)?;
    let mut progress = Progress::new(output);
    let built = holdfast_authoring::build(&folder, &mut |step| progress.begin(&step.to_string()));
    progress.end(built.is_ok());
    let built = built?;
    if output.json {
        output.document(&built)?;
    } else {
        output.line(built.component.display().to_string())?;
        if !output.quiet {
            output.line(summary(&built))?;
        }
    }
    Ok(Exit::Done)
}

fn summary(built: &Built) -> String {
    let imports = if built.imports.is_empty() { "nothing".to_owned() } else { built.imports.join(", ") };
    format!(
        "  {} from {} in {:.1} s; exports {}; imports {imports}",
        size(built.bytes),
        built.language,
        built.took.as_secs_f64(),
        built.exports.join(", "),
    )
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// The folder that an id or a path means. An id is looked for in the home first, so that a file of its name is no trap.
pub(crate) fn folder(home: &Home, subject: Option<&Path>) -> Result<PathBuf, Problem> {
    let Some(subject) = subject else { return Ok(PathBuf::from(".")) };
    let installed = home.extensions().join(subject);
    if subject.components().count() == 1 && installed.join("manifest.yaml").is_file() {
        return Ok(installed);
    }
    if subject.is_dir() {
        return Ok(subject.to_owned());
    }
    let what = format!(
        "there is no extension `{}` in {}, and no such folder",
        subject.display(),
        home.extensions().display()
    );
    let help = "`holdfast ext list` shows what is installed; `holdfast ext new` begins one.";
    Err(Problem::new(Code::ExtensionUnknown, what).help(help))
}
