//! Reads `policy.yaml`. All problems are reported in one pass, each with file, line, column and field.
//!
//! A policy is read more strictly than a manifest: an unknown field, a duplicate key or an empty
//! list might be a gate that the user believes to be closed, so each is an error.

mod given;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use holdfast_contract::digest::MAX_EXACT_INTEGER;
use holdfast_contract::ids::{Millis, RuleName};
use holdfast_contract::manifest::Profile;
use holdfast_contract::manifest::yaml::{self, Codes, Format};
use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_yaml::{Field, Object, Reported};
use serde_json::Value;

use crate::caps::Caps;
use crate::document::Document;
use crate::profile::{self, CLASSES, Routing, Unattended};
use crate::rules::examples;
use crate::rules::rule::{Condition, Example, Examples, Rule, Ruling, no_arguments};

pub use self::given::dollars;

type Result<T> = std::result::Result<T, Reported>;

const FORMAT: Format =
    Format { name: "policy", max_bytes: 1024 * 1024, codes: Codes::all(Code::PolicyInvalid) };

/// The most bytes of a glob, so that the cost of a match is bounded by the text it is compared with.
const LONGEST_GLOB: usize = 1024;

/// The parts of a rule that people write beside `match` and mean to be in it.
const INSIDE_MATCH: &[&str] = &["tools", "arguments", "origins", "users", "agents", "extensions", "effects"];

/// What the text says, if nothing about it is wrong.
pub(crate) fn parse(file: &Path, text: &str) -> std::result::Result<Document, Vec<Problem>> {
    let read = yaml::stricter(yaml::read(&FORMAT, file, text, document), |_| true);
    let read = read.map_err(|rejected| rejected.errors)?;
    let contradictions = examples::contradictions(&read.value.rules, |field| read.source.locate(field));
    if contradictions.is_empty() { Ok(read.value) } else { Err(contradictions) }
}

/// Where each rule of a policy is written, in their order.
pub(crate) fn rule_locations(file: &Path, text: &str) -> Vec<Location> {
    let read = yaml::stricter(yaml::read(&FORMAT, file, text, document), |_| true);
    let Ok(read) = read else { return Vec::new() };
    (0..read.value.rules.len()).map(|number| read.source.locate(&format!("rules[{number}]"))).collect()
}

fn document(root: &Field<'_>) -> Result<Document> {
    if root.is_null() {
        return Ok(Document::of(Profile::Standard));
    }
    root.object(|object| {
        let profile = object.defaulted("profile", Profile::Standard, profile_name);
        let unattended =
            object.defaulted("unattended", Unattended::default(), |field| field.choice(Unattended::ALL));
        let answer_within_ms =
            object.optional("answer_within_ms", |field| field.whole(1..=MAX_EXACT_INTEGER).map(Millis));
        let owners = object.defaulted("owners", Vec::new(), |field| field.each(given::owner));
        let routing = object.optional("routing", |field| field.choice(Routing::ALL));
        let mut names = BTreeSet::new();
        let rules = object
            .defaulted("rules", Vec::new(), |field| field.each(|rule_field| rule(rule_field, &mut names)));
        let grants = object.defaulted("grants", Vec::new(), |field| field.each(given::grant));
        let caps = object.defaulted("caps", Caps::default(), given::caps);
        Ok(Document {
            profile: profile?,
            unattended: unattended?,
            answer_within_ms: answer_within_ms?,
            owners: owners?,
            routing: routing?,
            rules: rules?,
            grants: grants?,
            caps: caps?,
        })
    })
}

fn profile_name(field: &Field<'_>) -> Result<Profile> {
    field.choice(Profile::ALL)
}

fn rule(field: &Field<'_>, names: &mut BTreeSet<String>) -> Result<Rule> {
    field.object(|object| {
        for part in INSIDE_MATCH {
            object.advise(part, "Move it below `match:`.");
        }
        object.advise("except", "Did you mean `unless`?");
        object.advise("action", "Did you mean `decision`?");
        let name = object.required("name", "my-rule", |field| rule_name(field, names));
        let decision = object.required("decision", "ask", |field| field.choice(Ruling::ALL));
        let condition = object.required("match", "{ tools: [shell] }", condition);
        let unless = object.defaulted("unless", Vec::new(), |field| field.each(exception));
        let profiles =
            object.defaulted("profiles", Vec::new(), |field| filled(field, |field| field.each(profile_name)));
        let reason = object.defaulted("reason", String::new(), Field::filled);
        let examples = object.defaulted("examples", Examples::default(), rule_examples);
        Ok(Rule {
            name: name?,
            decision: decision?,
            condition: condition?,
            unless: unless?,
            profiles: profiles?,
            reason: reason?,
            examples: examples?,
        })
    })
}

