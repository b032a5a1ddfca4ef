//! `holdfast mcp list`, `tools` and `approve`: the MCP servers of a home and what was approved of them. A running owner notices an
//! approval by itself.

use std::collections::BTreeMap;

use holdfast_app::ApplicationConfig;
use holdfast_contract::manifest::{self, McpServer};
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::{McpSettings, Settings};
use holdfast_lane_mcp::{Listing, PinStore, Pins, ToolDefinition, registered_name};
use holdfast_rpc::{NoParams, Status, SystemMethod};
use holdfast_untrusted_files::read_text;
use serde::Serialize;

use crate::arguments::LocalMcp;
use crate::commands::local::up::attached;
use crate::exit::Exit;
use crate::output::{Output, table};

/// What a manifest may have.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// A server of the home.
pub(crate) struct KnownServer {
    pub name: String,
    /// The id of its extension.
    pub id: String,
    /// How it is reached.
    pub reached: String,
    pub enabled: bool,
}

/// A server as it is listed.
#[derive(Serialize)]
struct ServerLine {
    server: String,
    extension: String,
    reached: String,
    tools: Option<usize>,
    protocol: String,
    /// Tools that wait for approval, with how they differ.
    waiting: BTreeMap<String, &'static str>,
    state: String,
}

/// A tool as it is listed.
#[derive(Serialize)]
struct ToolLine {
    /// The name under which it is registered.
    registered: String,
    /// The server's name for it, by which it is approved.
    tool: String,
    /// `approved`, `new`, `changed` or `gone`.
    state: &'static str,
    /// What the server claims about its effects, which is not trusted.
    claims: String,
    description: String,
    /// What the server says now, where that is not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered: Option<String>,
}

pub(crate) async fn mcp(
    output: &Output,
    plan: &ApplicationConfig,
    command: LocalMcp,
) -> Result<Exit, Problem> {
    match command {
        LocalMcp::List => list(output, plan).await,
        LocalMcp::Tools { name } => tools(output, plan, &name),
        LocalMcp::Approve { name, tools } => approve(output, plan, &name, &tools),
    }
}

