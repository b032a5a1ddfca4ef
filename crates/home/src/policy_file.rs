//! The home's policy: read from `config/policy.yaml`, and given the rules that a person's "always" asks for and the
//! grants that a person gives.
//!
//! Either is added as text, and a grant is removed as text, so that comments stay. The result is read back before it is written and must
//! equal the policy with the addition.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use holdfast_contract::digest::canonical;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_policy::{Grant, Policy, Profile, Rule};
use holdfast_yaml::nearest;
use serde::Serialize;
use serde_json::Value;

use crate::files::{self, Bounds};
use crate::home::Home;

const BOUNDS: Bounds =
    Bounds { unreadable: Code::PolicyInvalid, too_large: Code::PolicyInvalid, max_bytes: 1024 * 1024 };

impl Home {
    /// The policy in force: the file's, or the `standard` profile without one. A profile that is asked for takes the place of the file's.
    pub fn policy(&self, profile: Option<&str>) -> Result<Policy, Problem> {
        let asked = profile.map(named_profile).transpose()?;
        let policy = parse(&self.policy_file(), &self.policy_text()?)?;
        Ok(match asked {
            Some(profile) => policy.with_profile(profile),
            None => policy,
        })
    }

    /// Adds a rule to `config/policy.yaml`, and gives the file's policy with it. A rule that is there already is not added again; another
    /// rule of the same name is a problem.
    pub fn remember_rule(&self, rule: &Rule) -> Result<Policy, Problem> {
        self.rewrite(|policy| {
            let known = policy.rules().contains(rule);
            let policy = if known { policy } else { policy.with_rule(rule.clone())? };
            let addition = || Edit::Add(Addition { section: "rules", order: RULE, fields: json_of(rule) });
            Ok((policy, (!known).then(addition)))
        })
    }

    /// Adds a grant to `config/policy.yaml`, and gives the file's policy with it. One that is there already is not added again.
    pub fn remember_grant(&self, grant: &Grant) -> Result<Policy, Problem> {
        self.rewrite(|policy| {
            let known = policy.grants().contains(grant);
            let policy =
                if known { policy } else { policy.with_grants(|grants| grants.push(grant.clone()))? };
            let addition = || Edit::Add(Addition { section: "grants", order: GRANT, fields: json_of(grant) });
            Ok((policy, (!known).then(addition)))
        })
    }

    /// Revokes all grants of an extension and returns the file's policy without them.
    pub fn revoke_grants(&self, extension: &ExtensionId) -> Result<Policy, Problem> {
        self.rewrite(|policy| {
            let places =
                policy.grants().iter().enumerate().filter(|(_, grant)| grant.extension == *extension);
            let removal = Edit::Remove("grants", places.map(|(place, _)| place).collect());
            let policy = policy.with_grants(|grants| grants.retain(|grant| grant.extension != *extension))?;
            Ok((policy, Some(removal)))
        })
    }

    /// The rules of `config/policy.yaml` in their order, each with its place in the file.
    pub fn rules(&self) -> Result<Vec<(Rule, Location)>, Problem> {
        let (file, text) = (self.policy_file(), self.policy_text()?);
        let policy = parse(&file, &text)?;
        let places = Policy::rule_locations(&file, &text);
        Ok(policy.rules().iter().cloned().zip(places).collect())
    }

    /// Removes the rule of this number, from 1, from `config/policy.yaml`, and returns it.
    pub fn remove_rule(&self, number: usize) -> Result<Rule, Problem> {
        let mut removed = None;
        self.rewrite(|policy| {
            let (place, count) = (number.wrapping_sub(1), policy.rules().len());
            let unknown = || {
                let help = match count {
                    0 => "The policy has no rules.".to_owned(),
                    count => format!("There are rules 1 to {count}; `holdfast policy rules` lists them."),
                };
                Problem::new(Code::UsageInvalid, format!("there is no rule {number}")).help(help)
            };
            removed = Some(policy.rules().get(place).cloned().ok_or_else(unknown)?);
            let policy = policy.with_rules(|rules| drop(rules.remove(place)))?;
            Ok((policy, Some(Edit::Remove("rules", vec![place]))))
        })?;
        removed.ok_or_else(|| Problem::new(Code::Internal, "a rule was removed that was not found"))
    }

