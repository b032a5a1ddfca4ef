//! Scanning the extensions of a home. The file system is the registry.
//!
//! [`Loader::scan`] reads every folder and reports what is new, changed, removed or invalid since the last scan. An invalid
//! extension affects no other. Which generation is active, and the start order, is decided by the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::agents::AgentSpec;
use holdfast_contract::budgets::Budgets;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::HookSpec;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{
    Grants, LaneKind, Manifest, RESERVED_IDS, enabled_by_user, replaces_built_in,
};
use holdfast_contract::problem::{Code, Fault, Problem, Severity};
use holdfast_contract::system_frames::{FoundExtension, ScheduleSpec, SetupSpec, SubscriptionSpec};
use holdfast_contract::text::one_line;
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_lane_declarative::{PROMPT, declared_agent};
use holdfast_policy::{Policy, granted_to, rooted};
use serde_json::{Map, Value};

use crate::candidate::{
    Candidate, DEPENDS_ON, REQUIREMENTS, SINGLE, candidate, check_plugins, helpers, is_manifest, is_pack,
    single, single_file,
};
use crate::disk::{Stamp, check_owner, check_owners, is_dir, names, stamp, stamps_of, tree, unreadable};
use crate::embedded::EmbeddedComponent;
use crate::servers::{named, pack_files, pack_folder, pins_file, pins_folder};
use crate::vault::HomeVault;

/// Looks through the extensions of a home.
pub struct Loader {
    folder: PathBuf,
    vault: Arc<HomeVault>,
    /// The user's configuration of each extension.
    settings: BTreeMap<ExtensionId, Map<String, Value>>,
    budgets: Budgets,
    /// The ids of the built-in extensions, which no folder may take.
    built_in: BTreeSet<ExtensionId>,
    /// The folder that `~` in a grant stands for, and the one that a relative path begins at. A grant is void where it is unknown.
    user_folder: String,
    working_folder: String,
    /// The components that the program carries.
    embedded: Vec<EmbeddedComponent>,
    /// The manifests of the extensions that the settings name: MCP servers and packs.
    named: BTreeMap<ExtensionId, String>,
    seen: BTreeMap<ExtensionId, Snapshot>,
    /// Why not everything could be seen at the last look. What is missing then is not gone.
    blind: Option<Problem>,
}

/// What was there at the last look.
struct Snapshot {
    /// The files that mattered, by how they lay on the disk, and the policy.
    stamps: Vec<Stamp>,
    policy: Digest,
    /// What the user had set for it.
    set: Option<Map<String, Value>>,
    /// What it came to.
    state: State,
    /// What of the disk decides about it.
    reach: FileDependencies,
    /// What is odd about it, such as unknown fields of its manifest.
    warnings: Vec<Problem>,
    /// Whether the program carries it.
    embedded: bool,
    /// Whether it lies on the disk: the program does not carry it, and the settings do not name it.
    on_disk: bool,
}

/// What an extension came to at the last look.
enum State {
    /// It can be used, and this is its digest.
    Usable(Digest),
    /// The settings or its manifest disable it.
    Disabled,
    /// It cannot be used, for this reason.
    Broken(Problem),
}

/// What of the disk decides about an extension, besides the files that lie in its folder.
#[derive(Clone, Default, PartialEq)]
struct FileDependencies {
    /// Whether the files in its folders are its own too.
    deep: bool,
    /// The folders of other extensions whose code it imports.
    others: Vec<PathBuf>,
}

/// What differs from the last look.
#[derive(Default)]
pub struct Changes {
    /// New or changed.
    pub found: Vec<FoundExtension>,
    /// No longer there.
    pub removed: Vec<ExtensionId>,
    /// There, but not to be used.
    pub rejected: Vec<(ExtensionId, Problem)>,
    /// What is odd; none of it stops anything.
    pub warnings: Vec<Problem>,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.removed.is_empty() && self.rejected.is_empty()
    }
}