/// The servers: those of the settings, and the extensions whose manifest names one.
fn servers(plan: &ApplicationConfig) -> Result<Vec<KnownServer>, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let mut all: Vec<KnownServer> = settings
        .mcp
        .servers
        .iter()
        .map(|(name, server)| {
            let line = || [server.command.clone().unwrap_or_default(), server.args.join(" ")].join(" ");
            let reached = server.url.clone().unwrap_or_else(line).trim().to_owned();
            KnownServer {
                name: name.clone(),
                id: McpSettings::extension(name).to_string(),
                reached,
                enabled: server.enabled,
            }
        })
        .collect();
    let folders = std::fs::read_dir(plan.home.extensions()).into_iter().flatten().flatten();
    for folder in folders.map(|entry| entry.path()) {
        let file = folder.join("manifest.yaml");
        let Ok(text) = read_text(&file, MAX_MANIFEST_BYTES) else { continue };
        let Ok(parsed) = manifest::parse(&file, &text) else { continue };
        let reached = match parsed.manifest.mcp {
            Some(McpServer::Local { command, .. }) => command.program().to_owned(),
            Some(McpServer::Remote { url, .. }) => url,
            None => continue,
        };
        let id = parsed.manifest.id.to_string();
        all.push(KnownServer { name: id.clone(), id, reached, enabled: parsed.manifest.enabled });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// The server of a name, or of the id of its extension.
pub(crate) fn known(plan: &ApplicationConfig, name: &str) -> Result<KnownServer, Problem> {
    let all = servers(plan)?;
    let names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
    let empty = "No MCP servers are set; `mcp.servers` in `config/settings.yaml` names them.";
    let unknown = Problem::unknown(Code::McpUnknown, "MCP server", name, &names, empty);
    all.into_iter().find(|server| server.name == name || server.id == name).ok_or(unknown)
}

fn pins(plan: &ApplicationConfig, server: &KnownServer) -> Result<Pins, Problem> {
    PinStore::new(plan.home.mcp()).read(&server.id)
}

/// What waits for approval, in a line.
pub(crate) fn waiting_line(
    plan: &ApplicationConfig,
    server: &KnownServer,
) -> Result<Option<String>, Problem> {
    let waiting = pins(plan, server)?.waiting();
    let names: Vec<String> = waiting.iter().map(|(name, how)| format!("{name} ({how})")).collect();
    let line = || {
        format!("waiting for approval: {}; `holdfast mcp tools {}` shows them", names.join(", "), server.name)
    };
    Ok((!names.is_empty()).then(line))
}

async fn list(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    let status: Option<Status> = match attached(&plan.home).await? {
        Some(link) => Some(link.client.ask(&SystemMethod::Status(NoParams {})).await?),
        None => None,
    };
    let mut lines = Vec::new();
    for server in servers(plan)? {
        let pins = pins(plan, &server)?;
        let waiting = pins.waiting();
        lines.push(ServerLine {
            state: state(&server, &pins, status.as_ref()),
            tools: pins.approved.as_ref().map(|listing| listing.tools.len()),
            protocol: pins.approved.as_ref().map(|listing| listing.protocol.clone()).unwrap_or_default(),
            waiting,
            server: server.name,
            extension: server.id,
            reached: server.reached,
        });
    }
    if output.json {
        return output.documents(&lines);
    }
    let rows = lines.into_iter().map(|line| {
        let tools = line.tools.map_or_else(|| "not listed".to_owned(), |count| count.to_string());
        let waiting = line.waiting.len().to_string();
        [line.server, line.reached, tools, line.protocol, waiting, line.state]
    });
    let empty = "no MCP servers; `mcp.servers` in `config/settings.yaml` names them, `holdfast import mcp FILE` adds them";
    output.lines(table(["server", "reached by", "tools", "protocol", "waiting", "state"], rows, empty))?;
    Ok(Exit::Done)
}

/// How a server is, as far as that is known without starting it.
fn state(server: &KnownServer, pins: &Pins, status: Option<&Status>) -> String {
    let failed = status.and_then(|status| {
        let mut all = status.failed.iter().chain(&status.degraded);
        all.find(|problem| problem.extension == server.id)
    });
    match (failed, server.enabled) {
        (_, false) => "disabled".to_owned(),
        (Some(problem), _) => format!("{}: {}", problem.code, problem.message),
        (None, _) if !pins.waiting().is_empty() => "waits for approval".to_owned(),
        (None, _) if pins.approved.is_none() => "never listed".to_owned(),
        (None, _) => "ready".to_owned(),
    }
}

fn tools(output: &Output, plan: &ApplicationConfig, name: &str) -> Result<Exit, Problem> {
    let server = known(plan, name)?;
    let pins = pins(plan, &server)?;
    let lines = tool_lines(&server, &pins);
    if output.json {
        return output.documents(&lines);
    }
    let rows = lines.iter().map(|line| {
        let text = match &line.offered {
            Some(offered) if *offered != line.description => format!("{} — now: {offered}", line.description),
            _ => line.description.clone(),
        };
        [line.registered.clone(), line.tool.clone(), line.state.to_owned(), line.claims.clone(), text]
    });
    let empty = format!("nothing was listed; `holdfast mcp test {}` lists it", server.name);
    output.lines(table(["tool", "server's name", "state", "claims", "description"], rows, &empty))?;
    Ok(Exit::Done)
}

fn tool_lines(server: &KnownServer, pins: &Pins) -> Vec<ToolLine> {
    let none = Listing::default();
    let approved = pins.approved.as_ref().unwrap_or(&none);
    let waiting = pins.waiting();
    let offered = |name: &str| pins.offered.iter().flat_map(|it| &it.tools).find(|tool| tool.name == name);
    let line = |tool: &ToolDefinition, state: &'static str| ToolLine {
        registered: registered_name(&server.name, &tool.name).to_string(),
        tool: tool.name.clone(),
        state,
        claims: claims(tool),
        description: tool.description.clone(),
        offered: offered(&tool.name).map(|tool| tool.description.clone()),
    };
    let known =
        approved.tools.iter().map(|tool| line(tool, waiting.get(&tool.name).copied().unwrap_or("approved")));
    let is_new = |tool: &&ToolDefinition| waiting.get(&tool.name) == Some(&"new");
    let new = pins.offered.iter().flat_map(|it| &it.tools).filter(is_new).map(|tool| line(tool, "new"));
    known.chain(new).collect()
}

/// What the server claims about a tool's effects.
fn claims(tool: &ToolDefinition) -> String {
    let hints = tool.annotations.as_ref();
    let says = |hint: &str| hints.and_then(|hints| hints.get(hint)).and_then(serde_json::Value::as_bool);
    let claims =
        [("readOnlyHint", "reads"), ("destructiveHint", "destroys"), ("openWorldHint", "reaches out")];
    let claims = claims.into_iter().filter(|(hint, _)| says(hint) == Some(true)).map(|(_, claim)| claim);
    claims.collect::<Vec<_>>().join(", ")
}

fn approve(output: &Output, plan: &ApplicationConfig, name: &str, only: &[String]) -> Result<Exit, Problem> {
    let server = known(plan, name)?;
    let store = PinStore::new(plan.home.mcp());
    let mut pins = store.read(&server.id)?;
    let waiting = pins.waiting();
    if let Some(unknown) = only.iter().find(|tool| !waiting.contains_key(*tool)) {
        let waiting: Vec<&str> = waiting.keys().map(String::as_str).collect();
        let empty = "Nothing waits for approval.";
        return Err(Problem::unknown(
            Code::McpUnknown,
            "tool that waits for approval",
            unknown,
            &waiting,
            empty,
        ));
    }
    let approved = pins.approve(only);
    if !approved.is_empty() {
        store.write(&server.id, &pins)?;
    }
    if output.json {
        output.document(&serde_json::json!({ "server": server.name, "approved": approved }))?;
    } else if approved.is_empty() {
        output.line("nothing waits for approval")?;
    } else {
        output.line(format!("approved: {}", approved.join(", ")))?;
    }
    Ok(Exit::Done)
}
