//! Files that run programs on the user's machine when git, an editor, a shell or CI reads them. Every write to one is asked about: an
//! answer for the session and a rule for the tool do not cover it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::matcher::Matcher;
use holdfast_contract::problem::Fault;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, PROTECTED_NAMES, now, protected_name};

/// Whether a call with this path is asked about.
pub(crate) fn is_asked_about(given: &str) -> bool {
    protected_name(Path::new(given)).is_some_and(|name| given.contains(name))
}

/// Asks about writes to paths that contain this name.
pub(crate) struct ProtectedFiles {
    name: &'static str,
}

impl ProtectedFiles {
    /// A gate for each name, so that it is called for such paths only.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        PROTECTED_NAMES.iter().map(|name| Self { name })
    }

    fn decision(&self, input: &HookInput) -> Decision {
        let path = input.call.as_ref().and_then(|call| call.arguments.value().get("path")?.as_str());
        let path = path.unwrap_or_default();
        if protected_name(Path::new(path)) != Some(self.name) {
            return Decision::Allow;
        }
        let reason = format!(
            "`{}` can run programs on this machine when git, an editor, a shell or CI reads it, so it is asked about every time",
            self.name
        );
        Decision::Ask { reason }
    }
}

impl Hook for ProtectedFiles {
    fn spec(&self) -> HookSpec {
        let tools = ["file_write", "file_edit"].map(str::to_owned).to_vec();
        let arguments = BTreeMap::from([("/path".to_owned(), format!("*{}*", self.name))]);
        let matcher = Matcher { tools, arguments, ..Matcher::default() };
        HookSpec { matcher, ..HookSpec::at(HookPoint::ToolGate) }
    }

    fn decide(&self, input: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        now(Ok(self.decision(&input)))
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        Some(Ok(self.decision(input)))
    }
}
