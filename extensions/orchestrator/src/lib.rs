//! The built-in tools and context of the main agent. [`extension`] is the entry point: `capabilities.rs` lists agents and extensions,
//! `channel.rs` names the channel and user of the conversation, `find_tools.rs` searches hidden tools, `reach.rs` has the tools for
//! other channels and background agents.

mod capabilities;
mod channel;
mod find_tools;
mod reach;

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::ToolGroup;
use holdfast_contract::wire::Host;
use holdfast_lane_native::NativeExtension;
use serde_json::Value;

use crate::capabilities::Capabilities;
use crate::channel::ActiveChannel;
use crate::find_tools::FindTools;
use crate::reach::{ListChannels, SendToChannel, StartBackgroundTask};

/// The extension.
pub fn extension() -> NativeExtension {
    NativeExtension::new("orchestrator", env!("CARGO_PKG_VERSION"))
        .interfaces(&[Capability::Discovery.name()])
        .described("Finds tools, reaches channels and starts work in the background.")
        .hook(ActiveChannel)
        .hook(Capabilities)
        .tool(FindTools)
        .tool(ListChannels)
        .tool(SendToChannel)
        .tool(StartBackgroundTask)
        .grouped(ToolGroup::Core)
        .replayable()
}

async fn ask(
    host: &Arc<dyn Host>,
    kind: HostCallKind,
    arguments: impl Into<Content>,
) -> Result<Value, Fault> {
    Ok(host.call(HostCall::of(kind, arguments)).await?.value().clone())
}

fn field(arguments: &Content, name: &str) -> Result<String, Fault> {
    let text = arguments.value().get(name).and_then(Value::as_str);
    let missing = || Fault::new(Code::ToolArguments, format!("`{name}` is missing"));
    text.filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(missing)
}

/// The value of an optional argument.
fn given(arguments: &Content, name: &str) -> Value {
    arguments.value().get(name).cloned().unwrap_or_default()
}