impl Loader {
    /// A loader that has not looked yet.
    pub fn new(
        folder: PathBuf,
        vault: Arc<HomeVault>,
        settings: BTreeMap<ExtensionId, Map<String, Value>>,
        budgets: Budgets,
        built_in: BTreeSet<ExtensionId>,
    ) -> Self {
        let (embedded, named, seen) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (user_folder, working_folder) = Default::default();
        Self {
            folder,
            vault,
            settings,
            budgets,
            built_in,
            user_folder,
            working_folder,
            embedded,
            named,
            seen,
            blind: None,
        }
    }

    /// The same, for grants of files from `~` and from the working folder.
    pub fn at(mut self, user_folder: Option<&Path>, working_folder: Option<&Path>) -> Self {
        let text = |folder: Option<&Path>| folder.and_then(Path::to_str).unwrap_or_default().to_owned();
        (self.user_folder, self.working_folder) = (text(user_folder), text(working_folder));
        self
    }

    /// The same, with components that the program carries.
    pub fn carrying(mut self, components: Vec<EmbeddedComponent>) -> Self {
        self.embedded = components;
        self
    }

    /// The same, with extensions that the settings name, by their manifests.
    pub fn naming(mut self, named: BTreeMap<ExtensionId, String>) -> Self {
        self.named = named;
        self
    }

    /// Uses these settings, and these extensions that they name, from the next scan on.
    pub fn set(
        &mut self,
        settings: BTreeMap<ExtensionId, Map<String, Value>>,
        named: BTreeMap<ExtensionId, String>,
    ) {
        (self.settings, self.named) = (settings, named);
    }

    /// Whether the program carries an extension.
    pub fn is_carried(&self, id: &ExtensionId) -> bool {
        self.seen.get(id).is_some_and(|seen| seen.embedded)
    }

    /// The folders to watch: the one of all extensions, and each extension's.
    pub fn folders(&self) -> Vec<PathBuf> {
        // What cannot be read cannot be watched either; what becomes of it is told of by the folder above it.
        let above = self.blind.as_ref().and_then(|_| self.folder.parent()).map(Path::to_owned);
        let all = Some(self.folder.clone()).filter(|folder| self.blind.is_none() || folder.is_dir());
        let folders = self.seen.iter().map(|(id, seen)| (self.folder.join(id.as_str()), seen));
        let each = folders.filter(|(folder, _)| folder.is_dir()).flat_map(|(folder, seen)| {
            let inside = if seen.reach.deep { tree(&folder).folders } else { Vec::new() };
            std::iter::once(folder).chain(inside)
        });
        let single = SINGLE.iter().map(|kind| self.folder.join(kind)).filter(|folder| folder.is_dir());
        let pins = Some(pins_folder(&self.folder)).filter(|folder| folder.is_dir());
        let packs = self.named.values().filter_map(|manifest| pack_files(manifest));
        let packs = packs.flat_map(|path| {
            let folder = pack_folder(&path).to_owned();
            let inside = if path.is_dir() { tree(&folder).folders } else { Vec::new() };
            std::iter::once(folder).chain(inside).filter(|folder| folder.is_dir())
        });
        above.into_iter().chain(all).chain(single).chain(each).chain(pins).chain(packs).collect()
    }

    /// The extensions that were there at the last look, by id, and whether each is disabled.
    pub fn installed(&self) -> impl Iterator<Item = (&ExtensionId, bool)> {
        self.seen.iter().map(|(id, seen)| (id, matches!(seen.state, State::Disabled)))
    }

    /// Where an extension lies on the disk: a folder or a file. None for one that the program carries, or that the settings name.
    pub fn path(&self, id: &ExtensionId) -> Option<PathBuf> {
        self.seen.get(id).filter(|seen| seen.on_disk)?;
        let file = single_file(&self.folder, id.as_str());
        Some(self.folder.join(file.as_deref().unwrap_or(id.as_str())))
    }

