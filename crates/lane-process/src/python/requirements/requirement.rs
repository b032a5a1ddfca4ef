//! One requirement: parsed into its parts as PEP 508 and PEP 440 define them, and written from these parts.
//!
//! An installer accepts more than packages in a requirement: options, files, URLs, environment variables, and more line breaks than
//! `\n`. So the text of an extension never reaches the installer. Unknown syntax is refused. The output is ASCII, on one line, and its
//! only words that begin with `-` are hashes of the form `--hash=algorithm:hex`.

use std::fmt;

use crate::python::requirements::marker::Marker;

/// The longest requirement. A package with a hash for each of a hundred builds fits.
const MAX_BYTES: usize = 64 << 10;

/// The version operators. A longer one comes before its prefix.
const OPERATORS: &[&str] = &["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// File extensions of archives. `pip` reads a requirement with such an ending as a file.
const ARCHIVES: &[&str] = &["zip", "whl", "tar", "gz", "tgz", "bz2", "tbz", "xz", "txz", "lz", "tlz", "lzma"];

/// Extensions that are part of package names, as in `backports.lzma`, and belong to an archive only after `tar`.
const COMPRESSIONS: &[&str] = &["gz", "bz2", "xz", "lz", "lzma"];

/// A package of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    /// In its normalized form, which has no dots: lower-case letters, digits and single hyphens.
    name: String,
    extras: Vec<String>,
    versions: Vec<(&'static str, String)>,
    marker: Option<Marker>,
    /// Algorithm and digest.
    hashes: Vec<(String, String)>,
}

impl Requirement {
    /// Parses a requirement. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(control) = text.chars().find(|char| is_control(*char)) {
            return Err(format!("it contains the control character U+{:04X}", control as u32));
        }
        if text.len() > MAX_BYTES {
            return Err(format!("it is longer than {MAX_BYTES} bytes"));
        }
        let (text, hashes) = split_hashes(text)?;
        let mut scan = Scan::new(text);
        let name = scan.identifier().ok_or("it does not begin with a package name")?;
        if is_archive(name) {
            return Err(format!("`{name}` is the name of an archive, and files are not installed"));
        }
        scan.spaces();
        let extras = if scan.take("[") { extras(&mut scan)? } else { Vec::new() };
        scan.spaces();
        let versions = versions(&mut scan)?;
        scan.spaces();
        let marker = if scan.take(";") { Some(Marker::parse(&mut scan)?) } else { None };
        scan.spaces();
        match scan.rest() {
            "" => Ok(Self { name: normalized(name), extras, versions, marker, hashes }),
            rest => Err(format!("`{}` is unexpected", rest.escape_debug())),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.extras.is_empty() {
            write!(f, "[{}]", self.extras.join(","))?;
        }
        let versions = self.versions.iter().map(|(operator, version)| format!("{operator}{version}"));
        f.write_str(&versions.collect::<Vec<_>>().join(","))?;
        if let Some(marker) = &self.marker {
            write!(f, " ; {marker}")?;
        }
        self.hashes.iter().try_for_each(|(algorithm, digest)| write!(f, " --hash={algorithm}:{digest}"))
    }
}

/// Control characters, and the two characters besides them at which Python's `str.splitlines` breaks a line.
fn is_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

type Hashes = Vec<(String, String)>;

