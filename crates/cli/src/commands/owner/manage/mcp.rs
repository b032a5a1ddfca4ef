//! `holdfast mcp test NAME`: starts a server and shows what it offers.

use holdfast_app::ApplicationConfig;
use holdfast_contract::problem::Problem;
use holdfast_rpc::{ExtensionInfo, ExtensionMethod, McpTest, McpTested, NoParams};

use crate::client::link::Link;
use crate::commands::local::mcp::{known, waiting_line};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn test(
    output: &Output,
    link: &Link,
    plan: &ApplicationConfig,
    name: &str,
) -> Result<Exit, Problem> {
    let server = known(plan, name)?;
    let asked = ExtensionMethod::McpTest(McpTest { id: server.id.clone() });
    let tested: McpTested = match link.client.ask(&asked).await {
        Ok(tested) => tested,
        Err(problem) => return Err(explained(link, &server.id, problem).await),
    };
    if output.json {
        output.document(&tested)?;
        return Ok(Exit::Done);
    }
    let McpTested { server: about, protocol, tools, prompts, resources } = &tested;
    let resources = if *resources { ", resources" } else { "" };
    output
        .line(format!("{about}, protocol {protocol}: {} tools, {prompts} prompts{resources}", tools.len()))?;
    for tool in tools {
        output.foreign(&format!("  {tool}"))?;
    }
    if let Some(line) = waiting_line(plan, &server)? {
        output.line(line)?;
    }
    Ok(Exit::Done)
}

/// Why a server cannot be listed: the reason for which its extension is down, where it is.
async fn explained(link: &Link, id: &str, problem: Problem) -> Problem {
    let list = ExtensionMethod::List(NoParams {});
    let Ok(all) = link.client.ask::<Vec<ExtensionInfo>>(&list).await else { return problem };
    match all.into_iter().find(|it| it.id == id).and_then(|it| it.fault) {
        Some(fault) => problem.help(fault.to_string()),
        None => problem,
    }
}
