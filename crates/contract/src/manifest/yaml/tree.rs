//! The tree: what the parser's events come to, with the place of every node.
//!
//! Aliases share what they name, so the tree itself never grows by them; what they would unfold to is counted
//! and bounded, and so is the depth. Keys that stand twice are noted here, because the tree keeps the last
//! value only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::field::Reported;
use super::notes::Notes;
use super::path::{self, PathStep};
use super::syntax;

/// How deep lists and mappings may nest, aliases followed.
const MAX_DEPTH: usize = 64;

/// How many times its size a text may unfold to.
const MAX_UNFOLDING: usize = 4;

/// The key that takes over the entries of another mapping.
const MERGE: &str = "<<";

/// A place in a text, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Mark {
    /// No place in particular.
    pub(super) const NOWHERE: Mark = Mark { line: 0, column: 0 };

    pub(super) fn new(line: usize, column: usize) -> Self {
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { line: number(line), column: number(column) }
    }
}

impl From<&Marker> for Mark {
    fn from(marker: &Marker) -> Self {
        Self::new(marker.line(), marker.col() + 1)
    }
}

/// One value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) mark: Mark,
    /// How many levels lie below.
    height: usize,
    /// What it comes to with aliases unfolded: one for each node, and the bytes of their texts.
    weight: usize,
    shape: Arc<NodeValue>,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum NodeValue {
    /// A text. Only a plain one, without quotes, may stand for a number, a boolean or nothing.
    Scalar { text: Box<str>, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A mapping, without keys that stand twice.
    Map(Vec<Entry>),
}

/// One line of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Arc<str>,
    pub(super) key_mark: Mark,
    pub(super) value: Node,
}

impl Node {
    fn scalar(mark: Mark, text: &str, plain: bool) -> Self {
        Self {
            mark,
            height: 0,
            weight: 1 + text.len(),
            shape: Arc::new(NodeValue::Scalar { text: text.into(), plain }),
        }
    }

    fn list(mark: Mark, items: Vec<Node>) -> Self {
        let height = items.iter().map(|item| item.height + 1).max().unwrap_or(1);
        let weight = items.iter().map(|item| item.weight).sum::<usize>() + 1;
        Self { mark, height, weight, shape: Arc::new(NodeValue::List(items)) }
    }

    fn map(mark: Mark, entries: Vec<Entry>) -> Self {
        let height = entries.iter().map(|entry| entry.value.height + 1).max().unwrap_or(1);
        let weight = entries.iter().map(|entry| entry.value.weight + entry.key.len()).sum::<usize>() + 1;
        Self { mark, height, weight, shape: Arc::new(NodeValue::Map(entries)) }
    }

    pub(super) fn shape(&self) -> &NodeValue {
        &self.shape
    }
}

/// Parses a text into its tree. A text without a value gives an empty scalar.
pub(super) fn build(text: &str, notes: &Notes<'_>) -> Result<Node, Reported> {
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = Builder { notes, open: Vec::new(), anchors: HashMap::new(), weight: 0, root: None };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| syntax::broken(notes, text, &error))?;
        builder.take(event, span)?;
    }
    Ok(builder.root.unwrap_or_else(|| Node::scalar(Mark::new(1, 1), "", true)))
}

struct Builder<'n> {
    notes: &'n Notes<'n>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    weight: usize,
    root: Option<Node>,
}

/// A collection that is not closed yet.
struct Open {
    mark: Mark,
    anchor: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, places: HashMap<Arc<str>, usize>, key: Key },
}