    /// Reads an extension at the next scan, also if its files seem unchanged.
    pub fn read_again(&mut self, id: &ExtensionId) {
        if let Some(seen) = self.seen.get_mut(id) {
            seen.stamps.clear();
        }
    }

    /// What was odd about an extension at the last look.
    pub fn warnings(&self, id: &ExtensionId) -> Vec<Problem> {
        self.seen.get(id).map(|seen| seen.warnings.clone()).unwrap_or_default()
    }

    /// Whether content that was activated earlier may run again: it has exactly the grants that the policy gives it today.
    pub fn may_run_again(&self, found: &FoundExtension, policy: &Policy) -> Result<(), Problem> {
        if found.built_in.is_some() {
            return Ok(());
        }
        let read = |fault: Fault| Problem::new(fault.code, fault.message);
        let bundle = self.vault.bundle(found.digest).map_err(read)?;
        let manifest = bundle.parsed().map_err(read)?;
        if bundle.lane == LaneKind::Plugin.as_str() {
            check_plugins(policy, &found.id)?;
        }
        // What the settings name has what they give it, as long as they say the same.
        if self.named.get(&found.id) == Some(&bundle.manifest) {
            return Ok(());
        }
        let given = |path: PathBuf| policy.given(&found.id, &bundle.content(), path.to_str());
        // A folder gets what its manifest requests of what is given, and a single file all of that.
        let rooted = |grants: &Grants| rooted(grants, &self.user_folder, &self.working_folder);
        let given_to_folder = given(self.folder.join(found.id.as_str()));
        let of_folder = rooted(&granted_to(&manifest, &given_to_folder));
        let of_file = rooted(&given(self.folder.join(&bundle.entrypoint)));
        if [Grants::default(), of_folder, of_file].contains(&bundle.grants) {
            return Ok(());
        }
        let what = format!("the last good version of `{}` has grants that have changed since", found.id);
        Err(Problem::new(Code::ComponentImport, what))
    }

    /// Looks at every folder.
    pub fn scan(&mut self, policy: &Policy) -> Changes {
        let mut changes = Changes::default();
        let there = self.there(&mut changes);
        self.vault.set_installed(there.len());
        let missing = self.seen.keys().filter(|id| !there.contains_key(id)).cloned();
        for id in missing.collect::<Vec<_>>() {
            match self.is_absent(&id) {
                Ok(()) => {
                    self.seen.remove(&id);
                    changes.removed.push(id);
                }
                Err(problem) => self.unreadable(&id, problem, &mut changes),
            }
        }
        for (id, place) in there {
            self.look(&id, &place, policy, &mut changes);
        }
        changes
    }

    /// Whether an extension that was not found at the last look is gone: not on the disk any more, or disabled. A problem if that
    /// cannot be told.
    pub fn is_gone(&self, id: &ExtensionId) -> Result<(), Problem> {
        match self.seen.get(id).map(|seen| &seen.state) {
            Some(State::Disabled) => Ok(()),
            Some(State::Broken(problem)) => Err(problem.clone()),
            Some(State::Usable(_)) | None => self.is_absent(id),
        }
    }

