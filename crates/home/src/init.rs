//! Creates a home: folders for the owner only, and commented files. Existing files are never changed.

use std::fmt::Write as _;
use std::path::PathBuf;

use holdfast_contract::problem::Problem;
use serde::Serialize;

use crate::files;
use crate::home::Home;
use crate::prompts;

const SETTINGS: &str = include_str!("../templates/settings.yaml");
const POLICY: &str = include_str!("../templates/policy.yaml");
const ENVIRONMENT: &str = include_str!("../templates/env");

/// The line of the settings template that the models take the place of.
const MODELS: &str = "# models\n";

/// Options of a new home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitOptions {
    /// The model that was found; without one, the built-in that needs no network.
    pub model: Option<DetectedModel>,
}

/// A model that was found on this machine or by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedModel {
    /// What the user calls it.
    pub name: String,
    /// Whose it is.
    pub provider: String,
    /// What the provider calls it.
    pub model: String,
    /// The variable that holds its key.
    pub api_key_env: Option<String>,
    /// Where it is reached.
    pub base_url: Option<String>,
}

/// A file or folder of the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreatedHome {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it was made now; otherwise it was there, and is as it was.
    pub new: bool,
}

impl Home {
    /// Creates what is missing of the home, and lists what was created and what existed.
    pub fn init(&self, options: &InitOptions) -> Result<Vec<CreatedHome>, Problem> {
        let mut made = Vec::new();
        for path in self.folders() {
            let new = files::make_folder(&path)?;
            made.push(CreatedHome { path, new });
        }
        let texts = [
            (self.settings_file(), settings(options.model.as_ref())),
            (self.policy_file(), POLICY.to_owned()),
            (self.prompts().join("orchestrator.jinja2"), prompts::INSTRUCTIONS.to_owned()),
            (self.env_file(), environment(options.model.as_ref())),
        ];
        for (path, text) in texts {
            let new = files::make_file(&path, &text)?;
            made.push(CreatedHome { path, new });
        }
        Ok(made)
    }

    /// Creates missing folders but no files: without files the defaults apply, and a later `init` can still write what it detects.
    /// Returns whether the home is new.
    pub fn ensure(&self) -> Result<bool, Problem> {
        let new = !self.exists();
        self.folders().iter().try_for_each(|folder| files::make_folder(folder).map(|_| ()))?;
        Ok(new)
    }
}

fn settings(model: Option<&DetectedModel>) -> String {
    // Where nothing was found nothing is fixed: a key that is set later, or a server that is started, is found then.
    let Some(model) = model else {
        return SETTINGS.replacen(MODELS, "# models:\n#   default: local\n", 1);
    };
    let (mut models, name) = (String::from("models:\n"), yaml_text(&model.name));
    // Writing to a string cannot fail.
    let _ = writeln!(models, "  default: {name}\n  {name}:");
    let fields = [
        ("provider", Some(&model.provider)),
        ("model", Some(&model.model)),
        ("base_url", model.base_url.as_ref()),
        ("api_key_env", model.api_key_env.as_ref()),
    ];
    for (field, value) in fields {
        if let Some(value) = value {
            let _ = writeln!(models, "    {field}: {}", yaml_text(value));
        }
    }
    SETTINGS.replacen(MODELS, &models, 1)
}

fn environment(model: Option<&DetectedModel>) -> String {
    match model.and_then(|model| model.api_key_env.as_ref()) {
        Some(name) => format!("{ENVIRONMENT}# {name}=\n"),
        None => ENVIRONMENT.to_owned(),
    }
}

/// A text as YAML: plain where that is clear, in quotes otherwise.
fn yaml_text(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:".contains(letter);
    let words = ["true", "false", "null", "yes", "no", "on", "off"];
    let clear = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(plain)
        && !text.ends_with(':')
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if clear { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
