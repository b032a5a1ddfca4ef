//! The loader: what lies in a home's `extensions/` becomes what the runtime is told of. The file system is the registry.
//!
//! [`Loader::scan`] looks at every folder and says what is new, changed, gone or broken since the last look. One that is broken
//! stops no other. Which generation serves, and in which order they come up, is the kernel's to decide.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_bus::Pattern;
use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::HookSpec;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{self, LaneKind, Manifest, Parsed, RESERVED_IDS};
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_contract::system_frames::{FoundExtension, ScheduleSpec, SetupSpec, SubscriptionSpec};
use holdfast_contract::wire::Bundle;
use holdfast_lane_declarative::PROMPT;
use holdfast_policy::{Policy, effective_grant};
use holdfast_schedules::{Timetable, Zone};
use serde_json::{Map, Value};

use self::disk::{Stamp, at, is_dir, is_file, names, stamp, unreadable};
use crate::embedded::EmbeddedComponent;
use crate::vault::HomeVault;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// The most files that an extension's folder may have.
const MAX_FILES: usize = 10_000;

/// Looks through the extensions of a home.
pub struct Loader {
    folder: PathBuf,
    vault: Arc<HomeVault>,
    /// The user's configuration of each extension.
    settings: BTreeMap<ExtensionId, Map<String, Value>>,
    budgets: Budgets,
    /// The ids of the built-in extensions, which no folder may take.
    built_in: BTreeSet<ExtensionId>,
    /// The components that the program carries.
    carried: Vec<EmbeddedComponent>,
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
}

/// What an extension came to at the last look.
enum State {
    /// It can be used, and this is its digest.
    Usable(Digest),
    /// Its manifest leaves it out.
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

/// An extension as its folder has it, before anything of it runs.
pub struct Candidate {
    /// What its manifest says.
    pub manifest: Manifest,
    /// What is odd about the manifest.
    pub warnings: Vec<Problem>,
    /// Everything but the bytes.
    pub bundle: Bundle,
    /// The bytes of its files.
    pub files: BTreeMap<Digest, Vec<u8>>,
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
        let (carried, seen) = (Vec::new(), BTreeMap::new());
        Self { folder, vault, settings, budgets, built_in, carried, seen, blind: None }
    }

    /// The same, with components that the program carries.
    pub fn carrying(mut self, components: Vec<EmbeddedComponent>) -> Self {
        self.carried = components;
        self
    }

    /// Goes by other settings from the next look on.
    pub fn set(&mut self, settings: BTreeMap<ExtensionId, Map<String, Value>>) {
        self.settings = settings;
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
        above.into_iter().chain(all).chain(single).chain(each).collect()
    }

