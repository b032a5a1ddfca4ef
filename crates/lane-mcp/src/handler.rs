//! What a server may ask of us and tell us: questions to the user, the folder of the session, lines for the log, progress, and that its
//! lists have changed. Everything else is refused.

#![expect(deprecated, reason = "servers of earlier revisions use roots, sampling and logging")]

use std::sync::Arc;

use holdfast_contract::log::LogLevel;
use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::calls::ActiveCalls;
use crate::elicitation::{FormAnswer, ask, ask_to_open};
use crate::options::McpOptions;

/// The client that a server talks to.
#[derive(Clone)]
pub(crate) struct ServerHandler {
    pub name: String,
    pub calls: Arc<ActiveCalls>,
    pub options: McpOptions,
    /// Told when the server's tools have changed.
    pub changed: Arc<Notify>,
}

fn refused(why: impl std::fmt::Display) -> ErrorData {
    ErrorData::invalid_request(why.to_string(), None)
}

impl ServerHandler {
    fn capabilities(&self) -> rmcp::model::ClientCapabilities {
        let mut capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
        if self.options.roots {
            capabilities["roots"] = json!({});
        }
        serde_json::from_value(capabilities).unwrap_or_default()
    }
}

impl ClientHandler for ServerHandler {
    fn get_info(&self) -> ClientConfig {
        let about = rmcp::model::Implementation::new("holdfast", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(self.capabilities(), about).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let folder = if self.options.roots { self.calls.workspace() } else { None };
        let roots = folder.and_then(|folder| url::Url::from_file_path(folder).ok());
        let roots: Vec<Value> =
            roots.map(|url| json!({ "uri": url.as_str(), "name": "workspace" })).into_iter().collect();
        serde_json::from_value(json!({ "roots": roots })).map_err(refused)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let host = self.calls.oldest_host().map_err(|fault| refused(fault.message))?;
        let answer = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).map_err(refused)?;
                ask(&host, &self.name, &message, &schema).await
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                ask_to_open(&host, &self.name, &message, &url).await
            }
            _ => return Err(refused("elicitation of a kind that this version does not know")),
        };
        Ok(match answer.map_err(|fault| refused(fault.message))? {
            FormAnswer::Accept(fields) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(fields))
            }
            FormAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            FormAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        let text = format!("{progress}{of} {}", message.unwrap_or_default());
        self.calls.progress(&progress_token, text.trim());
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let level = match params.level {
            LoggingLevel::Debug => LogLevel::Debug,
            LoggingLevel::Info | LoggingLevel::Notice => LogLevel::Info,
            LoggingLevel::Warning => LogLevel::Warning,
            _ => LogLevel::Error,
        };
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let from = params.logger.map(|logger| format!("{logger}: ")).unwrap_or_default();
        self.calls.log(level, &format!("{from}{text}"));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