/// The key whose value comes next.
enum Key {
    /// A key comes first.
    Wanted,
    /// This one.
    Is(Arc<str>, Mark),
    /// One that cannot be; its value is passed over.
    Unusable,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Reported> {
        let mark = Mark::from(&span.start);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => Err(self.second_document(mark)),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !self.is_text(tag.as_deref(), mark);
                self.grow(1 + text.len(), mark)?;
                self.attach(Node::scalar(mark, &text, plain), anchor);
                Ok(())
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_text(tag.as_deref(), mark);
                self.descend(Open { mark, anchor, inside: Inside::List(Vec::new()) })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.is_text(tag.as_deref(), mark);
                let inside = Inside::Map { entries: Vec::new(), places: HashMap::new(), key: Key::Wanted };
                self.descend(Open { mark, anchor, inside })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close();
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, mark),
            _ => Ok(()),
        }
    }

    /// Whether a tag says that a scalar is text. Tags that would change the meaning of a value in some other
    /// way are refused: nobody here would act on them.
    fn is_text(&self, tag: Option<&Tag>, mark: Mark) -> bool {
        let Some(tag) = tag else { return false };
        let whole = tag.original();
        if !tag.is_yaml_core_schema() && whole != "!" {
            let what = format!("nobody here acts on the tag `{whole}`");
            let help = "Remove the tag and write the value itself; a text that begins with `!` must stand in quotes.";
            self.notes.error(self.notes.format.codes.value, mark, &self.path(), what, help);
        }
        tag.is_yaml_core_schema_tag("str") || whole == "!"
    }

    fn descend(&mut self, open: Open) -> Result<(), Reported> {
        self.grow(1, open.mark)?;
        self.check_depth(1, open.mark)?;
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let node = match open.inside {
            Inside::List(items) => Node::list(open.mark, items),
            Inside::Map { entries, places, .. } => Node::map(open.mark, self.merge(entries, &places)),
        };
        self.attach(node, open.anchor);
    }

    fn alias(&mut self, anchor: usize, mark: Mark) -> Result<(), Reported> {
        let codes = &self.notes.format.codes;
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let what = "the file is not valid YAML: an alias stands inside of what it names".to_owned();
            return Err(self.notes.error(codes.syntax, mark, &self.path(), what, "Write the value out."));
        };
        self.grow(node.weight, mark)?;
        self.check_depth(node.height, mark)?;
        self.attach(node, 0);
        Ok(())
    }

    /// Puts a finished node where it belongs. In a mapping it is a key or a value, by turns.
    fn attach(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let twice = match self.open.last_mut().map(|open| &mut open.inside) {
            None => {
                self.root = Some(node);
                return;
            }
            Some(Inside::List(items)) => {
                items.push(node);
                return;
            }
            Some(Inside::Map { entries, places, key }) => match std::mem::replace(key, Key::Wanted) {
                Key::Unusable => return,
                Key::Wanted => {
                    if let NodeValue::Scalar { text, .. } = node.shape() {
                        *key = Key::Is(Arc::from(&**text), node.mark);
                    } else {
                        *key = Key::Unusable;
                        self.unusable_key(node.mark);
                    }
                    return;
                }
                Key::Is(name, key_mark) => {
                    let entry = Entry { key: name.clone(), key_mark, value: node };
                    match places.get(&name).and_then(|place| entries.get_mut(*place)) {
                        Some(earlier) => (name, std::mem::replace(earlier, entry).key_mark, key_mark),
                        None => {
                            places.insert(name, entries.len());
                            entries.push(entry);
                            return;
                        }
                    }
                }
            },
        };
        let (name, first, again) = twice;
        let field = self.path_to(&name);
        let what = format!("`{name}` stands twice, at line {} and here", first.line);
        let help = "The last value counts; remove the others.";
        self.notes.warning(self.notes.format.codes.duplicate_key, again, &field, what, help);
    }

    /// Takes the entries over that a `<<` key names, as far as the mapping does not have its own.
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
                let what = "`<<` takes over the entries of a mapping, and this is none".to_owned();
                let help = "Write `<<: *name`, where `&name` stands before a mapping.";
                self.notes.error(
                    self.notes.format.codes.wrong_type,
                    source.mark,
                    &self.path_to(&Arc::from(MERGE)),
                    what,
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

    fn grow(&mut self, by: usize, mark: Mark) -> Result<(), Reported> {
        self.weight += by;
        let format = self.notes.format;
        if self.weight <= format.max_bytes * MAX_UNFOLDING {
            return Ok(());
        }
        let what = format!("the file unfolds to more than {} bytes", format.max_bytes * MAX_UNFOLDING);
        let help = "Aliases (`*name`) repeat what they name; use fewer of them.";
        Err(self.notes.error(format.codes.too_large, mark, &self.path(), what, help))
    }

    fn check_depth(&self, more: usize, mark: Mark) -> Result<(), Reported> {
        if self.open.len() + more <= MAX_DEPTH {
            return Ok(());
        }
        let what = format!("lists and mappings nest more than {MAX_DEPTH} levels deep");
        let codes = &self.notes.format.codes;
        Err(self.notes.error(codes.too_large, mark, &self.path(), what, "Make it flatter."))
    }

    fn second_document(&self, mark: Mark) -> Reported {
        let what = "the file has a second document".to_owned();
        self.notes.error(
            self.notes.format.codes.syntax,
            mark,
            "",
            what,
            "Remove the `---` in the middle and what follows it.",
        )
    }

    fn unusable_key(&self, mark: Mark) {
        let what = "a list or a mapping cannot be a key".to_owned();
        let help = "Use text as the key; a value that begins with `[`, `{` or `?` must stand in quotes.";
        self.notes.error(self.notes.format.codes.wrong_type, mark, &self.path(), what, help);
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
            Inside::Map { key: Key::Is(name, _), .. } => Some(PathStep::Key(name.clone())),
            Inside::Map { .. } => None,
        });
        steps.collect()
    }
}