    /// Looks at every folder.
    pub fn scan(&mut self, policy: &Policy) -> Changes {
        let mut changes = Changes::default();
        let there = self.there(&mut changes);
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

    /// Whether nothing of this name is on the disk. An error other than that there is nothing is no answer.
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
                    return Err(at(&path, Code::ExtensionUnreadable, what));
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
        let (folders, single, blind) = listed(&self.folder);
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
                    at(&path, Code::ManifestValue, what)
                        .help("Rename one of them: this file is passed over."),
                );
                continue;
            }
            there.insert(
                id,
                ExtensionLocation::File { folder: self.folder.clone(), file: format!("{kind}/{file}") },
            );
        }
        for component in &self.carried {
            if component.is_overridable() && there.contains_key(&component.extension()) {
                continue;
            }
            if let Some(other) = there.insert(component.extension(), ExtensionLocation::Carried(*component)) {
                let what = format!("`{}` is the id of a built-in extension", component.id);
                let help = "Give it another name: this one is passed over.";
                changes.warnings.push(at(&other.path(), Code::ManifestValue, what).help(help));
            }
        }
        there
    }

    fn look(&mut self, id: &ExtensionId, place: &ExtensionLocation, policy: &Policy, changes: &mut Changes) {
        let mut reach = self.seen.get(id).map(|seen| seen.reach.clone()).unwrap_or_default();
        let mut stamps = place.stamps(&reach);
        let (seen, in_force, set) = (self.seen.get(id), policy.digest(), self.settings.get(id).cloned());
        if seen.is_some_and(|seen| seen.stamps == stamps && seen.policy == in_force && seen.set == set) {
            return;
        }
        let before = seen.map(|seen| &seen.state);
        let state = match self.read(id, place, policy) {
            Ok(Some((found, warnings, now))) => {
                let digest = found.digest;
                if now != reach {
                    reach = now;
                    stamps = place.stamps(&reach);
                }
                changes.warnings.extend(warnings);
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
                changes.rejected.push((id.clone(), problem.clone()));
                State::Broken(problem)
            }
        };
        self.seen.insert(id.clone(), Snapshot { stamps, policy: in_force, set, state, reach });
    }

    fn read(
        &self,
        id: &ExtensionId,
        place: &ExtensionLocation,
        policy: &Policy,
    ) -> Result<Option<(FoundExtension, Vec<Problem>, FileDependencies)>, Problem> {
        if self.built_in.contains(id) {
            let what = format!("`{id}` is the id of a built-in extension");
            return Err(at(&place.path(), Code::ManifestValue, what).help("Give it another name."));
        }
        let set = self.settings.get(id);
        let Candidate { manifest, warnings, bundle, files } = match place {
            ExtensionLocation::Folder(folder) => candidate(folder, policy, set, self.budgets)?,
            ExtensionLocation::File { folder, file } => single(folder, file, policy, set, self.budgets)?,
            ExtensionLocation::Carried(component) => component.candidate(set, self.budgets)?,
        };
        if !manifest.enabled {
            return Ok(None);
        }
        let reach = match place {
            ExtensionLocation::Folder(folder) => reach_of(folder, &bundle),
            ExtensionLocation::File { .. } | ExtensionLocation::Carried(_) => FileDependencies::default(),
        };
        let needed = manifest.secrets.iter().filter(|need| !need.optional).map(|need| need.id.clone());
        let setup =
            SetupSpec { instructions: manifest.setup_instructions.clone(), secrets: needed.collect() };
        let found = FoundExtension {
            id: id.clone(),
            version: manifest.version.as_str().into(),
            digest: self.vault.keep(&bundle, files)?,
            lane: bundle.lane.clone(),
            description: in_short(&manifest.description),
            depends_on: manifest.depends_on,
            priority: manifest.priority,
            judges: manifest.hooks.iter().map(HookSpec::from).filter(HookSpec::judges).collect(),
            schedules: manifest.schedules.iter().map(ScheduleSpec::from).collect(),
            subscribes: manifest.events.subscribes.iter().map(SubscriptionSpec::from).collect(),
            secrets: bundle.grants.secrets.clone(),
            interfaces: bundle.grants.interfaces.clone(),
            setup: (setup != SetupSpec::default()).then_some(setup),
            built_in: match place {
                ExtensionLocation::Carried(component) => Some(component.built_in()),
                ExtensionLocation::Folder(_) | ExtensionLocation::File { .. } => None,
            },
        };
        Ok(Some((found, warnings, reach)))
    }
}

/// The longest description that is kept in mind.
const MAX_DESCRIPTION_CHARS: usize = 240;

/// A description in a line.
fn in_short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The folders whose files are extensions by themselves.
const SINGLE: &[&str] = &["tools", "channels"];

/// The packages that single files need which do not say so themselves, in the folder of all extensions.
const REQUIREMENTS: &str = "requirements.txt";

/// Where an extension lies.
enum ExtensionLocation {
    Folder(PathBuf),
    /// A file, by its path from the folder of all extensions.
    File {
        folder: PathBuf,
        file: String,
    },
    /// In the program itself.
    Carried(EmbeddedComponent),
}

impl ExtensionLocation {
    fn path(&self) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::File { folder, file } => folder.join(file),
            Self::Carried(component) => PathBuf::from(component.id),
        }
    }

    fn stamps(&self, reach: &FileDependencies) -> Vec<Stamp> {
        match self {
            Self::Folder(folder) => {
                let others = reach.others.iter().flat_map(|other| stamps_of(other, true));
                stamps_of(folder, reach.deep).into_iter().chain(others).collect()
            }
            Self::File { folder, file } => {
                let beside = helpers(folder, file).unwrap_or_default().into_iter();
                let beside = beside.map(|helper| folder.join(helper));
                [self.path(), folder.join(REQUIREMENTS)].into_iter().chain(beside).filter_map(stamp).collect()
            }
            // The program does not change while it runs.
            Self::Carried(_) => Vec::new(),
        }
    }
}

/// The files in a folder of single files that are extensions: those whose names do not begin with `_`.
fn single_files(folder: &Path) -> Result<Vec<String>, Problem> {
    let mut files = names(folder)?;
    files.retain(|name| name.ends_with(".py") && !name.starts_with('_'));
    Ok(files)
}

