//! `holdfast init`: make a home, with what this machine has.

use std::ffi::OsString;
use std::path::PathBuf;

use holdfast_app::Application;
use holdfast_contract::problem::Problem;
use holdfast_home::{DetectedModel, Home, HomeEnvironment, InitOptions, OFFLINE};
use holdfast_model::detect::{self, DetectedProvider};
use secrecy::ExposeSecret;
use serde_json::json;

use crate::client::turn::{attended, choose};
use crate::exit::Exit;
use crate::output::Output;

const NOTHING: &str =
    "No key in the environment and no model server on this machine: the built-in model is used.";

/// What a first start says about models.
pub(crate) fn greeting(application: &Application) -> String {
    let used = application.found.iter().find(|found| found.provider == application.model.as_str());
    match used {
        Some(found) => {
            let from = found.key_env.map_or_else(|| "on this machine".to_owned(), |key| format!("by {key}"));
            format!(
                "Found {} {from}: {} is used. `holdfast model list` shows all.",
                found.provider, found.model
            )
        }
        None if application.model.as_str() == OFFLINE => {
            format!(
                "{NOTHING}\nFor a language model, set a provider's key in the environment or start a model server here: `holdfast docs models` lists them."
            )
        }
        None => format!("The model is {}, as the settings say.", application.model),
    }
}

pub(crate) async fn init(
    output: &Output,
    home: &Home,
    environment: fn(&str) -> Option<OsString>,
    yes: bool,
) -> Result<Exit, Problem> {
    let environment = HomeEnvironment::load(home, environment)?;
    let found =
        detect::detect(|name| environment.get(name).map(|value| value.expose_secret().to_owned())).await;
    let usable: Vec<&DetectedProvider> = found.iter().filter(|found| !found.model.is_empty()).collect();
    if !output.json {
        if usable.is_empty() {
            output.line(NOTHING)?
        } else {
            output.line("Found:")?
        }
        for found in &usable {
            let from = found.key_env.map_or_else(|| "on this machine".to_owned(), |key| format!("by {key}"));
            output.line(format!("  {} ({}), {from}", found.provider, found.model))?;
        }
    }
    let chosen = match usable.len() {
        0 => None,
        count if count > 1 && !yes && !output.json && attended() => {
            let names: Vec<String> =
                usable.iter().map(|found| format!("{} {}", found.provider, found.model)).collect();
            choose("Which one is the default?", &names).and_then(|place| usable.get(place).copied())
        }
        _ => usable.first().copied(),
    };
    let model = chosen.map(|found| DetectedModel {
        name: found.provider.to_owned(),
        provider: found.provider.to_owned(),
        model: found.model.clone(),
        api_key_env: found.key_env.map(str::to_owned),
        base_url: found.base_url.clone(),
    });
    let made = home.init(&InitOptions { model: model.clone() })?;
    if output.json {
        output.document(
            &json!({ "home": home.root(), "made": made, "model": model.map(|model| model.name) }),
        )?;
        return Ok(Exit::Done);
    }
    for made in &made {
        let path: PathBuf = made.path.strip_prefix(home.root()).unwrap_or(&made.path).to_owned();
        if made.new && !path.as_os_str().is_empty() {
            output.line(format!("  made {}", path.display()))?;
        }
    }
    let new = made.iter().any(|made| made.new);
    let verdict = if new { "is ready" } else { "was complete; nothing was changed" };
    output.line(format!("{} {verdict}. Next: holdfast chat", home.root().display()))?;
    Ok(Exit::Done)
}
