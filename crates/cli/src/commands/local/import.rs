//! `holdfast import`: takes over what a user has in another program. Nothing of the other program's is changed, and nothing in the home is
//! overwritten. From a folder no link is followed and no policy is imported: what came over is granted nothing, and importing it twice
//! changes nothing.

mod conversations;
mod copy;
mod database;
mod mcp;
mod pith;
mod schedules;
mod yodoca;

use std::path::{Path, PathBuf};

use holdfast_app::ApplicationConfig;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Settings;
use holdfast_runtime::secrets::{Chain, SecretName, SecretString};
use holdfast_untrusted_files::read_text;
use holdfast_yaml::{DecodeOptions, Field, decode};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::arguments::{Import, ImportSource};
use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::output::{Output, table};

/// The largest file of settings or variables that is read.
const MAX_TEXT_BYTES: u64 = 1 << 20;

const YAML: DecodeOptions = DecodeOptions {
    schema: "settings",
    max_bytes: MAX_TEXT_BYTES as usize,
    syntax_help: "Fix the line shown.",
    size_help: "Shorten the file.",
};

/// What became of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It is in the home now, or would be without `--dry-run`.
    Imported,
    /// It was there before.
    Present,
    /// It was not taken over.
    Left,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Present => "present",
            Self::Left => "left",
        }
    }
}

/// A line of the report.
#[derive(Debug, Serialize)]
struct ImportLine {
    /// What kind of thing: `extension`, `data`, `secret`, `setting`, `schedule`, `history`, `prompt`.
    kind: &'static str,
    name: String,
    outcome: Outcome,
    /// Why it was left, or what is to be done about it.
    note: String,
}

/// An import that is under way.
struct Importer<'a> {
    plan: &'a ApplicationConfig,
    /// The other program's folder.
    source: PathBuf,
    dry: bool,
    secrets: Chain,
    settings: Settings,
    /// The ids of the built-in extensions, which no folder may have.
    built_in: Vec<ExtensionId>,
    lines: Vec<ImportLine>,
}

pub(crate) fn import(output: &Output, plan: &ApplicationConfig, command: &Import) -> Result<Exit, Problem> {
    match command {
        Import::Yodoca(from) => folder(output, plan, from, yodoca::import),
        Import::Pith(from) => folder(output, plan, from, pith::import),
        Import::Mcp { file, dry_run } => mcp::import(output, plan, file, *dry_run),
    }
}

/// Imports the folder of another program.
fn folder(
    output: &Output,
    plan: &ApplicationConfig,
    from: &ImportSource,
    read: fn(&mut Importer<'_>) -> Result<(), Problem>,
) -> Result<Exit, Problem> {
    let (path, dry) = (&from.path, from.dry_run);
    let unreadable = |error: std::io::Error| {
        Problem::in_file(Code::UsageInvalid, path, format!("{} cannot be read: {error}", path.display()))
    };
    let source = path.canonicalize().map_err(unreadable)?;
    let home = plan.home.canonical();
    if source.starts_with(&home) || home.starts_with(&source) {
        let what = "the folder to import and the home overlap".to_owned();
        return Err(Problem::in_file(Code::UsageInvalid, path, what).help("Name another folder."));
    }
    // Nobody else writes to the home meanwhile.
    let _owner = if dry { None } else { Some(plan.home.own()?) };
    let settings = Settings::load(&plan.home)?.settings;
    let secrets = holdfast_app::secret_chain(&plan.home, &settings, plan.environment)?;
    let context = holdfast_app::BuiltInContext { home: &plan.home, workspace: None, settings: &settings };
    let built_in = (plan.built_ins)(&context).extensions.into_iter().map(|found| found.id).collect();
    let mut importer = Importer { plan, source, dry, secrets, settings, built_in, lines: Vec::new() };
    read(&mut importer)?;
    importer.report(output)
}

impl Importer<'_> {
    fn line(&mut self, kind: &'static str, name: &str, outcome: Outcome, note: impl Into<String>) {
        self.lines.push(ImportLine { kind, name: name.to_owned(), outcome, note: note.into() });
    }

    fn report(self, output: &Output) -> Result<Exit, Problem> {
        if output.json {
            return output.documents(&self.lines);
        }
        let rows = self.lines.iter().map(|line| {
            let outcome = match line.outcome {
                Outcome::Imported if self.dry => "would be imported",
                outcome => outcome.word(),
            };
            [line.kind, &line.name, outcome, &line.note].map(sanitize_for_terminal)
        });
        output.lines(table(["kind", "name", "outcome", "note"], rows, "there is nothing to import"))?;
        Ok(Exit::Done)
    }

    /// A file of the other program as text, if it is there. A link is not followed.
    fn text(&self, name: &str) -> Option<String> {
        let path = self.inside(name)?;
        read_text(&path, MAX_TEXT_BYTES).ok()
    }

    /// A path in the other program's folder, if nothing on the way to it is a link.
    fn inside(&self, name: &str) -> Option<PathBuf> {
        let mut path = self.source.clone();
        for part in Path::new(name).components() {
            path.push(part);
            let found = std::fs::symlink_metadata(&path).ok()?;
            if found.file_type().is_symlink() {
                return None;
            }
        }
        Some(path)
    }

    /// A YAML file of the other program, as JSON.
    fn yaml(&self, name: &str) -> Map<String, Value> {
        let text = self.text(name).unwrap_or_default();
        decode(&YAML, &text, |root: &Field<'_>| root.json_map())
            .map(|decoded| decoded.value)
            .unwrap_or_default()
    }

    /// Stores the variables of a `.env` file as secrets. Values are never shown.
    fn variables(&mut self, name: &str) -> Result<(), Problem> {
        for line in self.text(name).unwrap_or_default().lines() {
            let line = line.trim().trim_start_matches("export ");
            let Some((variable, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
                continue;
            };
            let (variable, value) = (variable.trim(), value.trim());
            let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
            let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
            if value.is_empty() {
                continue;
            }
            let stored = match SecretName::global(variable) {
                Ok(secret) => secret,
                Err(problem) => {
                    self.line("secret", variable, Outcome::Left, problem.what);
                    continue;
                }
            };
            if self.secrets.find_for(&"import".into(), variable)?.is_some() {
                self.line("secret", variable, Outcome::Present, "");
                continue;
            }
            if !self.dry {
                self.secrets.set(&stored, &SecretString::from(value.to_owned()))?;
            }
            let note = format!("`holdfast ext grant ID --secret {variable}` lets an extension use it");
            self.line("secret", variable, Outcome::Imported, note);
        }
        Ok(())
    }

    /// Sets what the other program sets for an extension, where the home does not.
    fn extension_settings(&mut self, id: &str, set: &Map<String, Value>) -> Result<(), Problem> {
        let id = ExtensionId::from(id);
        for (name, value) in set {
            let label = format!("extensions.{id}.{name}");
            let before = self.settings.extensions.get(&id).and_then(|set| set.get(name));
            if before.is_some() {
                self.line("setting", &label, Outcome::Present, "");
                continue;
            }
            if !self.dry {
                self.plan.home.set_extension(&id, name, value)?;
            }
            self.line("setting", &label, Outcome::Imported, "");
        }
        Ok(())
    }
}