/// The files beside a single file that are no extensions, and may be imported by it: `_*.py`.
fn helpers(folder: &Path, file: &str) -> Result<Vec<String>, Problem> {
    let kind = file.split('/').next().unwrap_or_default();
    let beside = names(&folder.join(kind))?.into_iter();
    let helpers = beside.filter(|name| name.ends_with(".py") && name.starts_with('_'));
    Ok(helpers.map(|name| format!("{kind}/{name}")).collect())
}

/// A single file with the helpers that it names, or that those name.
fn with_helpers(folder: &Path, file: &str) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let mut files = vec![(file.to_owned(), read_within(folder, file)?)];
    let mut left = helpers(folder, file)?;
    let mut at = 0;
    while let Some(text) = files.get(at).map(|(_, content)| String::from_utf8_lossy(content).into_owned()) {
        let named = |helper: &String| {
            Path::new(helper).file_stem().and_then(|it| it.to_str()).is_some_and(|it| text.contains(it))
        };
        let (found, others) = left.into_iter().partition(named);
        left = others;
        let found: Vec<String> = found;
        for helper in found {
            let content = read_within(folder, &helper)?;
            files.push((helper, content));
        }
        at += 1;
    }
    Ok(files)
}

/// The single file that is the extension of this id, by its path from the folder of all extensions. A folder of that name comes first.
pub fn single_file(folder: &Path, id: &str) -> Option<String> {
    if id.contains('/') || folder.join(id).join("manifest.yaml").is_file() {
        return None;
    }
    SINGLE.iter().map(|kind| format!("{kind}/{id}.py")).find(|file| folder.join(file).is_file())
}

/// Reads an extension where it lies: a folder, or a single file in a folder of such files.
pub fn extension_at(
    path: &Path,
    policy: &Policy,
    set: Option<&Map<String, Value>>,
    budgets: Budgets,
) -> Result<Candidate, Problem> {
    if !path.is_file() {
        return candidate(path, policy, set, budgets);
    }
    let kind = path.parent();
    let (kind, all) = (kind.and_then(Path::file_name), kind.and_then(Path::parent));
    let (Some(kind), Some(all), Some(name)) = (kind, all, path.file_name()) else {
        return Err(at(path, Code::ExtensionUnknown, "no extension lies there"));
    };
    single(all, &format!("{}/{}", kind.display(), name.display()), policy, set, budgets)
}

/// Reads an extension that is a file, by its path from the folder of all extensions.
pub fn single(
    folder: &Path,
    file: &str,
    policy: &Policy,
    set: Option<&Map<String, Value>>,
    budgets: Budgets,
) -> Result<Candidate, Problem> {
    let path = folder.join(file);
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = format!("id: {name}\nname: {name}\nentrypoint: {file}\n");
    let Parsed { manifest, warnings, .. } = manifest::parse(&path, &text).map_err(|_| {
        let what = format!("`{name}` is no name that an extension may have");
        at(&path, Code::ManifestValue, what).help("Rename the file: letters, digits, `-` and `_`.")
    })?;
    let mut all = with_helpers(folder, file)?;
    if is_file(&folder.join(REQUIREMENTS))? {
        all.push((REQUIREMENTS.to_owned(), read_within(folder, REQUIREMENTS)?));
    }
    let (files, contents) = content_addressed(all);
    let mut bundle = Bundle {
        lane: LaneKind::Python.as_str().to_owned(),
        manifest: text,
        entrypoint: file.to_owned(),
        files,
        config: Content::new(Value::Object(set.cloned().unwrap_or_default())),
        grants: Default::default(),
        budgets,
    };
    bundle.grants = policy.given(&manifest.id, &bundle.content(), path.to_str());
    Ok(Candidate { manifest, warnings, bundle, files: contents })
}

