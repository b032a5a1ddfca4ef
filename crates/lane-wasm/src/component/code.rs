//! An activation's code: compiled or brought back, looked at, linked, and ready to be instantiated.

use std::sync::Arc;
use std::time::Instant;

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code as ErrorCode, Fault};
use holdfast_contract::wire::Vault;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use crate::component::engine::{Room, Started};
use crate::component::inspect::{compile, look};
use crate::component::precompiled::revive;
use crate::faults::one_line;
use crate::host::link::link;
use crate::instance::guest::{Activation, Guest};
use crate::wit::interfaces::{Function, PACKAGE, VERSION};
use holdfast_contract::log::Progress;

/// Where an activation's code comes from.
pub(crate) struct CodeOrigin {
    pub room: Arc<Room>,
    pub vault: Arc<dyn Vault>,
    /// The component's file.
    pub component: Digest,
    pub grants: Grants,
    /// Bytes that a component may have.
    pub limit: u64,
}

/// Code that can be instantiated.
pub(crate) struct CompiledCode {
    pub pre: InstancePre<Guest>,
    /// Whether a call of it can wait for the host.
    pub waits: bool,
    /// The functions that it exports.
    exported: Vec<(Function, ComponentExportIndex)>,
    /// Held so that whoever has the same component finds it.
    _component: Arc<Component>,
}

impl CompiledCode {
    /// Brings the code in. Takes as long as the compiler does, so it is called where that disturbs nobody.
    pub(crate) fn bring(origin: &CodeOrigin, activation: &Activation) -> Result<Self, Fault> {
        let started = origin.room.started().map_err(|problem| problem.to_fault())?;
        let component = component(origin, started, activation)?;
        let found = look(&started.engine, &component, &activation.id, &origin.grants)?;
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

    /// Where among the exported functions one stands, and how an instance finds it.
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

/// The component, shared with whoever has the same one already.
fn component(
    origin: &CodeOrigin,
    started: &Started,
    activation: &Activation,
) -> Result<Arc<Component>, Fault> {
    if let Some(component) = started.find(origin.component) {
        return Ok(component);
    }
    Ok(started.share(origin.component, obtain(origin, started, activation)?))
}

fn obtain(origin: &CodeOrigin, started: &Started, activation: &Activation) -> Result<Component, Fault> {
    let name = format!("compiled-{}-{}", origin.component, started.compatibility);
    let kept = origin.vault.derived(&name);
    if let Some(component) = kept.and_then(|bytes| revive(&started.engine, &bytes)) {
        return Ok(component);
    }
    let bytes = origin.vault.file(origin.component)?;
    if bytes.len() as u64 > origin.limit {
        let message =
            format!("it has {} bytes and may have {} (`component_bytes`)", bytes.len(), origin.limit);
        return Err(Fault::new(ErrorCode::ComponentInvalid, message));
    }
    let (id, sinks) = (&activation.id, &activation.sinks);
    let began = Instant::now();
    sinks.progress(id, Progress::Compiling { bytes: bytes.len() as u64 });
    let compiled = compile(&started.engine, &bytes);
    sinks.progress(id, Progress::Compiled { millis: began.elapsed().as_millis() as u64 });
    let component = compiled?;
    if let Ok(bytes) = component.serialize() {
        origin.vault.keep_derived(&name, &bytes);
    }
    Ok(component)
}
