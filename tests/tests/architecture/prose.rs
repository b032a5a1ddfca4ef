//! Rules for prose: words that docs, help texts, error texts and comments avoid, the length of lines, links, the index of `docs/`, the file
//! names in ARCHITECTURE.md, and the tests that pages name. Code blocks and code spans are not prose.

use std::collections::BTreeSet;

use crate::tree::{Crate, File};

/// Characters that a line of prose may have.
pub const LINE_LIMIT: usize = 100;

/// Metaphors that have an established technical word, as sequences of words. Neither texts for users nor sources use them.
const AVOIDED: &[&str] = &[
    "anew",
    "are none",
    "at hand",
    "be heard",
    "came of",
    "come of",
    "comes of",
    "counts from here",
    "gave no way",
    "gave way",
    "give no way",
    "give way",
    "gives birth",
    "gives no way",
    "gives way",
    "giving way",
    "goes by",
    "has a say",
    "have a say",
    "is none",
    "left alone",
    "left behind",
    "let go",
    "lets go",
    "letting go",
    "lived in",
    "mend",
    "mended",
    "mending",
    "mends",
    "none is left",
    "not well",
    "of late",
    "takes leave",
    "took up",
    "whoever",
    "whoever's",
    "whomever",
];

/// The same for texts for users alone: old clients read `unwell`.
const AVOIDED_FOR_USERS: &[&str] = &["taken up", "takes up", "unwell"];

/// What "X is no Y" begins with. The plain form is "X is not a Y"; "there is no Y" is plain.
const NEGATIONS: &[&str] = &["are no", "is no", "was no", "were no"];

/// After these words of a negation no noun follows: "is no longer".
const COMPARATIVES: &[&str] =
    &["earlier", "fewer", "further", "larger", "later", "less", "longer", "more", "smaller"];

/// Texts that stay: the first is in recorded frames, the others are in sources whose digests the embedded components have.
const KEPT: &[(&str, &str)] = &[
    ("crates/runtime/src/calls/reply.rs", "is no answer"),
    ("docs/reference/abi.md", "is no answer"),
    ("extensions/injection-guard/src/hidden.rs", "are no accident"),
    ("sdk/rust/src/host.rs", "is no answer"),
    ("wit/host.wit", "are none"),
    ("wit/host.wit", "is no answer"),
];

const PAGES: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Sources whose texts a user reads: the error catalogue and the help of the command line.
const TEXTS: &[&str] = &["crates/contract/src/problem.rs", "crates/cli/src/arguments.rs"];

/// A page of the documentation.
pub fn is_page(file: &File) -> bool {
    PAGES.contains(&file.path.as_str()) || (file.path.starts_with("docs/") && file.path.ends_with(".md"))
}

/// A source whose comments and messages are prose: not the rules themselves, and nothing generated.
pub fn is_source(file: &File) -> bool {
    (file.path.ends_with(".rs") || file.path.ends_with(".wit"))
        && !file.path.starts_with("tests/tests/architecture")
        && !file.path.contains("/bindings/")
}

/// What is written for users: the pages, and the sources of messages and help texts.
pub fn is_for_users(file: &File) -> bool {
    is_page(file) || TEXTS.contains(&file.path.as_str())
}

/// No avoided word is in the prose.
pub fn words(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| is_for_users(file) || is_source(file)) {
        let words = words_of(file);
        for (index, (line, first)) in words.iter().enumerate() {
            let begins = |phrase: &&&str| phrase.split(' ').next() == Some(first);
            let more = if is_for_users(file) { AVOIDED_FOR_USERS } else { &[] };
            for phrase in AVOIDED.iter().chain(more).filter(begins) {
                let mut found = words[index..].iter().map(|(_, word)| word.as_str());
                let all = phrase.split(' ').all(|word| found.next() == Some(word));
                // `let go_on = …` is a name that goes on.
                let plain =
                    (phrase.ends_with(" none") && follows_there(&words, index)) || is_kept(file, phrase);
                if all && !plain && (found.next() != Some("_") || !phrase.contains(' ')) {
                    broken.push(format!("{}:{line}: \"{phrase}\" is not plain technical English", file.path));
                }
            }
            if let Some(phrase) = negated_noun(&words, index).filter(|it| !is_kept(file, it)) {
                broken.push(format!(
                    "{}:{line}: \"{phrase}\" is not plain technical English: write \"is not a …\"",
                    file.path
                ));
            }
        }
    }
    broken
}

/// Whether the word before this one is "there", as in "there is none".
fn follows_there(words: &[(usize, String)], index: usize) -> bool {
    index.checked_sub(1).is_some_and(|before| words[before].1 == "there")
}

