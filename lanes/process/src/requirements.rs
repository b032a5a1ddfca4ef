//! Which packages an extension names: in the head of a single file, in `requirements.txt` or in `pyproject.toml`.

use std::collections::BTreeSet;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use toml_edit::{DocumentMut, Item};

/// Packages by name, with what is said of their versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// A requirement each, in order, as it stands.
    pub lines: BTreeSet<String>,
}

const FILE: &str = "requirements.txt";
const PROJECT: &str = "pyproject.toml";

impl Requirements {
    /// What an activation names. A file whose head says what it needs goes by that; others by the files beside it.
    pub(crate) fn of(bundle: &Bundle, vault: &dyn Vault) -> Result<Self, Fault> {
        let text = |name: &str| -> Result<Option<String>, Fault> {
            let Some(digest) = bundle.files.get(name) else { return Ok(None) };
            let bytes = vault.file(*digest)?;
            let not_text = |_| refused(name, "it is no UTF-8");
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

    /// The lines of a `requirements.txt`.
    fn listed(text: &str) -> Result<Self, Fault> {
        let whole = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let lines = whole.lines().map(|line| {
            let comment = line.find(" #").or_else(|| line.trim_start().starts_with('#').then_some(0));
            line[..comment.unwrap_or(line.len())].trim()
        });
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(|line| checked(line, FILE)).collect::<Result<_, _>>().map(|lines| Self { lines })
    }

    fn project(text: &str, file: &str, named: impl Fn(&DocumentMut) -> Option<Item>) -> Result<Self, Fault> {
        let table: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| refused(file, error.message()))?;
        let Some(named) = named(&table) else { return Ok(Self::default()) };
        let list = named.as_array().ok_or_else(|| refused(file, "`dependencies` is no list"))?;
        let lines = list.iter().map(|line| {
            let line = line.as_str().ok_or_else(|| refused(file, "an entry of `dependencies` is no text"))?;
            checked(line, file)
        });
        lines.collect::<Result<_, _>>().map(|lines| Self { lines })
    }

    /// Nothing is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What they come to on a Python.
    pub(crate) fn digest(&self, python: &str) -> Digest {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        Digest::of(format!("{python}\n{}", lines.join("\n")).as_bytes())
    }
}

/// What stands in a file's head between `# /// script` and `# ///`, without the marks of comments.
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

/// A requirement by name. Whoever installs reads more than names: options, files, addresses. None of those is an extension's to give,
/// for they reach further than it does.
fn checked(line: &str, file: &str) -> Result<String, Fault> {
    let (requirement, marker) = line.split_once(';').map_or((line, ""), |(name, marker)| (name, marker));
    let mut words = requirement.split_whitespace().peekable();
    let name = words.peek().copied().unwrap_or_default();
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let plain = |text: &str| {
        text.chars().all(|it| {
            it.is_ascii_alphanumeric() || it.is_ascii_whitespace() || "-_.[],<>=!~*+()".contains(it)
        })
    };
    let hashes = |word: &&str| !word.starts_with("--hash=");
    let without_hashes: Vec<&str> = words.filter(hashes).collect();
    let of_marker =
        |it: char| it.is_ascii_alphanumeric() || it.is_ascii_whitespace() || "-_.<>=!~'\"()".contains(it);
    let marker_words: Vec<&str> = marker.split_whitespace().filter(hashes).collect();
    let fits = begins
        && without_hashes.iter().all(|word| plain(word) && !word.starts_with('-'))
        && marker_words.iter().all(|word| word.chars().all(of_marker) && !word.starts_with('-'));
    if !fits {
        return Err(refused(file, &format!("`{line}` is not a package by name")));
    }
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
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
    fn packages_are_named_in_three_ways() {
        let text = "# a comment\nhttpx >= 0.27  # why\nrich==13.* ; python_version < '3.13'\n\nattrs==1 \\\n --hash=sha256:00ff\n";
        let read = Requirements::listed(text).expect("read");
        assert_eq!(
            lines(&read),
            ["attrs==1 --hash=sha256:00ff", "httpx >= 0.27", "rich==13.* ; python_version < '3.13'"]
        );

        let text = "\"\"\"Doc.\"\"\"\n# /// script\n# requires-python = \">=3.10\"\n# dependencies = [\n#   \"httpx[http2]>=0.27\",\n# ]\n# ///\nimport httpx\n";
        let inside = head(text).expect("a head");
        let read = Requirements::project(&inside, "x.py", |table| table.get("dependencies").cloned());
        assert_eq!(lines(&read.expect("read")), ["httpx[http2]>=0.27"]);
        assert_eq!(head("# /// script\n# dependencies = []\nimport x\n"), None);
    }

    #[test]
    fn what_reaches_further_than_a_name_is_refused() {
        for line in [
            "-r /etc/passwd",
            "--index-url https://example.com",
            "-e .",
            "./local",
            "/abs/path.whl",
            "name @ file:///etc/passwd",
            "name @ https://example.com/x.whl",
            "https://example.com/x.whl",
            "git+https://example.com/x",
            "name --config-settings=a=b",
            "name ; python_version < '3' -r /etc/passwd",
            "$HOME",
        ] {
            let fault = Requirements::listed(line).expect_err(line);
            assert_eq!(fault.code, Code::PackagesRefused, "{line}");
        }
    }
}
