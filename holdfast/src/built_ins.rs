//! The built-in extensions: which there are, and what each stands on.

use std::sync::Arc;

use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Check, Home};
use holdfast_lane_native::{Extension, NativeLane, Workspace};
use holdfast_runtime::house::{BuiltIns, Ground};

/// Makes them. One that cannot be had here is left out, with a reason.
pub fn make(ground: &Ground<'_>) -> BuiltIns {
    let mut warnings = Vec::new();
    let kv = holdfast_ext_kv::extension(ground.home.data(&"kv".into()));
    let scheduler = holdfast_ext_scheduler::extension(ground.home.data(&"scheduler".into()));
    let mut extensions: Vec<Extension> = vec![kv, scheduler, holdfast_ext_setup::extension()];
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
    BuiltIns { lanes: vec![Arc::new(lane)], extensions: found, warnings }
}

fn shell(ground: &Ground<'_>, workspace: Workspace) -> Result<Extension, Problem> {
    let set = ground.settings.extensions.get(&"shell".into()).cloned().unwrap_or_default();
    let options = serde_json::from_value(set.into()).map_err(|error| {
        Problem::new(Code::SettingsInvalid, format!("extensions.shell: {error}"))
            .help("`docs/builtin-tools.md` lists what can be set.")
    })?;
    holdfast_ext_shell::extension(workspace, options)
}

/// What `doctor` has to say about the platform.
pub fn examine(_: &Home) -> Vec<Check> {
    let report = holdfast_confinement::report();
    let help =
        "The shell tool, programs and Python files do not run without it; everything else works.".to_owned();
    let help = (!report.confined).then_some(help);
    let confinement = Check {
        name: "confinement",
        ok: report.confined,
        detail: report.to_string().replace('\n', "; "),
        help,
    };
    vec![confinement, crate::cores::check()]
}
