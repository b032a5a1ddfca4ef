//! From assistant4 (yodoca): extensions with the packages that they need, settings, `.env`, data folders and schedules.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
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

pub(super) fn import(importer: &mut Importer<'_>) -> Result<(), Problem> {
    let Some(all) = importer.inside("sandbox/extensions") else {
        let what = format!("{} has no folder `sandbox/extensions`", importer.source.display());
        return Err(Problem::new(Code::UsageInvalid, what).help("Name the folder of the whole project."));
    };
    let packages = packages(&importer.text("pyproject.toml").unwrap_or_default());
    let mut ids = Vec::new();
    for name in folders(&all) {
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
    if importer.inside("sandbox/data/thread").is_some() {
        let note = "conversations have no place in the log, which is verified; they stay where they are";
        importer.line("history", "threads", Outcome::Left, note);
    }
    Ok(())
}

/// The names of the folders in a folder, in order. Links are skipped.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let named = entries.filter(is_folder).filter_map(|entry| entry.file_name().into_string().ok());
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
    used.map(|(_, line)| line.clone()).collect()
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
    if let Some(agent) = section("agents").get("default") {
        let word = |name: &str| agent.get(name).and_then(Value::as_str).unwrap_or_default();
        let note = format!(
            "write it as `models: {{ default: main, main: {{ provider: {}, model: {} }} }}`",
            word("provider"),
            word("model")
        );
        importer.line("setting", "agents.default", Outcome::Left, note);
    }
    for name in settings.keys().filter(|name| !["extensions", "agents"].contains(&name.as_str())) {
        importer.line("setting", name, Outcome::Left, "it has no counterpart of this name");
    }
    Ok(())
}