    /// Changes the policy and writes it down, by an edit of the text if that says the same.
    fn rewrite(
        &self,
        change: impl FnOnce(Policy) -> Result<(Policy, Option<Edit>), Problem>,
    ) -> Result<Policy, Problem> {
        let folder = self.config();
        files::make_folder(&folder)?;
        let failed = |error: std::io::Error| files::failed(Code::HomeUnavailable, &folder, "locked", &error);
        // Held to the end, so that two answers at the same time are two rules.
        let guard = File::open(&folder).map_err(failed)?;
        guard.lock().map_err(failed)?;
        let (file, text) = (self.policy_file(), self.policy_text()?);
        let before = parse(&file, &text)?;
        let (policy, edit) = change(before.clone())?;
        if policy.digest() == before.digest() {
            return Ok(policy);
        }
        let says_it =
            |text: &String| Policy::parse(&file, text).is_ok_and(|read| read.digest() == policy.digest());
        let edited = |edit: Edit| match edit {
            Edit::Add(addition) => Some(added(&text, &addition)),
            Edit::Remove(section, places) => removed(&text, section, &places),
        };
        let kept = edit.and_then(edited).filter(says_it);
        if kept.is_none() {
            files::replace(&free_name(&file), &text)?;
        }
        let Some(written) = kept.or_else(|| Some(rewritten(&policy)).filter(says_it)) else {
            let problem = Problem::in_file(Code::PolicyInvalid, &file, "the change cannot be written down");
            return Err(problem.help("Write it into the file by hand."));
        };
        files::replace(&file, &written)?;
        Ok(policy)
    }

    fn policy_text(&self) -> Result<String, Problem> {
        let file = self.policy_file();
        let bytes = files::read(&file, &BOUNDS)?.unwrap_or_default();
        files::text(&file, bytes, Code::PolicyInvalid)
    }
}

fn parse(file: &Path, text: &str) -> Result<Policy, Problem> {
    Policy::parse(file, text).map_err(|problems| {
        let internal = || Problem::new(Code::Internal, "a policy was rejected without a reason");
        Problem::all(problems).unwrap_or_else(internal)
    })
}

/// The profile of this name.
pub fn named_profile(name: &str) -> Result<Profile, Problem> {
    let named = |profile: &Profile| serde_json::to_value(profile).ok()?.as_str().map(str::to_owned);
    let all: Vec<(String, Profile)> =
        Profile::ALL.iter().filter_map(|profile| Some((named(profile)?, *profile))).collect();
    if let Some((_, profile)) = all.iter().find(|(known, _)| known == name) {
        return Ok(*profile);
    }
    let names: Vec<String> = all.iter().map(|(name, _)| format!("`{name}`")).collect();
    let help = match nearest(name, all.iter().map(|(name, _)| name.as_str())) {
        Some(near) => format!("Did you mean `{near}`? The profiles are {}.", names.join(", ")),
        None => format!("The profiles are {}.", names.join(", ")),
    };
    Err(Problem::new(Code::UsageInvalid, format!("there is no profile `{name}`")).help(help))
}

/// A change of the text.
enum Edit {
    Add(Addition),
    /// The items at these places of the list of this section.
    Remove(&'static str, Vec<usize>),
}

/// A name for the text before a change that lost its comments. Earlier ones are kept.
fn free_name(file: &Path) -> PathBuf {
    let named = |count: u32| match count {
        1 => file.with_extension("yaml.before"),
        count => file.with_extension(format!("yaml.before-{count}")),
    };
    (1..1_000).map(named).find(|name| !name.exists()).unwrap_or_else(|| named(1_000))
}

/// One more item for a list of the policy.
struct Addition {
    section: &'static str,
    /// Its fields in the order that people write them in.
    order: &'static [&'static str],
    fields: Value,
}

const RULE: &[&str] = &["name", "decision", "match", "unless", "profiles", "reason", "examples"];
const GRANT: &[&str] = &["extension", "tied_to", "give"];

fn json_of<T: Serialize>(item: &T) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

