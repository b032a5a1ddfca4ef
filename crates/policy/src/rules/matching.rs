//! Whether a rule applies to a call, in three values: yes, no, and "cannot be told".
//!
//! What cannot be told never opens a gate: a rule that denies or asks then counts, one that allows does not. The same
//! care holds for paths: `..` can make a denial apply, and can never make an allowance apply.

use holdfast_contract::matcher::glob;
use holdfast_contract::tool::EffectClass;
use serde_json::Value;

use crate::profile::CLASSES;
use crate::rules::rule::{Condition, Example, Rule};

/// Three-valued truth, ordered so that `and` is the smaller and `or` the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    No,
    Unknown,
    Yes,
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::Yes } else { Self::No }
    }
}

/// A set of effect classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes(u8);

impl Classes {
    /// The classes that change nothing.
    const HARMLESS: u8 = (1 << EffectClass::Pure as u8) | (1 << EffectClass::Read as u8);

    pub(crate) fn only(class: EffectClass) -> Self {
        Self(1 << class as u8)
    }

    pub(crate) fn of(classes: &[EffectClass]) -> Self {
        Self(classes.iter().fold(0, |bits, class| bits | Self::only(*class).0))
    }

    /// Both sets. A class that changes nothing does not count beside one that may.
    pub(crate) fn with(self, other: Self) -> Self {
        let both = self.0 | other.0;
        Self(if both & !Self::HARMLESS == 0 { both } else { both & !Self::HARMLESS })
    }

    /// The first in the set, in the order in which the classes are declared.
    pub(crate) fn first(self) -> EffectClass {
        CLASSES.into_iter().find(|class| self.has(*class)).unwrap_or_default()
    }

    pub(crate) fn list(self) -> Vec<EffectClass> {
        CLASSES.into_iter().filter(|class| self.has(*class)).collect()
    }

    fn has(self, class: EffectClass) -> bool {
        self.0 & Self::only(class).0 != 0
    }
}

/// A call as rules see it. What is `None` cannot be told.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: Option<&'a Value>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) extension: Option<&'a str>,
    pub(crate) classes: Option<Classes>,
}

impl<'a> Subject<'a> {
    /// An example: what it leaves out cannot be told.
    pub(crate) fn of_example(example: &'a Example) -> Self {
        Self {
            tool: example.tool.as_str(),
            arguments: Some(&example.arguments),
            origin: example.origin.as_deref(),
            user: example.user.as_deref(),
            agent: example.agent.as_ref().map(|agent| agent.as_str()),
            extension: example.extension.as_ref().map(|extension| extension.as_str()),
            classes: example.effects.map(Classes::only),
        }
    }
}

/// Which way a match errs: a condition that makes things stricter matches in doubt, one that makes them looser does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lean {
    Stricter,
    Looser,
}

/// A part of a rule, for saying why it does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'r> {
    Tools,
    Extensions,
    Effects,
    Origins,
    Users,
    Agents,
    /// The arguments as a whole.
    Arguments,
    /// The argument at this pointer.
    Argument(&'r str),
    /// The exception with this index.
    Unless(usize),
}

/// The cheapest and most telling first; the arguments come last.
const PARTS: [Part<'static>; 6] =
    [Part::Tools, Part::Extensions, Part::Effects, Part::Origins, Part::Users, Part::Agents];

/// Whether a rule applies, and the part that keeps it from a clear yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatchFinding<'r> {
    pub(crate) truth: Truth,
    pub(crate) part: Option<Part<'r>>,
}

impl<'r> MatchFinding<'r> {
    const YES: Self = Self { truth: Truth::Yes, part: None };

    fn and(self, part: Part<'r>, truth: Truth) -> Self {
        if truth < self.truth { Self { truth, part: Some(part) } } else { self }
    }
}

/// Whether the rule applies.
pub(crate) fn applies<'r>(rule: &'r Rule, subject: &Subject<'_>) -> MatchFinding<'r> {
    let (lean, opposite) =
        if rule.decision.narrows() { (Lean::Stricter, Lean::Looser) } else { (Lean::Looser, Lean::Stricter) };
    let mut finding = holds(&rule.condition, subject, lean);
    for (index, exception) in rule.unless.iter().enumerate() {
        if finding.truth == Truth::No {
            break;
        }
        finding = finding.and(Part::Unless(index), holds(exception, subject, opposite).truth.not());
    }
    finding
}

fn holds<'r>(condition: &'r Condition, subject: &Subject<'_>, lean: Lean) -> MatchFinding<'r> {
    let mut finding = MatchFinding::YES;
    for part in PARTS {
        let truth = match part {
            Part::Tools => any(&condition.tools, Some(subject.tool)),
            Part::Extensions => any(&condition.extensions, subject.extension),
            Part::Effects => effects(&condition.effects, subject.classes, lean),
            Part::Origins => any(&condition.origins, subject.origin),
            Part::Users => any(&condition.users, subject.user),
            Part::Agents => any(&condition.agents, subject.agent),
            Part::Arguments | Part::Argument(_) | Part::Unless(_) => Truth::Yes,
        };
        finding = finding.and(part, truth);
        if truth == Truth::No {
            return finding;
        }
    }
    match subject.arguments {
        _ if condition.arguments.is_empty() => finding,
        None => finding.and(Part::Arguments, Truth::Unknown),
        Some(arguments) => {
            let mut pairs = condition.arguments.iter();
            let misfit = pairs.find(|(pointer, pattern)| !argument(arguments, pointer, pattern, lean));
            misfit.map_or(finding, |(pointer, _)| finding.and(Part::Argument(pointer), Truth::No))
        }
    }
}

fn any(patterns: &[String], text: Option<&str>) -> Truth {
    if patterns.is_empty() {
        return Truth::Yes;
    }
    text.map_or(Truth::Unknown, |text| patterns.iter().any(|pattern| glob(pattern, text)).into())
}

/// A stricter condition needs one class of the call's, a looser one all of them.
fn effects(wanted: &[EffectClass], classes: Option<Classes>, lean: Lean) -> Truth {
    if wanted.is_empty() {
        return Truth::Yes;
    }
    let Some(Classes(has)) = classes else { return Truth::Unknown };
    let Classes(wanted) = Classes::of(wanted);
    match lean {
        Lean::Stricter => (has & wanted != 0).into(),
        Lean::Looser => (has & !wanted == 0).into(),
    }
}

fn argument(arguments: &Value, pointer: &str, pattern: &str, lean: Lean) -> bool {
    match arguments.pointer(pointer) {
        Some(Value::String(text)) => text_matches(pattern, text, lean),
        Some(other) => text_matches(pattern, &other.to_string(), lean),
        None => false,
    }
}

fn text_matches(pattern: &str, text: &str, lean: Lean) -> bool {
    match lean {
        Lean::Looser => glob(pattern, text) && (pattern == text || !climbs(text)),
        Lean::Stricter => glob(pattern, text) || (is_crooked(text) && glob(pattern, &straighten(text))),
    }
}

/// Whether a text, read as a path, has a `..` in it.
fn climbs(text: &str) -> bool {
    text.contains("..") && text.split(['/', '\\']).any(|part| part == "..")
}

/// Whether a text, read as a path, has a part that says nothing (`.`, or none at all) or climbs.
fn is_crooked(text: &str) -> bool {
    text.contains("//") || text.contains("/.") || text.starts_with("./") || text.starts_with("../")
}

/// A text, read as a path, without those parts.
fn straighten(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if text.starts_with('/') { "/" } else { "" };
    let end = if text.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("{root}{}{end}", parts.join("/"))
}
