//! `tools`, `agents`, `ext list`, `ext show`: what is there, from which extension, lane and generation.

use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::text::first_line;
use holdfast_policy::{Grant, Tie};
use holdfast_rpc::{
    AgentInfo, ChannelInfo, DISABLED, ExtensionDoctor, ExtensionInfo, ExtensionMethod, ExtensionParams,
    FaultRecord, NoParams, ToolInfo,
};
use serde_json::json;

use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::{Output, table};

pub(crate) async fn tools(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let tools: Vec<ToolInfo> = link.client.ask(&ExtensionMethod::Tools(NoParams {})).await?;
    if output.json {
        return output.documents(&tools);
    }
    let rows = tools.iter().map(|tool| {
        let from =
            format!("{} {} ({}, generation {})", tool.extension, tool.version, tool.lane, tool.generation);
        [
            tool.name.to_string(),
            tool.effects.clone(),
            tool.policy.clone(),
            from,
            first_line(&tool.description).to_owned(),
        ]
    });
    let empty = "no tools; `holdfast ext list` shows what is installed";
    output.lines(table(["tool", "effects", "policy", "from", "what it does"], rows, empty))?;
    Ok(Exit::Done)
}

pub(crate) async fn agents(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let agents: Vec<AgentInfo> = link.client.ask(&ExtensionMethod::Agents(NoParams {})).await?;
    if output.json {
        return output.documents(&agents);
    }
    let rows = agents.iter().map(|agent| {
        let models: Vec<&str> = agent.models.iter().map(|model| model.as_str()).collect();
        [
            agent.id.clone(),
            agent.mode.to_string(),
            models.join(", "),
            first_line(&agent.description).to_owned(),
        ]
    });
    let empty = "no agents besides the main one";
    output.lines(table(["agent", "mode", "models", "what it is good for"], rows, empty))?;
    Ok(Exit::Done)
}

pub(crate) async fn channels(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let channels: Vec<ChannelInfo> = link.client.ask(&ExtensionMethod::Channels(NoParams {})).await?;
    if output.json {
        return output.documents(&channels);
    }
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    let rows = channels.iter().map(|it| {
        let users = it.users.map_or_else(|| "shared".to_owned(), |users| users.to_string());
        [
            it.id.clone(),
            yes(it.default),
            yes(it.streams),
            yes(it.files),
            users,
            it.sessions.to_string(),
            format!("{} {} ({}, generation {})", it.extension, it.version, it.lane, it.generation),
        ]
    });
    let empty = "no channels; an extension with the `channel` role brings one, see `docs/bus.md`";
    let head = ["channel", "default", "streams", "files", "users", "sessions", "from"];
    output.lines(table(head, rows, empty))?;
    Ok(Exit::Done)
}

pub(crate) async fn extensions(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let extensions = all(link).await?;
    if output.json {
        return output.documents(&extensions);
    }
    let rows = extensions.iter().map(|extension| {
        let version = extension.version.clone().unwrap_or_default();
        let tools: Vec<&str> = extension.tools.iter().map(|tool| tool.as_str()).collect();
        let says = extension.fault.clone().unwrap_or_else(|| tools.join(", "));
        let says = std::iter::once(says).chain(extension.conflicts.iter().cloned());
        let says = says.chain(extension.warnings.iter().cloned());
        let says = says.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        [extension.id.clone(), version, extension.state.clone(), extension.lane.clone(), says]
    });
    output.lines(table(
        ["extension", "version", "state", "lane", "tools or fault"],
        rows,
        "no extensions",
    ))?;
    Ok(Exit::Done)
}

pub(crate) async fn extension(output: &Output, link: &Link, id: &str) -> Result<Exit, Problem> {
    let extension = &known(link, id).await?;
    if output.json {
        output.document(extension)?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| output.field(name, value);
    line("extension", &extension.id)?;
    line("version", extension.version.as_deref().unwrap_or("none serves"))?;
    line("state", &extension.state)?;
    line("lane", &extension.lane)?;
    line("generation", &extension.generation.map(|number| number.to_string()).unwrap_or_default())?;
    line("digest", extension.digest.as_deref().unwrap_or_default())?;
    for tool in &extension.tools {
        line("tool", tool.as_str())?;
    }
    for hook in &extension.hooks {
        line("hook", hook)?;
    }
    for Grant { tied_to, give, .. } in &extension.grants {
        let scope = match tied_to {
            Tie::Digest(content) => format!("for the content {content}"),
            Tie::Path(folder) => format!("for what is in {folder}"),
        };
        line("grant", &format!("{} {scope}", json!(give)))?;
    }
    if !extension.interfaces.is_empty() {
        line("holds", &extension.interfaces.join(", "))?;
    }
    if !extension.by_default.is_empty() {
        line("by default", &extension.by_default.join(", "))?;
    }
    if !extension.lacking.is_empty() {
        line("lacks", &extension.lacking.join(", "))?;
    }
    for conflict in &extension.conflicts {
        line("conflict", conflict)?;
    }
    for warning in &extension.warnings {
        line("warning", warning)?;
    }
    if let Some(fault) = &extension.fault {
        line("fault", fault)?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn recent_faults(output: &Output, link: &Link, id: Option<String>) -> Result<Exit, Problem> {
    if let Some(id) = &id {
        known(link, id).await?;
    }
    let faults: Vec<FaultRecord> = link.client.ask(&ExtensionMethod::Doctor(ExtensionDoctor { id })).await?;
    if output.json {
        return output.documents(&faults);
    }
    let rows = faults.iter().map(|fault| {
        let at = crate::time::moment(holdfast_contract::ids::Millis(fault.at));
        let (phase, code) = (fault.phase.clone(), fault.code.clone());
        [fault.extension.clone(), at, phase, code, fault.message.clone(), fault.fix.clone()]
    });
    let heads = ["extension", "when", "phase", "code", "what happened", "what to do"];
    output.lines(table(heads, rows, "no recent failures"))?;
    Ok(Exit::Done)
}

pub(crate) async fn restart(output: &Output, link: &Link, id: String) -> Result<Exit, Problem> {
    match known(link, &id).await?.state.as_str() {
        "ACTIVE" => {
            output.line(format!("{id} is active; `holdfast ext reload {id}` reloads it"))?;
            return Ok(Exit::Done);
        }
        DISABLED => {
            let problem = Problem::new(Code::UsageInvalid, format!("`{id}` is disabled"));
            return Err(problem.help(format!("`holdfast ext enable {id}` enables it.")));
        }
        _ => {}
    }
    let request = ExtensionMethod::Restart(ExtensionParams { id: id.clone() });
    let _kept: serde_json::Value = link.client.ask(&request).await?;
    let now = known(link, &id).await?;
    output.line(format!(
        "{id} is {}{}",
        now.state,
        now.fault.map(|fault| format!(": {fault}")).unwrap_or_default()
    ))?;
    Ok(Exit::from(now.state == "ACTIVE"))
}

/// An extension that is installed.
pub(super) async fn known(link: &Link, id: &str) -> Result<ExtensionInfo, Problem> {
    let all = all(link).await?;
    let names: Vec<&str> = all.iter().map(|extension| extension.id.as_str()).collect();
    let empty = "No extension is installed; `holdfast ext new` creates one.";
    let unknown = || Problem::unknown(Code::ExtensionUnknown, "extension", id, &names, empty);
    all.iter().find(|extension| extension.id == id).cloned().ok_or_else(unknown)
}

async fn all(link: &Link) -> Result<Vec<ExtensionInfo>, Problem> {
    link.client.ask(&ExtensionMethod::List(NoParams {})).await
}
