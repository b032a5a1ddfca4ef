//! The packages that an extension requires: in the inline metadata of a single file, in `requirements.txt` or in `pyproject.toml`.
//! `requirement` parses one requirement, and `marker` its conditions.

mod marker;
mod requirement;

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod requirement_tests;

use std::collections::BTreeSet;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use toml_edit::{DocumentMut, Item};

use crate::python::requirements::requirement::Requirement;

/// Packages with their version constraints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// Each requirement in normalized form, sorted.
    pub lines: BTreeSet<String>,
}

const FILE: &str = "requirements.txt";
const PROJECT: &str = "pyproject.toml";

impl Requirements {
    /// The requirements of an activation. Inline metadata takes precedence over the files beside it.
    pub(crate) fn of(bundle: &Bundle, vault: &dyn Vault) -> Result<Self, Fault> {
        let text = |name: &str| -> Result<Option<String>, Fault> {
            let Some(digest) = bundle.files.get(name) else { return Ok(None) };
            let bytes = vault.file(*digest)?;
            let not_text = |_| refused(name, "the file is not valid UTF-8");
            String::from_utf8(bytes).map(Some).map_err(not_text)
        };
        if let Some(head) = text(&bundle.entrypoint)?.as_deref().and_then(head) {
            return Self::project(&head, &bundle.entrypoint, |table| table.get("dependencies").cloned());
        }
        if let Some(listed) = text(FILE)? {
            return Self::listed(&listed);
        }
        let in_project = |table: &DocumentMut| table.get("project")?.get("dependencies").cloned();
        match text(PROJECT)? {
            Some(project) => Self::project(&project, PROJECT, in_project),
            None => Ok(Self::default()),
        }
    }

    /// The lines of a `requirements.txt`. Tabs are white space in this format, but the parser of requirements refuses them.
    fn listed(text: &str) -> Result<Self, Fault> {
        let whole = text.replace("\\\r\n", " ").replace("\\\n", " ").replace('\t', " ");
        let lines = whole.lines().map(|line| {
            let comment = line.find(" #").or_else(|| line.starts_with('#').then_some(0));
            line[..comment.unwrap_or(line.len())].trim_matches(' ')
        });
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(|line| checked(line, FILE)).collect::<Result<_, _>>().map(|lines| Self { lines })
    }

    fn project(text: &str, file: &str, named: impl Fn(&DocumentMut) -> Option<Item>) -> Result<Self, Fault> {
        let table: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| refused(file, error.message()))?;
        let Some(named) = named(&table) else { return Ok(Self::default()) };
        let list = named.as_array().ok_or_else(|| refused(file, "`dependencies` is not a list"))?;
        let lines = list.iter().map(|line| {
            let line =
                line.as_str().ok_or_else(|| refused(file, "an entry of `dependencies` is not a string"))?;
            checked(line, file)
        });
        lines.collect::<Result<_, _>>().map(|lines| Self { lines })
    }

    /// Whether no package is required.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The digest of these requirements for one interpreter.
    pub(crate) fn digest(&self, python: &str) -> Digest {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        Digest::of(format!("{python}\n{}", lines.join("\n")).as_bytes())
    }
}

/// The inline metadata of a file: the lines between `# /// script` and `# ///`, without comment markers.
fn head(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "# /// script").skip(1);
    let mut inside = Vec::new();
    loop {
        let line = lines.next()?.trim_end();
        if line == "# ///" {
            return Some(inside.join("\n"));
        }
        inside.push(line.strip_prefix("# ").or_else(|| (line == "#").then_some(""))?);
    }
}

/// A requirement as it is passed to the installer.
fn checked(line: &str, file: &str) -> Result<String, Fault> {
    let parsed = Requirement::parse(line).map_err(|why| {
        refused(file, &format!("`{}` is not a package of the index: {why}", line.escape_debug()))
    })?;
    Ok(parsed.to_string())
}

fn refused(file: &str, what: &str) -> Fault {
    Fault::new(Code::PackagesRefused, format!("{file}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(read: &Requirements) -> Vec<&str> {
        read.lines.iter().map(String::as_str).collect()
    }

    #[test]
    fn requirements_are_read_from_lists_and_inline_metadata() {
        let text = "# a comment\nhttpx >= 0.27  # why\nrich==13.* ; python_version < '3.13'\n\nattrs==1 \\\n --hash=sha256:00ff\n";
        let read = Requirements::listed(text).expect("read");
        assert_eq!(
            lines(&read),
            ["attrs==1 --hash=sha256:00ff", "httpx>=0.27", "rich==13.* ; python_version < \"3.13\""]
        );

        let text = "\"\"\"Doc.\"\"\"\n# /// script\n# requires-python = \">=3.10\"\n# dependencies = [\n#   \"httpx[http2]>=0.27\",\n# ]\n# ///\nimport httpx\n";
        let inside = head(text).expect("a head");
        let read = Requirements::project(&inside, "x.py", |table| table.get("dependencies").cloned());
        assert_eq!(lines(&read.expect("read")), ["httpx[http2]>=0.27"]);
        assert_eq!(head("# /// script\n# dependencies = []\nimport x\n"), None);
    }
}
