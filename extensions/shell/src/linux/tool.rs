//! `shell`, as a model sees it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::{TurnContext, TurnView};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::input::{number, parameter, takes, text};
use holdfast_lane_native::{Tool, Workspaces, on_thread};
use holdfast_sandbox::{Network, ProgramAccess, Switch};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::ShellOptions;
use crate::linux::run::Job;

/// The default and the longest timeout of a command, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;
/// The call's timeout is longer, to leave time for cleaning up.
const CALL_TIMEOUT: Millis = Millis(MAX_TIMEOUT_MS + 15_000);

/// The tool.
pub(crate) struct Shell(pub(crate) Arc<Setting>);

pub(crate) struct Setting {
    workspaces: Workspaces,
    options: ShellOptions,
    reach: ProgramAccess,
    /// Warnings that the user was not told yet. Those of a call that was cancelled are told by the next one.
    warnings: Mutex<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default = "default_timeout")]
    timeout_ms: u64,
    #[serde(default = "here")]
    cwd: String,
}

fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_MS
}

fn here() -> String {
    ".".to_owned()
}

impl Shell {
    pub(crate) fn new(workspaces: Workspaces, options: ShellOptions) -> Result<Self, Problem> {
        let network = if options.network { Network::Open } else { Network::Closed };
        let reach = ProgramAccess::new(&options.readable, network);
        for path in reach.readable() {
            // A folder may be read if it could be a workspace: neither overlaps the home.
            workspaces.check(path).map_err(|problem| {
                let what = format!("commands cannot be kept from the home folder: {}", problem.what);
                Problem::new(Code::WorkspaceRefused, what).help(
                    "Put the home folder elsewhere, or leave the folder that is named out of `readable`.",
                )
            })?;
        }
        Ok(Self(Arc::new(Setting { workspaces, options, reach, warnings: Mutex::default() })))
    }
}

impl Setting {
    /// Tells the user what commands have created, in the client or on the streaming channel that shows the turn.
    fn tell_user(&self, host: &Arc<dyn Host>) {
        let warnings = std::mem::take(&mut *self.warnings.lock());
        warnings.iter().for_each(|text| host.progress(text));
    }
}

/// Kills the command when the call is cancelled.
struct StopGuard(Arc<Switch>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.turn_off();
    }
}

impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        let reach = if self.0.options.network { "The network is open" } else { "There is no network" };
        let description = format!(
            "Runs a command with /bin/sh in the workspace. It reads the system's programs, reads and writes the workspace and \
             $TMPDIR, and nothing else. {reach}. All processes that it starts end with it."
        );
        ToolSpec {
            effects: EffectClass::Exec,
            timeout: CALL_TIMEOUT,
            render: Some(json!({ "as": "code", "of": "stdout", "summary": "{command}" }).into()),
            input_schema: takes([
                parameter("command", json!({ "type": "string", "minLength": 1 })),
                number("timeout_ms", 1..=MAX_TIMEOUT_MS, format!("{DEFAULT_TIMEOUT_MS} if left out."))
                    .optional(),
                text("cwd", "The folder to start in, from the workspace.").optional(),
            ]),
            ..ToolSpec::named("shell", &description)
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let setting = self.0.clone();
        Box::pin(async move {
            let switch = Arc::new(Switch::default());
            let _guard = StopGuard(switch.clone());
            let running = setting.clone();
            let answer = on_thread(move || run(&running, &turn, arguments, &switch)).await;
            setting.tell_user(&host);
            answer
        })
    }
}

pub(crate) fn run(
    setting: &Setting,
    turn: &TurnContext,
    arguments: Content,
    switch: &Switch,
) -> Result<Content, Fault> {
    let arguments: Arguments = serde_json::from_value(arguments.value().clone())
        .map_err(|error| Fault::new(Code::ToolArguments, error.to_string()))?;
    let workspace = setting.workspaces.of(turn)?;
    let job = Job {
        workspace: &workspace,
        options: &setting.options,
        reach: &setting.reach,
        command: &arguments.command,
        folder: &arguments.cwd,
        timeout: Duration::from_millis(arguments.timeout_ms.min(MAX_TIMEOUT_MS)),
    };
    let outcome = job.run(switch)?;
    setting.warnings.lock().extend(outcome.warning.clone());
    Ok(Content::of(&outcome))
}