/// Reads an extension's folder.
pub fn candidate(
    folder: &Path,
    policy: &Policy,
    set: Option<&Map<String, Value>>,
    budgets: Budgets,
) -> Result<Candidate, Problem> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if RESERVED_IDS.contains(&name.as_str()) {
        return Err(at(folder, Code::ManifestValue, format!("`{name}` is no id that an extension may have")));
    }
    let file = folder.join("manifest.yaml");
    let bytes = fs::read(&file).map_err(|error| {
        let problem = at(&file, Code::ManifestUnreadable, format!("the manifest cannot be read: {error}"));
        problem.help("An extension is a folder with a `manifest.yaml`; `holdfast ext new` makes one.")
    })?;
    let Parsed { manifest, warnings, source } = manifest::parse_bytes(&file, &bytes).map_err(|rejected| {
        let internal = || at(&file, Code::Internal, "a manifest was rejected without a reason");
        Problem::all(rejected.errors).unwrap_or_else(internal)
    })?;
    if manifest.id.as_str() != name {
        let what = format!("the manifest's id is `{}`, and its folder is `{name}`", manifest.id);
        let problem = Problem::new(Code::ManifestValue, what).at(source.locate("id"));
        return Err(problem.help("Rename one of them: an extension is known by its folder's name."));
    }
    for subscription in &manifest.events.subscribes {
        Pattern::parse(subscription.topic.as_str()).map_err(|problem| problem.at(source.locate("events")))?;
    }
    for (place, schedule) in manifest.schedules.iter().enumerate() {
        let spec = ScheduleSpec::from(schedule);
        // The host's zone makes no difference to whether a text can be read.
        if let Err(problem) = Timetable::of(&spec, &Zone::utc()) {
            let field = match problem.code {
                Code::ZoneUnknown => "timezone",
                _ => "cron",
            };
            return Err(problem.at(source.locate(&format!("schedules[{place}].{field}"))));
        }
    }
    let inside = names(folder)?;
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let lane =
        manifest::lane(&manifest, &inside).map_err(|problem| problem.at(source.locate("entrypoint")))?;
    let single = || inside.iter().find(|file| file.ends_with(".wasm")).map(|file| (*file).to_owned());
    let (entrypoint, names) = match lane {
        LaneKind::Wasm => {
            let entrypoint = manifest.entrypoint.clone().or_else(single).unwrap_or_default();
            (entrypoint.clone(), vec![entrypoint])
        }
        LaneKind::Declarative => {
            let prompt = inside.contains(&PROMPT).then(|| PROMPT.to_owned());
            (String::new(), prompt.into_iter().collect())
        }
        LaneKind::Process => (String::new(), all_files(folder)?),
        LaneKind::Python => {
            let entrypoint = manifest.entrypoint.clone().unwrap_or_else(|| "main.py".to_owned());
            (entrypoint, all_files(folder)?)
        }
        _ => {
            let what = format!("this program has no `{lane}` lane yet, which `{name}` needs");
            return Err(at(&file, Code::ExtensionUnknown, what)
                .help("Build it as a component: `holdfast ext new` shows how."));
        }
    };
    let mut all = Vec::new();
    for name in names {
        let content = read_within(folder, &name)?;
        all.push((name, content));
    }
    if lane == LaneKind::Python {
        imported(folder, &manifest, &mut all)?;
    }
    let (files, contents) = content_addressed(all);
    let mut config = Value::Object(manifest.config.clone());
    if let Some(set) = set {
        overlay(&mut config, &Value::Object(set.clone()));
    }
    let mut bundle = Bundle {
        lane: lane.as_str().to_owned(),
        manifest: String::from_utf8_lossy(&bytes).into_owned(),
        entrypoint,
        files,
        config: Content::new(config),
        grants: Default::default(),
        budgets,
    };
    let given = policy.given(&manifest.id, &bundle.content(), folder.to_str());
    bundle.grants = effective_grant(&manifest.requests(), &given);
    Ok(Candidate { manifest, warnings, bundle, files: contents })
}

/// Files by their paths, and their bytes under their digests.
pub(crate) fn content_addressed(
    files: Vec<(String, Vec<u8>)>,
) -> (BTreeMap<String, Digest>, BTreeMap<Digest, Vec<u8>>) {
    let (mut paths, mut contents) = (BTreeMap::new(), BTreeMap::new());
    for (path, content) in files {
        let digest = Digest::of(&content);
        paths.insert(path, digest);
        contents.insert(digest, content);
    }
    (paths, contents)
}

/// Where a Python extension has the code of those that it depends on. No folder's own files are hidden ones.
const DEPENDS_ON: &str = ".depends_on";

/// Adds the Python code of other extensions that an extension imports: those that it depends on and names as
/// `sandbox.extensions.<id>`.
fn imported(folder: &Path, manifest: &Manifest, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), Problem> {
    let all = folder.parent().unwrap_or(folder);
    for other in &manifest.depends_on {
        let named = format!("sandbox.extensions.{other}");
        let names_it = |(path, content): &(String, Vec<u8>)| {
            path.ends_with(".py") && String::from_utf8_lossy(content).contains(&named)
        };
        let theirs = all.join(other.as_str());
        if !is_dir(&theirs)? || !files.iter().any(names_it) {
            continue;
        }
        for name in all_files(&theirs)?.into_iter().filter(|name| name.ends_with(".py")) {
            let content = read_within(&theirs, &name)?;
            files.push((format!("{DEPENDS_ON}/{other}/{name}"), content));
        }
    }
    Ok(())
}

