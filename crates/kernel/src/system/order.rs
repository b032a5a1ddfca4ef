//! Dependencies: why an extension cannot be up for the sake of others.

use super::*;

impl System {
    /// Why an extension cannot begin to rise.
    pub(super) fn hindrance(&self, found: &FoundExtension) -> Option<Fault> {
        self.circle(&found.id).or_else(|| self.lacking(found))
    }

    /// Why an extension cannot stay up, or go on rising: one that it depends on is missing or has failed.
    pub(super) fn lacking(&self, found: &FoundExtension) -> Option<Fault> {
        found.depends_on.iter().find_map(|needed| {
            let extension = self.extensions.get(needed);
            let why = match extension.map(|it| (it.is_up(), &it.fault)) {
                Some((true, _)) => return None,
                Some((false, Some(fault))) => format!("failed: {}", fault.message),
                Some((false, None)) | None => "is not installed".to_owned(),
            };
            let message = format!("`{}` depends on `{needed}`, which {why}", found.id);
            Some(Fault::new(Code::ExtensionDependency, message))
        })
    }

    /// That an extension depends on itself, and the way round.
    fn circle(&self, start: &ExtensionId) -> Option<Fault> {
        let way: Vec<&str> =
            find_cycle(start, |id| self.needs(id))?.into_iter().map(ExtensionId::as_str).collect();
        let message = format!("`{start}` depends on itself through {}", way.join(" → "));
        Some(Fault::new(Code::ExtensionCycle, message))
    }

    /// What an extension depends on, as it was found and as it is up.
    fn needs<'a>(&'a self, id: &ExtensionId) -> impl Iterator<Item = &'a ExtensionId> {
        self.extensions.get(id).into_iter().flat_map(|extension| {
            let up = extension.lives.iter().filter(|life| life.course != Course::Leaving);
            extension.found.iter().chain(up.map(|life| &life.found)).flat_map(|found| &found.depends_on)
        })
    }
}
