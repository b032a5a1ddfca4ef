//! Typed access to the values of the tree. A [`Field`] has its path and position, so an invalid value is reported
//! with both and with a fix; reading continues, so that all problems are found.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value};

use super::diagnostics::{Collector, DiagnosticKind, Reported};
use super::nearest::nearest;
use super::path::{Path, PathStep};
use super::scalar::Plain;
use super::tree::{Entry, Node, NodeValue, Position};

/// How many names a help text lists.
const MAX_NAMES_LISTED: usize = 12;

/// How many characters of a value a message quotes.
const MAX_QUOTED_CHARS: usize = 40;

/// A value in the file.
#[derive(Clone)]
pub struct Field<'r> {
    collector: &'r Collector<'r>,
    node: &'r Node,
    path: Path,
}

impl<'r> Field<'r> {
    pub(super) fn root(collector: &'r Collector<'r>, node: &'r Node) -> Self {
        Self { collector, node, path: Path::default() }
    }

    /// Its path, written `agent.limits.max_turns`; empty for the whole file.
    pub fn path(&self) -> String {
        self.path.render()
    }

    /// Whether it is null, which is the same as leaving the field out.
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

    /// Text. A number without quotes is read as the text it is written as, so `1.10` stays `1.10`.
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
            let message = format!("{} is `{}`, which has a space in it", self.subject(), shorten(&text));
            return Err(self.reject(message, "Write one word, without spaces."));
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

