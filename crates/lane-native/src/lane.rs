//! The lane: looks up built-in extensions by id and digest.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Instance, Lane, Later};
use parking_lot::RwLock;

use crate::extension::NativeExtension;
use crate::instance::NativeInstance;
use crate::roles::now;

/// The extensions that are built into the program, in every version.
#[derive(Default)]
pub struct NativeLane {
    extensions: RwLock<BTreeMap<(ExtensionId, Digest), Arc<NativeInstance>>>,
}

impl NativeLane {
    /// Adds an extension and returns it as discovery reports it.
    pub fn add(&self, extension: NativeExtension) -> FoundExtension {
        let found = extension.to_found();
        let mut extensions = self.extensions.write();
        extensions.insert((found.id.clone(), found.digest), Arc::new(NativeInstance::new(extension)));
        found
    }
}

impl NativeLane {
    /// Adds a built-in extension: the names of its tools are reserved for it.
    pub fn add_built_in(&self, extension: NativeExtension) -> FoundExtension {
        let built_in = Some(extension.built_in());
        FoundExtension { built_in, ..self.add(extension) }
    }
}

impl Lane for NativeLane {
    fn name(&self) -> &str {
        "native"
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let extensions = self.extensions.read();
        let found = extensions.get(&(extension.id.clone(), extension.digest));
        now(match found {
            Some(found) => Ok(found.clone() as Arc<dyn Instance>),
            None => {
                let message =
                    format!("`{}` {} is not built into this program", extension.id, extension.version);
                Err(Fault::new(Code::ExtensionUnknown, message))
            }
        })
    }
}
