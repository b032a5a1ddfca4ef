//! How well tools are found among many: a catalogue of 500 tools of 50 extensions, requests in people's own words, and how often a tool that
//! would do is among the first five that the search gives. No model and no network take part, so the figures are the same on every machine.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::registry::{ExtensionRef, Implementation, Registry, ToolEntry};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use serde_json::{Map, Value, json};

use holdfast_runtime::tools::Ranker;

const CATALOGUE: &str = include_str!("catalogue/tools.txt");
const REQUESTS: &str = include_str!("catalogue/requests.txt");
const LATER: &str = include_str!("catalogue/later.txt");

/// How many tools a search may give for a hit.
const FIRST: usize = 5;

/// An extension of the catalogue.
#[derive(Clone, Debug)]
pub struct Catalogued {
    /// Its id.
    pub id: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
}

/// Requests of one kind, and how the search did on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Which requests.
    pub name: &'static str,
    /// How many there are.
    pub requests: usize,
    /// For how many of them a tool that would do was among the first five.
    pub hits: usize,
    /// The others.
    pub missed: Vec<&'static str>,
}

/// The extensions of the catalogue.
pub fn catalogue() -> Vec<Catalogued> {
    let mut all: Vec<Catalogued> = Vec::new();
    for line in CATALOGUE.lines() {
        if let Some((id, description)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            all.push(Catalogued { id, description, tools: Vec::new() });
        } else if let (Some(extension), Some(tool)) = (all.last_mut(), tool(line)) {
            extension.tools.push(tool);
        }
    }
    all
}

/// `name(text, number:int, choice:bool): What it does.`
fn tool(line: &str) -> Option<ToolSpec> {
    let (name, rest) = line.split_once('(')?;
    let (takes, description) = rest.split_once("): ")?;
    let fields = takes.split(", ").filter(|field| !field.is_empty()).map(|field| {
        let (name, kind) = match field.split_once(':') {
            Some((name, "int")) => (name, "integer"),
            Some((name, _)) => (name, "boolean"),
            None => (field, "string"),
        };
        (name.to_owned(), json!({ "type": kind }))
    });
    let properties: Map<String, Value> = fields.collect();
    let input_schema = Content::new(json!({ "type": "object", "properties": properties }));
    Some(ToolSpec { input_schema, effects: EffectClass::Network, ..ToolSpec::named(name, description) })
}

/// How the search does on each set of requests, with and without its table of what people say.
pub fn search_hits() -> Vec<Hits> {
    let extensions = catalogue();
    let mut registry = Registry::default();
    for Catalogued { id, tools, .. } in &extensions {
        let extension = Arc::new(ExtensionRef { id: (*id).into(), ..ExtensionRef::default() });
        registry.tools.extend(tools.iter().map(|spec| {
            let (extension, spec) = (extension.clone(), Arc::new(spec.clone()));
            let name = spec.name.clone();
            ToolEntry { name, stack: vec![Implementation { extension, spec, agent: None }] }
        }));
    }
    holdfast_kernel::registry::sort(&mut registry);
    let about = |it: &Implementation| {
        let extension = extensions.iter().find(|extension| extension.id == it.extension.id.as_str());
        extension.map(|extension| extension.description.to_owned()).unwrap_or_default()
    };
    let ranker = || Ranker::new(registry.tools.iter(), about);
    vec![
        judged("100 requests", REQUESTS, &ranker()),
        judged("100 requests, by their own words alone", REQUESTS, &ranker().literal()),
        judged("50 later requests", LATER, &ranker()),
        judged("50 later requests, by their own words alone", LATER, &ranker().literal()),
    ]
}

fn judged(name: &'static str, requests: &'static str, ranker: &Ranker<'_>) -> Hits {
    let lines = requests.lines().filter(|line| !line.starts_with('#'));
    let asked: Vec<(&str, &str)> = lines.filter_map(|line| line.rsplit_once(" = ")).collect();
    let missed = asked.iter().filter(|(request, expected)| {
        let found = ranker.search(request, FIRST);
        !found.iter().any(|entry| expected.split(" | ").any(|name| name == entry.name.as_str()))
    });
    let missed: Vec<&str> = missed.map(|(request, _)| *request).collect();
    Hits { name, requests: asked.len(), hits: asked.len() - missed.len(), missed }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_has_five_hundred_tools_and_the_requests_name_no_others() {
        let extensions = catalogue();
        let names: BTreeSet<String> =
            extensions.iter().flat_map(|it| &it.tools).map(|tool| tool.name.to_string()).collect();
        assert_eq!((extensions.len(), names.len()), (50, 500));
        assert!(extensions.iter().all(|extension| extension.tools.len() == 10));
        for line in REQUESTS.lines().chain(LATER.lines()).filter(|line| !line.starts_with('#')) {
            let (_, expected) = line.rsplit_once(" = ").unwrap();
            assert!(expected.split(" | ").all(|name| names.contains(name)), "{line}");
        }
    }

    /// These may only rise. `holdfast bench tools` prints them, and docs/many-tools.md publishes them.
    #[test]
    fn the_search_finds_at_least_what_is_published() {
        let found = search_hits();
        let hits: Vec<(usize, usize)> = found.iter().map(|it| (it.hits, it.requests)).collect();
        for ((hits, requests), (floor, of)) in hits.iter().zip([(89, 100), (50, 100), (42, 50), (41, 50)]) {
            assert!(*hits >= floor && *requests == of, "{found:#?}");
        }
    }
}
