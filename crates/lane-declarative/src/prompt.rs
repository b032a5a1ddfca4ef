//! Rendering the prompt of an agent. A template of a few lines can double a text until the memory is used up, which no number of steps
//! prevents, so it is rendered by a limited child of this program, where there is one; see `holdfast_sandbox::Helper`.

use std::io::{self, Read, Write};
use std::time::Duration;

use holdfast_contract::manifest::Manifest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{Helper, HelperFailure, HelperLimits};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};

use crate::PROMPT;

/// The name of this work.
pub const RENDER_WORK: &str = "render";

/// Steps of rendering a prompt, so that a template cannot loop forever.
const MAX_TEMPLATE_STEPS: u64 = 1_000_000;
/// What rendering may use, and the longest prompt.
const LIMITS: HelperLimits =
    HelperLimits { memory_bytes: 2 << 30, timeout: Duration::from_secs(20), output_bytes: 4 << 20 };

/// A template with what it has access to: the manifest only.
#[derive(Serialize, Deserialize)]
struct RenderTask {
    template: String,
    id: String,
    name: String,
    description: String,
    uses_tools: Vec<String>,
}

/// Renders a prompt.
pub(crate) fn render(manifest: &Manifest, prompt: &str) -> Result<String, Fault> {
    let Manifest { id, name, description, agent, .. } = manifest;
    let task = RenderTask {
        template: prompt.to_owned(),
        id: id.to_string(),
        name: name.clone(),
        description: description.clone(),
        uses_tools: agent.iter().flat_map(|agent| &agent.uses_tools).map(ToString::to_string).collect(),
    };
    // A text without a template's marks stays as it is and needs no process.
    let helper = Helper::installed().filter(|_| prompt.contains('{'));
    let invalid = |what: String| Fault::new(Code::PromptInvalid, format!("`{PROMPT}` cannot be used{what}"));
    let rendered = match helper {
        None => task.render(),
        Some(helper) => {
            let input = serde_json::to_vec(&task).map_err(|error| invalid(format!(": {error}")))?;
            let answer = helper.run(RENDER_WORK, input, &LIMITS).map_err(|failure| match failure {
                HelperFailure::Late => invalid(": rendering it takes too long".to_owned()),
                HelperFailure::Died(_) => invalid(": rendering it takes too much memory".to_owned()),
                HelperFailure::Unavailable(error) => invalid(format!(": it could not be rendered: {error}")),
            })?;
            serde_json::from_slice(&answer).unwrap_or_else(|error| Err(format!(": {error}")))
        }
    };
    rendered.map_err(invalid)
}

/// Renders what comes in, as the process that renders a prompt.
pub fn serve_render(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let task: RenderTask = serde_json::from_slice(&bytes)?;
    serde_json::to_writer(&mut output, &task.render())?;
    output.flush()
}

impl RenderTask {
    /// The rendered text, or what is wrong with the template.
    fn render(&self) -> Result<String, String> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
        let Self { template, id, name, description, uses_tools } = self;
        environment.render_str(template, context! { id, name, description, uses_tools }).map_err(|error| {
            let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
            let help = "A prompt may use `id`, `name`, `description` and `uses_tools`.";
            format!("{line}: {error}. {help}")
        })
    }
}
