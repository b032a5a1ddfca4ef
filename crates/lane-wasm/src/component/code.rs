//! An activation's code: compiled or loaded from the cache, inspected, linked, and ready to be instantiated.

use std::sync::Arc;
use std::time::Instant;

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code as ErrorCode, Fault};
use holdfast_contract::wire::Vault;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use crate::component::compiler::compile_limited;
use crate::component::engine::{LazyEngine, StartedEngine};
use crate::component::inspect::inspect_compiled;
use crate::component::precompiled::deserialize;
use crate::faults::one_line;
use crate::host::link::link;
use crate::instance::guest::{Activation, Guest};
use crate::wit::interfaces::{Function, PACKAGE, VERSION};
use holdfast_contract::log::Progress;
use holdfast_contract::sandbox::SandboxOptions;

/// Where an activation's code comes from.
pub(crate) struct CodeOrigin {
    pub engine: Arc<LazyEngine>,
    pub vault: Arc<dyn Vault>,
    /// The component's file.
    pub component: Digest,
    pub grants: Grants,
    /// How components are run: the largest one, and what compiled code depends on.
    pub options: SandboxOptions,
}

/// Code that can be instantiated.
pub(crate) struct CompiledCode {
    pub pre: InstancePre<Guest>,
    /// Whether a call can wait for the host.
    pub waits: bool,
    /// The functions that it exports.
    exported: Vec<(Function, ComponentExportIndex)>,
    /// Held so that other activations can share the component.
    _component: Arc<Component>,
}

impl CompiledCode {
    /// Loads the code. Blocks for as long as compiling takes, so it must run on a blocking thread.
    pub(crate) fn load(origin: &CodeOrigin, activation: &Activation) -> Result<Self, Fault> {
        let started = origin.engine.get().map_err(|problem| problem.to_fault())?;
        let component = component(origin, started, activation)?;
        let found = inspect_compiled(&started.engine, &component, &activation.id, &origin.grants)?;
        let mut linker = Linker::new(&started.engine);
        let internal = |error: wasmtime::Error| Fault::new(ErrorCode::Internal, one_line(&error.to_string()));
        link(&mut linker, &component).map_err(internal)?;
        let pre = linker.instantiate_pre(&component).map_err(|error| {
            let whole: Vec<_> = error.chain().map(|cause| cause.to_string()).collect();
            let message = format!("an import has another type: {}", one_line(&whole.join(": ")));
            Fault::new(ErrorCode::ComponentImport, message)
        })?;
        let index = |function: &Function| {
            let interface = format!("{PACKAGE}/{}@{VERSION}", function.interface());
            let interface = component.get_export_index(None, &interface)?;
            let index = component.get_export_index(Some(&interface), function.name())?;
            Some((*function, index))
        };
        let exported = Function::ALL.iter().filter_map(index).collect();
        Ok(Self { pre, waits: found.waits, exported, _component: component })
    }

    /// The position of a function among the exported ones, and its export index.
    pub(crate) fn place(&self, function: Function) -> Option<(usize, &ComponentExportIndex)> {
        let place = self.exported.iter().position(|(exported, _)| *exported == function)?;
        Some((place, &self.exported[place].1))
    }

    /// How many functions it exports.
    pub(crate) fn functions(&self) -> usize {
        self.exported.len()
    }

    /// The interfaces that it exports.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.exported.iter().map(|(function, _)| function.interface().to_owned()).collect();
        names.dedup();
        names
    }
}

/// The component, shared with other activations of the same file.
fn component(
    origin: &CodeOrigin,
    started: &StartedEngine,
    activation: &Activation,
) -> Result<Arc<Component>, Fault> {
    if let Some(component) = started.find(origin.component) {
        return Ok(component);
    }
    Ok(started.share(origin.component, obtain(origin, started, activation)?))
}

fn obtain(origin: &CodeOrigin, started: &StartedEngine, activation: &Activation) -> Result<Component, Fault> {
    let name = format!("compiled-{}-{}", origin.component, started.compatibility);
    let kept = origin.vault.derived(&name);
    if let Some(component) = kept.and_then(|bytes| deserialize(&started.engine, &bytes)) {
        return Ok(component);
    }
    let bytes = origin.vault.file(origin.component)?;
    if bytes.len() as u64 > origin.options.component_bytes {
        let message = format!(
            "the component has {} bytes; the limit is {} (`component_bytes`)",
            bytes.len(),
            origin.options.component_bytes
        );
        return Err(Fault::new(ErrorCode::ComponentInvalid, message));
    }
    let (id, sinks) = (&activation.id, &activation.sinks);
    let began = Instant::now();
    sinks.progress(id, Progress::Compiling { bytes: bytes.len() as u64 });
    let compiled = compile_limited(&started.engine, &origin.options, &bytes);
    sinks.progress(id, Progress::Compiled { millis: began.elapsed().as_millis() as u64 });
    let component = compiled?;
    if let Ok(bytes) = component.serialize() {
        origin.vault.keep_derived(&name, &bytes);
    }
    Ok(component)
}
