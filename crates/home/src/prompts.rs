//! Prompts: `prompts/*.jinja2`, rendered without reaching outside. The same template and the same context give the same text: there is no
//! clock, no file and no random in it, and a loop that does not end is stopped.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_yaml::nearest;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use serde::Serialize;

use crate::files::{self, Bounds};
use crate::home::Home;

/// The prompt of the main agent.
pub const ORCHESTRATOR: &str = "orchestrator";

/// The instructions of the main agent where the home has none.
pub(crate) const INSTRUCTIONS: &str = include_str!("../templates/orchestrator.jinja2");

/// What the main agent's prompt was called before.
const FORMERLY: &str = "main";
/// What `init` wrote under that name. An unchanged file is not the user's choice.
const FORMER_INSTRUCTIONS: &str = include_str!("../templates/former.jinja2");

const ENDING: &str = "jinja2";
/// Instructions that a render may take; a long prompt with hundreds of tools takes a few thousand.
const FUEL: u64 = 1_000_000;
const BOUNDS: Bounds =
    Bounds { unreadable: Code::PromptInvalid, too_large: Code::PromptInvalid, max_bytes: 256 * 1024 };

/// The prompts of a home.
#[derive(Debug)]
pub struct Prompts {
    environment: Environment<'static>,
    /// Where each came from; those that are built in came from nowhere.
    files: BTreeMap<String, Option<PathBuf>>,
}

/// What a prompt may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PromptContext {
    /// The agent's name.
    pub agent: String,
    /// The date, as it should be read; handed in, because a prompt has no clock.
    pub date: Option<String>,
    /// The tools that the agent has.
    pub tools: Vec<PromptTool>,
    /// What else is there: agents to hand over to, memory.
    pub capabilities: Vec<String>,
    /// The channels on which the user can be reached.
    pub channels: Vec<String>,
}

/// A tool, in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PromptTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

impl Prompts {
    /// Reads every prompt. All invalid ones are reported together.
    pub fn load(home: &Home) -> Result<Self, Problem> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        let mut prompts = Self { environment, files: BTreeMap::new() };
        let found = templates(&home.prompts())?;
        let problems: Vec<Problem> = found.into_iter().filter_map(|path| prompts.add(path).err()).collect();
        if !prompts.files.contains_key(ORCHESTRATOR) {
            prompts.insert(ORCHESTRATOR, None, INSTRUCTIONS.to_owned())?;
        }
        Problem::all(problems).map_or(Ok(prompts), Err)
    }

    /// The names of all prompts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Renders `prompts/<name>.jinja2`.
    pub fn render(&self, name: &str, context: &PromptContext) -> Result<String, Problem> {
        if !self.files.contains_key(name) {
            let unknown = Problem::new(Code::PromptUnknown, format!("there is no prompt `{name}`"));
            return Err(match nearest(name, self.names()) {
                Some(near) => unknown.help(format!("Did you mean `{near}`?")),
                None => unknown,
            });
        }
        let rendered = self
            .environment
            .get_template(&format!("{name}.{ENDING}"))
            .and_then(|template| template.render(Serde(context)));
        rendered.map_err(|error| self.problem(name, &error))
    }

    fn add(&mut self, path: PathBuf) -> Result<(), Problem> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = files::read(&path, &BOUNDS)?.unwrap_or_default();
        let text = files::text(&path, bytes, Code::PromptInvalid)?;
        if name == FORMERLY && text != FORMER_INSTRUCTIONS {
            // Under both names, unless there is one under the new name too: that comes later, and takes its place.
            self.insert(ORCHESTRATOR, Some(path.clone()), text.clone())?;
        }
        self.insert(&name, Some(path), text)
    }

    fn insert(&mut self, name: &str, path: Option<PathBuf>, text: String) -> Result<(), Problem> {
        self.files.insert(name.to_owned(), path);
        let added = self.environment.add_template_owned(format!("{name}.{ENDING}"), text);
        added.map_err(|error| self.problem(name, &error))
    }

    /// The error may be in a template that the prompt includes.
    fn problem(&self, name: &str, error: &Error) -> Problem {
        let innermost = std::iter::successors(Some(error), |error| {
            std::error::Error::source(*error).and_then(|source| source.downcast_ref::<Error>())
        })
        .last()
        .unwrap_or(error);
        let blamed = innermost.name().and_then(|name| name.strip_suffix(".jinja2")).unwrap_or(name);
        let built_in = || Path::new("(built in)").join(format!("{blamed}.{ENDING}"));
        let file = self.files.get(blamed).cloned().flatten().unwrap_or_else(built_in);
        let line = innermost.line().and_then(|line| u32::try_from(line).ok()).unwrap_or_default();
        let location = Location { file, line, column: 0, field: None };
        let kind = innermost.kind().to_string();
        let what = match innermost.detail() {
            Some(detail) => format!("the prompt cannot be used: {kind}: {detail}"),
            None => format!("the prompt cannot be used: {kind}"),
        };
        let found = Problem::new(Code::PromptInvalid, what).at(location);
        match innermost.kind() {
            minijinja::ErrorKind::UndefinedError => {
                found.help("A prompt knows `agent`, `date`, `channels`, `tools` and `capabilities`.")
            }
            minijinja::ErrorKind::OutOfFuel => {
                found.help("It takes too many steps; look for a loop over a large range.")
            }
            _ => found,
        }
    }
}

/// The template files of a folder, in order.
fn templates(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let failed = |error: std::io::Error| files::failed(Code::PromptInvalid, folder, "read", &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