    /// A whole number within a range.
    pub fn whole<N>(&self, bounds: RangeInclusive<N>) -> Result<N, Reported>
    where
        N: Copy + Display + Into<i128> + TryFrom<i128>,
    {
        let (least, most) = ((*bounds.start()).into(), (*bounds.end()).into());
        match self.plain_text().and_then(super::scalar::integer) {
            Some(number) if (least..=most).contains(&number) => {
                N::try_from(number).map_err(|_| self.out_of_range(&bounds))
            }
            Some(_) => Err(self.out_of_range(&bounds)),
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

    fn out_of_range<N: Display>(&self, bounds: &RangeInclusive<N>) -> Reported {
        let message = format!(
            "{} is {}, which is out of range",
            self.subject(),
            shorten(self.scalar_text().unwrap_or_default())
        );
        self.reject(message, format!("Use a whole number from {} to {}.", bounds.start(), bounds.end()))
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

    /// The items of a list; every invalid item is reported.
    pub fn each<T>(&self, read: impl FnMut(&Field<'r>) -> Result<T, Reported>) -> Result<Vec<T>, Reported> {
        self.items(read, || match inline(self.node) {
            Some(text) if !self.path.is_item() => {
                format!("Write `{}`.", self.written(format!("[{text}]")))
            }
            _ => format!("Write one `- item` per line below `{}:`.", self.path.key()),
        })
    }

    /// The same for a list of mappings; only the help for another type differs.
    pub fn each_mapping<T>(
        &self,
        read: impl FnMut(&Field<'r>) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        self.items(read, || {
            if self.is_map() {
                "Put `- ` before its first line, and indent the others like it.".to_owned()
            } else {
                format!("Write `- key: value` items below `{}:`.", self.path.key())
            }
        })
    }

    fn items<T>(
        &self,
        mut read: impl FnMut(&Field<'r>) -> Result<T, Reported>,
        help: impl FnOnce() -> String,
    ) -> Result<Vec<T>, Reported> {
        let NodeValue::List(items) = self.node.shape() else { return Err(self.wrong_type("a list", help())) };
        let item = |(index, node)| Self {
            collector: self.collector,
            node,
            path: self.path.to(PathStep::Item(index)),
        };
        let read: Vec<_> = items.iter().enumerate().map(item).map(|item| read(&item)).collect();
        read.into_iter().collect()
    }

    /// The entries of a mapping with arbitrary keys; every invalid entry is reported.
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

    /// A mapping with known fields. A field that the function does not read is reported as unknown.
    pub fn object<T>(
        &self,
        read: impl FnOnce(&mut Object<'_, 'r>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let mut object = Object { field: self, entries: self.map()?, known: Vec::new(), advice: Vec::new() };
        let value = read(&mut object);
        object.report_unknown_fields();
        value
    }

    /// Any value, as JSON.
    pub fn json(&self) -> Result<Value, Reported> {
        match self.node.shape() {
            NodeValue::List(_) => self.each(|item| item.json()).map(Value::Array),
            NodeValue::Map(_) => self.json_map().map(Value::Object),
            NodeValue::Scalar { text, .. } => {
                let value =
                    self.plain().map_or_else(|| Some(Value::from(&**text)), |plain| plain.to_json(text));
                value.ok_or_else(|| {
                    let message =
                        format!("{} is `{text}`, a number that JSON cannot represent", self.subject());
                    self.reject(
                        message,
                        format!("Put it in quotes: `{}`.", self.written(format!("\"{text}\""))),
                    )
                })
            }
        }
    }

    /// A mapping, as a JSON object.
    pub fn json_map(&self) -> Result<Map<String, Value>, Reported> {
        Ok(self.entries(|_, value| value.json())?.into_iter().collect())
    }

    /// Records that the value has the right type but is invalid.
    pub fn reject(&self, message: impl Into<String>, help: impl Into<String>) -> Reported {
        self.collector.error(DiagnosticKind::Value, self.node.position, &self.path(), message.into(), help)
    }

    /// Rejects a field that this version does not have yet.
    pub fn unavailable(&self) -> Reported {
        let message = format!("{} is not available in this version", self.subject());
        self.collector.error(
            DiagnosticKind::Unavailable,
            self.node.position,
            &self.path(),
            message,
            "Remove it.".to_owned(),
        )
    }

    /// Rejects a value that this version does not have yet, and says which to use.
    pub fn unavailable_value(&self, value: &str, help: &str) -> Reported {
        let message = format!("{} `{value}` is not available in this version", self.subject());
        let (position, path) = (self.node.position, self.path());
        self.collector.error(DiagnosticKind::Unavailable, position, &path, message, help)
    }

    /// Warns of a field that this version does not have yet, and that is ignored.
    pub fn ignored(&self) {
        let message = format!("{} is not available in this version, and is ignored", self.subject());
        let help = "Remove it, or leave it for a later version.".to_owned();
        self.collector.warning(DiagnosticKind::Unavailable, self.node.position, &self.path(), message, help);
    }

    /// Records a warning about a value that is accepted.
    pub fn warn(&self, message: impl Into<String>, help: impl Into<String>) {
        self.collector.warning(DiagnosticKind::Value, self.node.position, &self.path(), message.into(), help);
    }

    /// The field with a value as it is written in the file: `enabled: true`, or `- true` in a list.
    pub fn written(&self, value: impl Display) -> String {
        if self.path.is_item() { format!("- {value}") } else { format!("{}: {value}", self.path.key()) }
    }

    /// Its name in messages.
    pub fn subject(&self) -> String {
        if self.path.is_root() { "the file".to_owned() } else { format!("`{}`", self.path.render()) }
    }

    fn child(&self, entry: &'r Entry) -> Self {
        Self {
            collector: self.collector,
            node: &entry.value,
            path: self.path.to(PathStep::Key(entry.key.clone())),
        }
    }

    fn map(&self) -> Result<&'r [Entry], Reported> {
        if let NodeValue::Map(entries) = self.node.shape() {
            return Ok(entries);
        }
        let name = self.collector.options.schema;
        if !self.path.is_root() {
            let help = if self.path.is_item() {
                "Write `- key: value` there.".to_owned()
            } else {
                format!("Write indented `key: value` lines below `{}:`.", self.path.key())
            };
            return Err(self.wrong_type("a mapping", help));
        }
        let help = format!("Write `key: value` lines; `holdfast schema {name}` prints what is allowed.");
        if self.is_null() {
            let message = "the file is empty".to_owned();
            return Err(self.collector.error(
                DiagnosticKind::MissingField,
                self.node.position,
                "",
                message,
                help,
            ));
        }
        Err(self.wrong_type("a mapping", help))
    }

    /// What is written in a scalar, whatever it means; none for a list or a mapping.
    pub fn scalar_text(&self) -> Option<&'r str> {
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

    /// The meaning of a scalar without quotes.
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
        let message = format!("{} should be {expected}, but is {found}", self.subject());
        self.collector.error(DiagnosticKind::WrongType, self.node.position, &self.path(), message, help)
    }
}

/// A mapping with known fields.
pub struct Object<'o, 'r> {
    field: &'o Field<'r>,
    entries: &'r [Entry],
    known: Vec<&'static str>,
    advice: Vec<(&'static str, &'static str)>,
}

impl<'r> Object<'_, 'r> {
    /// A field, if it is present and not null.
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

    /// A required field; the help shows the example.
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

    /// Records that a required field is missing.
    pub fn missing(&self, name: &str, help: impl Into<String>) -> Reported {
        let Field { collector, node, path } = self.field;
        let field = path.to(PathStep::Key(name.into())).render();
        let (position, message) = match self.entry(name) {
            Some(empty) => (empty.key_position, format!("`{field}` is empty")),
            None => (node.position, format!("`{field}` is missing")),
        };
        collector.error(DiagnosticKind::MissingField, position, &field, message, help)
    }

    /// Sets the help for an unknown field that users are likely to write.
    pub fn advise(&mut self, name: &'static str, help: &'static str) {
        self.advice.push((name, help));
    }

    /// Records that a field is present but not used, and why.
    pub fn unread(&self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        let position = self.entry(name).map_or(self.field.node.position, |entry| entry.key_position);
        self.report_unknown(position, name, message.into(), help.into());
    }

    fn report_unknown(&self, position: Position, name: &str, message: String, help: String) {
        let collector = self.field.collector;
        let field = self.field.path.to(PathStep::Key(name.into())).render();
        collector.warning(DiagnosticKind::UnknownField, position, &field, message, help);
    }

    fn report_unknown_fields(&self) {
        for entry in self.entries.iter().filter(|entry| !self.known.contains(&&*entry.key)) {
            let name = shorten(&entry.key);
            let message = if self.field.path.is_root() {
                format!("unknown field `{name}`")
            } else {
                format!("unknown field `{name}` in {}", self.field.subject())
            };
            self.report_unknown(entry.key_position, &entry.key, message, self.help_for(&entry.key));
        }
    }

    fn help_for(&self, unknown: &str) -> String {
        if let Some((_, help)) = self.advice.iter().find(|(name, _)| *name == unknown) {
            return (*help).to_owned();
        }
        if let Some(near) = nearest(unknown, self.known.iter().copied()) {
            return format!("Did you mean `{near}`?");
        }
        if self.known.len() > MAX_NAMES_LISTED {
            let name = self.field.collector.options.schema;
            return format!("Remove it; `holdfast schema {name}` lists the fields.");
        }
        let names: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        format!("Remove it; the fields are: {}.", names.join(", "))
    }
}

/// A scalar that fits into a line of a help text.
fn inline(node: &Node) -> Option<&str> {
    match node.shape() {
        NodeValue::Scalar { text, .. }
            if !text.is_empty()
                && text.len() <= MAX_QUOTED_CHARS
                && !text.contains(['\n', ',', '[', ']']) =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// The beginning of a text, for a message of one line.
fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}