    /// Whether nothing of this name is on the disk. Any other error counts as present.
    fn is_absent(&self, id: &ExtensionId) -> Result<(), Problem> {
        if let Some(problem) = &self.blind {
            return Err(problem.clone());
        }
        let files = SINGLE.iter().map(|kind| self.folder.join(kind).join(format!("{id}.py")));
        for path in std::iter::once(self.folder.join(id.as_str())).chain(files) {
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, &error)),
                Ok(_) => {
                    let what =
                        format!("`{id}` is there, but it is neither a folder nor a file that can be read");
                    return Err(Problem::in_file(Code::ExtensionUnreadable, &path, what));
                }
            }
        }
        Ok(())
    }

    /// An extension that was there cannot be seen any more. It is read again when it can.
    fn unreadable(&mut self, id: &ExtensionId, problem: Problem, changes: &mut Changes) {
        let Some(seen) = self.seen.get_mut(id) else { return };
        if !matches!(&seen.state, State::Broken(before) if *before == problem) {
            changes.rejected.push((id.clone(), problem.clone()));
        }
        (seen.stamps, seen.state) = (Vec::new(), State::Broken(problem));
    }

    /// What is there: a folder each, or a single file. Where two have one name, the folder has it.
    fn there(&mut self, changes: &mut Changes) -> BTreeMap<ExtensionId, ExtensionLocation> {
        let (mut folders, single, blind) = listed(&self.folder);
        let blind = blind.or_else(|| self.is_lost());
        // One that lost its manifest while it was in use is reported; a folder that never had one is not an extension.
        folders.retain(|name| {
            self.seen.contains_key(&name.as_str().into()) || is_extension(&self.folder.join(name.as_str()))
        });
        changes.warnings.extend(blind.clone().map(|problem| problem.with(Severity::Warning)));
        self.blind = blind;
        let folders = folders.into_iter();
        let mut there: BTreeMap<ExtensionId, ExtensionLocation> = folders
            .map(|name| (name.as_str().into(), ExtensionLocation::Folder(self.folder.join(name))))
            .collect();
        for (kind, file) in single {
            let id = file.trim_end_matches(".py").into();
            if let Some(other) = there.get(&id) {
                let path = self.folder.join(kind).join(&file);
                let what = format!("`{id}` is also the name of {}", other.path().display());
                changes.warnings.push(
                    Problem::in_file(Code::ManifestValue, &path, what)
                        .help("Rename one of them: this file is passed over."),
                );
                continue;
            }
            there.insert(
                id,
                ExtensionLocation::File { folder: self.folder.clone(), file: format!("{kind}/{file}") },
            );
        }
        for (id, manifest) in &self.named {
            if let Some(other) = there.get(id) {
                let what = format!("`{id}` is also an MCP server or pack of this name in the settings");
                changes.warnings.push(
                    Problem::in_file(Code::ManifestValue, &other.path(), what)
                        .help("Rename one of them: the one in the settings is passed over."),
                );
                continue;
            }
            let pins = pins_file(&self.folder, id);
            let (manifest, files) = (manifest.clone(), pack_files(manifest));
            there.insert(id.clone(), ExtensionLocation::Named { manifest, pins, files });
        }
        for component in &self.embedded {
            let id = component.extension();
            let is_replaceable = component.is_overridable() || replaces_built_in(self.settings.get(&id));
            if is_replaceable && there.contains_key(&id) {
                continue;
            }
            if let Some(other) = there.insert(id.clone(), ExtensionLocation::Embedded(*component)) {
                let taken = taken_by_built_in(&id, &other.path());
                changes.warnings.push(taken.with(Severity::Warning));
            }
        }
        there
    }

    /// Why the folder of all extensions is not taken for empty, if it is not there although it was: removing an extension removes what
    /// is in it.
    fn is_lost(&self) -> Option<Problem> {
        let was_there = self.seen.values().any(|seen| seen.on_disk);
        (was_there && fs::symlink_metadata(&self.folder).is_err()).then(|| {
            let what = format!("{} is not there any more", self.folder.display());
            let help = "Put it back; an empty folder there means that all extensions were removed.";
            Problem::in_file(Code::ExtensionUnreadable, &self.folder, what).help(help)
        })
    }

    fn look(&mut self, id: &ExtensionId, place: &ExtensionLocation, policy: &Policy, changes: &mut Changes) {
        let mut reach = self.seen.get(id).map(|seen| seen.reach.clone()).unwrap_or_default();
        let mut stamps = place.stamps(&reach);
        let (seen, in_force, set) = (self.seen.get(id), policy.digest(), self.set_for(id));
        if seen.is_some_and(|seen| seen.stamps == stamps && seen.policy == in_force && seen.set == set) {
            return;
        }
        let before = seen.map(|seen| &seen.state);
        let mut odd = Vec::new();
        let state = match self.read(id, place, policy) {
            Ok(Some((found, warnings, now))) => {
                let digest = found.digest;
                if now != reach {
                    reach = now;
                    stamps = place.stamps(&reach);
                }
                changes.warnings.extend(warnings.iter().cloned());
                odd = warnings;
                if !matches!(before, Some(State::Usable(before)) if *before == digest) {
                    changes.found.push(found);
                }
                State::Usable(digest)
            }
            Ok(None) => {
                if matches!(before, Some(State::Usable(_) | State::Broken(_))) {
                    changes.removed.push(id.clone());
                }
                State::Disabled
            }
            Err(problem) => {
                // A plugin that the profile does not load any more does not go on either.
                if problem.code == Code::PluginRefused && matches!(before, Some(State::Usable(_))) {
                    changes.removed.push(id.clone());
                }
                changes.rejected.push((id.clone(), problem.clone()));
                State::Broken(problem)
            }
        };
        let embedded = matches!(place, ExtensionLocation::Embedded(_));
        let on_disk = matches!(place, ExtensionLocation::Folder(_) | ExtensionLocation::File { .. });
        let (policy, warnings) = (in_force, odd);
        let seen = Snapshot { stamps, policy, set, state, reach, warnings, embedded, on_disk };
        self.seen.insert(id.clone(), seen);
    }

    /// What the user has set for an extension, and of one that the settings name all there is.
    fn set_for(&self, id: &ExtensionId) -> Option<Map<String, Value>> {
        let mut set = self.settings.get(id).cloned();
        if let Some(manifest) = self.named.get(id) {
            set.get_or_insert_default().insert("manifest".to_owned(), manifest.clone().into());
        }
        set
    }

    fn read(
        &self,
        id: &ExtensionId,
        place: &ExtensionLocation,
        policy: &Policy,
    ) -> Result<Option<(FoundExtension, Vec<Problem>, FileDependencies)>, Problem> {
        let set = self.settings.get(id);
        if self.built_in.contains(id) && !replaces_built_in(set) {
            return Err(taken_by_built_in(id, &place.path()));
        }
        let enabled = enabled_by_user(set);
        // What the user has disabled is not even read.
        if enabled == Some(false) {
            return Ok(None);
        }
        place.check_owners()?;
        let Candidate { manifest, warnings, mut bundle, files } = match place {
            ExtensionLocation::Folder(folder) => candidate(folder, policy, set, self.budgets)?,
            ExtensionLocation::File { folder, file } => single(folder, file, policy, set, self.budgets)?,
            ExtensionLocation::Embedded(component) => component.candidate(set, self.budgets)?,
            ExtensionLocation::Named { manifest, pins, .. } => named(manifest, pins, set, self.budgets)?,
        };
        if !enabled.unwrap_or(manifest.enabled) {
            return Ok(None);
        }
        bundle.grants = rooted(&bundle.grants, &self.user_folder, &self.working_folder);
        let reach = match place {
            ExtensionLocation::Folder(folder) => reach_of(folder, &bundle),
            ExtensionLocation::File { .. }
            | ExtensionLocation::Embedded(_)
            | ExtensionLocation::Named { .. } => FileDependencies::default(),
        };
        reach.others.iter().try_for_each(|other| check_owners(other))?;
        let mut secrets: Vec<String> = Vec::new();
        for need in manifest.needed_secrets().filter(|need| !need.optional) {
            if !secrets.contains(&need.id) {
                secrets.push(need.id.clone());
            }
        }
        let patient = is_patient(&bundle, &files);
        let agent = coded_agent(&manifest, &bundle, &files, &place.path())?;
        let setup = SetupSpec { instructions: manifest.setup_instructions.clone(), secrets };
        let found = FoundExtension {
            id: id.clone(),
            version: manifest.version.as_str().into(),
            digest: self.vault.keep(&bundle, files)?,
            lane: bundle.lane.clone(),
            description: one_line(&manifest.description, MAX_DESCRIPTION_CHARS),
            may_call: {
                let granted = bundle.grants.extensions.iter();
                granted.filter(|id| !manifest.depends_on.contains(id)).cloned().collect()
            },
            depends_on: manifest.depends_on,
            priority: manifest.priority,
            judges: manifest.hooks.iter().map(HookSpec::from).filter(HookSpec::judges).collect(),
            schedules: manifest.schedules.iter().map(ScheduleSpec::from).collect(),
            subscribes: manifest.events.subscribes.iter().map(SubscriptionSpec::from).collect(),
            secrets: bundle.grants.secrets.clone(),
            interfaces: bundle.grants.interfaces.clone(),
            setup: (setup != SetupSpec::default()).then_some(setup),
            built_in: match place {
                ExtensionLocation::Embedded(component) => Some(component.built_in()),
                ExtensionLocation::Folder(_)
                | ExtensionLocation::File { .. }
                | ExtensionLocation::Named { .. } => None,
            },
            agent,
            order: bundle.config.value().pointer("/pack/order").and_then(Value::as_u64).map(|it| it as u32),
            patient,
        };
        Ok(Some((found, warnings, reach)))
    }
}

