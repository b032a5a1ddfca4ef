//! What a user does with an installed extension: enable, disable, reload, remove.

use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::ENABLED;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{
    ExtensionRejected, ExtensionRemoved, ExtensionRetried, ExtensionsFound,
};

use crate::parts::{ExtensionChanges, ExtensionInterfaces, InstalledExtension, RemovedExtension};
use crate::runtime::{Inner, Runtime};

impl Runtime {
    /// Has an MCP server started and listed now, and gives what it offers.
    pub async fn list_server(&self, id: &ExtensionId) -> Result<Content, Problem> {
        let listed = self.inner().call_role(id, Role::Service, "refresh", Content::default()).await;
        listed.map_err(Problem::from)
    }

    /// The extensions that are installed, enabled or not, by id.
    pub fn installed(&self) -> Vec<InstalledExtension> {
        self.inner().home.configuration().map(|it| it.installed()).unwrap_or_default()
    }

    /// The interfaces of the host that an active extension holds, and those that it lacks.
    pub fn interfaces(&self, id: &ExtensionId) -> ExtensionInterfaces {
        let inner = self.inner();
        let Some(active) = inner.extensions.active(id) else { return Default::default() };
        let held = inner.grants_of(&active);
        let manifest = inner.activation(active.digest).and_then(|bundle| bundle.parsed()).ok();
        let requested = manifest.map(|manifest| manifest.grants.interfaces).unwrap_or_default();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        ExtensionInterfaces {
            held: owned(held.names()),
            by_default: owned(held.by_default()),
            lacking: held.lacking(&requested),
        }
    }

    /// Reports what was found on the disk.
    pub fn report_changes(&self, changes: ExtensionChanges) {
        self.inner().report_changes(changes);
    }

    /// Enables or disables an extension in the settings, and waits until it has started or stopped. Nothing is written if it is so already.
    pub async fn set_enabled(&self, id: &ExtensionId, enabled: bool) -> Result<(), Problem> {
        if self.known_installed(id)?.disabled == enabled {
            let inner = self.inner();
            let report = |changes| inner.report_changes(changes);
            inner.configuration()?.set(id, ENABLED, &enabled.into(), &report)?;
        }
        self.settled().await
    }

    /// Reads an extension again and starts a new generation of it, also if nothing has changed.
    pub async fn reload(&self, id: &ExtensionId) -> Result<(), Problem> {
        let InstalledExtension { built_in, disabled, .. } = self.known_installed(id)?;
        if built_in {
            let what = format!("`{id}` is built in and has no folder that could be read again");
            let help = format!("`holdfast ext restart {id}` starts it if it is down.");
            return Err(Problem::new(Code::UsageInvalid, what).help(help));
        }
        if disabled {
            let problem = Problem::new(Code::UsageInvalid, format!("`{id}` is disabled"));
            return Err(problem.help(format!("`holdfast ext enable {id}` enables it.")));
        }
        let (inner, reason) = (self.inner(), "the user asked for it".to_owned());
        let report = |changes: ExtensionChanges| {
            let differs = changes.found.iter().any(|found| found.id == *id)
                || changes.rejected.iter().any(|(rejected, _)| rejected == id)
                || changes.removed.contains(id);
            inner.report_changes(changes);
            // Content that differs starts by itself.
            if !differs {
                inner.system.tell(ExtensionRetried { id: id.clone(), reason: reason.clone(), reload: true });
            }
        };
        inner.configuration()?.read_again(id, &report)?;
        self.settled().await
    }

    /// Removes an extension: its folder or file, its grants, and its data if that is wanted. It has stopped before its data is removed.
    pub async fn remove_extension(&self, id: &ExtensionId, data: bool) -> Result<RemovedExtension, Problem> {
        if self.known_installed(id)?.built_in {
            let what = format!("`{id}` is built in and cannot be removed");
            let help = format!("`holdfast ext disable {id}` disables it.");
            return Err(Problem::new(Code::UsageInvalid, what).help(help));
        }
        let inner = self.inner();
        let configuration = inner.configuration()?;
        let removed = configuration.remove(id, &|changes| inner.report_changes(changes))?;
        self.settled().await?;
        if data {
            configuration.remove_data(id)?;
        }
        Ok(removed)
    }

    /// An extension that is installed; otherwise a problem that names those that are.
    fn known_installed(&self, id: &ExtensionId) -> Result<InstalledExtension, Problem> {
        let mut installed = self.installed();
        match installed.iter().position(|it| it.id == *id) {
            Some(found) => Ok(installed.swap_remove(found)),
            None => {
                let names: Vec<&str> = installed.iter().map(|it| it.id.as_str()).collect();
                let empty = "No extension is installed; `holdfast ext new` creates one.";
                let code = Code::ExtensionUnknown;
                Err(Problem::unknown(code, "extension", id.as_str(), &names, empty))
            }
        }
    }
}

impl Inner {
    /// Reports what was found on the disk.
    pub(crate) fn report_changes(&self, changes: ExtensionChanges) {
        let ExtensionChanges { found, removed, rejected } = changes;
        let tell = |(id, fault)| self.system.tell(ExtensionRejected { id, fault });
        let (leaving, broken): (Vec<_>, Vec<_>) =
            rejected.into_iter().partition(|(id, _)| removed.contains(id));
        // First, so that those that depend on one of these say why they cannot start.
        broken.into_iter().for_each(tell);
        if !found.is_empty() {
            self.system.tell(ExtensionsFound { found });
        }
        removed.into_iter().for_each(|id| self.system.tell(ExtensionRemoved { id }));
        // What was active and may not be any more: the reason stays, and its removal does not take it back.
        leaving.into_iter().for_each(tell);
    }

    fn configuration(&self) -> Result<&dyn crate::parts::Configuration, Problem> {
        let none = || Problem::new(Code::SettingsInvalid, "this system keeps no settings");
        self.home.configuration().map(|it| &**it).ok_or_else(none)
    }
}
