//! Finds what a source imports from the SDK, without running it. An interpreter's component imports every interface of its world,
//! used or not, so the world consists of the names that the source imports: `tool` is the role `tools`, `clock` the host's clock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdfast_contract::host_call::Capability;
use holdfast_contract::problem::{Code, Location, Problem};

use crate::files;
use crate::project::Project;
use crate::wit::{self, ComponentKind, World};

/// Names in the SDK that differ from the interface's. All others are equal, in the language's spelling.
const RENAMED: &[(&str, &str)] = &[
    ("tool", "tools"),
    ("command", "commands"),
    ("method", "api"),
    ("initialize", "lifecycle-initialize"),
    ("start", "lifecycle-start"),
    ("stop", "lifecycle-stop"),
    ("destroy", "lifecycle-destroy"),
    ("health-check", "lifecycle-health"),
    ("execute-task", "scheduler"),
    ("on-event", "subscriber"),
    ("run-background", "service"),
    ("send-to-user", "channel"),
    ("send-message", "channel-message"),
    ("send-file", "channel-file"),
    ("send-question", "channel-question"),
];

/// The interface beside `streaming-channel` that the same name of the SDK exports.
const STREAMING: [&str; 2] = ["streaming-channel", "streaming-status"];

/// What a source imports from the SDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SdkImports {
    /// These names.
    Names(BTreeSet<String>),
    /// A wildcard, which does not tell what is used, on this line.
    Everything(u32),
}

/// The world of an interpreted extension.
pub(crate) fn world(
    project: &Project,
    sources: &[PathBuf],
    scan: fn(&str) -> SdkImports,
) -> Result<World, Problem> {
    let mut world = World::default();
    for source in sources {
        let path = project.folder.join(source);
        match scan(&files::read_text(&path)?) {
            SdkImports::Names(names) => names.iter().try_for_each(|name| add(&mut world, name))?,
            SdkImports::Everything(line) => return Err(everything(&path, line)),
        }
    }
    for name in &project.manifest.grants.interfaces {
        let granted = Capability::ALL.iter().find(|capability| capability.name() == name);
        let interface = granted.map_or(name.as_str(), |capability| capability.wit_interface());
        if wit::kind(interface)? == Some(ComponentKind::Host) {
            world.imports.insert(interface.to_owned());
        }
    }
    world.check()?;
    Ok(world)
}

fn everything(path: &Path, line: u32) -> Problem {
    let location = Location { file: path.to_owned(), line, ..Location::default() };
    Problem::new(Code::BuildFailed, "a wildcard import from the SDK does not tell which interfaces are used")
        .at(location)
        .help("Import names: `from holdfast import tool`, or `import { tool } from \"holdfast\"`.")
}

/// Adds the interface of an SDK name, if it has one.
fn add(world: &mut World, name: &str) -> Result<(), Problem> {
    let spelled = kebab(name);
    let renamed = RENAMED.iter().find(|(from, _)| *from == spelled);
    let interface = renamed.map_or(spelled.as_str(), |(_, to)| to);
    match wit::kind(interface)? {
        Some(ComponentKind::Role | ComponentKind::Hook) if STREAMING.contains(&interface) => {
            world.exports.extend(STREAMING.map(str::to_owned));
            true
        }
        Some(ComponentKind::Role | ComponentKind::Hook) => world.exports.insert(interface.to_owned()),
        Some(ComponentKind::Host) => world.imports.insert(interface.to_owned()),
        _ => false,
    };
    Ok(())
}

/// `tool_gate` and `toolGate` as `tool-gate`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        match letter {
            '_' => kebab.push('-'),
            letter if letter.is_ascii_uppercase() && !kebab.is_empty() => {
                kebab.push('-');
                kebab.push(letter.to_ascii_lowercase());
            }
            letter => kebab.push(letter.to_ascii_lowercase()),
        }
    }
    kebab
}

/// The imports of a Python source: `from holdfast import a, b as c`, and `x.a` after `import holdfast as x`.
pub(crate) fn python(text: &str) -> SdkImports {
    let code = without_comments(text, &["#"], &["\"\"\"", "'''", "\"", "'"], Texts::Blank);
    let tokens = tokens(&code);
    let mut names = BTreeSet::new();
    let mut aliases = BTreeSet::new();
    for (place, token) in tokens.iter().enumerate() {
        let next = |ahead: usize| tokens.get(place + ahead).map_or("", |token| token.text);
        match token.text {
            "from" if next(1) == "holdfast" && next(2) == "import" => {
                if next(3) == "*" {
                    return SdkImports::Everything(token.line);
                }
                names.extend(python_list(&tokens[place + 3..], token.line));
            }
            "import" if next(1) == "holdfast" && next(2) == "as" => _ = aliases.insert(next(3).to_owned()),
            "import" if next(1) == "holdfast" => _ = aliases.insert("holdfast".to_owned()),
            _ => {}
        }
    }
    names.extend(members(&tokens, &aliases));
    SdkImports::Names(names)
}

