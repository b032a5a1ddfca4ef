//! How a pack is started: the Node that runs it, its packages, and what it is told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::Sinks;
use holdfast_contract::manifest::ProgramCommand;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_program::keep_home_closed;
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::read_text;
use serde_json::{Map, Value};

use crate::folder::PackPlan;
use crate::lane::Places;
use crate::node::environment::{NodeEnvironment, NodeTools};
use crate::node::interpreter::WASM_FLAG;
use crate::node::names::TakenNames;
use crate::node::pack::{PackSource, source_of};
use crate::node::worker::{self, standin_name};

/// The file of a home that says which secrets are meant by the ids that packs use.
const CATALOGUE: &str = "config/extension-secrets.json";
const MAX_CATALOGUE_BYTES: u64 = 1 << 20;

/// A Node with a pack.
#[derive(Clone, Debug)]
pub(crate) struct PackRunner {
    executable: PathBuf,
    main: PathBuf,
    standin: PathBuf,
    source: PackSource,
    /// Its packages, if it has any besides the host that it refers to.
    pub environment: Option<NodeEnvironment>,
    /// Distinguishes it from others that may register something else.
    pub identity: String,
    /// Paths that it must be able to read.
    pub readable: Vec<PathBuf>,
    /// What the pack is told.
    pub plan: PackPlan,
}

impl PackRunner {
    /// Prepares a pack: installs its packages, unless they are there.
    pub(crate) async fn prepare(
        bundle: &Bundle,
        vault: &dyn Vault,
        tools: NodeTools<'_>,
        places: &Places,
        (taken, report): (Arc<TakenNames>, SandboxReport),
        told: (&ExtensionId, &Sinks),
    ) -> Result<Self, Fault> {
        let manifest = bundle.parsed()?;
        let (source, needed) = source_of(&manifest, bundle, vault)?;
        let mut readable = tools.node.readable();
        // Before anything is installed: it would not be started.
        keep_home_closed(&places.home, &readable)?;
        let environment = if needed.is_empty(&standin_name()) {
            None
        } else {
            let place = &places.environments;
            Some(NodeEnvironment::with(&source, &needed, tools, place, report, told).await?)
        };
        readable.push(tools.worker.folder.clone());
        readable.extend(environment.as_ref().map(|environment| environment.folder.clone()));
        let catalogue = catalogue(&places.home)?;
        let installed = environment.as_ref().map(|it| it.folder.display().to_string()).unwrap_or_default();
        let identity = format!("{} {} {installed} {catalogue:?}", worker::digest(), tools.node.identity());
        Ok(Self {
            executable: tools.node.executable.clone(),
            main: tools.worker.main(),
            standin: tools.worker.standin(),
            source,
            environment,
            identity,
            readable,
            plan: PackPlan { settings: settings_of(bundle), catalogue, taken },
        })
    }

    /// How it is started, with its files in this folder.
    pub(crate) fn command(&self, code: &Path) -> Option<ProgramCommand> {
        let mut words = vec![self.executable.to_str()?, WASM_FLAG, self.main.to_str()?];
        match (&self.source, &self.environment) {
            (PackSource::Package(name), Some(environment)) => {
                words.extend(["package", environment.folder.to_str()?, name]);
            }
            (PackSource::Package(_), None) => return None,
            (PackSource::Files(entry), _) => {
                words.extend(["folder", code.to_str()?]);
                words.extend(entry.as_deref());
            }
        }
        ProgramCommand::new(words.into_iter().map(str::to_owned).collect())
    }

    /// Puts its packages where its code looks for them.
    pub(crate) fn link_packages(&self, code: &Path) -> Result<(), Fault> {
        let failed =
            |error: std::io::Error| Fault::new(Code::ExtensionGone, format!("{}: {error}", code.display()));
        if let PackSource::Package(_) = self.source {
            return Ok(());
        }
        let modules = code.join("node_modules");
        if let Some(environment) = &self.environment {
            return symlink(environment.modules(), modules).map_err(failed);
        }
        let link = modules.join(standin_name());
        fs::create_dir_all(link.parent().unwrap_or(&modules)).map_err(failed)?;
        symlink(&self.standin, link).map_err(failed)
    }

    /// The variables of every pack.
    pub(crate) fn variables() -> Vec<(String, OsString)> {
        let all = [("NODE_OPTIONS", WASM_FLAG), ("NODE_NO_WARNINGS", "1"), ("NODE_ENV", "production")];
        all.map(|(name, value)| (name.to_owned(), OsString::from(value))).to_vec()
    }
}

/// What a pack is told of the settings: the section `pack` of its configuration, and all else as its options.
fn settings_of(bundle: &Bundle) -> Value {
    let mut config = bundle.config.value().as_object().cloned().unwrap_or_default();
    let mut pack = match config.remove("pack") {
        Some(Value::Object(pack)) => pack,
        _ => Map::new(),
    };
    let mut options = pack.remove("options").and_then(|it| it.as_object().cloned()).unwrap_or_default();
    options.extend(config);
    pack.insert("options".to_owned(), Value::Object(options));
    Value::Object(pack)
}

/// The names of secrets, by the ids that packs know them by: a list of objects with `id` and `envVar`.
fn catalogue(home: &Path) -> Result<BTreeMap<String, String>, Fault> {
    let path = home.join(CATALOGUE);
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let unreadable = |why: String| {
        Fault::new(
            Code::PackFailed,
            format!("the catalogue of secrets, {}, cannot be read: {why}", path.display()),
        )
    };
    let text = read_text(&path, MAX_CATALOGUE_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let entries: Vec<Map<String, Value>> =
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let text = |entry: &Map<String, Value>, name: &str| entry.get(name)?.as_str().map(str::to_owned);
    Ok(entries.iter().filter_map(|entry| Some((text(entry, "id")?, text(entry, "envVar")?))).collect())
}
