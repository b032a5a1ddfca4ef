//! The models by name. A model that is a file is opened only where the owner of the home names it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::ids::ModelName;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_model::{Model, built_in, names_file, open_file};
use parking_lot::{RwLock, RwLockWriteGuard};

use super::Runtime;

/// The models that are configured, built in, or were opened.
pub(crate) struct Models(RwLock<BTreeMap<ModelName, Arc<dyn Model>>>);

impl Models {
    pub(crate) fn new(configured: BTreeMap<ModelName, Arc<dyn Model>>) -> Self {
        Self(RwLock::new(configured))
    }

    fn known(&self, name: &ModelName) -> Option<Arc<dyn Model>> {
        self.0.read().get(name).cloned()
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<ModelName, Arc<dyn Model>>> {
        self.0.write()
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

    /// The names of the available models, without those of files.
    pub fn model_names(&self) -> Vec<ModelName> {
        let models = self.inner().models.0.read();
        models.keys().filter(|name| !names_file(name.as_str())).cloned().collect()
    }
}
