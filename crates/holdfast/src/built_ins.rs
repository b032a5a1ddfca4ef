//! The built-in extensions: which there are, and what each stands on.

use std::sync::Arc;

use holdfast_app::{BuiltInContext, BuiltIns};
use holdfast_contract::manifest::own_settings;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Check, Home};
use holdfast_lane_native::{NativeExtension, NativeLane, Workspace, Workspaces};
use holdfast_loader::EmbeddedComponent;
use holdfast_sandbox::SandboxReport;
use serde::de::DeserializeOwned;

/// Makes them. One that cannot be had here has no tools, with a reason.
pub fn make(ground: &BuiltInContext<'_>) -> BuiltIns {
    let mut warnings: Vec<Problem> = missing(&holdfast_sandbox::report()).into_iter().collect();
    let kv = holdfast_ext_kv::extension(ground.home.data(&"kv".into()));
    let scheduler = holdfast_ext_scheduler::extension(ground.home.data(&"scheduler".into()));
    let mut extensions: Vec<NativeExtension> =
        vec![kv, scheduler, holdfast_ext_setup::extension(), holdfast_ext_orchestrator::extension()];
    match options(ground, "results").map(holdfast_ext_results::extension) {
        Ok(results) => extensions.push(results),
        Err(problem) => {
            extensions.push(holdfast_ext_results::unavailable());
            warnings.push(problem.with(Severity::Warning));
        }
    }
    let (home, usual) = (ground.home.canonical(), ground.home.usual());
    let named = ground.workspace.map(|folder| Workspace::apart_from(folder, &home, usual));
    let named = named.transpose().unwrap_or_else(|problem| {
        warnings.push(problem.with(Severity::Warning));
        None
    });
    let workspaces = Workspaces::new(&home, named).apart_from(usual);
    extensions.push(holdfast_ext_files::extension(workspaces.clone()));
    extensions.push(shell(ground, workspaces).unwrap_or_else(|problem| {
        warnings.push(problem.with(Severity::Warning));
        // What cannot be had here keeps its names: another extension's `shell` must not be taken for ours.
        holdfast_ext_shell::unavailable()
    }));
    let lane = NativeLane::default();
    let found = extensions.into_iter().map(|extension| lane.add_built_in(extension)).collect();
    BuiltIns { lanes: vec![Arc::new(lane)], extensions: found, components: EMBEDDED.to_vec(), warnings }
}

/// The guardrails, as anybody's components are, and an agent in words.
const EMBEDDED: &[EmbeddedComponent] = &[
    EmbeddedComponent {
        id: "simple_agent",
        manifest: include_str!("../../../extensions/simple_agent/manifest.yaml"),
        bytes: &[],
    },
    EmbeddedComponent {
        id: "injection-guard",
        manifest: include_str!("../../../extensions/injection-guard/manifest.yaml"),
        bytes: include_bytes!("../../../extensions/injection-guard/injection-guard.wasm"),
    },
    EmbeddedComponent {
        id: "length-guard",
        manifest: include_str!("../../../extensions/length-guard/manifest.yaml"),
        bytes: include_bytes!("../../../extensions/length-guard/length-guard.wasm"),
    },
    EmbeddedComponent {
        id: "secret-redaction",
        manifest: include_str!("../../../extensions/secret-redaction/manifest.yaml"),
        bytes: include_bytes!("../../../extensions/secret-redaction/secret-redaction.wasm"),
    },
];

fn shell(ground: &BuiltInContext<'_>, workspaces: Workspaces) -> Result<NativeExtension, Problem> {
    holdfast_ext_shell::extension(workspaces, options(ground, "shell")?)
}

/// What is set for a built-in extension.
fn options<T: DeserializeOwned>(ground: &BuiltInContext<'_>, id: &str) -> Result<T, Problem> {
    let set = own_settings(ground.settings.extensions.get(&id.into()));
    serde_json::from_value(set.into()).map_err(|error| {
        Problem::new(Code::SettingsInvalid, format!("extensions.{id}: {error}"))
            .help("`holdfast docs builtin-tools` lists what can be set.")
    })
}

/// What is said at the start where programs run, but a layer of what holds them is missing.
fn missing(report: &SandboxReport) -> Option<Problem> {
    let partial = report.confined && !report.is_whole();
    let problem = || Problem::new(Code::ConfinementPartial, report.notes.join("; ")).with(Severity::Warning);
    partial.then(problem)
}

/// What `doctor` has to say about the platform.
pub fn examine(home: &Home) -> Vec<Check> {
    let checks = [Some(confinement(&holdfast_sandbox::report())), exposed_home(home.root())];
    checks.into_iter().flatten().chain([crate::cores::check()]).collect()
}

/// That programs could read the home, because it lies in the system's own folders.
#[cfg(target_os = "linux")]
fn exposed_home(home: &std::path::Path) -> Option<Check> {
    let access = holdfast_sandbox::ProgramAccess::new(&[], holdfast_sandbox::Network::Closed);
    let path = access.containing(home)?;
    Some(Check {
        name: "home and programs",
        ok: false,
        detail: format!("the home lies in {}, which programs must be able to read", path.display()),
        help: Some("Programs, Python files and the shell do not run. Put the home elsewhere.".to_owned()),
    })
}

#[cfg(not(target_os = "linux"))]
fn exposed_home(_: &std::path::Path) -> Option<Check> {
    None
}

fn confinement(report: &SandboxReport) -> Check {
    let help = match (report.confined, report.is_whole()) {
        (_, true) => None,
        (true, false) => Some(
            "Programs run with what there is, and not at all under `safe`; `holdfast docs confinement` says more.",
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
        let whole = SandboxReport {
            confined: true,
            landlock: Some(7),
            seccomp: true,
            namespaces: true,
            notes: Vec::new(),
        };
        assert!(missing(&whole).is_none() && confinement(&whole).help.is_none());
        let partial =
            SandboxReport { namespaces: false, notes: vec!["no namespaces".to_owned()], ..whole.clone() };
        assert!(
            missing(&partial)
                .is_some_and(|it| it.code == Code::ConfinementPartial && it.what == "no namespaces")
        );
        let check = confinement(&partial);
        assert!(check.ok && check.detail.contains("namespaces: no; no namespaces"), "{}", check.detail);
        assert!(check.help.is_some_and(|help| help.contains("not at all under `safe`")));
        let closed = SandboxReport { confined: false, ..partial };
        assert!(missing(&closed).is_none() && !confinement(&closed).ok);
    }
}
