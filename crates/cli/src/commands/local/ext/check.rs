//! `holdfast ext check`: would it load, and what would it be.

use std::collections::BTreeSet;
use std::path::Path;

use holdfast_app::{ApplicationConfig, BuiltInContext, ModelCatalog, reserved_names};
use holdfast_authoring::harness::LoadedExtension;
use holdfast_contract::agents::CORE_TOOLS;
use holdfast_contract::ids::{ExtensionId, ModelName, ToolName};
use holdfast_contract::names;
use holdfast_contract::problem::{Code, Fault, Location, Problem, Severity};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::role::Role;
use holdfast_home::{OFFLINE, Settings};
use holdfast_runtime::calls::schema_error;
use holdfast_runtime::diagnosis::registered;
use holdfast_store::{Store, StoreOptions};
use serde_json::json;

use crate::exit::Exit;
use crate::output::{Output, report};

pub(crate) async fn check(output: &Output, plan: &ApplicationConfig, named: &Path) -> Result<Exit, Problem> {
    let place = super::place(&plan.home, named)?;
    let bench = super::load_extension(plan, &place).await?;
    for warning in &bench.warnings {
        report(warning);
    }
    let conflicts = conflicts(plan, &bench)?;
    for fault in &conflicts {
        let location = Location { file: place.clone(), ..Location::default() };
        eprintln!("{}", Problem::from(fault.clone()).at(location).with(Severity::Warning));
    }
    let faults = faults(plan, &bench).await?;
    for fault in &faults {
        let location = Location { file: place.clone(), ..Location::default() };
        eprintln!("{}", Problem::from(fault.clone()).at(location));
    }
    let (held, lacking) = (&bench.held, bench.held.lacking(&bench.requested.interfaces));
    let refused = conflicts.iter().filter(|fault| fault.code == Code::ToolReserved).count();
    if output.json {
        output.document(&json!({
            "id": bench.manifest.id,
            "version": bench.manifest.version,
            "content": bench.content,
            "descriptors": bench.descriptors,
            "requested": bench.requested,
            "granted": bench.granted,
            "interfaces": held.names(),
            "by_default": held.by_default(),
            "lacking": lacking,
            "conflicts": conflicts,
            "faults": faults,
        }))?;
        return Ok(Exit::from(refused == 0 && faults.is_empty()));
    }
    let line = |name: &str, value: &str| output.field(name, value);
    line("extension", bench.manifest.id.as_str())?;
    line("version", &bench.manifest.version)?;
    line("content", &bench.content.to_string())?;
    for descriptor in &bench.descriptors {
        let (name, value) = described(descriptor);
        line(name, &value)?;
    }
    line("holds", &held.names().join(", "))?;
    let by_default = held.by_default();
    if !by_default.is_empty() {
        line("by default", &by_default.join(", "))?;
    }
    if !lacking.is_empty() {
        line("lacks", &lacking.join(", "))?;
    }
    if bench.requested != bench.granted {
        line("requests", &json!(bench.requested).to_string())?;
        line("has", &json!(bench.granted).to_string())?;
        line("grant with", &format!("holdfast ext grant {}", bench.manifest.id))?;
    }
    match refused {
        _ if !faults.is_empty() => output.line("it would not work as it is")?,
        0 => output.line("it would load")?,
        1 => output.line("it would load, without 1 tool whose name is reserved")?,
        more => output.line(format!("it would load, without {more} tools whose names are reserved"))?,
    }
    Ok(Exit::from(refused == 0 && faults.is_empty()))
}

/// What of its manifest and its tools cannot work in this home, although it loads.
async fn faults(plan: &ApplicationConfig, bench: &LoadedExtension) -> Result<Vec<Fault>, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let (manifest, mut faults) = (&bench.manifest, Vec::new());
    let installed = installed(plan, &settings);
    let known = |id: &ExtensionId| *id == manifest.id || installed.contains(id);
    for id in manifest.depends_on.iter().filter(|id| !known(id)) {
        let what = format!("`depends_on` names `{id}`, which is not installed");
        faults.push(Fault::new(Code::ExtensionDependency, what));
    }
    if let Some(schedule) =
        manifest.schedules.first().filter(|_| manifest.agent.is_none() && !bench.has(Role::Scheduler))
    {
        let what =
            format!("the schedule `{}` has nothing to call: there is no `execute_task`", schedule.name);
        faults.push(Fault::new(Code::ManifestValue, what));
    }
    if let Some(agent) = &manifest.agent {
        let models = models(plan, &settings).await;
        // Code may take the name for a purpose of its own, where the home configures no models.
        let registers = bench
            .descriptors
            .iter()
            .any(|it| matches!(&it.payload, Payload::Agent(agent) if agent.code.is_none()));
        let counts = registers || !settings.models.named.is_empty();
        let named = agent.model.iter().filter(|model| counts && !models.contains(*model));
        faults.extend(named.map(|model| {
            Fault::new(
                Code::ModelUnknown,
                format!("`agent.model` names `{model}`, which is not a model of this home"),
            )
        }));
        let missing = agent.uses_tools.iter().filter(|id| id.as_str() != CORE_TOOLS && !known(id));
        faults.extend(missing.map(|id| {
            let what = format!("`agent.uses_tools` names `{id}`, which is not installed");
            Fault::new(Code::ExtensionDependency, what)
        }));
    }
    for descriptor in &bench.descriptors {
        let Payload::Tool(spec) = &descriptor.payload else { continue };
        if let Some(error) = schema_error(spec) {
            let what = format!("the schema of `{}` is invalid: {error}", spec.name);
            faults.push(Fault::new(Code::ManifestValue, what));
        }
    }
    Ok(faults)
}

