//! The models by name. A model that is a file is opened only where the owner of the home names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::ids::ModelName;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_model::{Model, built_in, names_file, open_file};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::Runtime;

/// The models that are configured, built in, or were opened.
pub(crate) struct Models {
    known: RwLock<BTreeMap<ModelName, Arc<dyn Model>>>,
    default: Option<DefaultModel>,
    /// The models that agents name and that are not configured.
    unconfigured: Mutex<BTreeSet<ModelName>>,
}

/// The model that new sessions use, for agents that name one which is not configured.
#[derive(Clone)]
pub struct DefaultModel {
    /// Its name.
    pub name: ModelName,
    /// Another model of its provider, by the provider's own id; none where the default has no provider, as a script.
    pub sibling: Arc<SiblingModel>,
}

/// Makes another model of a provider, by the provider's own id.
type SiblingModel = dyn Fn(&ModelName) -> Option<Arc<dyn Model>> + Send + Sync;

impl Models {
    pub(crate) fn new(
        configured: BTreeMap<ModelName, Arc<dyn Model>>,
        default: Option<DefaultModel>,
    ) -> Self {
        Self { known: RwLock::new(configured), default, unconfigured: Mutex::default() }
    }

    fn known(&self, name: &ModelName) -> Option<Arc<dyn Model>> {
        self.known.read().get(name).cloned()
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<ModelName, Arc<dyn Model>>> {
        self.known.write()
    }

    /// Replaces those models of an agent that are not configured: by the default provider's model of that id, with the default model
    /// after it, because the provider may not offer it; or by the default model.
    pub(crate) fn configure(&self, models: &mut Vec<ModelName>) {
        let Some(default) = &self.default else { return };
        let is_missing = |name: &ModelName| {
            self.known(name).is_none() && built_in(name.as_str()).is_none() && !names_file(name.as_str())
        };
        // What was replaced once is known by its name since.
        let was_replaced = |name: &ModelName| self.unconfigured.lock().contains(name);
        if !models.iter().any(|name| is_missing(name) || was_replaced(name)) {
            return;
        }
        models.retain(|name| {
            if !is_missing(name) {
                return true;
            }
            self.unconfigured.lock().insert(name.clone());
            let sibling = (default.sibling)(name);
            let offered = sibling.is_some();
            self.write().extend(sibling.map(|model| (name.clone(), model)));
            offered
        });
        if !models.contains(&default.name) {
            models.push(default.name.clone());
        }
    }

    /// A model by its name. The name may come from anybody, so no file is opened here.
    pub(crate) fn get(&self, name: &ModelName) -> Result<Arc<dyn Model>, Fault> {
        if let Some(model) = self.known(name) {
            return Ok(model);
        }
        let model = built_in(name.as_str()).ok_or_else(|| {
            if names_file(name.as_str()) {
                Fault::new(Code::ModelFile, format!("the file of the model `{name}` was not opened"))
            } else {
                Fault::new(Code::ModelUnknown, format!("no model `{name}` is configured"))
            }
        })?;
        self.write().insert(name.clone(), model.clone());
        Ok(model)
    }
}

impl Runtime {
    /// A model by its name: one that is configured, built in, or a file that was opened before. No file is opened here.
    pub fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, Problem> {
        Ok(self.inner().models.get(name)?)
    }

    /// Opens the file of a model that is one, such as `script:<file>`, and keeps the model. Only for names that the owner of the home
    /// gives: a file that a message, an extension or an event names is never opened.
    pub async fn open_model(&self, name: &ModelName) -> Result<(), Problem> {
        let models = &self.inner().models;
        if models.known(name).is_some() {
            return Ok(());
        }
        if let Some(opened) = open_file(name.as_str()).await {
            models.write().insert(name.clone(), opened?);
        }
        Ok(())
    }

    /// The models that agents name and that are not configured, for which others stand in.
    pub fn unconfigured_models(&self) -> Vec<ModelName> {
        self.inner().models.unconfigured.lock().iter().cloned().collect()
    }

    /// The names of the available models, without those of files.
    pub fn model_names(&self) -> Vec<ModelName> {
        let models = self.inner().models.known.read();
        models.keys().filter(|name| !names_file(name.as_str())).cloned().collect()
    }
}