/// The agent that a manifest declares beside its code, with the prompt in its folder.
fn coded_agent(
    manifest: &Manifest,
    bundle: &Bundle,
    files: &BTreeMap<Digest, Vec<u8>>,
    place: &Path,
) -> Result<Option<AgentSpec>, Problem> {
    if bundle.lane == LaneKind::Declarative.as_str() {
        return Ok(None);
    }
    let prompt = bundle.files.get(PROMPT).and_then(|digest| files.get(digest));
    let prompt = prompt.map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    declared_agent(manifest, &prompt).map_err(|fault| Problem::in_file(fault.code, place, fault.message))
}

/// A folder has the id of a built-in extension, and the user has not said which of the two is meant.
fn taken_by_built_in(id: &ExtensionId, path: &Path) -> Problem {
    let what = format!("`{id}` is the id of a built-in extension, which is used");
    Problem::in_file(Code::ManifestValue, path, what).help(format!(
        "Give it another name, or let it take the place of the built-in one: `extensions: {{ {id}: {{ replace: true }} }}` in the settings."
    ))
}

/// The longest description that is kept in mind.
const MAX_DESCRIPTION_CHARS: usize = 240;

/// Where an extension lies.
enum ExtensionLocation {
    Folder(PathBuf),
    /// A file, by its path from the folder of all extensions.
    File {
        folder: PathBuf,
        file: String,
    },
    /// In the program itself.
    Embedded(EmbeddedComponent),
    /// In the settings, as a manifest, with what was approved of it, or where its files lie.
    Named {
        manifest: String,
        pins: PathBuf,
        files: Option<PathBuf>,
    },
}

