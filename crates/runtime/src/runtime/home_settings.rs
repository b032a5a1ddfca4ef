//! What the user of a home has configured, as sessions and extensions need it, and redaction with the home's secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::context::ContextBudget;
use holdfast_contract::ids::AgentId;
use holdfast_home::{AgentSettings, LimitSettings};

use crate::host::outside::http::HttpClient;
use crate::host::secrets::Secrets;
use crate::parts::{Configuration, FilePlaces, Variables, Zone};
use crate::tools::ToolsShown;

/// The settings of a home.
pub(crate) struct HomeSettings {
    pub(super) zone: Zone,
    pub(super) secrets: Option<Arc<Secrets>>,
    pub(super) configuration: Option<Arc<dyn Configuration>>,
    pub(super) agents: BTreeMap<AgentId, AgentSettings>,
    pub(super) limits: LimitSettings,
    pub(super) context: ContextBudget,
    pub(super) tools: ToolsShown,
    pub(super) places: Option<Arc<FilePlaces>>,
    pub(super) http: Option<Arc<dyn HttpClient>>,
    pub(super) variables: Variables,
}

impl HomeSettings {
    /// The time zone of schedules that name none.
    pub(crate) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The secrets; none where no store could be opened.
    pub(crate) fn secrets(&self) -> Option<&Arc<Secrets>> {
        self.secrets.as_ref()
    }

    /// Where the settings of extensions are written; none without a home.
    pub(crate) fn configuration(&self) -> Option<&Arc<dyn Configuration>> {
        self.configuration.as_ref()
    }

    /// What is configured for an agent.
    pub(crate) fn agent(&self, id: &AgentId) -> Option<&AgentSettings> {
        self.agents.get(id)
    }

    /// The limits of the main agent.
    pub(crate) fn limits(&self) -> LimitSettings {
        self.limits
    }

    /// How much context providers may add to a prompt outside a session.
    pub(crate) fn context(&self) -> &ContextBudget {
        &self.context
    }

    /// Which tools models are shown where there are many.
    pub(crate) fn tools(&self) -> &ToolsShown {
        &self.tools
    }

    /// Where the files are that extensions may have; none without a home.
    pub(crate) fn places(&self) -> Option<&Arc<FilePlaces>> {
        self.places.as_ref()
    }

    /// What sends the HTTP requests of extensions; none where nothing does.
    pub(crate) fn http(&self) -> Option<&Arc<dyn HttpClient>> {
        self.http.as_ref()
    }

    /// A variable of the process.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name)
    }

    /// Redacts secrets in a fact, before anything is decided or recorded.
    pub(crate) fn redact(&self, body: &mut Body) {
        if let Some(secrets) = &self.secrets {
            secrets.redact(body);
        }
    }

    /// Redacts secrets in a value.
    pub(crate) fn redact_content(&self, content: &mut Content) {
        if let Some(secrets) = &self.secrets {
            secrets.redact_content(content);
        }
    }

    /// Redacts secrets in a text.
    pub(crate) fn redact_text(&self, text: String) -> String {
        match &self.secrets {
            Some(secrets) => secrets.redact_text(&text),
            None => text,
        }
    }
}
