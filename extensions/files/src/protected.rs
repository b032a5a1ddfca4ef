//! Files that run programs on the user's machine when git, an editor, a shell or CI reads them. Every write to one is asked about: an
//! answer for the session and a rule for the tool do not cover it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::matcher::Matcher;
use holdfast_contract::problem::Fault;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, PROTECTED_NAMES, now, protected_name, protected_part};

/// Paths with a hidden entry: at their beginning, and further down.
const HIDDEN: [&str; 2] = [".*", "*/.*"];

/// Whether a call with this path is asked about.
pub(crate) fn is_asked_about(given: &str) -> bool {
    protected_name(Path::new(given)).is_some_and(|name| given.contains(protected_part(name)))
}

/// Asks about writes to paths with a protected name, among those that match a glob: with this name, or with a hidden one.
pub(crate) struct ProtectedFiles {
    glob: String,
    name: Option<&'static str>,
}

impl ProtectedFiles {
    /// Gates that are called for few other paths: those with hidden entries, and those with one of the other protected names.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let hidden = HIDDEN.map(|glob| Self { glob: glob.to_owned(), name: None });
        let others = PROTECTED_NAMES.iter().filter(|name| !name.starts_with('.'));
        let others =
            others.map(|name| Self { glob: format!("*{}*", protected_part(name)), name: Some(*name) });
        hidden.into_iter().chain(others)
    }

    fn decision(&self, input: &HookInput) -> Decision {
        let path = input.call.as_ref().and_then(|call| call.arguments.value().get("path")?.as_str());
        let found = protected_name(Path::new(path.unwrap_or_default()));
        // One gate asks about a name.
        let Some(name) = found.filter(|found| self.name.map_or(found.starts_with('.'), |own| own == *found))
        else {
            return Decision::Allow;
        };
        let reason = format!(
            "`{name}` can run programs on this machine when git, an editor, a shell, a package manager or CI reads it, so it is asked \
             about every time"
        );
        Decision::Ask { reason }
    }
}

impl Hook for ProtectedFiles {
    fn spec(&self) -> HookSpec {
        let tools = ["file_write", "file_edit"].map(str::to_owned).to_vec();
        let arguments = BTreeMap::from([("/path".to_owned(), self.glob.clone())]);
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
