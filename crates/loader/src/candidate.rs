//! Reading one extension from disk: a folder with a manifest, or a single Python file. Nothing of the extension runs here.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_bus::Pattern;
use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::topic::TopicRule;
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::{self, Grants, LaneKind, Manifest, Parsed, RESERVED_IDS, own_settings};
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_contract::system_frames::ScheduleSpec;
use holdfast_contract::wire::Bundle;
use holdfast_lane_declarative::PROMPT;
use holdfast_policy::{HeldInterfaces, Policy, granted_to};
use holdfast_schedules::{Timetable, Zone};
use serde_json::{Map, Value};

use crate::disk::{MAX_FILES, Tree, is_dir, is_file, names, tree};
use crate::python_head::PythonHead;
use crate::reader::ExtensionReader;
use crate::servers::{approved, pins_file};

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

/// The folders whose files are extensions by themselves.
pub(crate) const SINGLE: &[&str] = &["tools", "channels"];

/// The packages that single files need which do not say so themselves, in the folder of all extensions.
pub(crate) const REQUIREMENTS: &str = "requirements.txt";

/// The files beside a single file that are not extensions, and may be imported by it: `_*.py`.
pub(crate) fn helpers(folder: &Path, file: &str) -> Result<Vec<String>, Problem> {
    let kind = file.split('/').next().unwrap_or_default();
    let beside = names(&folder.join(kind))?.into_iter();
    let helpers = beside.filter(|name| name.ends_with(".py") && name.starts_with('_'));
    Ok(helpers.map(|name| format!("{kind}/{name}")).collect())
}

