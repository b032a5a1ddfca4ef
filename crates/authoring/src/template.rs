//! The folders that `ext new` creates. Their files are in `templates/`, with `{{id}}` as the placeholder of the id.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest;
use holdfast_contract::problem::{Code, Problem};
use serde::Serialize;

use crate::language::Language;
use crate::{files, sdk};

/// The role of a new extension. Others can be added: a role is one more function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TemplateRole {
    /// A tool that a model may call.
    #[default]
    Tool,
    /// A gate over tool calls.
    Gate,
    /// A guardrail over answers.
    Guardrail,
}

impl FromStr for TemplateRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tool" => Ok(Self::Tool),
            "gate" => Ok(Self::Gate),
            "guardrail" => Ok(Self::Guardrail),
            _ => Err("expected tool, gate or guardrail".to_owned()),
        }
    }
}

/// A folder that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewExtension {
    /// The extension.
    pub id: ExtensionId,
    /// What it is written in.
    pub language: Language,
    /// The folder.
    pub folder: PathBuf,
    /// The files to edit, relative to the folder.
    pub files: Vec<String>,
}

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../templates/", $name))
    };
}

/// Writes the folder of a new extension. It must not exist, or be empty.
pub fn new(language: Language, id: &str, role: TemplateRole, folder: &Path) -> Result<NewExtension, Problem> {
    let text = manifest_text(id, role);
    // Parsing the manifest validates the id.
    let parsed = manifest::parse(&folder.join("manifest.yaml"), &text)?;
    if folder.exists() && files::names(folder)?.iter().any(|name| name != ".git") {
        let what = format!("{} exists and is not empty", folder.display());
        return Err(Problem::new(Code::UsageInvalid, what)
            .help("Choose another id, or another folder with `--path`."));
    }
    let (name, source) = source(language, role);
    let mut written = vec![("manifest.yaml".to_owned(), text)];
    written.push((name.to_owned(), source.to_owned()));
    written.push(("tests.yaml".to_owned(), cases(role).to_owned()));
    if language == Language::Rust {
        // Hooks need no list of tools, and an empty one would be exported.
        let features = if role == TemplateRole::Tool { "" } else { ", default-features = false" };
        written
            .push(("Cargo.toml".to_owned(), template!("rust/Cargo.toml").replace("{{features}}", features)));
    }
    written.push((".gitignore".to_owned(), ignored(language).to_owned()));
    for (name, text) in &written {
        files::write(&folder.join(name), text.replace("{{id}}", id).as_bytes())?;
    }
    if language == Language::Rust {
        sdk::write_rust(folder)?;
    }
    let folder = folder.canonicalize().map_err(|error| files::unusable(folder, "read", &error))?;
    let files = written.into_iter().map(|(name, _)| name).collect();
    Ok(NewExtension { id: parsed.manifest.id, language, folder, files })
}

fn manifest_text(id: &str, role: TemplateRole) -> String {
    let (description, more) = match role {
        TemplateRole::Tool => ("Counts the words of a text.", ""),
        TemplateRole::Gate => ("Refuses tool calls that delete.", template!("gate.manifest.yaml")),
        TemplateRole::Guardrail => {
            ("Stops answers that hold a forbidden word.", template!("guardrail.manifest.yaml"))
        }
    };
    let text = template!("manifest.yaml").replace("{{id}}", id).replace("{{description}}", description);
    text + more
}

fn source(language: Language, role: TemplateRole) -> (&'static str, &'static str) {
    use TemplateRole::{Gate, Guardrail, Tool};
    match (language, role) {
        (Language::Rust, Tool) => ("src/lib.rs", template!("rust/tool.rs")),
        (Language::Rust, Gate) => ("src/lib.rs", template!("rust/gate.rs")),
        (Language::Rust, Guardrail) => ("src/lib.rs", template!("rust/guardrail.rs")),
        (Language::Python, Tool) => ("main.py", template!("python/tool.py")),
        (Language::Python, Gate) => ("main.py", template!("python/gate.py")),
        (Language::Python, Guardrail) => ("main.py", template!("python/guardrail.py")),
        (Language::JavaScript, Tool) => ("main.js", template!("javascript/tool.js")),
        (Language::JavaScript, Gate) => ("main.js", template!("javascript/gate.js")),
        (Language::JavaScript, Guardrail) => ("main.js", template!("javascript/guardrail.js")),
        (Language::C, Tool) => ("main.c", template!("c/tool.c")),
        (Language::C, Gate) => ("main.c", template!("c/gate.c")),
        (Language::C, Guardrail) => ("main.c", template!("c/guardrail.c")),
    }
}

fn cases(role: TemplateRole) -> &'static str {
    match role {
        TemplateRole::Tool => template!("tool.tests.yaml"),
        TemplateRole::Gate => template!("gate.tests.yaml"),
        TemplateRole::Guardrail => template!("guardrail.tests.yaml"),
    }
}

fn ignored(language: Language) -> &'static str {
    match language {
        Language::Rust => "*.wasm\n/.holdfast/\n/target/\n",
        Language::Python => "*.wasm\n__pycache__/\n",
        Language::JavaScript => "*.wasm\n/node_modules/\n",
        Language::C => "*.wasm\n",
    }
}
