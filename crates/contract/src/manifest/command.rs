//! A program with its arguments, written as one line or as a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program and its arguments. Written as one line it is split at spaces, with quotes and backslashes as in
/// a shell; no shell ever sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transform = super::model::or_text)]
pub struct ProgramCommand(Vec<String>);

impl ProgramCommand {
    /// A command from its words; `None` if there are no words or the program's name is empty.
    pub fn new(words: Vec<String>) -> Option<Self> {
        words.first().is_some_and(|program| !program.is_empty()).then_some(Self(words))
    }

    /// A command from one line; nothing if a quote is left open or the line is empty.
    pub fn split(line: &str) -> Option<Self> {
        Self::new(words(line)?)
    }

    /// The program.
    pub fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[String] {
        self.0.get(1..).unwrap_or_default()
    }
}

/// What a program and its host speak over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Its standard input and output.
    #[default]
    Stdio,
    /// A Unix socket for both directions, in the place of its standard input. What it prints goes to the log.
    Socket,
}

impl Transport {
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::Stdio
    }
}

fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_split_like_a_shell_would() {
        for (line, expected) in [
            ("./run", Some(vec!["./run"])),
            ("python3  -m server\n", Some(vec!["python3", "-m", "server"])),
            (r#"run "two words" 'and $HOME'"#, Some(vec!["run", "two words", "and $HOME"])),
            (r#"run a\ b "c\"d" 'e\f' """#, Some(vec!["run", "a b", "c\"d", "e\\f", ""])),
            ("run 'open", None),
            ("run \\", None),
            ("   ", None),
            ("''", None),
        ] {
            let words = ProgramCommand::split(line).map(|command| command.0);
            assert_eq!(words, expected.map(|words| words.into_iter().map(str::to_owned).collect()), "{line}");
        }
    }
}