/// "is no Y" at this word, where Y is a noun or a code span.
fn negated_noun(words: &[(usize, String)], index: usize) -> Option<String> {
    let [(_, verb), (_, no), (_, noun), ..] = &words[index..] else { return None };
    let begins = no == "no" && NEGATIONS.contains(&format!("{verb} {no}").as_str());
    let is_noun = noun.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | '{'));
    let negated = begins && is_noun && !COMPARATIVES.contains(&noun.as_str());
    (negated && !follows_there(words, index)).then(|| format!("{verb} {no} {noun}"))
}

fn is_kept(file: &File, phrase: &str) -> bool {
    KEPT.iter().any(|(path, kept)| file.path == *path && phrase == *kept)
}

/// The words of a text in lower case, each with its line; only `None`, the value, keeps its capital. Punctuation and the ends of paragraphs are words of their own, so that no
/// phrase is found across them.
fn words_of(file: &File) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let lines = if is_page(file) {
        prose(&file.text)
    } else {
        file.text.lines().enumerate().map(|(index, line)| (index + 1, without_spans(line))).collect()
    };
    for (number, line) in lines {
        let mut word = String::new();
        for c in line.chars().chain([' ']) {
            match c {
                c if c.is_alphanumeric() || c == '-' || c == '\'' => word.push(c),
                _ => {
                    if !word.is_empty() {
                        let whole = std::mem::take(&mut word);
                        words.push((number, if whole == "None" { whole } else { whole.to_lowercase() }));
                    }
                    if !c.is_whitespace() {
                        words.push((number, c.to_string()));
                    }
                }
            }
        }
        if line.trim().is_empty() {
            words.push((number, "\n".to_owned()));
        }
    }
    words
}

/// The lines outside of code blocks, with their numbers from 1 and without code spans.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        if fence {
            fenced = !fenced;
        }
        let code = fence || fenced || line.starts_with("    ");
        lines.push((index + 1, if code { String::new() } else { without_spans(line) }));
    }
    lines
}

/// A line without its code spans. A mark stays in place of each, so that the words around it are not neighbours.
fn without_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Lines of prose are short. Tables, code blocks, single links and generated pages are not looked at.
pub fn line_length(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| is_page(file) && !file.text.starts_with("<!-- Generated")) {
        let mut fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            let trimmed = line.trim_start();
            let fence = trimmed.starts_with("```");
            fenced ^= fence;
            let length = line.chars().count();
            let excepted =
                fence || fenced || trimmed.starts_with('|') || line.starts_with("    ") || is_link(trimmed);
            if length > LINE_LIMIT && !excepted {
                broken.push(format!(
                    "{}:{}: {length} characters, {LINE_LIMIT} are allowed",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    broken
}

/// Whether a line is nothing but a link or an image.
fn is_link(line: &str) -> bool {
    let link = line.trim_start_matches("- ").trim_start_matches('!');
    link.starts_with('[')
        && link.find("](").is_some_and(|at| link[at..].find(')') == Some(link.len() - at - 1))
}

/// Links between the pages lead to files and headings that exist.
pub fn links(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| is_page(file)) {
        for (line, target) in links_of(&file.text) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
            let page = files.iter().find(|page| page.path == path);
            let lacks = |page: &File| !anchor.is_empty() && !headings(&page.text).contains(anchor);
            if !exists(&path) || page.is_some_and(lacks) {
                broken.push(format!("{}:{line}: the link {target} leads nowhere", file.path));
            }
        }
    }
    broken
}

fn links_of(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if !target.contains("://") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// A link's target from the root, as seen from a page.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A page's headings as anchors, the way GitHub writes them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles
        .map(|title| {
            let kept = title.to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// The index links every page of `docs/` exactly once; decisions have an index of their own.
pub fn index(files: &[File]) -> Vec<String> {
    let Some(index) = files.iter().find(|file| file.path == "docs/README.md") else {
        return vec!["docs/README.md is missing".to_owned()];
    };
    let linked: Vec<String> =
        links_of(&index.text).iter().map(|(_, target)| resolve(&index.path, target)).collect();
    let pages = files.iter().map(|file| file.path.as_str()).filter(|path| {
        path.starts_with("docs/")
            && path.ends_with(".md")
            && *path != index.path
            && !path.starts_with("docs/adr/")
    });
    pages
        .filter_map(|page| match linked.iter().filter(|linked| *linked == page).count() {
            1 => None,
            count => Some(format!("docs/README.md links {page} {count} times, it should be once")),
        })
        .collect()
}

/// In a section of ARCHITECTURE.md, a file or folder that is named by a path from the root exists there, and any other in a crate whose
/// folder the section's title names.
pub fn named_files(text: &str, crates: &[Crate], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    let (mut title, mut sources): (&str, Vec<String>) = ("", Vec::new());
    for (index, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("### ") {
            let of_section = |found: &&Crate| {
                heading.split(' ').any(|word| {
                    let folder = found.folder.strip_prefix("crates/").unwrap_or(&found.folder);
                    folder
                        .strip_prefix(word)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '-']))
                })
            };
            title = heading;
            sources =
                crates.iter().filter(of_section).map(|found| format!("{}/src/", found.folder)).collect();
            if sources.is_empty() {
                broken.push(format!("ARCHITECTURE.md:{}: no crate is called {heading}", index + 1));
            }
        }
        let named =
            line.split('`').skip(1).step_by(2).filter(|span| span.ends_with(".rs") || span.ends_with('/'));
        for span in named.filter(|_| !title.is_empty()) {
            if !exists(span) && !sources.iter().any(|source| exists(&format!("{source}{span}"))) {
                broken.push(format!("ARCHITECTURE.md:{}: `{span}` is not in {title}", index + 1));
            }
        }
    }
    broken
}

/// In the code map of ARCHITECTURE.md, a crate stands in a row above all that it depends on.
pub fn code_map_order(text: &str, crates: &[Crate]) -> Vec<String> {
    let section = text.split_once("## Code map").map_or("", |(_, after)| after);
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |folder: &str| {
        let folder = if folder.starts_with("extensions/") { "extensions/*" } else { folder };
        let named = format!("`{folder}/`");
        rows.iter().position(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&named)))
    };
    let mut broken = Vec::new();
    for from in crates.iter().filter(|from| from.folder.starts_with("crates/") && row(&from.folder).is_none())
    {
        broken.push(format!("ARCHITECTURE.md: the code map has no row for {}", from.folder));
    }
    let is_product = |from: &&Crate| ["crates/", "extensions/"].iter().any(|it| from.folder.starts_with(it));
    for from in crates.iter().filter(|from| is_product(from) && from.folder != "crates/testkit") {
        for to in crates.iter().filter(|to| from.dependencies.contains(&to.name)) {
            if let (Some(above), Some(below)) = (row(&from.folder), row(&to.folder))
                && below <= above
            {
                broken.push(format!(
                    "ARCHITECTURE.md: the row of {} is not above that of {}, on which it depends",
                    from.folder, to.folder
                ));
            }
        }
    }
    broken
}

