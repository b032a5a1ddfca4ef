//! The tree that is built from the parser's events, with the position of every node.
//!
//! Aliases share the node that they refer to, so they do not enlarge the tree; the size that they would expand
//! to is counted and limited, and so is the depth. Duplicate keys are reported here, because the tree has the
//! last value only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::diagnostics::{Collector, DiagnosticKind, Reported};
use super::path::{self, PathStep};
use super::syntax;

/// How deep lists and mappings may nest, aliases included.
const MAX_DEPTH: usize = 64;

/// How many times the maximal size of a text its aliases may expand to.
const MAX_EXPANSION: usize = 4;

/// The key that merges the entries of another mapping.
const MERGE: &str = "<<";

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1; 0 for the whole text.
    pub line: u32,
    /// The column in characters, from 1; 0 for the whole text.
    pub column: u32,
}

impl Position {
    /// The whole text.
    pub(super) const UNKNOWN: Position = Position { line: 0, column: 0 };

    pub(super) fn new(line: usize, column: usize) -> Self {
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { line: number(line), column: number(column) }
    }
}

impl From<&Marker> for Position {
    fn from(marker: &Marker) -> Self {
        Self::new(marker.line(), marker.col() + 1)
    }
}

/// A decoded text with the positions of its fields.
#[derive(Clone, Debug)]
pub struct YamlDocument {
    root: Node,
}

impl YamlDocument {
    pub(super) fn new(root: Node) -> Self {
        Self { root }
    }

    /// The position of a field, written `agent.limits.max_turns` or `depends_on[0]`. For a field that is not
    /// in the file it is the position of the nearest field around it.
    pub fn locate(&self, field: &str) -> Position {
        let mut node = &self.root;
        for step in field.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match node.shape() {
                NodeValue::Map(entries) => {
                    entries.iter().find(|entry| *entry.key == *step).map(|entry| &entry.value)
                }
                NodeValue::List(items) => {
                    step.strip_suffix(']').and_then(|index| items.get(index.parse::<usize>().ok()?))
                }
                NodeValue::Scalar { .. } => None,
            };
            match next {
                Some(found) => node = found,
                None => break,
            }
        }
        node.position
    }
}

/// A value with its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) position: Position,
    /// How many levels are below.
    height: usize,
    /// Its size with aliases expanded: one for each node, and the bytes of their texts.
    weight: usize,
    shape: Arc<NodeValue>,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum NodeValue {
    /// A text. Only a plain one, without quotes, may be a number, a boolean or null.
    Scalar { text: Box<str>, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A mapping without duplicate keys.
    Map(Vec<Entry>),
}

/// An entry of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Arc<str>,
    pub(super) key_position: Position,
    pub(super) value: Node,
}

impl Node {
    fn scalar(position: Position, text: &str, plain: bool) -> Self {
        Self {
            position,
            height: 0,
            weight: 1 + text.len(),
            shape: Arc::new(NodeValue::Scalar { text: text.into(), plain }),
        }
    }

    fn list(position: Position, items: Vec<Node>) -> Self {
        let height = items.iter().map(|item| item.height + 1).max().unwrap_or(1);
        let weight = items.iter().map(|item| item.weight).sum::<usize>() + 1;
        Self { position, height, weight, shape: Arc::new(NodeValue::List(items)) }
    }

    fn map(position: Position, entries: Vec<Entry>) -> Self {
        let height = entries.iter().map(|entry| entry.value.height + 1).max().unwrap_or(1);
        let weight = entries.iter().map(|entry| entry.value.weight + entry.key.len()).sum::<usize>() + 1;
        Self { position, height, weight, shape: Arc::new(NodeValue::Map(entries)) }
    }

    pub(super) fn shape(&self) -> &NodeValue {
        &self.shape
    }
}

/// Parses a text into its tree. A text without a value gives an empty scalar.
pub(super) fn build(text: &str, collector: &Collector<'_>) -> Result<Node, Reported> {
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = Builder { collector, open: Vec::new(), anchors: HashMap::new(), weight: 0, root: None };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| syntax::invalid_yaml(collector, text, &error))?;
        builder.take(event, span)?;
    }
    Ok(builder.root.unwrap_or_else(|| Node::scalar(Position::new(1, 1), "", true)))
}

struct Builder<'n> {
    collector: &'n Collector<'n>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    weight: usize,
    root: Option<Node>,
}

/// A collection that is not closed yet.
struct Open {
    position: Position,
    anchor: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, places: HashMap<Arc<str>, usize>, key: Key },
}

