//! The capability `discovery`: searching the tools of a session, and listing what there is. Both work on the registry that the turn is
//! pinned to.

use holdfast_contract::agents::ToolScope;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::FindToolsArguments;
use holdfast_contract::ids::ToolName;
use holdfast_contract::registry::{Implementation, Registry, ToolEntry};
use holdfast_kernel::registry::offers;
use serde_json::Value;

use crate::runtime::Inner;
use crate::tools::discovery::{capabilities, search, shown};

impl Inner {
    /// The extensions and tools of a session. `recent` are the tools that it found or used, the most important first.
    pub(crate) fn capabilities_list(
        &self,
        registry: &Registry,
        offered: &ToolScope,
        recent: &[ToolName],
    ) -> Content {
        let scope = |entry: &ToolEntry| offers(offered, entry);
        let within: Vec<&ToolEntry> = registry.tools.iter().filter(|entry| scope(entry)).collect();
        let shown = shown(registry, scope, recent, self.home.tools());
        capabilities(registry, &within, &shown, self.home.tools(), |it| self.description_of(it)).into()
    }

    /// The tools that fit a query, best first, and the answer for the extension.
    pub(crate) fn tools_find(
        &self,
        registry: &Registry,
        offered: &ToolScope,
        arguments: &FindToolsArguments,
    ) -> (Vec<ToolName>, Value) {
        let within: Vec<&ToolEntry> = registry.tools.iter().filter(|entry| offers(offered, entry)).collect();
        search(&within, &arguments.query, arguments.limit, |it| self.description_of(it))
    }

    fn description_of(&self, implementation: &Implementation) -> String {
        self.extensions
            .found(&implementation.extension.digest)
            .map(|found| found.description)
            .unwrap_or_default()
    }
}