/// A table of a page that names tests.
pub struct TestTable {
    /// The page.
    pub page: &'static str,
    /// The heading that it stands under.
    pub heading: &'static str,
    /// Which of its columns names tests, from 1.
    pub column: usize,
}

/// The boundaries in SECURITY.md.
pub const BOUNDARIES: TestTable =
    TestTable { page: "SECURITY.md", heading: "## Boundaries and their tests", column: 2 };

/// The behaviours of assistant4, one table for each part.
pub fn behaviours() -> [TestTable; 4] {
    ["## The bus", "## The loader", "## Messages and agents", "## Setup, schedules, the program"]
        .map(|heading| TestTable { page: "docs/assistant4-behaviours.md", heading, column: 4 })
}

impl TestTable {
    /// Its rows, without the two lines of its head.
    pub fn rows<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let section = text.split_once(self.heading).map_or("", |(_, after)| after);
        let section = section.split_once("\n## ").map_or(section, |(before, _)| before);
        section.lines().filter(|line| line.starts_with('|')).skip(2).collect()
    }
}

/// The tests that a table names exist, and every row of it names one.
pub fn named_tests(table: &TestTable, text: &str, sources: &[File]) -> Vec<String> {
    let known: BTreeSet<&str> = sources.iter().flat_map(|file| tests_of(&file.text)).collect();
    let (page, rows) = (table.page, table.rows(text));
    let mut broken = Vec::new();
    if rows.is_empty() {
        broken.push(format!("{page} has no table under `{}`", table.heading));
    }
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let tests: Vec<&str> = cells
            .get(table.column)
            .map(|cell| cell.split('`').skip(1).step_by(2).collect())
            .unwrap_or_default();
        if tests.is_empty() {
            broken.push(format!("{page}: no test is named for {}", cells.get(1).unwrap_or(&"").trim()));
        }
        let missing = tests.into_iter().filter(|name| !known.contains(name));
        broken.extend(missing.map(|name| format!("{page}: there is no test `{name}`")));
    }
    broken
}

/// The names of the functions in a source that are tests: in Rust those that are marked, in Python those of that name.
fn tests_of(text: &str) -> Vec<&str> {
    let (mut names, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        let line = line.trim_start_matches("async ");
        if let Some(rest) = line.strip_prefix("def ").filter(|rest| rest.starts_with("test_")) {
            names.extend(rest.split('(').next());
        }
        match line.strip_prefix("fn ") {
            Some(rest) if is_test => names.extend(rest.split('(').next()),
            _ if line.starts_with("#[") => {
                is_test |= ["#[test]", "#[tokio::test"].iter().any(|mark| line.starts_with(mark));
                continue;
            }
            // Comments, and the lines of an attribute that has several.
            _ if line.starts_with("//") => continue,
            _ => {}
        }
        is_test = false;
    }
    names
}
