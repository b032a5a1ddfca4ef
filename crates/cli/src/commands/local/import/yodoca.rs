//! From assistant4 (yodoca): extensions with the packages that they need, settings, `.env`, data folders and schedules.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_model::provider::COMPATIBLE;
use serde_json::{Map, Value};

use super::{Importer, Outcome};

/// Packages whose modules have other names.
const MODULES: &[(&str, &str)] = &[
    ("beautifulsoup4", "bs4"),
    ("pillow", "PIL"),
    ("python-dotenv", "dotenv"),
    ("pyyaml", "yaml"),
    ("scikit-learn", "sklearn"),
];

/// An SQLite that loads extensions, which many builds of Python have not. It exists as a wheel for these machines alone.
const LOADABLE_SQLITE: &str = "pysqlite3-binary; sys_platform == 'linux' and platform_machine == 'x86_64'";

pub(super) fn import(importer: &mut Importer<'_>) -> Result<(), Problem> {
    let Some(all) = importer.inside("sandbox/extensions") else {
        let what = format!("{} has no folder `sandbox/extensions`", importer.source.display());
        return Err(Problem::new(Code::UsageInvalid, what).help("Name the folder of the whole project."));
    };
    let packages = packages(&importer.text("pyproject.toml").unwrap_or_default());
    let mut ids = Vec::new();
    for name in entries(&all, fs::FileType::is_dir) {
        if importer.inside(&format!("sandbox/extensions/{name}/manifest.yaml")).is_none() {
            importer.line("extension", &name, Outcome::Left, "it has no manifest");
            continue;
        }
        extension(importer, &all.join(&name), &name, &packages)?;
        ids.push(name);
    }
    settings(importer)?;
    importer.variables(".env")?;
    importer.line(
        "secret",
        "keyring",
        Outcome::Left,
        "secrets in the system's keyring are not read; `holdfast secret set NAME` stores one",
    );
    for id in ids {
        if let Some(from) = importer.inside(&format!("sandbox/data/{id}")).filter(|path| path.is_dir()) {
            let to = importer.plan.home.data(&ExtensionId::from(id.as_str()));
            importer.copy("data", &id, &from, &to, "")?;
        }
    }
    importer.schedules("sandbox/data/scheduler/scheduler.db")?;
    importer.conversations("sandbox/data/memory/thread.db")?;
    if let Some(prompts) = importer.inside("sandbox/prompts") {
        let note = "the main agent's instructions are `prompts/orchestrator.jinja2` in the home, or `agents: { main: { instructions: … } }` in the settings";
        for name in entries(&prompts, fs::FileType::is_file) {
            importer.line("prompt", &format!("sandbox/prompts/{name}"), Outcome::Left, note);
        }
    }
    Ok(())
}

/// The names in a folder of what is of this type, in order. Links are skipped.
fn entries(folder: &Path, is_wanted: fn(&fs::FileType) -> bool) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| is_wanted(&kind));
    let named = entries.filter(wanted).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = named.filter(|name| !name.starts_with(['.', '_'])).collect();
    names.sort();
    names
}

/// Copies an extension's folder, and names the packages that it imports of those that the whole project has.
fn extension(
    importer: &mut Importer<'_>,
    from: &Path,
    id: &str,
    packages: &[(String, String)],
) -> Result<(), Problem> {
    let id = ExtensionId::from(id);
    if importer.built_in.contains(&id) {
        let note = format!(
            "`{id}` is built in, and serves in its place; `extensions: {{ {id}: {{ replace: true }} }}` in the settings lets a folder of that name serve"
        );
        importer.line("extension", id.as_str(), Outcome::Left, note);
        return Ok(());
    }
    let to = importer.plan.home.extensions().join(id.as_str());
    let needed = needed(from, packages);
    let note = if needed.is_empty() { String::new() } else { format!("needs {}", needed.join(", ")) };
    importer.copy("extension", id.as_str(), from, &to, &note)?;
    let list = to.join("requirements.txt");
    if importer.dry || needed.is_empty() || list.exists() || to.join("pyproject.toml").exists() {
        return Ok(());
    }
    fs::write(&list, format!("{}\n", needed.join("\n"))).map_err(|error| {
        Problem::in_file(
            Code::HomeUnavailable,
            &list,
            format!("{} cannot be written: {error}", list.display()),
        )
    })
}

/// The packages of a project, each with the name of its module.
fn packages(project: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = project.split_once("\ndependencies = [") else { return Vec::new() };
    let list = rest.split_once("\n]").map_or(rest, |(list, _)| list);
    let lines =
        list.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once('"').map(|(it, _)| it));
    lines
        .map(|line| {
            let end = line.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_.".contains(letter)));
            let package = line[..end.unwrap_or(line.len())].to_ascii_lowercase();
            // Several packages have agents in a module of that name.
            let agents = package.ends_with("-agents").then(|| "agents".to_owned());
            let listed = MODULES.iter().find(|(name, _)| *name == package);
            let module = listed.map(|(_, module)| (*module).to_owned()).or(agents);
            (module.unwrap_or_else(|| package.replace('-', "_")), line.to_owned())
        })
        .collect()
}

