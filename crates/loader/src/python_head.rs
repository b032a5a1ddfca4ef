//! What a single Python file declares of its needs, read without running it: module-level assignments of literals.
//!
//! `__secrets__` lists the names of secrets, `__hosts__` the hosts that it connects to, and `__settings__` maps the names of settings to
//! their defaults. A value must be a literal, so that it can be read here; anything else is an error with its line.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use holdfast_contract::problem::{Code, Problem};
use serde_json::{Map, Number, Value};

/// How deep lists and dictionaries may be nested.
const MAX_DEPTH: usize = 8;

/// What a file declares.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PythonHead {
    /// The secrets that it needs, by name.
    pub secrets: Vec<String>,
    /// The hosts that it connects to.
    pub hosts: Vec<String>,
    /// Its settings with their defaults.
    pub settings: Map<String, Value>,
}

impl PythonHead {
    /// Reads the declarations of a file.
    pub(crate) fn read(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut head = Self::default();
        for Assignment { line, name, value } in assignments(text) {
            let wrong = |why: &str| {
                let what = format!("`{name}` cannot be read: {why} (line {line})");
                Problem::in_file(Code::ManifestValue, path, what)
                    .help("It is read without running the file: write a literal.")
            };
            let value = Literal::new(value).read().map_err(|why| wrong(&why))?;
            match (name, value) {
                ("__settings__", Value::Object(settings)) => head.settings = settings,
                ("__settings__", _) => return Err(wrong("it must be a dictionary of names and defaults")),
                (_, value) => {
                    let texts = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    let texts: Option<Vec<_>> =
                        texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
                    let listed = texts.filter(|_| value.is_array());
                    let listed = listed.ok_or_else(|| wrong("it must be a list of texts"))?;
                    *(if name == "__secrets__" { &mut head.secrets } else { &mut head.hosts }) = listed;
                }
            }
        }
        Ok(head)
    }

    /// The fields of a manifest that say the same, in YAML.
    pub(crate) fn manifest(&self) -> String {
        let Self { secrets, hosts, settings } = self;
        let mut text = String::new();
        if !secrets.is_empty() {
            text += &format!("secrets: {}\n", Value::from(secrets.clone()));
        }
        if !settings.is_empty() {
            text += &format!("config: {}\n", Value::Object(settings.clone()));
        }
        if !hosts.is_empty() {
            text += &format!("grants: {{ network: {} }}\n", Value::from(hosts.clone()));
        }
        text
    }
}

/// An assignment at the start of a line: the line, the name, and everything behind the `=`.
struct Assignment<'t> {
    line: usize,
    name: &'static str,
    value: &'t str,
}

/// The assignments to the names that are read, outside of texts over several lines.
fn assignments(text: &str) -> Vec<Assignment<'_>> {
    let (mut found, mut start, mut quote) = (Vec::new(), 0, None);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let at = start;
        start += line.len();
        if quote.is_none() {
            let names = ["__secrets__", "__hosts__", "__settings__"];
            let named = names.into_iter().find_map(|name| Some((name, line.strip_prefix(name)?)));
            if let Some((name, rest)) = named
                && let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=')
                && !value.starts_with('=')
            {
                let offset = at + (line.len() - value.len());
                found.push(Assignment { line: number + 1, name, value: &text[offset..] });
            }
        }
        quote = open_quote(line, quote);
    }
    found
}

/// The triple quote that is open behind a line, if one is.
fn open_quote(line: &str, mut open: Option<&'static str>) -> Option<&'static str> {
    let mut rest = line;
    loop {
        match open {
            Some(quote) => match rest.split_once(quote) {
                Some((_, behind)) => (rest, open) = (behind, None),
                None => return open,
            },
            None => {
                let next =
                    ["\"\"\"", "'''", "#"].into_iter().filter_map(|mark| Some((rest.find(mark)?, mark)));
                match next.min() {
                    None | Some((_, "#")) => return None,
                    Some((place, quote)) => (rest, open) = (&rest[place + quote.len()..], Some(quote)),
                }
            }
        }
    }
}

/// A literal of Python on its way to a value.
struct Literal<'t> {
    rest: Peekable<Chars<'t>>,
}