/// The extensions of the home: built-in ones, folders and single files.
fn installed(plan: &ApplicationConfig, settings: &Settings) -> BTreeSet<ExtensionId> {
    let context = BuiltInContext { home: &plan.home, workspace: None, settings };
    let built_ins = (plan.built_ins)(&context);
    let mut all: BTreeSet<ExtensionId> = built_ins.extensions.into_iter().map(|found| found.id).collect();
    all.extend(built_ins.components.iter().map(|component| component.extension()));
    let folder = plan.home.extensions();
    for place in [folder.clone(), folder.join("tools"), folder.join("channels")] {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            all.extend(entry.path().file_stem().and_then(|name| name.to_str()).map(ExtensionId::from));
        }
    }
    all
}

/// The models that can be named: those of the settings, those that were detected, and the built-in one.
async fn models(plan: &ApplicationConfig, settings: &Settings) -> BTreeSet<ModelName> {
    let mut models: BTreeSet<ModelName> = settings.models.named.keys().cloned().collect();
    models.insert(OFFLINE.into());
    // Without its key, a model can still be named.
    if let Ok(catalog) = ModelCatalog::read(plan, settings).await {
        models.extend(catalog.models.into_keys());
        models.insert(catalog.default);
    }
    models
}

/// The names of its tools that it would not get, and those that another extension registered when the home was up last.
fn conflicts(plan: &ApplicationConfig, bench: &LoadedExtension) -> Result<Vec<Fault>, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let (reserved, id) = (reserved_names(plan, &settings), &bench.manifest.id);
    let refusal = |descriptor: &&Descriptor| reserved.refusal(&settings.overrides, id, descriptor);
    let mut conflicts: Vec<Fault> = bench.descriptors.iter().filter_map(|it| refusal(&it)).collect();
    let database = plan.home.database();
    if !database.is_file() {
        return Ok(conflicts);
    }
    let own = bench.descriptors.iter().filter(|it| refusal(it).is_none()).flat_map(Descriptor::tool_names);
    let own: Vec<ToolName> = own.collect();
    for (other, tools) in registered(&Store::open(&database, StoreOptions::default())?)? {
        let given = |tool: &ToolName| names::given_to(&settings.overrides, tool).is_some();
        let same = |tool: &ToolName| own.iter().find(|name| name.on_wire() == tool.on_wire());
        for (tool, name) in tools.iter().filter_map(|tool| Some((tool, same(tool)?))) {
            if other != *id && !given(tool) && !given(name) {
                conflicts.push(names::duplicate(&[(name, id), (tool, &other)], None));
            }
        }
    }
    Ok(conflicts)
}

fn described(descriptor: &Descriptor) -> (&'static str, String) {
    match &descriptor.payload {
        Payload::Tool(spec) => {
            let effects = json!(spec.effects);
            (
                "tool",
                format!("{} ({}): {}", spec.name, effects.as_str().unwrap_or_default(), spec.description),
            )
        }
        Payload::Hook(spec) => {
            let point = json!(spec.point);
            ("hook", format!("{}, priority {}", point.as_str().unwrap_or_default(), spec.priority))
        }
        Payload::Hooks(specs) => {
            let points: Vec<_> = specs.iter().map(|spec| json!(spec.point)).collect();
            let points: Vec<_> = points.iter().filter_map(|point| point.as_str()).collect();
            ("registers", format!("{} {}: {}", descriptor.kind, descriptor.id, points.join(", ")))
        }
        Payload::Agent(spec) => {
            let name = spec.name.as_ref().map(|_| format!(" ({})", spec.tool_name())).unwrap_or_default();
            ("agent", format!("{}{name}: {}", spec.id, spec.description))
        }
        Payload::Other(_) => ("registers", format!("{} {}", descriptor.kind, descriptor.id)),
    }
}
