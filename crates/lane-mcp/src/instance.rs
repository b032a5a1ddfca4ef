//! A loaded extension that is an MCP server. It is registered with the definitions that were approved; the server itself is started by
//! the first call, or in the background where it was never listed.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::manifest::{Manifest, Scope};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::role::{Role, RoleSet};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Later, Reply};
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams, RequestMetaObject,
};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::catalogue::{Catalogue, ToolTarget, shown};
use crate::server::{CALL_KEY, Server, ServerSession};

/// The function of the `service` role that lists a server now, for `holdfast mcp test`.
pub(crate) const REFRESH: &str = "refresh";
/// The most resources that are listed.
const MAX_RESOURCES: usize = 500;
const APPROVE: &str = "approve";
const REFUSE: &str = "refuse";

/// A loaded server.
pub(crate) struct McpInstance(Arc<LoadedServer>);

struct LoadedServer {
    server: Arc<Server>,
    manifest: Manifest,
    catalogue: Catalogue,
    /// Whether the server was listed before.
    listed: bool,
}

impl McpInstance {
    pub(crate) fn new(server: Arc<Server>, manifest: Manifest, catalogue: Catalogue, listed: bool) -> Self {
        Self(Arc::new(LoadedServer { server, manifest, catalogue, listed }))
    }
}

impl LoadedServer {
    fn descriptors(&self) -> Result<Vec<Descriptor>, Fault> {
        self.catalogue.exports().descriptors(&self.manifest)
    }

