//! `holdfast ext enable`, `disable`, `reload` and `remove`, and `holdfast mcp test`: what a user does with an installed extension.

pub(crate) mod mcp;

use holdfast_contract::problem::Problem;
use holdfast_rpc::{
    DISABLED, ExtensionInfo, ExtensionMethod, ExtensionParams, ExtensionRemove, ExtensionRemovedInfo,
};

use super::list::known;
use crate::arguments::ExtRemove;
use crate::client::link::Link;
use crate::client::typed::confirmed;
use crate::exit::Exit;
use crate::output::Output;

/// Enables or disables an extension. One that is enabled and does not start is a failure.
pub(crate) async fn set_enabled(
    output: &Output,
    link: &Link,
    id: String,
    enabled: bool,
) -> Result<Exit, Problem> {
    let params = ExtensionParams { id };
    let method = if enabled { ExtensionMethod::Enable(params) } else { ExtensionMethod::Disable(params) };
    let now: ExtensionInfo = link.client.ask(&method).await?;
    changed(output, &now, now.fault.is_none() || now.state == DISABLED)
}

pub(crate) async fn reload(output: &Output, link: &Link, id: String) -> Result<Exit, Problem> {
    let now: ExtensionInfo = link.client.ask(&ExtensionMethod::Reload(ExtensionParams { id })).await?;
    changed(output, &now, now.fault.is_none())
}

/// Shows the state of an extension after a change.
fn changed(output: &Output, now: &ExtensionInfo, succeeded: bool) -> Result<Exit, Problem> {
    if output.json {
        output.document(now)?;
        return Ok(succeeded.into());
    }
    let generation = now.generation.map(|number| format!(", generation {number}")).unwrap_or_default();
    let fault = now.fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
    output.line(format!("{} is {}{generation}{fault}", now.id, now.state))?;
    Ok(succeeded.into())
}

pub(crate) async fn remove(output: &Output, link: &Link, command: ExtRemove) -> Result<Exit, Problem> {
    let ExtRemove { id, data, yes } = command;
    // An id that does not exist is reported before anything is asked.
    known(link, &id).await?;
    let with_data = if data { " and its data" } else { "" };
    if !confirmed(yes, &format!("Remove `{id}`{with_data}?"))? {
        output.line("nothing was removed")?;
        return Ok(Exit::Failed);
    }
    let remove = ExtensionMethod::Remove(ExtensionRemove { id, data });
    let removed: ExtensionRemovedInfo = link.client.ask(&remove).await?;
    if output.json {
        output.document(&removed)?;
        return Ok(Exit::Done);
    }
    output.line(format!("removed {}", removed.path))?;
    if removed.grants_revoked {
        output.line("revoked its grants")?;
    }
    match &removed.data {
        Some(place) if removed.data_removed => output.line(format!("removed its data, {place}"))?,
        Some(place) => output.line(format!("kept its data, {place}; `--data` removes it too"))?,
        None => {}
    }
    Ok(Exit::Done)
}
