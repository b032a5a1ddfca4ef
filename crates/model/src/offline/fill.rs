//! A tool's arguments from a text, by the tool's schema.

use holdfast_contract::content::Content;
use holdfast_contract::tool::ToolSpec;
use holdfast_words::stem;
use serde_json::{Map, Value};

use super::words::{is_stop_word, stems};

/// A parameter of a tool, as its schema has it.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) required: bool,
    schema: Value,
}

impl Parameter {
    /// A tool's parameters: the required ones first, in the order in which they are required.
    pub(super) fn all(tool: &ToolSpec) -> Vec<Self> {
        let empty = Map::new();
        let schema = tool.input_schema.value().as_object().unwrap_or(&empty);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let place =
            |name: &str| required.iter().position(|required| *required == name).unwrap_or(required.len());
        let mut all: Vec<Self> = properties
            .iter()
            .map(|(name, schema)| Self {
                name: name.clone(),
                description: schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
                required: required.contains(&name.as_str()),
                schema: schema.clone(),
            })
            .collect();
        all.sort_by(|a, b| (place(&a.name), &a.name).cmp(&(place(&b.name), &b.name)));
        all
    }

    fn kind(&self) -> &str {
        match self.schema.get("type") {
            Some(Value::String(kind)) => kind,
            // `["string", "null"]`: the first that is something.
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
            }
            _ => "",
        }
    }

    fn choices(&self) -> Option<&Vec<Value>> {
        self.schema.get("enum")?.as_array()
    }

    fn is_about(&self, subjects: &[&str]) -> bool {
        let format = self.schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let words = stems(&format!("{} {format}", self.name));
        subjects.iter().any(|subject| words.contains(&stem(subject)))
    }

    /// A written value in the type that the schema asks for.
    fn convert(&self, written: &str) -> Value {
        let text = || Value::String(written.to_owned());
        let json = || serde_json::from_str(written).ok();
        match self.kind() {
            "string" => text(),
            "array" if !written.starts_with('[') => {
                let of = self.schema.get("items").cloned().unwrap_or_default();
                let item =
                    Self { name: String::new(), description: String::new(), required: false, schema: of };
                written.split(',').map(|part| item.convert(part.trim())).collect()
            }
            "boolean" => match written.to_lowercase().as_str() {
                "yes" | "on" | "true" => Value::Bool(true),
                "no" | "off" | "false" => Value::Bool(false),
                _ => text(),
            },
            _ => json().unwrap_or_else(text),
        }
    }
}

/// The arguments of `/tool …`: JSON, `key=value` pairs, or a text for a tool that needs one.
pub(super) fn from_command(tool: &ToolSpec, rest: &str) -> Result<Map<String, Value>, String> {
    if rest.starts_with('{') {
        return match serde_json::from_str(rest) {
            Ok(arguments) => Ok(arguments),
            Err(error) => Err(format!("The arguments are not a JSON object: {error}.")),
        };
    }
    let parameters = Parameter::all(tool);
    let pieces = pieces(rest);
    let known = |key: &str| parameters.iter().any(|parameter| parameter.name == key);
    let pairs = pieces.iter().any(|piece| piece.pair().is_some_and(|(key, _)| known(key)));
    let required: Vec<&Parameter> = parameters.iter().filter(|parameter| parameter.required).collect();
    if let ([only], false, false) = (required.as_slice(), pairs, rest.is_empty()) {
        let whole = match pieces.as_slice() {
            [Piece { text, quoted: true, .. }] => text.clone(),
            _ => rest.to_owned(),
        };
        return Ok(Map::from_iter([(only.name.clone(), only.convert(&whole))]));
    }
    let mut arguments = Map::new();
    for piece in &pieces {
        let Some((key, value)) = piece.pair() else {
            return Err(format!("`{}` is not `key=value`.", piece.text));
        };
        let value = match parameters.iter().find(|parameter| parameter.name == key) {
            Some(parameter) => parameter.convert(value),
            None => Value::String(value.to_owned()),
        };
        arguments.insert(key.to_owned(), value);
    }
    match required.iter().find(|parameter| !arguments.contains_key(&parameter.name)) {
        Some(missing) => Err(format!("`{}` is missing.", missing.name)),
        None => Ok(arguments),
    }
}

/// The arguments of a tool that a sentence speaks of, or the parameter that it says nothing of.
pub(super) fn from_text(tool: &ToolSpec, text: &str) -> Result<Map<String, Value>, String> {
    let mut pieces = pieces(text);
    let mut arguments = Map::new();
    let mut free = Vec::new();
    for parameter in Parameter::all(tool) {
        match take(&parameter, &mut pieces) {
            Some(value) => drop(arguments.insert(parameter.name, value)),
            None if parameter.required && matches!(parameter.kind(), "string" | "") => free.push(parameter),
            None if parameter.required => return Err(parameter.name),
            None => {}
        }
    }
    let mut free = free.into_iter();
    if let Some(parameter) = free.next() {
        let rest = remainder(tool, &pieces);
        if rest.is_empty() || parameter.choices().is_some() {
            return Err(parameter.name);
        }
        arguments.insert(parameter.name, Value::String(rest));
    }
    match free.next() {
        Some(parameter) => Err(parameter.name),
        None => Ok(arguments),
    }
}