    async fn call(self: Arc<Self>, call: Call, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        match call {
            Call::Lifecycle(LifecycleCommand::Load) => self.descriptors().map(Reply::Descriptors),
            Call::Lifecycle(LifecycleCommand::Initialize | LifecycleCommand::Start) => Ok(Reply::Done),
            Call::Lifecycle(LifecycleCommand::Stop | LifecycleCommand::Destroy) => {
                self.server.close().await;
                Ok(Reply::Done)
            }
            // Whether the server runs says nothing about whether the next call can start it.
            Call::Health => Ok(Reply::Health(true)),
            Call::Tool { tool, arguments, turn, .. } => {
                let target = self.catalogue.tools.get(&tool).cloned();
                let unknown =
                    || Fault::new(Code::ToolUnknown, format!("`{}` has no tool `{tool}`", self.manifest.id));
                let workspace = turn.workspace.as_deref().map(PathBuf::from);
                self.tool(target.ok_or_else(unknown)?, arguments.value(), workspace, host)
                    .await
                    .map(Reply::Content)
            }
            Call::Function { role: Role::Service, function, .. } if function == REFRESH => {
                self.refresh(host).await.map(Reply::Content)
            }
            Call::Function { role: Role::Service, .. } => self.background(host).await,
            Call::Function { role: Role::Commands, arguments, .. } => {
                self.prompt(arguments.value(), host).await.map(Reply::Content)
            }
            _ => {
                let message = format!("`{}` is an MCP server and has no such function", self.manifest.id);
                Err(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// Runs as long as the extension: lists a server that was never listed, and lists again what has changed.
    async fn background(&self, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        self.server.calls().set_background(Some(host));
        if !self.listed {
            self.server.session().await?;
        }
        loop {
            self.server.changed().notified().await;
            self.server.list_again().await?;
        }
    }

    /// Lists the server now, and says what it offers.
    async fn refresh(&self, host: Arc<dyn Host>) -> Result<Content, Fault> {
        let _call = self.server.calls().begin(host, None, false);
        let session = self.server.session().await?;
        let names: Vec<&str> = session.listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        Ok(Content::new(json!({
            "server": session.listing.server,
            "protocol": session.listing.protocol,
            "tools": names,
            "prompts": session.listing.prompts.len(),
            "resources": session.listing.resources,
        })))
    }

    async fn tool(
        &self,
        target: ToolTarget,
        arguments: &Value,
        workspace: Option<PathBuf>,
        host: Arc<dyn Host>,
    ) -> Result<Content, Fault> {
        let call = self.server.calls().begin(host.clone(), workspace, true);
        let session = self.server.session().await?;
        match target {
            ToolTarget::Tool { name, structured } => {
                self.approved(&name, &host).await?;
                let arguments = arguments.as_object().cloned().unwrap_or_default();
                let mut params = CallToolRequestParams::new(name).with_arguments(arguments);
                let mut meta = RequestMetaObject::new();
                meta.insert(CALL_KEY.to_owned(), call.id.into());
                params.meta = Some(meta);
                let result = session.client.call_tool(params).await;
                answer::tool_result(result.map_err(|error| self.server.fault(&session, error))?, structured)
            }
            ToolTarget::ReadResource => {
                let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
                let read = session.client.read_resource(ReadResourceRequestParams::new(uri)).await;
                Ok(answer::resource(read.map_err(|error| self.server.fault(&session, error))?))
            }
            ToolTarget::ListResources => self.resources(&session).await,
        }
    }

    async fn resources(&self, session: &ServerSession) -> Result<Content, Fault> {
        let listed = session.client.peer().list_resources(None).await;
        let listed = listed.map_err(|error| self.server.fault(session, error))?;
        let about = |resource: rmcp::model::Resource| {
            let kind = resource.mime_type.clone().unwrap_or_default();
            json!({ "uri": resource.uri, "name": shown(&resource.name, 200), "media_type": kind })
        };
        let resources: Vec<Value> = listed.resources.into_iter().take(MAX_RESOURCES).map(about).collect();
        Ok(Content::new(json!({ "resources": resources })))
    }

    /// Refuses a tool whose definition is another than the approved one, unless the user approves it now.
    async fn approved(&self, tool: &str, host: &Arc<dyn Host>) -> Result<(), Fault> {
        let Some(how) = self.server.waits_for_approval(tool) else { return Ok(()) };
        let id = self.manifest.id.as_str();
        let pins = self.server.pins().read(id).map_err(|problem| problem.to_fault())?;
        let offered =
            pins.offered.as_ref().and_then(|offered| offered.tools.iter().find(|it| it.name == tool));
        let text = offered.map(|tool| shown(&tool.description, 600)).unwrap_or_default();
        let prompt = format!(
            "The MCP server `{id}` has {how} the definition of `{tool}` since it was approved. It says now: {text}. Approve it?"
        );
        let options = vec![REFUSE.to_owned(), APPROVE.to_owned()];
        let said = host.call(HostCall::Ui(UiQuestion::Select { prompt, options })).await;
        if !said.is_ok_and(|said| said.value().as_str() == Some(APPROVE)) {
            let message = format!(
                "the definition of `{tool}` has {how} since it was approved, and nobody has approved it"
            );
            return Err(Fault::new(Code::McpChanged, message));
        }
        let mut pins = self.server.pins().read(id).map_err(|problem| problem.to_fault())?;
        pins.approve(&[tool.to_owned()]);
        self.server.pins().write(id, &pins).map_err(|problem| problem.to_fault())?;
        self.server.approved(tool);
        Ok(())
    }

    /// A prompt as text: `NAME=value` for each argument.
    async fn prompt(&self, asked: &Value, host: Arc<dyn Host>) -> Result<Content, Fault> {
        let text = |field: &str| asked.get(field).and_then(Value::as_str).unwrap_or_default();
        let unknown = || Fault::new(Code::ToolArguments, format!("there is no prompt `{}`", text("name")));
        let prompt = self.catalogue.prompts.get(text("name")).ok_or_else(unknown)?;
        let _call = self.server.calls().begin(host, None, false);
        let session = self.server.session().await?;
        let mut params = GetPromptRequestParams::new(prompt.as_str());
        params.arguments = Some(prompt_arguments(text("arguments")));
        let got =
            session.client.get_prompt(params).await.map_err(|error| self.server.fault(&session, error))?;
        let messages = got.messages.into_iter().filter_map(|message| {
            let content = serde_json::to_value(&message.content).ok()?;
            let text =
                content.get("text").or_else(|| content.pointer("/resource/text"))?.as_str()?.to_owned();
            Some(text)
        });
        Ok(Content::text(messages.collect::<Vec<_>>().join("\n\n")))
    }
}

/// `a=1 b="two words"` as fields.
fn prompt_arguments(text: &str) -> Map<String, Value> {
    let words = holdfast_contract::manifest::ProgramCommand::split(text);
    let words = words.iter().flat_map(|words| {
        std::iter::once(words.program()).chain(words.arguments().iter().map(String::as_str))
    });
    words
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

impl Instance for McpInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        Box::pin(self.0.clone().call(call, host))
    }

    fn capabilities(&self) -> InstanceCapabilities {
        let roles: RoleSet = [Role::Service, Role::Tools, Role::Commands].into_iter().collect();
        InstanceCapabilities {
            scope: Scope::Shared,
            replayable: false,
            has_lifecycle: true,
            exclusive: false,
            synchronous_hooks: false,
            roles,
        }
    }
}
