//! The lane itself: finds an activation in the vault and makes it callable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code as ErrorCode, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Instance, Lane, Later, Vault};
use tokio::sync::OnceCell;

use crate::component::code::CodeOrigin;
use crate::component::descriptors::Known;
use crate::component::engine::{self, LazyEngine};
use crate::extension::{WasmExtension, describe, hook_ticks, load_code};
use crate::instance::WasmInstance;
use crate::instance::guest::Activation;
use crate::instance::pool::Spare;
use holdfast_contract::log::{ProgressSink, Sinks};
use holdfast_contract::sandbox::SandboxOptions;

/// Runs extensions as sandboxed components.
#[derive(Clone)]
pub struct WasmLane {
    engine: Arc<LazyEngine>,
    options: SandboxOptions,
    vault: Arc<dyn Vault>,
    sinks: Sinks,
    /// Whether a component was loaded since the engine was last asked to start.
    expects_calls: Arc<AtomicBool>,
}

impl WasmLane {
    /// A lane over the code of a vault. Fails if the pools of the options cannot be reserved.
    pub fn new(options: SandboxOptions, vault: Arc<dyn Vault>) -> Result<Self, Problem> {
        let reserved = engine::shared(&options)?;
        let lane = Self::when_needed(options, vault);
        lane.engine.get()?;
        drop(reserved);
        Ok(lane)
    }

    /// The same, but the pools are reserved in the background after the first component was loaded, and may then be smaller.
    pub fn when_needed(options: SandboxOptions, vault: Arc<dyn Vault>) -> Self {
        let (engine, expects_calls) = (Arc::new(LazyEngine::new(options)), Arc::default());
        Self { engine, options, vault, sinks: Sinks::default(), expects_calls }
    }

    /// The same, with a sink for what extensions log.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.sinks.log = Some(sink);
        self
    }

    /// The same, with a sink for the progress of compilations.
    pub fn with_progress(mut self, sink: ProgressSink) -> Self {
        self.sinks.progress = Some(sink);
        self
    }

    fn activation(&self, extension: &ExtensionRef, bundle: &Bundle) -> Arc<Activation> {
        let pools = &self.options.pools;
        Arc::new(Activation {
            id: extension.id.clone(),
            budgets: bundle.budgets,
            config: bundle.config.clone(),
            max_table_elements: pools.table_elements as usize,
            max_memory_bytes: usize::try_from(pools.memory_reservation).unwrap_or(usize::MAX).min(4 << 30),
            sinks: self.sinks.clone(),
        })
    }

    fn origin(&self, bundle: Bundle) -> Result<Arc<CodeOrigin>, Fault> {
        let Some(component) = bundle.files.get(&bundle.entrypoint).copied() else {
            let message = format!("its entrypoint `{}` is not among its files", bundle.entrypoint);
            return Err(Fault::new(ErrorCode::ExtensionGone, message));
        };
        Ok(Arc::new(CodeOrigin {
            engine: self.engine.clone(),
            vault: self.vault.clone(),
            component,
            grants: bundle.grants,
            options: self.options,
        }))
    }

    async fn bring_up(self, extension: ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
        // This lane runs only what is in the vault.
        let bundle = self.vault.bundle(extension.digest)?;
        if bundle.lane != self.name() {
            let message = format!("`{}` is not a component", extension.id);
            return Err(Fault::new(ErrorCode::ExtensionUnknown, message));
        }
        self.expects_calls.store(true, Ordering::Relaxed);
        let name = format!("descriptors-{}", extension.digest);
        let cached = self.vault.derived(&name).as_deref().and_then(Known::read);
        let activation = self.activation(&extension, &bundle);
        let code = OnceCell::new();
        let (origin, known) = match cached {
            Some(known) => (self.origin(bundle)?, known),
            None => {
                let (manifest, file) = (bundle.parsed()?, bundle.entrypoint.clone());
                let origin = self.origin(bundle)?;
                let named = |fault: Fault| match fault.code {
                    ErrorCode::ComponentInvalid => {
                        Fault::new(fault.code, format!("{file}: {}", fault.message))
                    }
                    _ => fault,
                };
                let loaded = load_code(origin.clone(), activation.clone()).await.map_err(named)?;
                let known = describe(&loaded, &activation, &self.options).await?.under(&manifest)?;
                self.vault.keep_derived(&name, &known.written());
                // The cell is new and not shared yet, so setting it cannot fail.
                let _only = code.set(loaded);
                (origin, known)
            }
        };
        let (options, hook_ticks) = (self.options, hook_ticks(&self.options, &known.descriptors));
        let (capabilities, spare) = (known.capabilities(), Spare::default());
        let extension =
            WasmExtension { activation, origin, options, hook_ticks, known, capabilities, code, spare };
        Ok(Arc::new(WasmInstance::loaded(Arc::new(extension))))
    }
}

impl Lane for WasmLane {
    fn name(&self) -> &str {
        "wasm"
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        Box::pin(self.clone().bring_up(extension.clone()))
    }

    fn at_rest(&self) {
        if self.expects_calls.swap(false, Ordering::Relaxed) {
            self.engine.start_in_background();
        }
    }
}
