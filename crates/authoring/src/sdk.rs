//! The embedded SDKs.

use std::path::Path;

use holdfast_contract::problem::Problem;

use crate::files;

/// The path of the SDK in an extension written in Rust. Its `Cargo.toml` refers to it.
pub(crate) const RUST_FOLDER: &str = ".holdfast/sdk";

/// Removed from the copies: outside this workspace there are no lints to inherit.
pub(crate) const LINTS: &str = "[lints]\nworkspace = true\n";

macro_rules! embedded {
    ($root:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!($root, $name)))),+]
    };
}

pub(crate) const RUST: &[(&str, &str)] = embedded!("../../../sdk/rust/":
    "Cargo.toml",
    "src/lib.rs",
    "src/answer.rs",
    "src/argument.rs",
    "src/host.rs",
    "src/roles.rs",
    "macros/Cargo.toml",
    "macros/src/lib.rs",
    "macros/src/argument.rs",
    "macros/src/functions.rs",
    "macros/src/hooks.rs",
    "macros/src/setup.rs",
    "macros/src/streaming.rs",
    "src/bindings/agent.rs",
    "src/bindings/agents.rs",
    "src/bindings/api.rs",
    "src/bindings/channel.rs",
    "src/bindings/channel_file.rs",
    "src/bindings/channel_message.rs",
    "src/bindings/channel_question.rs",
    "src/bindings/channels.rs",
    "src/bindings/clock.rs",
    "src/bindings/commands.rs",
    "src/bindings/compaction_before.rs",
    "src/bindings/compaction_provide.rs",
    "src/bindings/config.rs",
    "src/bindings/context.rs",
    "src/bindings/conversations.rs",
    "src/bindings/discovery.rs",
    "src/bindings/environment.rs",
    "src/bindings/events.rs",
    "src/bindings/extensions.rs",
    "src/bindings/files.rs",
    "src/bindings/guard_chunk.rs",
    "src/bindings/guard_input.rs",
    "src/bindings/guard_output.rs",
    "src/bindings/guard_result.rs",
    "src/bindings/http.rs",
    "src/bindings/input_normalise.rs",
    "src/bindings/lifecycle_destroy.rs",
    "src/bindings/lifecycle_health.rs",
    "src/bindings/lifecycle_initialize.rs",
    "src/bindings/lifecycle_start.rs",
    "src/bindings/lifecycle_stop.rs",
    "src/bindings/log.rs",
    "src/bindings/maintenance.rs",
    "src/bindings/messages.rs",
    "src/bindings/mod.rs",
    "src/bindings/model_route.rs",
    "src/bindings/prompts.rs",
    "src/bindings/random.rs",
    "src/bindings/render_call.rs",
    "src/bindings/render_result.rs",
    "src/bindings/response_process.rs",
    "src/bindings/results.rs",
    "src/bindings/sanitize_input.rs",
    "src/bindings/sanitize_output.rs",
    "src/bindings/sanitize_result.rs",
    "src/bindings/scheduler.rs",
    "src/bindings/secrets.rs",
    "src/bindings/service.rs",
    "src/bindings/services.rs",
    "src/bindings/session.rs",
    "src/bindings/session_cancel.rs",
    "src/bindings/session_end.rs",
    "src/bindings/session_start.rs",
    "src/bindings/setup.rs",
    "src/bindings/state.rs",
    "src/bindings/streaming_channel.rs",
    "src/bindings/streaming_status.rs",
    "src/bindings/subscriber.rs",
    "src/bindings/subscriptions.rs",
    "src/bindings/system.rs",
    "src/bindings/timers.rs",
    "src/bindings/tool_after.rs",
    "src/bindings/tool_gate.rs",
    "src/bindings/tool_modify.rs",
    "src/bindings/tools.rs",
    "src/bindings/turn_end.rs",
    "src/bindings/turn_start.rs",
    "src/bindings/types.rs",
    "src/bindings/ui.rs",
    "src/bindings/verdicts.rs",
);

const PYTHON: &[(&str, &str)] = embedded!("../../../sdk/python/": "holdfast.py", "holdfast_abi.py");
const JAVASCRIPT: &str = include_str!("../../../sdk/js/holdfast.js");
const C: &[(&str, &str)] = embedded!("../../../sdk/c/": "holdfast.h", "holdfast_records.h");

/// The names that the JavaScript SDK exports: every declaration in it says so at the beginning of a line.
pub(crate) fn javascript_names() -> Vec<&'static str> {
    let exported = JAVASCRIPT.lines().filter_map(|line| line.strip_prefix("export "));
    let declared = exported.filter_map(|rest| {
        let kinds = ["const ", "class ", "function ", "async function "];
        kinds.iter().find_map(|kind| rest.strip_prefix(kind))
    });
    let end = |letter: char| !letter.is_alphanumeric() && letter != '_';
    declared.filter_map(|name| name.split(end).next()).collect()
}

/// Writes the C headers into a folder.
pub(crate) fn write_c(folder: &Path) -> Result<(), Problem> {
    files::write_all(folder, C.iter().copied())
}

/// Writes the Python modules into a folder.
pub(crate) fn write_python(folder: &Path) -> Result<(), Problem> {
    files::write_all(folder, PYTHON.iter().copied())
}

/// Writes the JavaScript package into a folder, with the module that links the host.
pub(crate) fn write_javascript(folder: &Path, host: &str) -> Result<(), Problem> {
    let package = "{ \"name\": \"holdfast\", \"type\": \"module\", \"main\": \"index.js\", \"exports\": \"./index.js\" }\n";
    files::write_all(folder, [("index.js", JAVASCRIPT), ("host.js", host), ("package.json", package)])
}

/// Writes the Rust SDK into an extension's folder.
pub(crate) fn write_rust(folder: &Path) -> Result<(), Problem> {
    let root = folder.join(RUST_FOLDER);
    for (name, text) in RUST {
        let path = root.join(name);
        let text = text.replace(LINTS, "");
        // Unchanged files keep their modification time, so that cargo does not rebuild them.
        if files::read_text(&path).is_ok_and(|there| there == text) {
            continue;
        }
        files::write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// Updates an extension's copy of the Rust SDK, if it uses one.
pub(crate) fn refresh_rust(folder: &Path) -> Result<(), Problem> {
    if files::read_text(&folder.join("Cargo.toml"))?.contains(RUST_FOLDER) {
        write_rust(folder)?;
    }
    Ok(())
}