/// Splits the hashes off a requirement.
fn split_hashes(text: &str) -> Result<(&str, Hashes), String> {
    let mut rest = text.trim_matches(' ');
    let mut hashes = Vec::new();
    while let Some((before, last)) = rest.rsplit_once(' ') {
        if !last.starts_with("--") {
            break;
        }
        let hash = last.strip_prefix("--hash=").and_then(|hash| hash.split_once(':'));
        let algorithm = |it: &str| {
            !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let digest =
            |it: &str| !it.is_empty() && it.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match hash {
            Some((name, value)) if algorithm(name) && digest(value) => {
                hashes.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("`{}` is not `--hash=algorithm:hex`", last.escape_debug())),
        }
        rest = before.trim_end_matches(' ');
    }
    hashes.reverse();
    Ok((rest, hashes))
}

/// The name by which an index knows a package (PEP 503).
fn normalized(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Whether `pip` reads this name as a file. The normalized name would be another package, which was not meant.
fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let compressed = COMPRESSIONS.contains(&extension);
    ARCHIVES.contains(&extension) && (!compressed || stem.ends_with(".tar"))
}

/// What follows `[`, up to `]`.
fn extras(scan: &mut Scan<'_>) -> Result<Vec<String>, String> {
    let mut extras = Vec::new();
    loop {
        scan.spaces();
        if extras.is_empty() && scan.take("]") {
            return Ok(extras);
        }
        extras.push(scan.identifier().ok_or("an extra has no name")?.to_owned());
        scan.spaces();
        if scan.take("]") {
            return Ok(extras);
        }
        if !scan.take(",") {
            return Err("the extras have no `]`".to_owned());
        }
    }
}

fn versions(scan: &mut Scan<'_>) -> Result<Vec<(&'static str, String)>, String> {
    let parenthesis = scan.take("(");
    let mut versions = Vec::new();
    loop {
        scan.spaces();
        let Some(operator) = OPERATORS.iter().find(|operator| scan.take(operator)) else {
            if versions.is_empty() && !parenthesis {
                return Ok(versions);
            }
            return Err("a version has no operator".to_owned());
        };
        scan.spaces();
        let version = scan.word(|byte| byte.is_ascii_alphanumeric() || b".*+!-_".contains(&byte));
        if !is_version_for(operator, version) {
            return Err(format!("`{operator}{version}` is not a version"));
        }
        versions.push((*operator, version.to_owned()));
        scan.spaces();
        if scan.take(",") {
            continue;
        }
        return if parenthesis && !scan.take(")") {
            Err("the versions have no `)`".to_owned())
        } else {
            Ok(versions)
        };
    }
}

fn is_version_for(operator: &str, version: &str) -> bool {
    match version.strip_suffix(".*") {
        Some(prefix) => matches!(operator, "==" | "!=") && is_version(prefix),
        None => is_version(version),
    }
}

/// Whether this is a version of PEP 440: `[v][N!]N(.N)*[a|b|rc N][.postN][.devN][+local]` with its alternative spellings.
fn is_version(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut scan = Scan::new(&text);
    scan.take("v");
    if scan.digits().is_empty() || (scan.take("!") && scan.digits().is_empty()) {
        return false;
    }
    while scan.rest().starts_with('.') && scan.followed_by_digit(1) {
        scan.take(".");
        scan.digits();
    }
    scan.labelled(&["alpha", "a", "beta", "b", "preview", "pre", "rc", "c"]);
    if scan.rest().starts_with('-') && scan.followed_by_digit(1) {
        scan.take("-");
        scan.digits();
    } else {
        scan.labelled(&["post", "rev", "r"]);
    }
    scan.labelled(&["dev"]);
    if scan.take("+") {
        loop {
            let part = scan.word(|byte| byte.is_ascii_alphanumeric());
            if part.is_empty() || ARCHIVES.contains(&part) {
                return false;
            }
            if !scan.take_any("-_.") {
                break;
            }
        }
    }
    scan.rest().is_empty()
}

/// A scanner over a text.
pub(crate) struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Reads this, if it comes next.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let found = self.rest.strip_prefix(text);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn take_any(&mut self, chars: &str) -> bool {
        let found = self.rest.strip_prefix(|char| chars.contains(char));
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    pub(crate) fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    /// Reads as many of these bytes as there are. All of them must be ASCII.
    pub(crate) fn word(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let end = self.rest.bytes().position(|byte| !byte.is_ascii() || !belongs(byte));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn digits(&mut self) -> &'a str {
        self.word(|byte| byte.is_ascii_digit())
    }

    fn followed_by_digit(&self, at: usize) -> bool {
        self.rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    /// The name of a package or of an extra: letters, digits, `.`, `-` and `_`, with a letter or digit at both ends.
    fn identifier(&mut self) -> Option<&'a str> {
        let name = self.word(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        let ends = |end: Option<&u8>| end.is_some_and(u8::is_ascii_alphanumeric);
        (ends(name.as_bytes().first()) && ends(name.as_bytes().last())).then_some(name)
    }

    /// Reads one of these labels with its number, where one comes next: `rc1`, `.post`, `-dev_3`.
    fn labelled(&mut self, labels: &[&str]) {
        let before = self.rest;
        self.take_any("-_.");
        if !labels.iter().any(|label| self.take(label)) {
            self.rest = before;
            return;
        }
        if self.rest.starts_with(['-', '_', '.']) && self.followed_by_digit(1) {
            self.take_any("-_.");
        }
        self.digits();
    }
}