/// The text with one more item at the end of its list.
fn added(text: &str, addition: &Addition) -> String {
    let section = format!("{}:", addition.section);
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let key = lines.iter().position(|line| line.strip_prefix(&section).is_some_and(is_no_more));
    let (place, indent) = match key {
        None => {
            lines.push(section);
            (lines.len(), "  ".to_owned())
        }
        Some(key) => {
            lines[key] = lines[key].replacen("[]", "", 1).trim_end().to_owned();
            let end = lines[key + 1..].iter().position(|line| begins_another_key(line));
            let end = end.map_or(lines.len(), |end| key + 1 + end);
            let items = &lines[key + 1..end];
            let item = items.iter().find(|line| line.trim_start().starts_with("- "));
            let indent = item.map_or("  ", |line| &line[..line.len() - line.trim_start().len()]).to_owned();
            // Comments and blank lines below the last item belong to what follows.
            let last = items.iter().rposition(|line| !is_no_more(line));
            (last.map_or(key + 1, |last| key + 2 + last), indent)
        }
    };
    lines.splice(place..place, item(&addition.fields, addition.order, &indent));
    lines.join(ending) + ending
}

/// The text without these items of a list; none where its items are not one below the other.
fn removed(text: &str, section: &str, places: &[usize]) -> Option<String> {
    let section = format!("{section}:");
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let key = lines.iter().position(|line| line.strip_prefix(&section).is_some_and(is_no_more))?;
    let end = lines[key + 1..].iter().position(|line| begins_another_key(line));
    let end = end.map_or(lines.len(), |end| key + 1 + end);
    let first = lines[key + 1..end].iter().find(|line| line.trim_start().starts_with("- "))?;
    let indent = first.len() - first.trim_start().len();
    let is_item =
        |line: &String| line.trim_start().starts_with("- ") && line.len() - line.trim_start().len() == indent;
    let mut starts: Vec<usize> = (key + 1..end).filter(|at| is_item(&lines[*at])).collect();
    let count = starts.len();
    starts.push(end);
    for place in places.iter().rev() {
        let (from, next) = (*starts.get(*place)?, *starts.get(place + 1)?);
        // Comments and blank lines below an item belong to what follows.
        let last = (from..next).rev().find(|at| !is_no_more(&lines[*at]))?;
        lines.drain(from..=last);
    }
    if places.len() == count {
        lines[key] = lines[key].replacen(&section, &format!("{section} []"), 1);
    }
    Some(lines.join(ending) + ending)
}

/// Whether nothing but a comment, or an empty list, follows.
fn is_no_more(rest: &str) -> bool {
    let rest = rest.trim();
    let rest = rest.strip_prefix("[]").map_or(rest, str::trim_start);
    rest.is_empty() || rest.starts_with('#')
}

fn begins_another_key(line: &str) -> bool {
    line.starts_with(|first: char| !first.is_whitespace() && first != '#' && first != '-')
        || line.starts_with("---")
}

/// An item of a list, one field a line.
fn item(fields: &Value, order: &[&str], indent: &str) -> Vec<String> {
    let lines = order.iter().filter_map(|name| Some((name, fields.get(*name)?))).enumerate();
    let line = |(index, (name, value)): (usize, (&&str, &Value))| {
        let dash = if index == 0 { "- " } else { "  " };
        format!("{indent}{dash}{name}: {}", in_order(value))
    };
    lines.map(line).collect()
}

/// A value with its fields in the given order, independent of the JSON library's map.
fn in_order(value: &Value) -> String {
    canonical(value).map_or_else(|_| value.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The whole policy in a text of its own, for files whose rules cannot be added to: a list in brackets, an alias. Comments are lost, so the
/// old text is kept beside it.
fn rewritten(policy: &Policy) -> String {
    let document = serde_json::from_slice(policy.document()).unwrap_or_default();
    let Value::Object(fields) = document else { return String::new() };
    let mut text = String::from("# Rewritten by a change; `policy.yaml.before` has the comments.\n");
    for (name, value) in fields.iter().filter(|(name, _)| !matches!(name.as_str(), "rules" | "grants")) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: {}", in_order(value));
    }
    let lists = [
        ("rules", RULE, policy.rules().iter().map(json_of).collect::<Vec<_>>()),
        ("grants", GRANT, policy.grants().iter().map(json_of).collect()),
    ];
    for (section, order, items) in lists.into_iter().filter(|(_, _, items)| !items.is_empty()) {
        let _ = writeln!(text, "{section}:");
        for line in items.iter().flat_map(|fields| item(fields, order, "  ")) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
