//! Reading values out of the tree. A [`Field`] knows its path and place, so a value that does not fit is
//! reported with both, and with what to write instead; reading goes on, so that the next problem is found
//! too.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value};

use super::nearest::nearest;
use super::notes::Notes;
use super::path::{Path, PathStep};
use super::scalar::Plain;
use super::tree::{Entry, Mark, Node, NodeValue};

/// Proof that an error has been recorded: whoever has no value has this instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(());

impl Reported {
    pub(super) fn new() -> Self {
        Self(())
    }
}

/// How many names a help text lists.
const LISTED: usize = 12;

/// A value in the file.
#[derive(Clone)]
pub struct Field<'r> {
    notes: &'r Notes<'r>,
    node: &'r Node,
    path: Path,
}

impl<'r> Field<'r> {
    pub(super) fn root(notes: &'r Notes<'r>, node: &'r Node) -> Self {
        Self { notes, node, path: Path::default() }
    }

    /// Where it is, written `agent.limits.max_turns`; empty for the whole file.
    pub fn path(&self) -> String {
        self.path.render()
    }

    /// Whether nothing is written there; that counts as leaving the field out.
    pub fn is_null(&self) -> bool {
        matches!(self.plain(), Some(Plain::Null))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.shape(), NodeValue::List(_))
    }

    /// Whether it is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.node.shape(), NodeValue::Map(_))
    }

    /// Text. A number without quotes counts as the text it is written as, so `1.10` stays `1.10`.
    pub fn text(&self) -> Result<String, Reported> {
        match (self.node.shape(), self.plain()) {
            (
                NodeValue::Scalar { text, .. },
                None | Some(Plain::Integer(_) | Plain::Float(_) | Plain::Text),
            ) => Ok(text.to_string()),
            (NodeValue::Scalar { text, .. }, Some(Plain::Boolean(_))) => Err(self
                .wrong_type("text", format!("Put it in quotes: `{}`.", self.written(format!("\"{text}\""))))),
            (NodeValue::List(items), _) => {
                let only = items.first().filter(|_| items.len() == 1).and_then(inline);
                let help = format!("Write `{}`.", self.written(only.unwrap_or("some text")));
                Err(self.wrong_type("text", help))
            }
            _ => Err(self.wrong_type("text", format!("Write `{}`.", self.written("some text")))),
        }
    }

    /// Text that is not blank.
    pub fn filled(&self) -> Result<String, Reported> {
        let text = self.text()?;
        if text.trim().is_empty() {
            return Err(self.reject(
                format!("{} is blank", self.subject()),
                "Write something there, or leave the field out.",
            ));
        }
        Ok(text)
    }

    /// Text without spaces: a name, a host, a topic.
    pub fn word(&self) -> Result<String, Reported> {
        let text = self.filled()?;
        if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            let what = format!("{} is `{}`, which has a space in it", self.subject(), shorten(&text));
            return Err(self.reject(what, "Write one word, without spaces."));
        }
        Ok(text)
    }

    /// `true` or `false`; `yes`, `no`, `on` and `off` are understood.
    pub fn boolean(&self) -> Result<bool, Reported> {
        if let Some(value) = self.plain_text().and_then(super::scalar::boolean) {
            return Ok(value);
        }
        let help = format!("Write `{}` or `{}`.", self.written(true), self.written(false));
        Err(self.wrong_type("`true` or `false`", help))
    }

    /// A whole number within bounds.
    pub fn whole<N>(&self, bounds: RangeInclusive<N>) -> Result<N, Reported>
    where
        N: Copy + Display + Into<i128> + TryFrom<i128>,
    {
        let (least, most) = ((*bounds.start()).into(), (*bounds.end()).into());
        match self.plain_text().and_then(super::scalar::integer) {
            Some(number) if (least..=most).contains(&number) => {
                N::try_from(number).map_err(|_| self.misfit(&bounds))
            }
            Some(_) => Err(self.misfit(&bounds)),
            None => {
                let quoted =
                    self.scalar_text().and_then(super::scalar::integer).filter(|_| self.plain().is_none());
                let help = match quoted {
                    Some(number) => format!("Write `{}`, without quotes.", self.written(number)),
                    None => format!("Write a whole number from {least} to {most}."),
                };
                Err(self.wrong_type("a whole number", help))
            }
        }
    }

    fn misfit<N: Display>(&self, bounds: &RangeInclusive<N>) -> Reported {
        let what = format!(
            "{} is {}, which is out of bounds",
            self.subject(),
            shorten(self.scalar_text().unwrap_or_default())
        );
        self.reject(what, format!("Use a whole number from {} to {}.", bounds.start(), bounds.end()))
    }

    /// One of a few values, by the names that they are serialised with.
    pub fn choice<T: Copy + Serialize>(&self, all: &[T]) -> Result<T, Reported> {
        let named = all.iter().filter_map(|value| match serde_json::to_value(value) {
            Ok(Value::String(name)) => Some((name, *value)),
            _ => None,
        });
        let named: Vec<(String, T)> = named.collect();
        let text = self.scalar_text().filter(|_| !self.is_null());
        if let Some((_, value)) = named.iter().find(|(name, _)| Some(name.as_str()) == text) {
            return Ok(*value);
        }
        let names = || named.iter().map(|(name, _)| name.as_str());
        let allowed = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Some(text) = text else {
            return Err(self.wrong_type("text", format!("Use one of {allowed}.")));
        };
        let help = match nearest(text, names()) {
            Some(near) => format!("Did you mean `{near}`? Use one of {allowed}."),
            None => format!("Use one of {allowed}."),
        };
        Err(self.reject(format!("`{}` is not a value of {}", shorten(text), self.subject()), help))
    }

    /// The items of a list, each read; every item that does not fit is reported.
    pub fn each<T>(&self, read: impl FnMut(&Field<'r>) -> Result<T, Reported>) -> Result<Vec<T>, Reported> {
        self.items(read, || match inline(self.node) {
            Some(text) if !self.path.is_item() => {
                format!("Write `{}`.", self.written(format!("[{text}]")))
            }
            _ => format!("Write one `- item` per line below `{}:`.", self.path.key()),
        })
    }

    /// The same for a list of mappings; what differs is the advice to those who write something else.
    pub fn each_mapping<T>(
        &self,
        read: impl FnMut(&Field<'r>) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        self.items(read, || match self.is_map() {
            true => "Put `- ` before its first line, and indent the others like it.".to_owned(),
            false => format!("Write `- key: value` items below `{}:`.", self.path.key()),
        })
    }

    fn items<T>(
        &self,
        mut read: impl FnMut(&Field<'r>) -> Result<T, Reported>,
        help: impl FnOnce() -> String,
    ) -> Result<Vec<T>, Reported> {
        let NodeValue::List(items) = self.node.shape() else { return Err(self.wrong_type("a list", help())) };
        let item =
            |(index, node)| Self { notes: self.notes, node, path: self.path.to(PathStep::Item(index)) };
        let read: Vec<_> = items.iter().enumerate().map(item).map(|item| read(&item)).collect();
        read.into_iter().collect()
    }

    /// The entries of a mapping with keys that are free to choose, each read; every entry that does not fit
    /// is reported.
    pub fn entries<T>(
        &self,
        mut read: impl FnMut(&str, &Field<'r>) -> Result<T, Reported>,
    ) -> Result<Vec<(String, T)>, Reported> {
        let read: Vec<_> = self
            .map()?
            .iter()
            .map(|entry| (entry.key.to_string(), read(&entry.key, &self.child(entry))))
            .collect();
        read.into_iter().map(|(key, value)| Ok((key, value?))).collect()
    }

    /// A mapping with given fields. Fields that the function does not ask for are warned about when it is
    /// done.
    pub fn object<T>(
        &self,
        read: impl FnOnce(&mut Object<'_, 'r>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let mut object = Object { field: self, entries: self.map()?, known: Vec::new(), advice: Vec::new() };
        let value = read(&mut object);
        object.warn_about_the_rest();
        value
    }

    /// Whatever is there, as JSON.
    pub fn json(&self) -> Result<Value, Reported> {
        match self.node.shape() {
            NodeValue::List(_) => self.each(|item| item.json()).map(Value::Array),
            NodeValue::Map(_) => self.json_map().map(Value::Object),
            NodeValue::Scalar { text, .. } => {
                let value =
                    self.plain().map_or_else(|| Some(Value::from(&**text)), |plain| plain.to_json(text));
                value.ok_or_else(|| {
                    let what = format!("{} is `{text}`, a number that JSON cannot carry", self.subject());
                    self.reject(what, format!("Put it in quotes: `{}`.", self.written(format!("\"{text}\""))))
                })
            }
        }
    }

    /// A mapping, as a JSON object.
    pub fn json_map(&self) -> Result<Map<String, Value>, Reported> {
        Ok(self.entries(|_, value| value.json())?.into_iter().collect())
    }

    /// Records that the value has the right type and still cannot be.
    pub fn reject(&self, what: impl Into<String>, help: impl Into<String>) -> Reported {
        self.notes.error(self.notes.format.codes.value, self.node.mark, &self.path(), what.into(), help)
    }

    /// Records that a value is doubtful, but taken.
    pub fn doubt(&self, what: impl Into<String>, help: impl Into<String>) {
        self.notes.warning(self.notes.format.codes.value, self.node.mark, &self.path(), what.into(), help);
    }

    /// The field with a value as a person would write it: `enabled: true`, or `- true` in a list.
    pub fn written(&self, value: impl Display) -> String {
        if self.path.is_item() { format!("- {value}") } else { format!("{}: {value}", self.path.key()) }
    }

    /// What messages call it.
    pub fn subject(&self) -> String {
        if self.path.is_root() { "the file".to_owned() } else { format!("`{}`", self.path.render()) }
    }

    fn child(&self, entry: &'r Entry) -> Self {
        Self { notes: self.notes, node: &entry.value, path: self.path.to(PathStep::Key(entry.key.clone())) }
    }

    fn map(&self) -> Result<&'r [Entry], Reported> {
        if let NodeValue::Map(entries) = self.node.shape() {
            return Ok(entries);
        }
        let name = self.notes.format.name;
        if !self.path.is_root() {
            let help = match self.path.is_item() {
                true => "Write `- key: value` there.".to_owned(),
                false => format!("Write indented `key: value` lines below `{}:`.", self.path.key()),
            };
            return Err(self.wrong_type("a mapping", help));
        }
        let help = format!("Write `key: value` lines; `holdfast schema {name}` prints what is allowed.");
        if self.is_null() {
            let codes = &self.notes.format.codes;
            return Err(self.notes.error(
                codes.missing_field,
                self.node.mark,
                "",
                "the file is empty".to_owned(),
                help,
            ));
        }
        Err(self.wrong_type("a mapping", help))
    }

    fn scalar_text(&self) -> Option<&'r str> {
        match self.node.shape() {
            NodeValue::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    fn plain_text(&self) -> Option<&'r str> {
        match self.node.shape() {
            NodeValue::Scalar { text, plain: true } => Some(text),
            _ => None,
        }
    }

    /// What a scalar without quotes stands for.
    fn plain(&self) -> Option<Plain> {
        self.plain_text().map(Plain::of)
    }

    fn wrong_type(&self, expected: &str, help: String) -> Reported {
        let found = match (self.node.shape(), self.plain()) {
            (NodeValue::List(_), _) => "a list".to_owned(),
            (NodeValue::Map(_), _) => "a mapping".to_owned(),
            (NodeValue::Scalar { .. }, Some(Plain::Null)) => "empty".to_owned(),
            (
                NodeValue::Scalar { text, .. },
                Some(Plain::Boolean(_) | Plain::Integer(_) | Plain::Float(_)),
            ) => {
                format!("`{}`", shorten(text))
            }
            (NodeValue::Scalar { text, .. }, _) => format!("the text `{}`", shorten(text)),
        };
        let what = format!("{} should be {expected}, but is {found}", self.subject());
        self.notes.error(self.notes.format.codes.wrong_type, self.node.mark, &self.path(), what, help)
    }
}

/// A mapping with given fields.
pub struct Object<'o, 'r> {
    field: &'o Field<'r>,
    entries: &'r [Entry],
    known: Vec<&'static str>,
    advice: Vec<(&'static str, &'static str)>,
}

impl<'r> Object<'_, 'r> {
    /// A field as it is written, if it is there and not empty.
    pub fn field(&mut self, name: &'static str) -> Option<Field<'r>> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let field = self.field.child(self.entry(name)?);
        (!field.is_null()).then_some(field)
    }

    fn entry(&self, name: &str) -> Option<&'r Entry> {
        self.entries.iter().find(|entry| *entry.key == *name)
    }

    /// A field that may be left out.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Field<'r>) -> Result<T, Reported>,
    ) -> Result<Option<T>, Reported> {
        self.field(name).map(|field| read(&field)).transpose()
    }

    /// A field with a default.
    pub fn defaulted<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Field<'r>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        Ok(self.optional(name, read)?.unwrap_or(default))
    }

    /// A field that must be there; the example is what the help shows.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        example: &str,
        read: impl FnOnce(&Field<'r>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        match self.field(name) {
            Some(field) => read(&field),
            None => Err(self.missing(name, format!("Add `{name}: {example}`."))),
        }
    }

    /// Records that something must be there and is not.
    pub fn missing(&self, name: &str, help: impl Into<String>) -> Reported {
        let Field { notes, node, path } = self.field;
        let field = path.to(PathStep::Key(name.into())).render();
        let (mark, what) = match self.entry(name) {
            Some(empty) => (empty.key_mark, format!("`{field}` is empty")),
            None => (node.mark, format!("`{field}` is missing")),
        };
        notes.error(notes.format.codes.missing_field, mark, &field, what, help)
    }

    /// What to tell somebody who writes a field that there is not.
    pub fn advise(&mut self, name: &'static str, help: &'static str) {
        self.advice.push((name, help));
    }

    /// Records that a field is there and nobody reads it, and why.
    pub fn unread(&self, name: &str, what: impl Into<String>, help: impl Into<String>) {
        let mark = self.entry(name).map_or(self.field.node.mark, |entry| entry.key_mark);
        self.warn(mark, name, what.into(), help.into());
    }

    fn warn(&self, mark: Mark, name: &str, what: String, help: String) {
        let notes = self.field.notes;
        let field = self.field.path.to(PathStep::Key(name.into())).render();
        notes.warning(notes.format.codes.unknown_field, mark, &field, what, help);
    }

    fn warn_about_the_rest(&self) {
        for entry in self.entries.iter().filter(|entry| !self.known.contains(&&*entry.key)) {
            let what = match self.field.path.is_root() {
                true => format!("there is no field `{}`", shorten(&entry.key)),
                false => format!("{} has no field `{}`", self.field.subject(), shorten(&entry.key)),
            };
            self.warn(entry.key_mark, &entry.key, what, self.help_for(&entry.key));
        }
    }

    fn help_for(&self, unknown: &str) -> String {
        if let Some((_, help)) = self.advice.iter().find(|(name, _)| *name == unknown) {
            return (*help).to_owned();
        }
        if let Some(near) = nearest(unknown, self.known.iter().copied()) {
            return format!("Did you mean `{near}`?");
        }
        if self.known.len() > LISTED {
            let name = self.field.notes.format.name;
            return format!("Remove it; `holdfast schema {name}` prints the fields there are.");
        }
        let names: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        format!("Remove it; the fields there are: {}.", names.join(", "))
    }
}

/// A scalar as it may stand inside of a line.
fn inline(node: &Node) -> Option<&str> {
    match node.shape() {
        NodeValue::Scalar { text, .. }
            if !text.is_empty() && text.len() <= 40 && !text.contains(['\n', ',', '[', ']']) =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// The beginning of a text, for a message of one line.
fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}
