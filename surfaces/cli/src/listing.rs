//! `tools`, `agents`, `ext list`, `ext show`: what is there, from which extension, lane and generation.

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{AgentLine, ExtensionLine, Nothing, Request, ToolLine};

use crate::chat::harmless;
use crate::exit::Exit;
use crate::link::Link;
use crate::output::{Output, table};

pub(crate) async fn tools(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let tools: Vec<ToolLine> = link.client.ask(&Request::ToolsList(Nothing {})).await?;
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
            first_line(&tool.description),
        ]
    });
    let empty = "no tools; `holdfast ext list` shows what is installed";
    output.line(table(["tool", "effects", "policy", "from", "what it does"], rows, empty))?;
    Ok(Exit::Done)
}

pub(crate) async fn agents(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let agents: Vec<AgentLine> = link.client.ask(&Request::AgentsList(Nothing {})).await?;
    if output.json {
        return output.documents(&agents);
    }
    let rows = agents.iter().map(|agent| {
        let models: Vec<&str> = agent.models.iter().map(|model| model.as_str()).collect();
        [agent.id.clone(), models.join(", "), first_line(&agent.description)]
    });
    output.line(table(["agent", "models", "what it is good for"], rows, "no agents besides the main one"))?;
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
        [extension.id.clone(), version, extension.state.clone(), extension.lane.clone(), harmless(&says)]
    });
    output.line(table(["extension", "version", "state", "lane", "tools or fault"], rows, "no extensions"))?;
    Ok(Exit::Done)
}

pub(crate) async fn extension(output: &Output, link: &Link, id: &str) -> Result<Exit, Problem> {
    let all = all(link).await?;
    let names: Vec<&str> = all.iter().map(|extension| extension.id.as_str()).collect();
    let unknown = || {
        let problem = Problem::new(Code::ExtensionUnknown, format!("there is no extension `{id}`"));
        problem.help(format!("There are: {}.", names.join(", ")))
    };
    let extension = all.iter().find(|extension| extension.id == id).ok_or_else(unknown)?;
    if output.json {
        output.document(extension)?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| output.line(format!("{name:<11} {}", harmless(value)));
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
    if let Some(fault) = &extension.fault {
        line("fault", fault)?;
    }
    Ok(Exit::Done)
}

async fn all(link: &Link) -> Result<Vec<ExtensionLine>, Problem> {
    link.client.ask(&Request::ExtensionsList(Nothing {})).await
}

fn first_line(text: &str) -> String {
    harmless(text.lines().next().unwrap_or_default())
}