impl ExtensionLocation {
    fn path(&self) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::File { folder, file } => folder.join(file),
            Self::Embedded(component) => PathBuf::from(component.id),
            Self::Named { pins, files, .. } => files.as_ref().unwrap_or(pins).clone(),
        }
    }

    /// A problem if somebody else than the user can write what is read of it.
    fn check_owners(&self) -> Result<(), Problem> {
        match self {
            Self::Folder(folder) => check_owners(folder),
            Self::File { .. } => self.files().iter().try_for_each(|file| check_owner(file)),
            Self::Named { files: Some(path), .. } if path.is_dir() => check_owners(path),
            Self::Named { files: Some(path), .. } => {
                check_owner(pack_folder(path)).and_then(|()| check_owner(path))
            }
            Self::Named { pins, .. } => check_owner(pins),
            Self::Embedded(_) => Ok(()),
        }
    }

    /// The files of a single file: itself, those beside it that it imports, and what they need.
    fn files(&self) -> Vec<PathBuf> {
        let Self::File { folder, file } = self else { return Vec::new() };
        let beside = helpers(folder, file).unwrap_or_default().into_iter();
        let beside = beside.map(|helper| folder.join(helper));
        [self.path(), folder.join(REQUIREMENTS)].into_iter().chain(beside).collect()
    }

    fn stamps(&self, reach: &FileDependencies) -> Vec<Stamp> {
        match self {
            Self::Folder(folder) => {
                let others = reach.others.iter().flat_map(|other| stamps_of(other, true));
                let all = folder.parent().unwrap_or(folder);
                let id = folder.file_name().map(|name| name.to_string_lossy().as_ref().into());
                let pins = id.and_then(|id| stamp(pins_file(all, &id)));
                stamps_of(folder, reach.deep).into_iter().chain(others).chain(pins).collect()
            }
            Self::File { .. } => self.files().into_iter().filter_map(stamp).collect(),
            // The program does not change while it runs.
            Self::Embedded(_) => Vec::new(),
            Self::Named { pins, files, .. } => {
                let own = files.iter().flat_map(|path| stamps_of(pack_folder(path), path.is_dir()));
                stamp(pins.clone()).into_iter().chain(own).collect()
            }
        }
    }
}