/// The names of an import: up to the closing bracket, or to the end of the line.
fn python_list(tokens: &[Token<'_>], line: u32) -> Vec<String> {
    let bracket = tokens.first().is_some_and(|token| token.text == "(");
    let list = tokens.iter().skip(usize::from(bracket));
    let list = list.take_while(|token| if bracket { token.text != ")" } else { token.line == line });
    first_words(list)
}

/// The imports of a JavaScript module: `import { a, b as c } from "holdfast"`, and `x.a` after `import * as x`.
pub(crate) fn javascript(text: &str) -> SdkImports {
    let code = without_comments(text, &["//"], &["\"", "'", "`"], Texts::Keep);
    let tokens = tokens(&code);
    let mut names = BTreeSet::new();
    let mut aliases = BTreeSet::new();
    for (place, token) in tokens.iter().enumerate() {
        if token.text != "import" {
            continue;
        }
        let Some(end) = tokens[place..].iter().position(|token| token.text == "from") else { continue };
        let source: String = tokens[place + end + 1..].iter().take(3).map(|token| token.text).collect();
        if !["\"holdfast\"", "'holdfast'"].contains(&source.as_str()) {
            continue;
        }
        let list = &tokens[place + 1..place + end];
        match list.first().map(|token| token.text) {
            Some("*") => aliases.extend(list.last().map(|token| token.text.to_owned())),
            _ => names.extend(first_words(list.iter().filter(|token| !["{", "}"].contains(&token.text)))),
        }
    }
    names.extend(members(&tokens, &aliases));
    SdkImports::Names(names)
}

/// The first word of each item of a list: the imported name, not its alias.
fn first_words<'a>(list: impl Iterator<Item = &'a Token<'a>>) -> Vec<String> {
    let mut words = Vec::new();
    let mut fresh = true;
    for token in list {
        if token.text == "," {
            fresh = true;
        } else if fresh {
            words.push(token.text.to_owned());
            fresh = false;
        }
    }
    words
}

/// `a` in `x.a`, for each alias `x`.
fn members(tokens: &[Token<'_>], aliases: &BTreeSet<String>) -> Vec<String> {
    let found = tokens.windows(3).filter(|three| aliases.contains(three[0].text) && three[1].text == ".");
    found.map(|three| three[2].text.to_owned()).collect()
}

/// How string literals are treated.
#[derive(Clone, Copy, PartialEq)]
enum Texts {
    Blank,
    Keep,
}

/// The code without comments, with its line breaks. `/* */` is a comment where `//` is.
fn without_comments(text: &str, line_marks: &[&str], quotes: &[&str], texts: Texts) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if line_marks.iter().any(|mark| rest.starts_with(mark)) {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if line_marks.contains(&"//") && rest.starts_with("/*") {
            let end = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
            code.extend(rest[..end].chars().filter(|letter| *letter == '\n'));
            rest = &rest[end..];
        } else if let Some(quote) = quotes.iter().find(|quote| rest.starts_with(**quote)) {
            let end = end_of_text(rest, quote);
            match texts {
                Texts::Keep => code.push_str(&rest[..end]),
                Texts::Blank => code.extend(rest[..end].chars().filter(|letter| *letter == '\n')),
            }
            rest = &rest[end..];
        } else {
            code.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    code
}

/// The end of a string literal. One in single or double quotes ends at the end of its line at the latest.
fn end_of_text(text: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (place, letter) in text.char_indices().skip(quote.chars().count()) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote == "\"" || quote == "'" => return place,
            _ if text[place..].starts_with(quote) => return place + quote.len(),
            _ => {}
        }
    }
    text.len()
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: u32,
}

/// Words and single punctuation characters.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        let length = if word(letter) {
            rest.find(|letter| !word(letter)).unwrap_or(rest.len())
        } else {
            letter.len_utf8()
        };
        if letter == '\n' {
            line += 1;
        } else if !letter.is_whitespace() {
            found.push(Token { text: &rest[..length], line });
        }
        rest = &rest[length..];
    }
    found
}