impl<'t> Literal<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text.chars().peekable() }
    }

    fn read(mut self) -> Result<Value, String> {
        let value = self.value(0)?;
        // Behind it the line ends.
        for next in self.rest.by_ref() {
            match next {
                '\n' | '#' => break,
                ' ' | '\t' | '\r' => {}
                other => return Err(format!("unexpected `{other}` behind the value")),
            }
        }
        Ok(value)
    }

    /// Skips white space and comments; within brackets also the ends of lines.
    fn skip(&mut self, lines: bool) {
        while let Some(&next) = self.rest.peek() {
            match next {
                '#' if lines => while self.rest.next_if(|it| *it != '\n').is_some() {},
                '\n' if !lines => return,
                it if it.is_whitespace() => drop(self.rest.next()),
                _ => return,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.skip(depth > 0);
        if depth > MAX_DEPTH {
            return Err("it is nested too deep".to_owned());
        }
        match self.rest.peek().copied() {
            Some('[') => self.list(']', depth),
            Some('(') => self.list(')', depth),
            Some('{') => self.dictionary(depth),
            Some(quote @ ('"' | '\'')) => self.text(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Result<Value, String> {
        self.rest.next();
        let mut items = Vec::new();
        while !self.ends(end)? {
            items.push(self.value(depth + 1)?);
            self.comma(end)?;
        }
        Ok(Value::Array(items))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, String> {
        self.rest.next();
        let mut fields = Map::new();
        while !self.ends('}')? {
            let Value::String(name) = self.value(depth + 1)? else {
                return Err("a key of a dictionary must be a text".to_owned());
            };
            self.skip(true);
            if self.rest.next() != Some(':') {
                return Err(format!("`:` is missing behind `{name}`"));
            }
            let value = self.value(depth + 1)?;
            fields.insert(name, value);
            self.comma('}')?;
        }
        Ok(Value::Object(fields))
    }

    /// Whether the bracket closes here.
    fn ends(&mut self, end: char) -> Result<bool, String> {
        self.skip(true);
        match self.rest.peek() {
            Some(next) if *next == end => {
                self.rest.next();
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(format!("`{end}` is missing")),
        }
    }

    /// The comma between two items, which may be left out before the end.
    fn comma(&mut self, end: char) -> Result<(), String> {
        self.skip(true);
        match self.rest.peek() {
            Some(',') => drop(self.rest.next()),
            Some(next) if *next == end => {}
            Some(other) => return Err(format!("unexpected `{other}`")),
            None => return Err(format!("`{end}` is missing")),
        }
        Ok(())
    }

    fn text(&mut self, quote: char) -> Result<String, String> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some(next) if next == quote => return Ok(text),
                Some('\\') => match self.rest.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(escaped @ ('\\' | '\'' | '"')) => text.push(escaped),
                    _ => return Err("an escape sequence is not supported".to_owned()),
                },
                Some('\n') | None => return Err("a text does not end".to_owned()),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn word(&mut self) -> Result<Value, String> {
        let mut word = String::new();
        while let Some(letter) = self.rest.next_if(|it| it.is_alphanumeric() || "+-._".contains(*it)) {
            word.push(letter);
        }
        match word.as_str() {
            "True" => Ok(Value::Bool(true)),
            "False" => Ok(Value::Bool(false)),
            "None" => Ok(Value::Null),
            "" => Err("a literal is missing".to_owned()),
            word => {
                let digits = word.replace('_', "");
                let whole = digits.parse::<i64>().ok().map(Number::from);
                let number = whole.or_else(|| Number::from_f64(digits.parse().ok()?));
                number.map(Value::Number).ok_or_else(|| format!("`{word}` is not a literal"))
            }
        }
    }
}

#[cfg(test)]
#[path = "python_head_tests.rs"]
mod tests;
