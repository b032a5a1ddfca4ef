//! Writing one setting of an extension into `config/settings.yaml`, with every other line as it was.

use std::collections::BTreeMap;
use std::fs::File;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use serde_json::Value;

use super::{BOUNDS, McpServerSettings, Settings};
use crate::files;
use crate::home::Home;

impl Home {
    /// Sets `extensions.ID.NAME`. The new text is read back first: where it would say anything else, nothing is written.
    pub fn set_extension(&self, id: &ExtensionId, name: &str, value: &Value) -> Result<(), Problem> {
        let (folder, file) = (self.config(), self.settings_file());
        files::make_folder(&folder)?;
        let failed = |error: std::io::Error| files::failed(Code::HomeUnavailable, &folder, "locked", &error);
        // Held to the end, so that two settings at the same time are both written.
        let guard = File::open(&folder).map_err(failed)?;
        guard.lock().map_err(failed)?;
        let bytes = files::read(&file, &BOUNDS)?.unwrap_or_default();
        let text = files::text(&file, bytes, Code::SettingsUnreadable)?;
        let before = Settings::parse(&file, text.as_bytes())?;
        let (mut wanted, odd) = (before.value, before.warnings.len());
        wanted.extensions.entry(id.clone()).or_default().insert(name.to_owned(), value.clone());
        // A duplicate section has the same effect, with a warning.
        let says_it = |text: &String| {
            let read = Settings::parse(&file, text.as_bytes());
            read.is_ok_and(|read| read.value == wanted && read.warnings.len() <= odd)
        };
        let edits = with(&text, id.as_str(), name, value);
        let Some(written) = edits.into_iter().chain(inline(&text, id.as_str(), name, value)).find(says_it)
        else {
            let what = format!("`extensions.{id}.{name}` cannot be written without changing other lines");
            let help = "Write it into the file by hand.";
            return Err(Problem::in_file(Code::SettingsInvalid, &file, what).help(help));
        };
        files::replace(&file, &written)
    }
}

impl Home {
    /// Adds MCP servers to the settings. The new text is read back first: where it would say anything else, nothing is written.
    pub fn add_mcp_servers(&self, servers: &BTreeMap<String, McpServerSettings>) -> Result<(), Problem> {
        let (folder, file) = (self.config(), self.settings_file());
        files::make_folder(&folder)?;
        let failed = |error: std::io::Error| files::failed(Code::HomeUnavailable, &folder, "locked", &error);
        let guard = File::open(&folder).map_err(failed)?;
        guard.lock().map_err(failed)?;
        let bytes = files::read(&file, &BOUNDS)?.unwrap_or_default();
        let text = files::text(&file, bytes, Code::SettingsUnreadable)?;
        let mut wanted = Settings::parse(&file, text.as_bytes())?.value;
        wanted.mcp.servers.extend(servers.clone());
        // JSON is YAML, and on one line.
        let lines = servers.iter().filter_map(|(name, server)| {
            Some(format!("    {name}: {}\n", serde_json::to_string(server).ok()?))
        });
        let lines: String = lines.collect();
        let apart = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let below = |section: &str| text.replacen(section, &format!("{section}{lines}"), 1);
        let written = [format!("{text}{apart}\nmcp:\n  servers:\n{lines}"), below("mcp:\n  servers:\n")];
        let says_it = |text: &&String| {
            let read = Settings::parse(&file, text.as_bytes());
            read.is_ok_and(|read| read.value == wanted && read.warnings.is_empty())
        };
        let Some(written) = written.iter().find(says_it) else {
            let what = "the servers cannot be added without changing other lines";
            let help = format!("Write them below `mcp.servers` by hand:\n{lines}");
            return Err(Problem::in_file(Code::SettingsInvalid, &file, what).help(help));
        };
        files::replace(&file, written)
    }
}

/// The text with the setting, in the ways in which it may be put there.
fn with(text: &str, id: &str, name: &str, value: &Value) -> Vec<String> {
    // JSON is YAML, and on one line.
    let (setting, id) = (format!("    {name}: {value}"), format!("  {id}:"));
    let mut lines: Vec<&str> = text.lines().collect();
    let is = |line: &&str, wanted: &str| line.split(" #").next().unwrap_or_default().trim_end() == wanted;
    let Some(section) = lines.iter().position(|line| is(line, "extensions:")) else {
        let apart = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return vec![format!("{text}{apart}\nextensions:\n{id}\n{setting}\n")];
    };
    let within = |from: usize, indent: &str| {
        let inside = |line: &&&str| line.is_empty() || line.starts_with('#') || line.starts_with(indent);
        from + 1 + lines[from + 1..].iter().take_while(inside).count()
    };
    let found = lines[section..within(section, " ")].iter().position(|line| is(line, &id));
    let added = [id.as_str(), setting.as_str()];
    match found.map(|place| section + place) {
        None => drop(lines.splice(section + 1..section + 1, added)),
        Some(place) => {
            let end = within(place, "   ");
            let field = format!("    {name}:");
            let known = (place + 1..end).find(|line| lines[*line].starts_with(&field));
            match known {
                Some(known) => {
                    let replaced = format!("{setting}{}", comment(lines[known]));
                    lines[known] = &replaced;
                    return vec![lines.join("\n") + "\n"];
                }
                None => lines.insert(place + 1, &setting),
            }
        }
    }
    vec![lines.join("\n") + "\n"]
}

/// The comment at the end of a line. Where the line has quotes, a `#` may be part of the value.
fn comment(line: &str) -> &str {
    let at = line.find(" #").filter(|_| !line.contains(['"', '\'']));
    at.and_then(|at| line.get(at..)).unwrap_or_default()
}

/// The text with the setting inside braces: `extensions: { weather: { city: Graz } }`, or `weather: { … }` on a line of its own. A value
/// that is there is replaced if it is `true` or `false`.
fn inline(text: &str, id: &str, name: &str, value: &Value) -> Vec<String> {
    let mut edits = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let whole = |edited: String| [&text[..start], &edited, &text[start + line.len()..]].concat();
        let after = |from: usize, key: &str| {
            let found = line.get(from..)?.find(key)?;
            Some(from + found + key.len())
        };
        let own = after(0, &format!("{id}: {{"));
        if let Some(open) = own {
            edits.push(whole(format!("{} {name}: {value},{}", &line[..open], &line[open..])));
            let known = after(open, &format!("{name}: "));
            let old =
                known.and_then(|at| ["true", "false"].into_iter().find(|old| line[at..].starts_with(old)));
            if let (Some(at), Some(old)) = (known, old) {
                edits.push(whole(format!("{}{value}{}", &line[..at], &line[at + old.len()..])));
            }
        }
        if let Some(open) = after(0, "extensions: {").filter(|_| own.is_none()) {
            let comma = if line[open..].trim_start().starts_with('}') { " " } else { "," };
            edits.push(whole(format!(
                "{} {id}: {{ {name}: {value} }}{comma}{}",
                &line[..open],
                &line[open..]
            )));
        }
        start += line.len();
    }
    edits
}
