//! `holdfast ext new` and `holdfast ext build`. Neither needs an owner of the home.

use std::path::Path;

use holdfast_authoring::Built;
use holdfast_contract::problem::Problem;
use holdfast_home::Home;

use super::folder;
use super::progress::BuildProgress;
use crate::arguments::ExtNew;
use crate::exit::Exit;
use crate::output::Output;

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
    let mut progress = BuildProgress::new(output);
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