/// The files in a folder of single files that are extensions: those whose names do not begin with `_`.
fn single_files(folder: &Path) -> Result<Vec<String>, Problem> {
    check_owner(folder)?;
    let mut files = names(folder)?;
    files.retain(|name| name.ends_with(".py") && !name.starts_with('_'));
    Ok(files)
}

/// What of the disk decides about a folder.
fn reach_of(folder: &Path, bundle: &Bundle) -> FileDependencies {
    let deep = [LaneKind::Process, LaneKind::Python, LaneKind::Node, LaneKind::Mcp]
        .iter()
        .any(|it| it.as_str() == bundle.lane);
    let inside = bundle.files.keys().filter_map(|path| path.strip_prefix(DEPENDS_ON)?.split('/').nth(1));
    let others: BTreeSet<&str> = inside.collect();
    let all = folder.parent().unwrap_or(folder);
    FileDependencies { deep, others: others.into_iter().map(|other| all.join(other)).collect() }
}

/// The names of the extensions' folders, the files that are extensions by themselves, each with its kind, and why that may not be all.
fn listed(folder: &Path) -> (Vec<String>, Vec<(&'static str, String)>, Option<Problem>) {
    let folders = match extension_folders(folder) {
        Ok(folders) => folders,
        Err(problem) => return (Vec::new(), Vec::new(), Some(problem)),
    };
    let (mut files, mut unread) = (Vec::new(), None);
    for kind in SINGLE {
        match single_files(&folder.join(kind)) {
            Ok(found) => files.extend(found.into_iter().map(|file| (*kind, file))),
            Err(problem) => unread = unread.or(Some(problem)),
        }
    }
    (folders, files, unread)
}

/// Whether a folder has a manifest, under any name that could be meant as one, or is a pack. What cannot be read is reported when it is
/// read.
pub fn is_extension(folder: &Path) -> bool {
    names(folder).map_or(true, |names| is_pack(&names) || names.iter().any(|name| is_manifest(name)))
}

/// Whether no turn waits for an extension that has never been loaded: a pack whose files do not mention the methods of a guardrail. Of a
/// package nothing is known before it is installed, so that the settings say whether it is `required`.
fn is_patient(bundle: &Bundle, files: &BTreeMap<Digest, Vec<u8>>) -> bool {
    let required = bundle.config.value().pointer("/pack/required").and_then(Value::as_bool);
    if bundle.lane != LaneKind::Node.as_str() || required == Some(true) {
        return false;
    }
    let judges = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.contains("evaluateInput") || text.contains("evaluateOutput")
    };
    !files.values().any(|content| judges(content))
}

/// The folders of extensions in the folder of all of them. What is there and cannot be looked at is taken for one, and reported when
/// it is read.
fn extension_folders(folder: &Path) -> Result<Vec<String>, Problem> {
    check_owner(folder)?;
    let mut names = names(folder)?;
    names.retain(|name| !RESERVED_IDS.contains(&name.as_str()) && is_dir(&folder.join(name)).unwrap_or(true));
    Ok(names)
}
