//! The models of a home: those that are configured, and those that are detected where none is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::ids::ModelName;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{HomeEnvironment, ModelSettings, OFFLINE, Settings};
use holdfast_model::cassette::Recorder;
use holdfast_model::detect::{self, DetectedProvider};
use holdfast_model::provider::{Provider, ProviderSettings, usual_key};
use holdfast_model::{Model, built_in, open_file};
use holdfast_runtime::DefaultModel;

use crate::config::ApplicationConfig;

/// The models that a home offers.
pub struct ModelCatalog {
    /// Those that are configured or were found, by name.
    pub models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// The one that new sessions use.
    pub default: ModelName,
    /// What was found on this machine, where the settings name no model.
    pub found: Vec<DetectedProvider>,
    /// What is odd; none of it stops anything.
    pub warnings: Vec<Problem>,
}

/// The default model with its provider, which may have others that agents name.
pub(crate) fn default_model(
    catalog: &ModelCatalog,
    settings: &Settings,
    environment: HomeEnvironment,
) -> DefaultModel {
    let configured = settings.models.named.get(&catalog.default).cloned();
    let found = catalog.found.iter().find(|found| found.provider == catalog.default.as_str()).cloned();
    let sibling = move |name: &ModelName| match (&configured, &found) {
        (Some(set), _) => {
            let is_local = built_in(&set.provider).is_some() || set.file.is_some() || set.record.is_some();
            let other = ModelSettings {
                model: Some(name.to_string()),
                price_in: None,
                price_out: None,
                ..set.clone()
            };
            (!is_local).then(|| networked(name, &other, &environment).ok())?
        }
        (None, Some(found)) => {
            detected(&DetectedProvider { model: name.to_string(), ..found.clone() }, &environment).ok()
        }
        (None, None) => None,
    };
    DefaultModel { name: catalog.default.clone(), sibling: Arc::new(sibling) }
}

impl ModelCatalog {
    /// What a home offers, for its owner and for commands that run without one.
    pub async fn read(plan: &ApplicationConfig, settings: &Settings) -> Result<Self, Problem> {
        Self::new(settings, &HomeEnvironment::load(&plan.home, plan.environment)?).await
    }

    /// A model by its name, which the owner of the home gives: it may be a file.
    pub async fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, Problem> {
        if let Some(model) = self.models.get(name).cloned().or_else(|| built_in(name.as_str())) {
            return Ok(model);
        }
        open_file(name.as_str()).await.unwrap_or_else(|| Err(unknown(name, &self.models)))
    }

    pub(crate) async fn new(settings: &Settings, environment: &HomeEnvironment) -> Result<Self, Problem> {
        let mut models: BTreeMap<ModelName, Arc<dyn Model>> = BTreeMap::new();
        let (mut found, mut warnings) = (Vec::new(), Vec::new());
        let default = settings.models.default.clone();
        for (name, set) in &settings.models.named {
            match configured(name, set, environment).await {
                Ok(model) => drop(models.insert(name.clone(), model)),
                // An unused model that cannot be opened is not an error.
                Err(problem) if default.as_ref() != Some(name) => {
                    warnings.push(problem.with(Severity::Warning))
                }
                Err(problem) => return Err(problem),
            }
        }
        let agents = settings.agents.values().flat_map(|agent| agent.model.iter().chain(&agent.fallback));
        for name in default.iter().chain(agents) {
            if models.contains_key(name) {
                continue;
            }
            match open_file(name.as_str()).await {
                Some(Ok(model)) => drop(models.insert(name.clone(), model)),
                Some(Err(problem)) if default.as_ref() == Some(name) => return Err(problem),
                Some(Err(problem)) => warnings.push(problem.with(Severity::Warning)),
                None => {}
            }
        }
        let default = match default {
            Some(name) => {
                let known = models.contains_key(&name) || built_in(name.as_str()).is_some();
                known.then_some(name.clone()).ok_or_else(|| unknown(&name, &models))?
            }
            None => {
                let variable = |name: &str| {
                    use holdfast_secrets::ExposeSecret;
                    environment.get(name).map(|value| value.expose_secret().to_owned())
                };
                found = detect::detect(variable).await;
                let first = found.iter().find(|found| !found.model.is_empty());
                match first.map(|found| (ModelName::from(found.provider), detected(found, environment))) {
                    Some((name, Ok(model))) => {
                        models.insert(name.clone(), model);
                        name
                    }
                    Some((_, Err(problem))) => {
                        warnings.push(problem.with(Severity::Warning));
                        OFFLINE.into()
                    }
                    None => OFFLINE.into(),
                }
            }
        };
        Ok(Self { models, default, found, warnings })
    }
}

/// A model as the settings have it, on tape if they say so.
async fn configured(
    name: &ModelName,
    set: &ModelSettings,
    environment: &HomeEnvironment,
) -> Result<Arc<dyn Model>, Problem> {
    let model = provided(name, set, environment).await?;
    match &set.record {
        Some(tape) => Ok(Arc::new(Recorder::new(model, Path::new(tape))?)),
        None => Ok(model),
    }
}

async fn provided(
    name: &ModelName,
    set: &ModelSettings,
    environment: &HomeEnvironment,
) -> Result<Arc<dyn Model>, Problem> {
    let named = match (set.provider.as_str(), &set.file) {
        ("script" | "cassette", Some(file)) => format!("{}:{file}", set.provider),
        _ => set.provider.clone(),
    };
    if let Some(model) = built_in(&named) {
        return Ok(model);
    }
    if let Some(opened) = open_file(&named).await {
        return opened;
    }
    networked(name, set, environment)
}

/// A model of a provider that is reached over the network.
fn networked(
    name: &ModelName,
    set: &ModelSettings,
    environment: &HomeEnvironment,
) -> Result<Arc<dyn Model>, Problem> {
    let key_from = set.api_key_env.clone().or_else(|| usual_key(&set.provider).map(str::to_owned));
    let provider = Provider::new(ProviderSettings {
        name: name.to_string(),
        provider: set.provider.clone(),
        model: set.model.clone().unwrap_or_default(),
        base_url: set.base_url.clone(),
        key: key_from.as_deref().and_then(|variable| environment.get(variable)),
        key_from,
        reasoning: set.reasoning.clone(),
        price_in: set.price_in.map(|price| price.micros as f64 / 1e6),
        price_out: set.price_out.map(|price| price.micros as f64 / 1e6),
    })?;
    Ok(Arc::new(provider))
}

fn detected(found: &DetectedProvider, environment: &HomeEnvironment) -> Result<Arc<dyn Model>, Problem> {
    let provider = Provider::new(ProviderSettings {
        name: found.provider.to_owned(),
        provider: found.provider.to_owned(),
        model: found.model.clone(),
        base_url: found.base_url.clone(),
        key: found.key_env.and_then(|variable| environment.get(variable)),
        key_from: found.key_env.map(str::to_owned),
        ..ProviderSettings::default()
    })?;
    Ok(Arc::new(provider))
}

fn unknown(name: &ModelName, models: &BTreeMap<ModelName, Arc<dyn Model>>) -> Problem {
    let names: Vec<&str> = models.keys().map(|name| name.as_str()).chain([OFFLINE]).collect();
    Problem::new(Code::ModelUnknown, format!("there is no model `{name}`"))
        .help(format!("There are: {}. `config/settings.yaml` configures more.", names.join(", ")))
}
