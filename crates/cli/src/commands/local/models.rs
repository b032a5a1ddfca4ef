//! `holdfast model …`: which models there are, and whether one answers.

use holdfast_app::ModelCatalog;
use holdfast_contract::ids::ModelName;
use holdfast_contract::problem::Problem;
use holdfast_home::Settings;
use holdfast_model::trial;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{self, Output, table};

pub(crate) fn list(output: &Output, settings: &Settings, offer: &ModelCatalog) -> Result<Exit, Problem> {
    struct Line {
        name: String,
        provider: String,
        model: String,
        from: &'static str,
    }
    let configured = settings.models.named.iter().map(|(name, set)| Line {
        name: name.to_string(),
        provider: set.provider.clone(),
        model: set.model.clone().or_else(|| set.file.clone()).unwrap_or_default(),
        from: "settings",
    });
    let found = offer.found.iter().map(|found| Line {
        name: found.provider.to_owned(),
        provider: found.provider.to_owned(),
        model: found.model.clone(),
        from: if found.key_env.is_some() { "key in the environment" } else { "server on this machine" },
    });
    let offline = Line {
        name: "offline".to_owned(),
        provider: "built in".to_owned(),
        model: "no network".to_owned(),
        from: "always there",
    };
    let lines: Vec<Line> = configured.chain(found).chain([offline]).collect();
    if output.json {
        for line in lines {
            let default = line.name == offer.default.as_str();
            output.document(&json!({
                "name": line.name, "provider": line.provider, "model": line.model, "from": line.from, "default": default,
            }))?;
        }
        return Ok(Exit::Done);
    }
    let rows = lines.into_iter().map(|line| {
        let mark = if line.name == offer.default.as_str() { "*" } else { "" };
        [mark.to_owned(), line.name, line.provider, line.model, line.from.to_owned()]
    });
    output.lines(table(["", "name", "provider", "model", "from"], rows, ""))?;
    Ok(Exit::Done)
}

pub(crate) async fn test(
    output: &Output,
    offer: &ModelCatalog,
    name: Option<String>,
) -> Result<Exit, Problem> {
    let name = name.map_or_else(|| offer.default.clone(), ModelName::from);
    let report = trial::test(&*offer.model(&name).await?).await;
    let millis = report.latency.as_millis() as u64;
    let ok = report.failed.is_none();
    if output.json {
        output.document(&json!({
            "model": name,
            "ok": ok,
            "latency_ms": millis,
            "streamed": report.streamed,
            "text": report.text,
            "usage": report.usage,
            "error": report.failed.map(|failed| failed.fault),
        }))?;
        return Ok(ok.into());
    }
    match report.failed {
        Some(failed) => output::report(&Problem::from(failed.fault)),
        None => {
            let how = if report.streamed { "streamed" } else { "at once" };
            output.line(format!("{name} answered in {millis} ms, {how}: {}", report.text.trim()))?;
        }
    }
    Ok(ok.into())
}