/// What of the disk decides about a folder.
fn reach_of(folder: &Path, bundle: &Bundle) -> FileDependencies {
    let deep = [LaneKind::Process, LaneKind::Python].iter().any(|lane| lane.as_str() == bundle.lane);
    let inside = bundle.files.keys().filter_map(|path| path.strip_prefix(DEPENDS_ON)?.split('/').nth(1));
    let others: BTreeSet<&str> = inside.collect();
    let all = folder.parent().unwrap_or(folder);
    FileDependencies { deep, others: others.into_iter().map(|other| all.join(other)).collect() }
}

/// What is in an extension's folder, without hidden files and links.
#[derive(Default)]
struct Tree {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// The first thing that could not be read.
    unread: Option<Problem>,
}

/// Looks through a folder, as far as an extension may be large.
fn tree(folder: &Path) -> Tree {
    let (mut tree, mut left) = (Tree::default(), vec![folder.to_owned()]);
    while let Some(inside) = left.pop() {
        let (names, unread) = match names(&inside) {
            Ok(names) => (names, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        tree.unread = tree.unread.or(unread);
        for path in names.into_iter().map(|name| inside.join(name)) {
            match fs::symlink_metadata(&path) {
                Ok(about) if about.is_dir() && !is_made(&path) => {
                    tree.folders.push(path.clone());
                    left.push(path);
                }
                Ok(about) if about.is_file() => tree.files.push(path),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => tree.unread = tree.unread.or_else(|| Some(unreadable(&path, &error))),
            }
        }
        if tree.files.len() > MAX_FILES {
            break;
        }
    }
    tree
}

/// Whether a folder is one that Python makes by itself: compiled code, a virtual environment.
fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__") || folder.join("pyvenv.cfg").exists()
}

/// Every file in an extension's folder but the manifest, by its path from there.
fn all_files(folder: &Path) -> Result<Vec<String>, Problem> {
    let Tree { files, unread, .. } = tree(folder);
    if let Some(problem) = unread {
        return Err(problem);
    }
    if files.len() > MAX_FILES {
        let what = format!("the extension has more than {MAX_FILES} files");
        return Err(at(folder, Code::ManifestValue, what).help(
            "Leave out what it does not need to run, or put it into a folder whose name begins with a dot.",
        ));
    }
    let inside = files.iter().filter_map(|path| path.strip_prefix(folder).ok()?.to_str());
    let mut files: Vec<String> = inside.filter(|name| *name != "manifest.yaml").map(str::to_owned).collect();
    files.sort();
    Ok(files)
}

/// A file of the extension's own: not one elsewhere that a link or `..` leads to.
fn read_within(folder: &Path, name: &str) -> Result<Vec<u8>, Problem> {
    let path = folder.join(name);
    let unreadable = |error: std::io::Error| {
        let problem = at(&path, Code::ComponentInvalid, format!("`{name}` cannot be read: {error}"));
        problem.help("`holdfast ext build` makes it.")
    };
    let (inside, whole) =
        (folder.canonicalize().map_err(unreadable)?, path.canonicalize().map_err(unreadable)?);
    let about = fs::metadata(&whole).map_err(unreadable)?;
    if !whole.starts_with(inside) || !about.is_file() {
        let what = format!("`{name}` is no file of the extension's folder");
        return Err(at(&path, Code::ComponentInvalid, what));
    }
    if about.len() > MAX_FILE_BYTES {
        let what = format!("`{name}` has {} bytes; at most {MAX_FILE_BYTES} are read", about.len());
        return Err(at(&path, Code::ComponentInvalid, what));
    }
    fs::read(whole).map_err(unreadable)
}

/// The user's settings over the manifest's, field by field.
pub(crate) fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                overlay(base.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
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

/// The folders of extensions in the folder of all of them. What is there and cannot be looked at is taken for one, and reported when
/// it is read.
fn extension_folders(folder: &Path) -> Result<Vec<String>, Problem> {
    let mut names = names(folder)?;
    names.retain(|name| !RESERVED_IDS.contains(&name.as_str()) && is_dir(&folder.join(name)).unwrap_or(true));
    Ok(names)
}

/// How the files that decide about an extension lie on the disk.
fn stamps_of(folder: &Path, deep: bool) -> Vec<Stamp> {
    let all = match deep {
        true => tree(folder).files,
        false => names(folder).unwrap_or_default().into_iter().map(|name| folder.join(name)).collect(),
    };
    all.into_iter().filter_map(stamp).collect()
}