/// The key whose value comes next.
enum Key {
    /// None: the next node is a key.
    Expected,
    /// This one.
    Valid(Arc<str>, Position),
    /// An invalid one; its value is ignored.
    Invalid,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Reported> {
        let position = Position::from(&span.start);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => Err(self.second_document(position)),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !self.is_text(tag.as_deref(), position);
                self.grow(1 + text.len(), position)?;
                self.attach(Node::scalar(position, &text, plain), anchor);
                Ok(())
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_text(tag.as_deref(), position);
                self.descend(Open { position, anchor, inside: Inside::List(Vec::new()) })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.is_text(tag.as_deref(), position);
                let inside = Inside::Map { entries: Vec::new(), places: HashMap::new(), key: Key::Expected };
                self.descend(Open { position, anchor, inside })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close();
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, position),
            _ => Ok(()),
        }
    }

    /// Whether a tag declares a scalar to be text. Tags that would change the meaning of a value in another
    /// way are rejected, because they are not implemented.
    fn is_text(&self, tag: Option<&Tag>, position: Position) -> bool {
        let Some(tag) = tag else { return false };
        let whole = tag.original();
        if !tag.is_yaml_core_schema() && whole != "!" {
            let message = format!("unsupported tag `{whole}`");
            let help =
                "Remove the tag and write the value itself; a text that begins with `!` must be quoted.";
            self.collector.error(DiagnosticKind::Value, position, &self.path(), message, help);
        }
        tag.is_yaml_core_schema_tag("str") || whole == "!"
    }

    fn descend(&mut self, open: Open) -> Result<(), Reported> {
        self.grow(1, open.position)?;
        self.check_depth(1, open.position)?;
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let node = match open.inside {
            Inside::List(items) => Node::list(open.position, items),
            Inside::Map { entries, places, .. } => Node::map(open.position, self.merge(entries, &places)),
        };
        self.attach(node, open.anchor);
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), Reported> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let message = "the file is not valid YAML: an alias refers to a node that contains it".to_owned();
            return Err(self.collector.error(
                DiagnosticKind::Syntax,
                position,
                &self.path(),
                message,
                "Write the value out.",
            ));
        };
        self.grow(node.weight, position)?;
        self.check_depth(node.height, position)?;
        self.attach(node, 0);
        Ok(())
    }

    /// Adds a finished node to the open collection. In a mapping, keys and values alternate.
    fn attach(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let duplicate = match self.open.last_mut().map(|open| &mut open.inside) {
            None => {
                self.root = Some(node);
                return;
            }
            Some(Inside::List(items)) => {
                items.push(node);
                return;
            }
            Some(Inside::Map { entries, places, key }) => match std::mem::replace(key, Key::Expected) {
                Key::Invalid => return,
                Key::Expected => {
                    if let NodeValue::Scalar { text, .. } = node.shape() {
                        *key = Key::Valid(Arc::from(&**text), node.position);
                    } else {
                        *key = Key::Invalid;
                        self.invalid_key(node.position);
                    }
                    return;
                }
                Key::Valid(name, key_position) => {
                    let entry = Entry { key: name.clone(), key_position, value: node };
                    match places.get(&name).and_then(|place| entries.get_mut(*place)) {
                        Some(earlier) => (name, std::mem::replace(earlier, entry).key_position, key_position),
                        None => {
                            places.insert(name, entries.len());
                            entries.push(entry);
                            return;
                        }
                    }
                }
            },
        };
        let (name, first, second) = duplicate;
        let field = self.path_to(&name);
        let message = format!("duplicate key `{name}`, first at line {}", first.line);
        let help = "The last value counts; remove the others.";
        self.collector.warning(DiagnosticKind::DuplicateKey, second, &field, message, help);
    }

    /// Merges the entries of the mappings that a `<<` key refers to; the mapping's own entries take precedence.
    fn merge(&self, mut entries: Vec<Entry>, places: &HashMap<Arc<str>, usize>) -> Vec<Entry> {
        let Some(place) = places.get(MERGE) else { return entries };
        let merge = entries.remove(*place).value;
        let sources = match merge.shape() {
            NodeValue::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&merge),
        };
        let mut known: HashSet<&Arc<str>> = places.keys().collect();
        for source in sources {
            let NodeValue::Map(taken) = source.shape() else {
                let message = "`<<` merges the entries of a mapping, but this is not a mapping".to_owned();
                let help = "Write `<<: *name`, with `&name` before a mapping.";
                self.collector.error(
                    DiagnosticKind::WrongType,
                    source.position,
                    &self.path_to(&Arc::from(MERGE)),
                    message,
                    help,
                );
                continue;
            };
            for entry in taken {
                if known.insert(&entry.key) {
                    entries.push(entry.clone());
                }
            }
        }
        entries
    }

    fn grow(&mut self, by: usize, position: Position) -> Result<(), Reported> {
        self.weight += by;
        let max_bytes = self.collector.options.max_bytes * MAX_EXPANSION;
        if self.weight <= max_bytes {
            return Ok(());
        }
        let message = format!("the file expands to more than {} bytes", max_bytes);
        let help = "Each alias (`*name`) repeats its anchor's value; use fewer of them.";
        Err(self.collector.error(DiagnosticKind::TooLarge, position, &self.path(), message, help))
    }

    fn check_depth(&self, more: usize, position: Position) -> Result<(), Reported> {
        if self.open.len() + more <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("lists and mappings nest more than {MAX_DEPTH} levels deep");
        Err(self.collector.error(
            DiagnosticKind::TooLarge,
            position,
            &self.path(),
            message,
            "Make it flatter.",
        ))
    }

    fn second_document(&self, position: Position) -> Reported {
        let message = "the file has a second document".to_owned();
        self.collector.error(
            DiagnosticKind::Syntax,
            position,
            "",
            message,
            "Remove the `---` in the middle and what follows it.",
        )
    }

    fn invalid_key(&self, position: Position) {
        let message = "a list or a mapping cannot be a key".to_owned();
        let help = "Use text as the key; a value that begins with `[`, `{` or `?` must be quoted.";
        self.collector.error(DiagnosticKind::WrongType, position, &self.path(), message, help);
    }

    /// The field that is being built.
    fn path(&self) -> String {
        path::render(self.steps().iter())
    }

    /// A key of the mapping that is being built.
    fn path_to(&self, key: &Arc<str>) -> String {
        path::render(self.steps().iter().chain([&PathStep::Key(key.clone())]))
    }

    fn steps(&self) -> Vec<PathStep> {
        let steps = self.open.iter().filter_map(|open| match &open.inside {
            Inside::List(items) => Some(PathStep::Item(items.len())),
            Inside::Map { key: Key::Valid(name, _), .. } => Some(PathStep::Key(name.clone())),
            Inside::Map { .. } => None,
        });
        steps.collect()
    }
}
