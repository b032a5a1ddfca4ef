//! Tool results as their authors would have them shown: a few forms, named by a hint on the tool or by a hook on the result, and a
//! summary on one line.
//!
//! A hint chooses a form and nothing else. Whatever is shown goes through [`harmless`], begins behind a margin, and fits the line, so
//! that no result can write where only this program does. A hint that is not understood is ignored.

use holdfast_contract::content::Content;
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use super::text::markdown::Markdown;
use super::text::sanitize::{cut, one_line, safe_json, sanitize_for_terminal};
use super::text::style::TextStyle;

/// The most lines of a result.
const MAX_RESULT_LINES: usize = 40;
/// The widest that a cell of a table is.
const CELL: usize = 40;
const MARGIN: usize = 2;

/// How a result may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hint {
    form: Option<Form>,
    /// The field of the result that is shown, if not all of it.
    of: Option<String>,
    /// Words for the call's line, with `{field}` where a field of the result or of the arguments stands.
    summary: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Diff,
    Table,
    Markdown,
    Code,
    Json,
}

impl Hint {
    /// What a hint says: the name of a form, or an object with `as`, `of` and `summary`.
    pub(crate) fn read(hint: &Value) -> Self {
        let text = |name: &str| hint.get(name).and_then(Value::as_str).map(str::to_owned);
        let form = match hint.as_str().or_else(|| hint.get("as").and_then(Value::as_str)) {
            Some("diff") => Some(Form::Diff),
            Some("table") => Some(Form::Table),
            Some("markdown") => Some(Form::Markdown),
            Some("code") => Some(Form::Code),
            Some("json") => Some(Form::Json),
            _ => None,
        };
        Self { form, of: text("of"), summary: text("summary") }
    }

    /// The summary, on one line. A template that names a field which is not there gives none.
    pub(crate) fn summary(&self, arguments: Option<&Content>, result: &Content) -> Option<String> {
        let mut rest = self.summary.as_deref()?;
        let mut words = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}')?;
            let within = |content: &Content| content.value().get(name).map(plain);
            words.push_str(before);
            words.push_str(&within(result).or_else(|| arguments.and_then(within))?);
            rest = after;
        }
        Some(one_line(&(words + rest)))
    }

    /// The result in its form, whole lines; none if there is no form for it.
    pub(crate) fn block(&self, result: &Content, text_style: TextStyle, columns: usize) -> Option<String> {
        let form = self.form?;
        let whole = result.value();
        let shown = self.of.as_ref().map_or(Some(whole), |name| whole.get(name))?;
        let room = columns.saturating_sub(MARGIN).max(8);
        let lines: Vec<String> = match form {
            Form::Markdown => return Some(markdown(&plain(shown), text_style, columns)),
            Form::Table => table(shown, text_style, room)?,
            Form::Json => {
                let pretty = serde_json::to_string_pretty(shown).ok()?;
                safe_json(&pretty).lines().map(|line| cut(line, room)).collect()
            }
            Form::Code => plainly(shown).map(|line| text_style.paint("36", &cut(&line, room))).collect(),
            Form::Diff => plainly(shown).map(|line| changed(&cut(&line, room), text_style)).collect(),
        };
        Some(shortened(lines.into_iter().map(|line| format!("{:MARGIN$}{line}", "")).collect(), text_style))
    }
}

/// Markdown of an extension, behind the margin.
pub(crate) fn markdown(text: &str, text_style: TextStyle, columns: usize) -> String {
    let mut markdown = Markdown::new(text_style, columns, MARGIN);
    let shown = markdown.push(text) + &markdown.finish();
    shortened(shown.lines().map(str::to_owned).collect(), text_style)
}

fn shortened(mut lines: Vec<String>, text_style: TextStyle) -> String {
    let more = lines.len().saturating_sub(MAX_RESULT_LINES);
    if more > 0 {
        lines.truncate(MAX_RESULT_LINES);
        lines.push(format!("{:MARGIN$}{}", "", text_style.dim(&format!("… {more} more lines"))));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plainly(value: &Value) -> impl Iterator<Item = String> {
    let lines: Vec<String> = sanitize_for_terminal(&plain(value)).lines().map(str::to_owned).collect();
    lines.into_iter()
}

fn changed(line: &str, text_style: TextStyle) -> String {
    match line.chars().next() {
        Some('+') if line.starts_with("+++") => text_style.bold(line),
        Some('-') if line.starts_with("---") => text_style.bold(line),
        Some('+') => text_style.good(line),
        Some('-') => text_style.bad(line),
        Some('@') => text_style.dim(line),
        _ => line.to_owned(),
    }
}

/// A list of objects as a table: its columns are the fields, in the order of their names.
fn table(rows: &Value, text_style: TextStyle, room: usize) -> Option<Vec<String>> {
    let rows: Vec<&Map<String, Value>> =
        rows.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut names: Vec<&String> = rows.iter().flat_map(|row| row.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let cell = |text: &str| cut(&one_line(text), CELL);
    let cells = |row: &Map<String, Value>| -> Vec<String> {
        names.iter().map(|name| row.get(*name).map(|value| cell(&plain(value))).unwrap_or_default()).collect()
    };
    let head: Vec<String> = names.iter().map(|name| cell(name)).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(|row| cells(row))).collect();
    let widths: Vec<usize> = (0..names.len())
        .map(|column| {
            all.iter().filter_map(|row| row.get(column)).map(|text| text.width()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(text, width)| format!("{text}{}", " ".repeat(width.saturating_sub(text.width()))));
        cut(padded.collect::<Vec<_>>().join("  ").trim_end(), room)
    };
    let mut lines: Vec<String> = all.iter().map(line).collect();
    if let Some(head) = lines.first_mut() {
        *head = text_style.bold(head);
    }
    Some(lines)
}

#[cfg(test)]
#[path = "renders_tests.rs"]
mod tests;
