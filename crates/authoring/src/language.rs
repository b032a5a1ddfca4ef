//! The languages that extensions may be written in, and how each is built.

pub(crate) mod c;
mod initialiser;
pub(crate) mod javascript;
pub(crate) mod python;
pub(crate) mod rust;
mod scan;
#[cfg(test)]
mod scan_tests;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What an extension is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust.
    Rust,
    /// Python.
    Python,
    /// JavaScript.
    JavaScript,
    /// C.
    C,
}

impl Language {
    /// Every language.
    pub const ALL: &'static [Language] = &[Self::Rust, Self::Python, Self::JavaScript, Self::C];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::C => "c",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rust" | "rs" => Ok(Self::Rust),
            "python" | "py" => Ok(Self::Python),
            "javascript" | "js" => Ok(Self::JavaScript),
            "c" => Ok(Self::C),
            _ => Err("expected rust, python, javascript or c".to_owned()),
        }
    }
}
