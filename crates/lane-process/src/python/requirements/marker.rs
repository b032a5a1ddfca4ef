//! The marker of a requirement: on which machines it applies (PEP 508). Parsed into comparisons, and written from these.

use std::fmt;

use crate::python::requirements::requirement::Scan;

/// How deep parentheses may be nested.
const MAX_DEPTH: usize = 16;

/// The variables of a marker: each accepted spelling, and the one that is written.
const VARIABLES: &[(&str, &str)] = &[
    ("python_version", "python_version"),
    ("python_full_version", "python_full_version"),
    ("os_name", "os_name"),
    ("os.name", "os_name"),
    ("sys_platform", "sys_platform"),
    ("sys.platform", "sys_platform"),
    ("platform_machine", "platform_machine"),
    ("platform.machine", "platform_machine"),
    ("platform_python_implementation", "platform_python_implementation"),
    ("platform.python_implementation", "platform_python_implementation"),
    ("python_implementation", "platform_python_implementation"),
    ("platform_release", "platform_release"),
    ("platform_system", "platform_system"),
    ("platform_version", "platform_version"),
    ("platform.version", "platform_version"),
    ("implementation_name", "implementation_name"),
    ("implementation_version", "implementation_version"),
    ("extra", "extra"),
];

/// The comparison operators. A longer one comes before its prefix.
const COMPARISONS: &[&str] = &["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// A condition on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// One of these holds.
    Any(Vec<Marker>),
    /// All of these hold.
    All(Vec<Marker>),
    /// A comparison of two values.
    Compare(Value, &'static str, Value),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A property of the machine.
    Variable(&'static str),
    /// Words of letters, digits and `._+*,-` with single spaces between. No word begins with `-`.
    Text(String),
}

impl Marker {
    /// Parses a marker as far as it goes. The error says what is wrong with it.
    pub(crate) fn parse(scan: &mut Scan<'_>) -> Result<Self, String> {
        Self::any(scan, 0)
    }

    fn any(scan: &mut Scan<'_>, depth: usize) -> Result<Self, String> {
        let first = Self::all(scan, depth)?;
        let mut parts = vec![first];
        while keyword(scan, "or") {
            parts.push(Self::all(scan, depth)?);
        }
        Ok(joined(parts, Self::Any))
    }

    fn all(scan: &mut Scan<'_>, depth: usize) -> Result<Self, String> {
        let first = Self::single(scan, depth)?;
        let mut parts = vec![first];
        while keyword(scan, "and") {
            parts.push(Self::single(scan, depth)?);
        }
        Ok(joined(parts, Self::All))
    }

    fn single(scan: &mut Scan<'_>, depth: usize) -> Result<Self, String> {
        scan.spaces();
        if scan.take("(") {
            if depth == MAX_DEPTH {
                return Err(format!("its marker has more than {MAX_DEPTH} nested parentheses"));
            }
            let inner = Self::any(scan, depth + 1)?;
            scan.spaces();
            return if scan.take(")") { Ok(inner) } else { Err("its marker has no `)`".to_owned()) };
        }
        let left = Value::parse(scan)?;
        let comparison = comparison(scan)?;
        let right = Value::parse(scan)?;
        match (&left, &right) {
            (Value::Text(_), Value::Text(_)) => return Err("its marker compares two texts".to_owned()),
            (Value::Variable(_), Value::Variable(_)) => {
                return Err("its marker compares two variables".to_owned());
            }
            (Value::Variable(name), Value::Text(text)) => agreed(name, comparison, text, false)?,
            (Value::Text(text), Value::Variable(name)) => agreed(name, comparison, text, true)?,
        }
        Ok(Self::Compare(left, comparison, right))
    }
}

/// Variables whose value is a version, compared as one.
const VERSIONS: &[&str] = &["python_version", "python_full_version", "implementation_version"];

/// Refuses a comparison that the installers read differently: pip compares as texts what `uv` leaves out, so that the package is
/// installed by one and not by the other.
fn agreed(name: &str, comparison: &str, text: &str, text_first: bool) -> Result<(), String> {
    let is_in = matches!(comparison, "in" | "not in");
    let mut words = text.split(' ');
    let agreed = if VERSIONS.contains(&name) {
        match comparison {
            "in" | "not in" => !text_first && name != "implementation_version" && words.all(is_version),
            "===" => false,
            "==" | "!=" => is_version(text.strip_suffix(".*").unwrap_or(text)),
            _ => is_version(text),
        }
    } else {
        matches!(comparison, "==" | "!=") || (is_in && name != "extra")
    };
    let told = || format!("its marker compares `{name}` in a way that installers do not agree about");
    if agreed { Ok(()) } else { Err(told()) }
}

/// Numbers with dots between them, and nothing else.
fn is_version(text: &str) -> bool {
    text.split('.').all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Several conditions as one; a single one stands for itself.
fn joined(mut parts: Vec<Marker>, join: fn(Vec<Marker>) -> Marker) -> Marker {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            join(parts)
        }
    }
}

/// Reads a word, if it comes next and ends there.
fn keyword(scan: &mut Scan<'_>, word: &str) -> bool {
    scan.spaces();
    let next = scan.rest().strip_prefix(word);
    let ends = next.is_some_and(|next| !next.starts_with(|char: char| char.is_alphanumeric() || char == '_'));
    ends && scan.take(word)
}

fn comparison(scan: &mut Scan<'_>) -> Result<&'static str, String> {
    scan.spaces();
    if let Some(found) = COMPARISONS.iter().find(|comparison| scan.take(comparison)) {
        return Ok(found);
    }
    if keyword(scan, "in") {
        return Ok("in");
    }
    if keyword(scan, "not") && keyword(scan, "in") {
        Ok("not in")
    } else {
        Err("its marker has an unknown comparison".to_owned())
    }
}

impl Value {
    fn parse(scan: &mut Scan<'_>) -> Result<Self, String> {
        scan.spaces();
        let Some(quote) = ["\"", "'"].into_iter().find(|quote| scan.take(quote)) else {
            let name = scan.word(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
            let known = VARIABLES.iter().find(|(known, _)| *known == name);
            return known
                .map(|(_, name)| Self::Variable(name))
                .ok_or_else(|| format!("its marker has no variable `{name}`"));
        };
        let text = scan.word(|byte| byte.is_ascii_alphanumeric() || b"._+*,- ".contains(&byte));
        if !scan.take(quote) {
            return Err("its marker has a text with characters that are not allowed".to_owned());
        }
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        if words.iter().any(|word| word.starts_with('-')) {
            Err("its marker has a word that begins with `-`".to_owned())
        } else {
            Ok(Self::Text(words.join(" ")))
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            Self::Compare(left, comparison, right) => return write!(f, "{left} {comparison} {right}"),
            Self::Any(parts) => (parts, " or "),
            Self::All(parts) => (parts, " and "),
        };
        for (at, part) in parts.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { word })?;
            match part {
                Self::Compare(..) => write!(f, "{part}")?,
                _ => write!(f, "({part})")?,
            }
        }
        Ok(())
    }
}
