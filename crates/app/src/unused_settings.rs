//! Warnings about settings for an extension or an agent that does not exist: most often its id is misspelled, and without a word the
//! setting would seem to have no effect. What is wrong in the form of a setting is `home`'s to say.

use std::collections::BTreeSet;

use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::{ExtensionState, ExtensionView};
use holdfast_home::{Home, Settings};
use holdfast_loader::single_file;
use holdfast_yaml::nearest;

/// The warnings, for a home with these extensions and agents.
pub(crate) fn unused_settings(
    home: &Home,
    settings: &Settings,
    extensions: &[ExtensionView],
    agents: &BTreeSet<String>,
) -> Vec<Problem> {
    let installed: BTreeSet<String> = extensions.iter().map(|view| view.id.to_string()).collect();
    let folder = home.extensions();
    // A disabled one, and one that cannot be read, are not known to the runtime.
    let on_disk = |id: &str| folder.join(id).is_dir() || single_file(&folder, id).is_some();
    let configured = settings.extensions.keys().map(|id| (format!("extensions.{id}"), id.as_str()));
    let default = settings.channels.default.iter().map(|id| ("channels.default".to_owned(), id.as_str()));
    let sessions =
        settings.channels.sessions.keys().map(|id| (format!("channels.sessions.{id}"), id.as_str()));
    let providers =
        settings.context.providers.keys().map(|id| (format!("context.providers.{id}"), id.as_str()));
    let mut unused: Vec<Problem> = configured
        .chain(default)
        .chain(sessions)
        .chain(providers)
        .filter(|(_, id)| !installed.contains(*id) && !on_disk(id))
        .map(|(setting, id)| warning(&setting, "extension", id, &installed))
        .collect();
    // An extension that does not serve may be the one that has the agent.
    if extensions.iter().all(|view| view.state() == ExtensionState::Active) {
        let named = settings.agents.keys().map(|id| id.as_str());
        let unknown = named.filter(|id| *id != "main" && !agents.contains(*id));
        unused.extend(unknown.map(|id| warning(&format!("agents.{id}"), "agent", id, agents)));
    }
    unused
}

fn warning(setting: &str, kind: &str, id: &str, existing: &BTreeSet<String>) -> Problem {
    let list = if kind == "agent" { "holdfast agents" } else { "holdfast ext list" };
    let near = nearest(id, existing.iter().map(String::as_str));
    let near = near.map(|near| format!("Did you mean `{near}`? ")).unwrap_or_default();
    Problem::warning(Code::SettingUnused, format!("`{setting}` names no {kind} that is installed"))
        .help(format!("{near}`{list}` shows what there is."))
}
