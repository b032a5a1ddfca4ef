//! The lane: from an activation to a server that can be called.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Instance, Lane, Later, Vault};
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::remove_tree;

use crate::listing::PinStore;

/// The folders of the lane.
#[derive(Clone, Debug)]
pub struct McpPlaces {
    /// Has a folder with the files of each extension that has some. Not used by anything else.
    pub code: PathBuf,
    /// Has a writable folder for each extension.
    pub data: PathBuf,
    /// Has what was approved of each server.
    pub pins: PathBuf,
    /// The home, which no program may read as a whole.
    pub home: PathBuf,
}

/// Returns whether programs must be confined by every layer, or else not run.
pub type ConfinementDemand = Arc<dyn Fn() -> bool + Send + Sync>;

/// Runs extensions that are MCP servers.
#[derive(Clone)]
pub struct McpLane {
    vault: Arc<dyn Vault>,
    places: McpPlaces,
    pins: Arc<PinStore>,
    log: Option<LogSink>,
    report: Option<SandboxReport>,
    demand: Option<ConfinementDemand>,
}

impl McpLane {
    /// A lane over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>, places: McpPlaces) -> Self {
        let pins = Arc::new(PinStore::new(places.pins.clone()));
        // Files of an earlier run are stale; usually there are none.
        let _ = remove_tree(&places.code);
        Self { vault, places, pins, log: None, report: None, demand: None }
    }

    /// Refuses programs where a layer of confinement is missing, if this returns true. It is called at every load.
    pub fn demanding(mut self, demand: ConfinementDemand) -> Self {
        self.demand = Some(demand);
        self
    }

    /// Receives what servers log.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.log = Some(sink);
        self
    }

    /// Uses this report of the machine's confinement.
    pub fn on(mut self, report: SandboxReport) -> Self {
        self.report = Some(report);
        self
    }
}

#[cfg(target_os = "linux")]
mod loading {
    use holdfast_contract::manifest::{LaneKind, McpServer};
    use holdfast_contract::wire::Bundle;
    use holdfast_program::{GrantedPaths, ProgramPlan, keep_home_closed, lay_out};
    use holdfast_untrusted_files::TempFolder;

    use super::*;
    use crate::calls::{ActiveCalls, CallTerms};
    use crate::catalogue::Catalogue;
    use crate::handler::ServerHandler;
    use crate::http::HttpAddress;
    use crate::instance::McpInstance;
    use crate::listing::Listing;
    use crate::options::McpOptions;
    use crate::server::{Server, ServerAddress, ServerParts};

    /// Node reserves address space for guard pages of WebAssembly that its address space limit has no room for.
    const NODE_OPTIONS: (&str, &str) = ("NODE_OPTIONS", "--disable-wasm-trap-handler");

    impl McpLane {
        /// The confinement that the machine offers; an error if that is not enough.
        fn confinement(&self) -> Result<SandboxReport, Fault> {
            let report = self.report.clone().unwrap_or_else(holdfast_sandbox::report);
            let demands = self.demand.as_ref().is_some_and(|demand| demand());
            if demands && report.confined && !report.is_whole() {
                return Err(Fault::new(Code::ConfinementPartial, report.notes.join("; ")));
            }
            Ok(report)
        }

        pub(super) fn bring_up(&self, extension: &ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
            let bundle = self.vault.bundle(extension.digest)?;
            let manifest = bundle.parsed()?;
            let Some(server) = manifest.mcp.clone().filter(|_| bundle.lane == LaneKind::Mcp.as_str()) else {
                let message = format!("`{}` is not an MCP server", extension.id);
                return Err(Fault::new(Code::ExtensionUnknown, message));
            };
            let options = options(&bundle)?;
            let listing = self.approved(&bundle)?;
            let prefix = options.prefix.clone().unwrap_or_else(|| extension.id.to_string());
            let catalogue =
                Catalogue::new(&prefix, listing.as_ref().unwrap_or(&Listing::default()), &options);
            let terms = CallTerms {
                id: extension.id.clone(),
                log: self.log.clone(),
                host_calls: bundle.budgets.host_calls,
                log_bytes: bundle.budgets.log_bytes,
            };
            let source = server.source();
            let parts = ServerParts {
                address: self.address(extension, &bundle, server, &options)?,
                source: source.to_string(),
                start_timeout: options.start_timeout(),
                handler: ServerHandler {
                    name: prefix,
                    calls: ActiveCalls::new(terms),
                    options,
                    changed: Arc::default(),
                },
                pins: self.pins.clone(),
            };
            let instance = McpInstance::new(Server::new(parts), manifest, catalogue, listing.is_some());
            Ok(Arc::new(instance))
        }

