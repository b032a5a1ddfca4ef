//! The home's policy: read from `config/policy.yaml`, and given the rules that a person's "always" asks for.
//!
//! A rule is added as text, so that comments stay. Whatever the text looks like, the result is read again before it is written, and must
//! say what the policy with that rule says.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use holdfast_contract::digest::canonical;
use holdfast_contract::manifest::yaml::nearest;
use holdfast_contract::problem::{Code, Problem};
use holdfast_policy::{Policy, Profile, Rule};
use serde_json::Value;

use crate::files::{self, Bounds};
use crate::home::Home;

const BOUNDS: Bounds =
    Bounds { unreadable: Code::PolicyInvalid, too_large: Code::PolicyInvalid, most: 1024 * 1024 };

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
        let folder = self.config();
        files::make_folder(&folder)?;
        let failed = |error: std::io::Error| files::failed(Code::HomeUnavailable, &folder, "locked", &error);
        // Held to the end, so that two answers at the same time are two rules.
        let guard = File::open(&folder).map_err(failed)?;
        guard.lock().map_err(failed)?;
        let (file, text) = (self.policy_file(), self.policy_text()?);
        let policy = parse(&file, &text)?;
        if policy.rules().contains(rule) {
            return Ok(policy);
        }
        let policy = policy.with_rule(rule.clone())?;
        let says_it =
            |text: &String| Policy::parse(&file, text).is_ok_and(|read| read.digest() == policy.digest());
        let kept = Some(added(&text, rule)).filter(says_it);
        if kept.is_none() {
            files::replace(&file.with_extension("yaml.before"), &text)?;
        }
        let Some(added) = kept.or_else(|| Some(anew(&policy)).filter(says_it)) else {
            let what = format!("the rule `{}` cannot be written down", rule.name);
            return Err(
                files::problem(Code::PolicyInvalid, &file, what).help("Write it into the file by hand.")
            );
        };
        files::replace(&file, &added)?;
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

fn named_profile(name: &str) -> Result<Profile, Problem> {
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

/// The text with one more rule at the end of its rules.
fn added(text: &str, rule: &Rule) -> String {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let key = lines.iter().position(|line| line.strip_prefix("rules:").is_some_and(is_no_more));
    let (place, indent) = match key {
        None => {
            lines.push("rules:".to_owned());
            (lines.len(), "  ".to_owned())
        }
        Some(key) => {
            lines[key] = lines[key].replacen("[]", "", 1).trim_end().to_owned();
            let end = lines[key + 1..].iter().position(|line| begins_another_key(line));
            let end = end.map_or(lines.len(), |end| key + 1 + end);
            let rules = &lines[key + 1..end];
            let item = rules.iter().find(|line| line.trim_start().starts_with("- "));
            let indent = item.map_or("  ", |line| &line[..line.len() - line.trim_start().len()]).to_owned();
            // Comments and blank lines below the last rule belong to what follows.
            let last = rules.iter().rposition(|line| !is_no_more(line));
            (last.map_or(key + 1, |last| key + 2 + last), indent)
        }
    };
    lines.splice(place..place, item(rule, &indent));
    lines.join(ending) + ending
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

/// A rule as an item of a list, one field a line.
fn item(rule: &Rule, indent: &str) -> Vec<String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(rule) else { return Vec::new() };
    // In the order that people write them in.
    let order = ["name", "decision", "match", "unless", "profiles", "reason", "examples"];
    let lines = order.iter().filter_map(|name| Some((name, fields.get(*name)?))).enumerate();
    let line = |(index, (name, value)): (usize, (&&str, &Value))| {
        let dash = if index == 0 { "- " } else { "  " };
        format!("{indent}{dash}{name}: {}", in_order(value))
    };
    lines.map(line).collect()
}

/// A value whose fields stand in order, whatever order the JSON library keeps.
fn in_order(value: &Value) -> String {
    canonical(value).map_or_else(|_| value.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The whole policy in a text of its own, for files whose rules cannot be added to: a list in brackets, an alias. Comments are lost, so the
/// old text is kept beside it.
fn anew(policy: &Policy) -> String {
    let document = serde_json::from_slice(policy.document()).unwrap_or_default();
    let Value::Object(fields) = document else { return String::new() };
    let mut text =
        String::from("# Written anew when a rule was added; `policy.yaml.before` has the comments.\n");
    for (name, value) in fields.iter().filter(|(name, _)| *name != "rules") {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name}: {}", in_order(value));
    }
    text.push_str("rules:\n");
    for rule in policy.rules() {
        for line in item(rule, "  ") {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