/// A single file with the helpers that it names, or that those name.
fn with_helpers(
    folder: &Path,
    file: &str,
    reader: &mut ExtensionReader,
) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let mut files = vec![(file.to_owned(), reader.read(folder, file)?)];
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
            let content = reader.read(folder, &helper)?;
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
        return Err(Problem::in_file(Code::ExtensionUnknown, path, "no extension found there"));
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
    manifest::parse(&path, &text).map_err(|_| {
        let what = format!("`{name}` is not a valid name for an extension");
        Problem::in_file(Code::ManifestValue, &path, what)
            .help("Rename the file: letters, digits, `-` and `_`.")
    })?;
    let mut reader = ExtensionReader::default();
    let mut all = with_helpers(folder, file, &mut reader)?;
    let own = all.first().map(|(_, content)| String::from_utf8_lossy(content)).unwrap_or_default();
    let text = text + &PythonHead::read(&path, &own)?.manifest();
    let Parsed { manifest, warnings, .. } = manifest::parse(&path, &text).map_err(|rejected| {
        let why: Vec<String> = rejected.errors.into_iter().map(|problem| problem.what).collect();
        let what = format!("the head of the file cannot be used: {}", why.join("; "));
        Problem::in_file(Code::ManifestValue, &path, what)
    })?;
    if is_file(&folder.join(REQUIREMENTS))? {
        all.push((REQUIREMENTS.to_owned(), reader.read(folder, REQUIREMENTS)?));
    }
    let (files, contents) = content_addressed(all);
    let mut bundle = Bundle {
        lane: LaneKind::Python.as_str().to_owned(),
        manifest: text,
        entrypoint: file.to_owned(),
        files,
        config: configured(&manifest, set),
        grants: Default::default(),
        budgets,
        pinned: None,
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
        return Err(Problem::in_file(
            Code::ManifestValue,
            folder,
            format!("`{name}` is not a valid extension id"),
        ));
    }
    let file = folder.join("manifest.yaml");
    let mut reader = ExtensionReader::default();
    let inside = names(folder)?;
    let bytes = match pack_manifest(folder, &name, &inside, &mut reader)? {
        Some(made) => made.into_bytes(),
        None => reader.manifest(folder, &file)?,
    };
    let Parsed { manifest, mut warnings, source } =
        manifest::parse_bytes(&file, &bytes).map_err(|rejected| {
            let internal =
                || Problem::in_file(Code::Internal, &file, "a manifest was rejected without a reason");
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
    let mut timetables = Vec::new();
    for (place, schedule) in manifest.schedules.iter().enumerate() {
        let spec = ScheduleSpec::from(schedule);
        // The host's zone makes no difference to whether a text can be read.
        match Timetable::of(&spec, &Zone::utc()) {
            Ok(timetable) => timetables.push(timetable),
            Err(problem) => {
                let field = match problem.code {
                    Code::ZoneUnknown => "timezone",
                    _ => "cron",
                };
                return Err(problem.at(source.locate(&format!("schedules[{place}].{field}"))));
            }
        }
    }
    bounded(&timetables).map_err(|problem| problem.at(source.locate("schedules")))?;
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let lane =
        manifest::lane(&manifest, &inside).map_err(|problem| problem.at(source.locate("entrypoint")))?;
    let is_code = |file: &&&str| [".wasm", ".so", ".dylib"].iter().any(|ending| file.ends_with(ending));
    let single = || inside.iter().find(is_code).map(|file| (*file).to_owned());
    let (entrypoint, names) = match lane {
        LaneKind::Wasm => {
            let entrypoint = manifest.entrypoint.clone().or_else(single).unwrap_or_default();
            (entrypoint.clone(), vec![entrypoint])
        }
        LaneKind::Declarative => {
            let prompt = inside.contains(&PROMPT).then(|| PROMPT.to_owned());
            (String::new(), prompt.into_iter().collect())
        }
        LaneKind::Plugin => {
            check_plugins(policy, &manifest.id).map_err(|problem| problem.at(source.locate("entrypoint")))?;
            let entrypoint = manifest.entrypoint.clone().or_else(single).unwrap_or_default();
            (entrypoint.clone(), vec![entrypoint])
        }
        LaneKind::Process | LaneKind::Mcp => (String::new(), all_files(folder)?),
        LaneKind::Python => {
            let entrypoint = manifest.entrypoint.clone().unwrap_or_else(|| "main.py".to_owned());
            (entrypoint, all_files(folder)?)
        }
        // Without an entry `package.json` decides, or the usual names.
        LaneKind::Node => (manifest.entrypoint.clone().unwrap_or_default(), all_files(folder)?),
        _ => {
            let what = format!("this program has no `{lane}` lane yet, which `{name}` needs");
            return Err(Problem::in_file(Code::ExtensionUnknown, &file, what)
                .help("Build it as a component: `holdfast ext new` shows how."));
        }
    };
    let mut all = Vec::new();
    for name in names {
        let content = reader.read(folder, &name)?;
        all.push((name, content));
    }
    if lane == LaneKind::Python {
        imported(folder, &manifest, &mut all, &mut reader)?;
    }
    let (files, mut contents) = content_addressed(all);
    let all_extensions = folder.parent().unwrap_or(folder);
    let pinned = approved(&manifest, &pins_file(all_extensions, &manifest.id), &mut contents)?;
    let mut bundle = Bundle {
        lane: lane.as_str().to_owned(),
        manifest: String::from_utf8_lossy(&bytes).into_owned(),
        entrypoint,
        files,
        config: configured(&manifest, set),
        grants: Default::default(),
        budgets,
        pinned,
    };
    let given = policy.given(&manifest.id, &bundle.content(), folder.to_str());
    bundle.grants = granted_to(&manifest, &given);
    if bundle.can_listen() {
        warnings.extend(
            not_listening(&manifest, &bundle.grants, policy).map(|it| it.at(source.locate("grants.listen"))),
        );
    } else if manifest.grants.listen.is_empty() {
        bundle.grants.listen.clear();
    } else {
        let what = format!("`{name}` cannot listen on ports: the lane `{lane}` has none");
        let help = "Only programs and Python files listen on ports; remove `listen` from `grants`.";
        return Err(Problem::new(Code::ListenDenied, what).at(source.locate("grants.listen")).help(help));
    }
    let held = HeldInterfaces::new(&bundle.lane, policy.profile_name(), bundle.grants.interfaces.clone());
    let topics = manifest.events.subscribes.iter().map(|subscription| subscription.topic.as_str());
    let refused = topics.filter(|topic| !held.may_subscribe(topic));
    warnings.extend(refused.map(|topic| unsubscribed(&manifest, topic).at(source.locate("events"))));
    Ok(Candidate { manifest, warnings, bundle, files: contents })
}

/// The manifest of a folder that has none and is a pack: what its `package.json` says, or only its name.
fn pack_manifest(
    folder: &Path,
    name: &str,
    inside: &[String],
    reader: &mut ExtensionReader,
) -> Result<Option<String>, Problem> {
    if !is_pack(inside) {
        return Ok(None);
    }
    let mut manifest = Map::new();
    manifest.insert("id".to_owned(), name.into());
    manifest.insert("name".to_owned(), name.into());
    if inside.iter().any(|name| name == PACKAGE) {
        let path = folder.join(PACKAGE);
        let bytes = reader.read(folder, PACKAGE)?;
        let package: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("`{PACKAGE}` cannot be read: {error}");
            Problem::in_file(Code::ManifestSyntax, &path, what)
                .help("Correct it; it has to be a JSON object.")
        })?;
        for field in ["name", "version", "description"] {
            let text =
                package.get(field).filter(|value| value.as_str().is_some_and(|it| !it.trim().is_empty()));
            manifest.extend(text.map(|text| (field.to_owned(), text.clone())));
        }
        manifest.insert("package".to_owned(), ".".into());
    }
    Ok(Some(Value::Object(manifest).to_string()))
}

