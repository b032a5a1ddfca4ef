//! The built-in extensions: which there are, and what each stands on.

use std::sync::Arc;

use holdfast_confinement::Report;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Check, Home};
use holdfast_lane_native::{Extension, NativeLane, Workspace};
use holdfast_runtime::Component;
use holdfast_runtime::house::{BuiltIns, Ground};
use serde::de::DeserializeOwned;

/// Makes them. One that cannot be had here is left out, with a reason.
pub fn make(ground: &Ground<'_>) -> BuiltIns {
    let mut warnings: Vec<Problem> = missing(&holdfast_confinement::report()).into_iter().collect();
    let kv = holdfast_ext_kv::extension(ground.home.data(&"kv".into()));
    let scheduler = holdfast_ext_scheduler::extension(ground.home.data(&"scheduler".into()));
    let mut extensions: Vec<Extension> =
        vec![kv, scheduler, holdfast_ext_setup::extension(), holdfast_ext_orchestrator::extension()];
    match options(ground, "results").map(holdfast_ext_results::extension) {
        Ok(results) => extensions.push(results),
        Err(problem) => warnings.push(problem.with(Severity::Warning)),
    }
    let workspace = ground.workspace.map(|folder| Workspace::new(folder, ground.home.canonical()));
    match workspace {
        Some(Ok(workspace)) => {
            extensions.push(holdfast_ext_files::extension(workspace.clone()));
            match shell(ground, workspace) {
                Ok(shell) => extensions.push(shell),
                Err(problem) => warnings.push(problem.with(Severity::Warning)),
            }
        }
        Some(Err(problem)) => warnings.push(problem.with(Severity::Warning)),
        None => {}
    }
    let lane = NativeLane::default();
    let found = extensions.into_iter().map(|extension| lane.add(extension)).collect();
    BuiltIns { lanes: vec![Arc::new(lane)], extensions: found, components: CARRIED.to_vec(), warnings }
}

/// The guardrails, as anybody's components are, and an agent in words.
const CARRIED: &[Component] = &[
    Component {
        id: "simple_agent",
        manifest: include_str!("../../extensions/simple_agent/manifest.yaml"),
        bytes: &[],
    },
    Component {
        id: "injection-guard",
        manifest: include_str!("../../extensions/injection-guard/manifest.yaml"),
        bytes: include_bytes!("../../extensions/injection-guard/injection-guard.wasm"),
    },
    Component {
        id: "length-guard",
        manifest: include_str!("../../extensions/length-guard/manifest.yaml"),
        bytes: include_bytes!("../../extensions/length-guard/length-guard.wasm"),
    },
    Component {
        id: "secret-redaction",
        manifest: include_str!("../../extensions/secret-redaction/manifest.yaml"),
        bytes: include_bytes!("../../extensions/secret-redaction/secret-redaction.wasm"),
    },
];

fn shell(ground: &Ground<'_>, workspace: Workspace) -> Result<Extension, Problem> {
    holdfast_ext_shell::extension(workspace, options(ground, "shell")?)
}

/// What is set for a built-in extension.
fn options<T: DeserializeOwned>(ground: &Ground<'_>, id: &str) -> Result<T, Problem> {
    let set = ground.settings.extensions.get(&id.into()).cloned().unwrap_or_default();
    serde_json::from_value(set.into()).map_err(|error| {
        Problem::new(Code::SettingsInvalid, format!("extensions.{id}: {error}"))
            .help("`docs/builtin-tools.md` lists what can be set.")
    })
}

/// What is said at the start where programs run, but a layer of what holds them is missing.
fn missing(report: &Report) -> Option<Problem> {
    let partial = report.confined && !report.is_whole();
    let problem = || Problem::new(Code::ConfinementPartial, report.notes.join("; ")).with(Severity::Warning);
    partial.then(problem)
}

/// What `doctor` has to say about the platform.
pub fn examine(_: &Home) -> Vec<Check> {
    vec![confinement(&holdfast_confinement::report()), crate::cores::check()]
}

fn confinement(report: &Report) -> Check {
    let help = match (report.confined, report.is_whole()) {
        (_, true) => None,
        (true, false) => Some(
            "Programs run with what there is, and not at all under `safe`; docs/confinement.md says more.",
        ),
        (false, _) => {
            Some("The shell tool, programs and Python files do not run without it; everything else works.")
        }
    };
    Check {
        name: "confinement",
        ok: report.confined,
        detail: report.to_string().replace("\n  ", "; "),
        help: help.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_said() {
        let whole =
            Report { confined: true, landlock: Some(7), seccomp: true, namespaces: true, notes: Vec::new() };
        assert!(missing(&whole).is_none() && confinement(&whole).help.is_none());
        let partial = Report { namespaces: false, notes: vec!["no namespaces".to_owned()], ..whole.clone() };
        assert!(
            missing(&partial)
                .is_some_and(|it| it.code == Code::ConfinementPartial && it.what == "no namespaces")
        );
        let check = confinement(&partial);
        assert!(check.ok && check.detail.contains("namespaces: no; no namespaces"), "{}", check.detail);
        assert!(check.help.is_some_and(|help| help.contains("not at all under `safe`")));
        let closed = Report { confined: false, ..partial };
        assert!(missing(&closed).is_none() && !confinement(&closed).ok);
    }
}