/// The packages that the Python files of a folder import. A module may have the first words of its package's name, as `tavily` has of
/// `tavily-python`. A template beside them is rendered with `jinja2`.
fn needed(folder: &Path, packages: &[(String, String)]) -> Vec<String> {
    let (mut imported, mut has_template) = (BTreeSet::new(), false);
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                left.push(path);
            } else if kind.is_ok_and(|kind| kind.is_file()) && path.extension().is_some_and(|it| it == "py") {
                let text =
                    holdfast_untrusted_files::read_text(&path, super::MAX_TEXT_BYTES).unwrap_or_default();
                imported.extend(text.lines().filter_map(module));
            } else if path.extension().is_some_and(|it| it == "jinja2") {
                has_template = true;
            }
        }
    }
    if has_template && !imported.is_empty() {
        imported.insert("jinja2".to_owned());
    }
    let begins = |module: &str, first: &String| {
        let rest = module.strip_prefix(first.as_str()).unwrap_or_default();
        rest.starts_with('_') && packages.iter().all(|(other, _)| other != first)
    };
    let used = packages.iter().filter(|(module, _)| {
        imported.contains(module) || imported.iter().any(|first| begins(module, first))
    });
    let mut needed: Vec<String> = used.map(|(_, line)| line.clone()).collect();
    if imported.contains("sqlite_vec") && !needed.iter().any(|line| line.starts_with("pysqlite3")) {
        needed.push(LOADABLE_SQLITE.to_owned());
    }
    needed
}

/// The module that a line imports, without what is in it.
fn module(line: &str) -> Option<String> {
    let line = line.trim_start();
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    let end =
        rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}

/// The settings of extensions; what is said of models is shown, because it is written in another way here.
fn settings(importer: &mut Importer<'_>) -> Result<(), Problem> {
    let settings = importer.yaml("config/settings.yaml");
    let empty = Map::new();
    let section = |name: &str| settings.get(name).and_then(Value::as_object).unwrap_or(&empty);
    for (id, set) in section("extensions") {
        importer.extension_settings(id, set.as_object().unwrap_or(&empty))?;
    }
    for (id, agent) in section("agents") {
        let here = if id == "default" { "main" } else { id };
        let field = |name: &str| agent.get(name).and_then(Value::as_str);
        if let (Some(provider), Some(model)) = (field("provider"), field("model")) {
            let model = model_settings(section("providers"), provider, model);
            let note = if here == "main" {
                format!("write it as `models: {{ default: main, main: {model} }}`")
            } else {
                format!(
                    "write it as `models: {{ {id}: {model} }}` and `agents: {{ {id}: {{ model: {id} }} }}`"
                )
            };
            importer.line("setting", &format!("agents.{id}"), Outcome::Left, note);
        } else {
            importer.line(
                "setting",
                &format!("agents.{id}"),
                Outcome::Left,
                "it names no provider or no model",
            );
        }
        if let Some(instructions) = field("instructions") {
            let note = format!(
                "its instructions are {}; they are written as `agents: {{ {here}: {{ instructions: … }} }}`",
                one_line(instructions)
            );
            importer.line("setting", &format!("agents.{id}.instructions"), Outcome::Left, note);
        }
    }
    for (name, provider) in section("providers") {
        if let Some(url) = provider.get("base_url").and_then(Value::as_str) {
            let note = format!(
                "each of its models is written with `provider: {COMPATIBLE}, base_url: {}`",
                quoted(url)
            );
            importer.line("setting", &format!("providers.{name}"), Outcome::Left, note);
        } else {
            let note = "a model names its provider; its key is a secret with the provider's usual name, or `api_key_env`";
            importer.line("setting", &format!("providers.{name}"), Outcome::Left, note);
        }
    }
    for name in settings.keys().filter(|name| !["extensions", "agents", "providers"].contains(&name.as_str()))
    {
        importer.line("setting", name, Outcome::Left, "it has no counterpart of this name");
    }
    Ok(())
}

/// A model as the settings here have it.
fn model_settings(providers: &Map<String, Value>, provider: &str, model: &str) -> String {
    let url = providers.get(provider).and_then(|it| it.get("base_url")).and_then(Value::as_str);
    let model = quoted(model);
    match url {
        Some(url) => {
            format!("{{ provider: {COMPATIBLE}, model: {model}, base_url: {} }}", quoted(url))
        }
        None => format!("{{ provider: {}, model: {model} }}", quoted(provider)),
    }
}

/// A text as a value in YAML: in quotes, where it is not a plain word.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { Value::from(text).to_string() }
}

/// The beginning of a text, on one line.
fn one_line(text: &str) -> String {
    let short: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
    format!("`{}`", short.replace('`', "'"))
}
