//! From pith: the tools and channels of its workspace, and the variables of its `.env`.

use holdfast_contract::problem::{Code, Problem};

use super::{Importer, Outcome};

pub(super) fn import(importer: &mut Importer<'_>) -> Result<(), Problem> {
    let place =
        ["workspace/extensions", "extensions"].into_iter().find(|name| importer.inside(name).is_some());
    let Some(place) = place else {
        let what = format!("{} has no folder `workspace/extensions`", importer.source.display());
        return Err(Problem::new(Code::UsageInvalid, what).help("Name the folder with pith's `config.yaml`."));
    };
    for kind in ["tools", "channels"] {
        let Some(from) = importer.inside(&format!("{place}/{kind}")) else { continue };
        let to = importer.plan.home.extensions().join(kind);
        let note = "packages go into `extensions/requirements.txt`, hosts and secrets are granted by `holdfast ext grant`";
        importer.copy("extension", kind, &from, &to, note)?;
    }
    for name in [".env", "workspace/.env"] {
        importer.variables(name)?;
    }
    let model = importer.yaml("config.yaml").remove("model").unwrap_or_default();
    if let (Some(provider), Some(name)) = (model["provider"].as_str(), model["model"].as_str()) {
        let note = format!(
            "write it as `models: {{ default: main, main: {{ provider: {provider}, model: {name} }} }}`"
        );
        importer.line("setting", "model", Outcome::Left, note);
    }
    for (name, note) in [
        ("workspace/mcp", "servers are named under `mcp.servers` in the settings"),
        ("memory.db", "memories and conversations have no counterpart"),
    ] {
        if importer.inside(name).is_some() {
            importer.line("data", name, Outcome::Left, note);
        }
    }
    Ok(())
}