fn rule_name(field: &Field<'_>, names: &mut BTreeSet<String>) -> Result<RuleName> {
    let name = field.word()?;
    if profile::is_reserved(&name) {
        let what = format!("`{name}` is a name that is kept for a profile's own rules");
        return Err(field.reject(what, "Give the rule another name."));
    }
    if !names.insert(name.clone()) {
        return Err(field.reject(format!("two rules have the name `{name}`"), "Rename one of them."));
    }
    Ok(name.into())
}

fn exception(field: &Field<'_>) -> Result<Condition> {
    let exception = condition(field)?;
    if exception.is_any() {
        let what = format!("{} is empty, and would except every call from the rule", field.subject());
        return Err(field.reject(what, "Say what is excepted, or leave `unless` out."));
    }
    Ok(exception)
}

fn condition(field: &Field<'_>) -> Result<Condition> {
    field.object(|object| {
        let tools = globs(object, "tools");
        let arguments = object.defaulted("arguments", BTreeMap::new(), arguments);
        let origins = globs(object, "origins");
        let users = globs(object, "users");
        let agents = globs(object, "agents");
        let extensions = globs(object, "extensions");
        let effects = object.defaulted("effects", Vec::new(), |field| {
            filled(field, |field| field.each(|class| class.choice(&CLASSES)))
        });
        Ok(Condition {
            tools: tools?,
            arguments: arguments?,
            origins: origins?,
            users: users?,
            agents: agents?,
            extensions: extensions?,
            effects: effects?,
        })
    })
}

fn globs(object: &mut Object<'_, '_>, name: &'static str) -> Result<Vec<String>> {
    object.defaulted(name, Vec::new(), |field| filled(field, |field| field.each(glob)))
}

fn arguments(field: &Field<'_>) -> Result<BTreeMap<String, String>> {
    let pairs = field.entries(|pointer, pattern| {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let what = format!("`{pointer}` is not a JSON pointer");
            return Err(pattern.reject(what, format!("Write `/{pointer}: pattern`.")));
        }
        glob(pattern)
    })?;
    Ok(pairs.into_iter().collect())
}

fn glob(field: &Field<'_>) -> Result<String> {
    let pattern = field.text()?;
    if pattern.len() > LONGEST_GLOB {
        let what =
            format!("{} has {} bytes, and a glob may have {LONGEST_GLOB}", field.subject(), pattern.len());
        return Err(field.reject(what, "Shorten it, or use several rules."));
    }
    Ok(pattern)
}

/// A list that is written down must have something in it: it is not clear whether an empty one means everything or nothing.
fn filled<T>(field: &Field<'_>, read: impl FnOnce(&Field<'_>) -> Result<Vec<T>>) -> Result<Vec<T>> {
    let items = read(field)?;
    if items.is_empty() {
        Err(field.reject(format!("{} is empty", field.subject()), "Name something, or leave the field out."))
    } else {
        Ok(items)
    }
}

fn rule_examples(field: &Field<'_>) -> Result<Examples> {
    field.object(|object| {
        let matching = object.defaulted("match", Vec::new(), |field| field.each(example));
        let not_match = object.defaulted("not_match", Vec::new(), |field| field.each(example));
        Ok(Examples { matching: matching?, not_match: not_match? })
    })
}

fn example(field: &Field<'_>) -> Result<Example> {
    field.object(|object| {
        let tool = object.required("tool", "shell", Field::word);
        let arguments = object.defaulted("arguments", no_arguments(), |field| {
            let arguments = Value::Object(field.json_map()?);
            if is_exact(&arguments) {
                Ok(arguments)
            } else {
                let what = format!("{} has a number that JSON cannot carry exactly", field.subject());
                Err(field.reject(what, "Put it in quotes; such numbers reach a rule as text."))
            }
        });
        let origin = object.optional("origin", Field::text);
        let user = object.optional("user", Field::text);
        let agent = object.optional("agent", Field::word);
        let extension = object.optional("extension", Field::word);
        let effects = object.optional("effects", |field| field.choice(&CLASSES));
        Ok(Example {
            tool: tool?.into(),
            arguments: arguments?,
            origin: origin?,
            user: user?,
            agent: agent?.map(Into::into),
            extension: extension?.map(Into::into),
            effects: effects?,
        })
    })
}

/// Whether every JSON reader represents all whole numbers in it exactly (I-JSON, RFC 7493).
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_u64().is_none_or(|number| number <= MAX_EXACT_INTEGER)
                && number.as_i64().is_none_or(|number| number.unsigned_abs() <= MAX_EXACT_INTEGER)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