/// The piece that a parameter can only mean, taken out of the text.
fn take(parameter: &Parameter, pieces: &mut Vec<Piece>) -> Option<Value> {
    let named = |piece: &Piece| piece.pair().is_some_and(|(key, _)| key == parameter.name);
    if let Some(place) = pieces.iter().position(named) {
        let piece = pieces.remove(place);
        return piece.pair().map(|(_, value)| parameter.convert(value));
    }
    if let Some(choices) = parameter.choices() {
        let same = |piece: &Piece, choice: &Value| {
            Content::new(choice.clone()).to_text().eq_ignore_ascii_case(piece.bare())
        };
        let place = pieces.iter().position(|piece| choices.iter().any(|choice| same(piece, choice)))?;
        let piece = pieces.remove(place);
        return choices.iter().find(|choice| same(&piece, choice)).cloned();
    }
    if !parameter.required {
        return None;
    }
    let fits: fn(&Piece) -> bool = match parameter.kind() {
        "integer" => |piece| piece.bare().parse::<i64>().is_ok(),
        "number" => |piece| piece.bare().parse::<f64>().is_ok(),
        "boolean" => |piece| matches!(piece.bare(), "true" | "false" | "yes" | "no" | "on" | "off"),
        "string" | "" if parameter.is_about(&["url", "uri", "link", "address"]) => Piece::is_url,
        "string" | "" if parameter.is_about(&["path", "file", "folder", "directory", "dir"]) => {
            Piece::is_path
        }
        "string" | "" | "array" => |piece| piece.quoted,
        _ => |_| false,
    };
    let place = pieces.iter().position(fits).or_else(|| {
        let text = matches!(parameter.kind(), "string" | "");
        pieces.iter().position(|piece| piece.quoted).filter(|_| text)
    })?;
    let piece = pieces.remove(place);
    Some(parameter.convert(if piece.quoted { &piece.text } else { piece.bare() }))
}

/// What is left of a sentence once the words that only chose the tool are gone from its beginning.
fn remainder(tool: &ToolSpec, pieces: &[Piece]) -> String {
    let about: Vec<String> = stems(&format!("{} {}", tool.name, tool.description));
    let chose = |piece: &&Piece| {
        let word = piece.bare();
        let asks = matches!(word.to_lowercase().as_str(), "how" | "what" | "when" | "which" | "who");
        !piece.quoted && !asks && (is_stop_word(word) || about.contains(&stem(&word.to_lowercase())))
    };
    let rest: Vec<&str> = pieces.iter().skip_while(chose).map(|piece| piece.text.as_str()).collect();
    rest.join(" ")
}

/// A word, a quoted text, or `key=value` with a quoted value.
#[derive(Debug, PartialEq)]
struct Piece {
    text: String,
    /// Whether all of it stood in quotes.
    quoted: bool,
}

impl Piece {
    /// Without the marks that end a clause.
    fn bare(&self) -> &str {
        self.text.trim_end_matches([',', ';', ':', '?', '!']).trim_end_matches('.')
    }

    fn pair(&self) -> Option<(&str, &str)> {
        let (key, value) = self.text.split_once('=').filter(|_| !self.quoted)?;
        let word = !key.is_empty()
            && key.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
        word.then_some((key, value))
    }

    fn is_url(&self) -> bool {
        self.text.starts_with("http://") || self.text.starts_with("https://")
    }

    fn is_path(&self) -> bool {
        let text = self.bare();
        let extension = text.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.chars().all(char::is_alphanumeric)
                && extension.chars().any(char::is_alphabetic)
        });
        let marked = text.contains('/') || text.starts_with('~') || text == ".";
        !self.is_url() && (marked || extension) && !text.contains(' ')
    }
}

/// The pieces of a text. An apostrophe in the middle of a word opens no quote.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut word = Piece { text: String::new(), quoted: false };
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let opens =
            matches!(letter, '"' | '\'' | '`' | '“') && (word.text.is_empty() || word.text.ends_with('='));
        let close = if letter == '“' { '”' } else { letter };
        if opens && letters.clone().any(|later| later == close) {
            let quoted: String = letters.by_ref().take_while(|later| *later != close).collect();
            word.quoted = word.text.is_empty();
            word.text.push_str(&quoted);
            // A quoted text ends where its quote ends.
            pieces.push(std::mem::replace(&mut word, Piece { text: String::new(), quoted: false }));
        } else if letter.is_whitespace() {
            pieces.push(std::mem::replace(&mut word, Piece { text: String::new(), quoted: false }));
        } else {
            word.text.push(letter);
        }
    }
    pieces.push(word);
    // A mark that follows a quote is not a word.
    let mark = |letter: char| matches!(letter, ',' | ';' | ':' | '?' | '!');
    pieces.retain(|piece| piece.quoted || !piece.text.chars().all(mark));
    pieces
}