        /// What was approved of the server when the activation was made.
        fn approved(&self, bundle: &Bundle) -> Result<Option<Listing>, Fault> {
            let Some(digest) = bundle.pinned else { return Ok(None) };
            let bytes = self.vault.file(digest)?;
            let unreadable = |error| Fault::new(Code::ExtensionGone, format!("the approved tools: {error}"));
            serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
        }

        fn address(
            &self,
            extension: &ExtensionRef,
            bundle: &Bundle,
            server: McpServer,
            options: &McpOptions,
        ) -> Result<ServerAddress, Fault> {
            match server {
                McpServer::Local { command, args, env } => {
                    let mut words = vec![command.program().to_owned()];
                    words.extend(command.arguments().iter().cloned().chain(args));
                    let code = if bundle.files.is_empty() {
                        None
                    } else {
                        Some(lay_out(bundle, &*self.vault, &self.places.code)?)
                    };
                    let plan = Box::new(self.plan(extension, bundle, words, code.as_ref())?);
                    let env = env.into_iter().chain(options.env.clone()).collect();
                    Ok(ServerAddress::Program { plan, env, _code: code })
                }
                McpServer::Remote { url, headers } => {
                    let invalid = |error| Fault::new(Code::ManifestValue, format!("`{url}`: {error}"));
                    let url = url::Url::parse(&url).map_err(invalid)?;
                    let headers = headers.into_iter().chain(options.env.clone()).collect();
                    Ok(ServerAddress::Http(HttpAddress { url, headers }))
                }
            }
        }

        fn plan(
            &self,
            extension: &ExtensionRef,
            bundle: &Bundle,
            words: Vec<String>,
            code: Option<&TempFolder>,
        ) -> Result<ProgramPlan, Fault> {
            let data = self.places.data.join(extension.id.as_str());
            let failed = |error| Fault::new(Code::ExtensionGone, format!("{}: {error}", data.display()));
            std::fs::create_dir_all(&data).map_err(failed)?;
            keep_home_closed(&self.places.home, &[])?;
            let granted = GrantedPaths::new(&bundle.grants.files, &self.places.home)?;
            Ok(ProgramPlan {
                words,
                folder: code.map_or_else(|| data.clone(), |code| code.path().to_owned()),
                data,
                readable: Vec::new(),
                granted,
                environment: vec![(NODE_OPTIONS.0.to_owned(), NODE_OPTIONS.1.into())],
                variables: bundle.grants.environment.clone(),
                hosts: bundle.grants.network.clone(),
                listen: Vec::new(),
                disk_bytes: bundle.budgets.disk_bytes,
                socket: false,
                report: self.confinement()?,
            })
        }
    }

    fn options(bundle: &Bundle) -> Result<McpOptions, Fault> {
        let invalid =
            |error| Fault::new(Code::ManifestValue, format!("the configuration is invalid: {error}"));
        match bundle.config.value() {
            serde_json::Value::Null => Ok(McpOptions::default()),
            config => serde_json::from_value(config.clone()).map_err(invalid),
        }
    }
}

impl Lane for McpLane {
    fn name(&self) -> &str {
        holdfast_contract::manifest::LaneKind::Mcp.as_str()
    }

    fn runs_in_process(&self) -> bool {
        false
    }

    #[cfg(target_os = "linux")]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        Box::pin(std::future::ready(self.bring_up(extension)))
    }

    #[cfg(not(target_os = "linux"))]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let _ = (&self.vault, &self.places, &self.pins, &self.log, &self.report, &self.demand);
        let message =
            format!("`{}` is an MCP server, and programs can be confined only on Linux", extension.id);
        Box::pin(std::future::ready(Err(Fault::new(Code::Unconfined, message))))
    }
}
