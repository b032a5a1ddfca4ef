//! One line of `.env` changed, and the rest left as it is. What comes out is read back before it is used: it says what it should, or it is not
//! written.

use std::collections::BTreeMap;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};

/// What a `.env` says.
pub(super) type Variables = BTreeMap<String, SecretString>;

/// A value has no more lines.
const MAX_BYTES_LINES: usize = 200;

/// The variables of a text, as the home reads them: the last of a name counts, and an empty one is not set.
pub(super) fn parse(text: &str) -> Option<Variables> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Variables::new();
    for next in dotenvy::from_read_iter(text.as_bytes()) {
        let (name, value) = next.ok()?;
        if value.is_empty() {
            variables.remove(&name)
        } else {
            variables.insert(name, SecretString::from(value))
        };
    }
    Some(variables)
}

/// The text with a variable set, or left out. None if that cannot be done without changing another.
pub(super) fn change(text: &str, name: &str, value: Option<&SecretString>) -> Option<Zeroizing<String>> {
    let before = parse(text)?;
    let mut changed = without(text, name, &before)?;
    if let Some(value) = value {
        if !changed.is_empty() && !changed.ends_with('\n') {
            changed.push('\n');
        }
        changed.push_str(&format!("{name}={}\n", &*quoted(value.expose_secret())));
    }
    let after = parse(&changed)?;
    let exposed =
        |variables: &Variables, name: &str| variables.get(name).map(|it| it.expose_secret().to_owned());
    let set = exposed(&after, name).as_deref() == value.map(|value| value.expose_secret());
    (set && others_stay(&before, &after, name)).then_some(changed)
}

fn others_stay(before: &Variables, after: &Variables, name: &str) -> bool {
    let others = |variables: &Variables| -> Vec<(String, String)> {
        let others = variables.iter().filter(|(other, _)| *other != name);
        others.map(|(other, value)| (other.clone(), value.expose_secret().to_owned())).collect()
    };
    others(before) == others(after)
}

/// The text without the lines that set a variable. A value may go on over several lines: as many go as it takes for the rest to be read as before.
fn without(text: &str, name: &str, before: &Variables) -> Option<Zeroizing<String>> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    while let Some(first) = lines.iter().rposition(|line| sets(line, name)) {
        let longest = MAX_BYTES_LINES.min(lines.len() - first);
        let fits = |count: &usize| {
            let rest = [&lines[..first], &lines[first + count..]].concat().concat();
            let rest = Zeroizing::new(rest);
            parse(&rest).is_some_and(|after| others_stay(before, &after, name))
        };
        let count = (1..=longest).find(fits)?;
        lines.drain(first..first + count);
    }
    Some(Zeroizing::new(lines.concat()))
}

/// Whether a line begins by setting a variable.
fn sets(line: &str, name: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim_start();
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// A value so that it is read as it is.
fn quoted(value: &str) -> Zeroizing<String> {
    if !value.contains(['\'', '\n', '\r']) {
        return Zeroizing::new(format!("'{value}'"));
    }
    let mut quoted = Zeroizing::new(String::with_capacity(2 * value.len() + 2));
    quoted.push('"');
    for sign in value.chars() {
        match sign {
            '\n' => quoted.push_str("\\n"),
            '"' | '\\' | '$' => quoted.extend(['\\', sign]),
            _ => quoted.push(sign),
        }
    }
    quoted.push('"');
    quoted
}