/// The file that says what a package for Node is.
const PACKAGE: &str = "package.json";

/// Whether the files of a folder without a manifest are a pack.
pub(crate) fn is_pack(inside: &[String]) -> bool {
    let has_manifest = inside.iter().any(|name| is_manifest(name));
    let is_pack =
        |name: &String| [PACKAGE, "index.js", "index.mjs", "index.cjs", "index.ts"].contains(&name.as_str());
    !has_manifest && inside.iter().any(is_pack)
}

/// Whether a file could be meant as a manifest.
pub(crate) fn is_manifest(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_prefix("manifest").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Refuses native plugins unless the profile loads them.
pub(crate) fn check_plugins(policy: &Policy, id: &ExtensionId) -> Result<(), Problem> {
    if policy.allows_native_plugins() {
        return Ok(());
    }
    Err(Problem::new(Code::PluginRefused, format!("`{id}` is a native plugin, and the profile is another")))
}

/// Refuses schedules that would fill the log: every run leaves frames that are kept.
fn bounded(timetables: &[Timetable]) -> Result<(), Problem> {
    if timetables.len() > MAX_SCHEDULES {
        let what =
            format!("the extension has {} schedules; at most {MAX_SCHEDULES} are run", timetables.len());
        return Err(Problem::new(Code::ScheduleLimit, what));
    }
    let per_minute = |timetable: &Timetable| {
        let limit = MAX_RUNS_PER_MINUTE + 1;
        timetable.due_between(RATE_CHECKED_AT, Millis(RATE_CHECKED_AT.0 + 60_000), limit).len()
    };
    let runs: usize = timetables.iter().map(per_minute).sum();
    if runs > MAX_RUNS_PER_MINUTE {
        let what = format!(
            "the extension's schedules are due {runs} times in a minute; at most {MAX_RUNS_PER_MINUTE} are run"
        );
        return Err(Problem::new(Code::ScheduleLimit, what));
    }
    Ok(())
}

/// The most schedules of an extension, and how often they may be due together.
const MAX_SCHEDULES: usize = 64;
const MAX_RUNS_PER_MINUTE: usize = 120;
/// The minute in which the rate is looked at. It begins at an hour, when most cron expressions are due.
const RATE_CHECKED_AT: Millis = Millis(1_800_000_000_000 - 1);

/// A subscription of a manifest that has no effect, because the extension may not have these events.
fn unsubscribed(manifest: &Manifest, topic: &str) -> Problem {
    let (id, what) = (&manifest.id, format!("`{topic}` is not subscribed to"));
    let problem = match TopicRule::to_subscribe(topic) {
        TopicRule::Needs(capability) => {
            let why = format!("{what}: the interface `{capability}` is not granted");
            let wanted = Grants { interfaces: vec![capability.name().to_owned()], ..Grants::default() };
            let help = if granted_to(manifest, &wanted).is_empty() {
                format!("Ask for it in the manifest: `grants: {{ interfaces: [{capability}] }}`.")
            } else {
                format!("`holdfast ext grant {id} --interface {capability}`")
            };
            Problem::new(Code::ComponentImport, why).help(help)
        }
        _ => {
            let why = format!("{what}: the pattern includes topics of the program");
            Problem::new(Code::EventRefused, why).help("Name each topic in full.")
        }
    };
    problem.with(Severity::Warning)
}

/// The ports that a manifest asks for and that are not listened on.
fn not_listening(manifest: &Manifest, granted: &Grants, policy: &Policy) -> Option<Problem> {
    let id = &manifest.id;
    let missing: Vec<_> =
        manifest.grants.listen.iter().filter(|port| !granted.listen.contains(port)).collect();
    let ports = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let help = if policy.may_listen() {
        let options: Vec<_> = missing.iter().map(|port| format!("--listen {port}")).collect();
        format!("`holdfast ext grant {id} {}` grants it.", options.join(" "))
    } else {
        "Under the profile `safe` nothing listens on ports.".to_owned()
    };
    let problem =
        Problem::new(Code::ListenDenied, format!("`{id}` does not listen on {ports}: it is not granted"));
    (!missing.is_empty()).then(|| problem.help(help).with(Severity::Warning))
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
pub(crate) const DEPENDS_ON: &str = ".depends_on";

/// Adds the Python code of other extensions that an extension imports: those that it depends on and names as
/// `sandbox.extensions.<id>`.
fn imported(
    folder: &Path,
    manifest: &Manifest,
    files: &mut Vec<(String, Vec<u8>)>,
    reader: &mut ExtensionReader,
) -> Result<(), Problem> {
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
            let content = reader.read(&theirs, &name)?;
            files.push((format!("{DEPENDS_ON}/{other}/{name}"), content));
        }
    }
    Ok(())
}

/// Every file in an extension's folder but the manifest, by its path from there.
pub(crate) fn all_files(folder: &Path) -> Result<Vec<String>, Problem> {
    let Tree { files, unread, .. } = tree(folder);
    if let Some(problem) = unread {
        return Err(problem);
    }
    if files.len() > MAX_FILES {
        let what = format!("the extension has more than {MAX_FILES} files");
        return Err(Problem::in_file(Code::ManifestValue, folder, what).help(
            "Leave out what it does not need to run, or put it into a folder whose name begins with a dot.",
        ));
    }
    let inside = files.iter().filter_map(|path| path.strip_prefix(folder).ok()?.to_str());
    let mut files: Vec<String> = inside.filter(|name| *name != "manifest.yaml").map(str::to_owned).collect();
    files.sort();
    Ok(files)
}

/// The configuration of an extension: the user's settings over the manifest's.
pub(crate) fn configured(manifest: &Manifest, set: Option<&Map<String, Value>>) -> Content {
    let mut config = Value::Object(manifest.config.clone());
    overlay(&mut config, &Value::Object(own_settings(set)));
    Content::new(config)
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
