//! `holdfast ext check`: would it load, and what would it be.

use std::path::Path;

use holdfast_app::{ApplicationConfig, reserved_names};
use holdfast_authoring::harness::LoadedExtension;
use holdfast_contract::ids::ToolName;
use holdfast_contract::names;
use holdfast_contract::problem::{Code, Fault, Location, Problem, Severity};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_home::Settings;
use holdfast_runtime::diagnosis::registered;
use holdfast_store::{Store, StoreOptions};
use serde_json::json;

use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::output::{Output, report};

pub(crate) async fn check(output: &Output, plan: &ApplicationConfig, named: &Path) -> Result<Exit, Problem> {
    let place = super::place(&plan.home, named)?;
    let bench = super::workbench(plan, &place).await?;
    for warning in &bench.warnings {
        report(warning);
    }
    let conflicts = conflicts(plan, &bench)?;
    for fault in &conflicts {
        let location = Location { file: place.clone(), ..Location::default() };
        eprintln!("{}", Problem::from(fault.clone()).at(location).with(Severity::Warning));
    }
    let refused = conflicts.iter().filter(|fault| fault.code == Code::ToolReserved).count();
    if output.json {
        output.document(&json!({
            "id": bench.manifest.id,
            "version": bench.manifest.version,
            "content": bench.content,
            "descriptors": bench.descriptors,
            "requested": bench.requested,
            "granted": bench.granted,
            "conflicts": conflicts,
        }))?;
        return Ok(Exit::from(refused == 0));
    }
    let line = |name: &str, value: &str| output.line(format!("{name:<11} {}", sanitize_for_terminal(value)));
    line("extension", bench.manifest.id.as_str())?;
    line("version", &bench.manifest.version)?;
    line("content", &bench.content.to_string())?;
    for descriptor in &bench.descriptors {
        let (name, value) = described(descriptor);
        line(name, &value)?;
    }
    if bench.requested != bench.granted {
        line("requests", &json!(bench.requested).to_string())?;
        line("has", &json!(bench.granted).to_string())?;
        line("grant with", &format!("holdfast ext grant {}", bench.manifest.id))?;
    }
    match refused {
        0 => output.line("it would load")?,
        1 => output.line("it would load, without 1 tool whose name is reserved")?,
        more => output.line(format!("it would load, without {more} tools whose names are reserved"))?,
    }
    Ok(Exit::from(refused == 0))
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
        Payload::Agent(spec) => ("agent", format!("{}: {}", spec.id, spec.description)),
        Payload::Other(_) => ("registers", format!("{} {}", descriptor.kind, descriptor.id)),
    }
}
