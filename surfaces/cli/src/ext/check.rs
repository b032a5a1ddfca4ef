//! `holdfast ext check`: would it load, and what would it be.

use std::path::Path;

use holdfast_contract::problem::Problem;
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_runtime::house::Plan;
use serde_json::json;

use crate::chat::harmless;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn check(output: &Output, plan: &Plan, named: &Path) -> Result<Exit, Problem> {
    let place = super::place(&plan.home, named)?;
    let bench = super::workbench(plan, &place).await?;
    for warning in &bench.warnings {
        eprintln!("{warning}");
    }
    if output.json {
        output.document(&json!({
            "id": bench.manifest.id,
            "version": bench.manifest.version,
            "content": bench.content,
            "descriptors": bench.descriptors,
            "requested": bench.requested,
            "granted": bench.granted,
        }))?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| output.line(format!("{name:<11} {}", harmless(value)));
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
    output.line("it would load")?;
    Ok(Exit::Done)
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
