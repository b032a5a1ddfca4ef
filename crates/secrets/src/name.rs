//! A secret's name: one that is there for all, or one of an extension's own.

use std::fmt;
use std::str::FromStr;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};

/// The maximal length of a name.
const MAX_NAME_BYTES: usize = 128;

/// `NAME`, or `extension.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName {
    extension: Option<ExtensionId>,
    name: String,
}

impl SecretName {
    /// The name of a secret that is there for all.
    pub fn global(name: &str) -> Result<Self, Problem> {
        let begins = |sign: char| sign.is_ascii_alphabetic() || sign == '_';
        let goes_on = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
        if name.starts_with(begins) && name.chars().all(goes_on) && name.len() <= MAX_NAME_BYTES {
            Ok(Self { extension: None, name: name.to_owned() })
        } else {
            Err(refused(name))
        }
    }

    /// The name of an extension's own secret.
    pub fn own(extension: &ExtensionId, name: &str) -> Result<Self, Problem> {
        let id = extension.as_str();
        let goes_on = |sign: char| matches!(sign, 'a'..='z' | '0'..='9' | '_' | '-');
        if id.starts_with(|sign: char| sign.is_ascii_lowercase()) && id.chars().all(goes_on) {
            Ok(Self { extension: Some(extension.clone()), ..Self::global(name)? })
        } else {
            Err(refused(&format!("{id}.{name}")))
        }
    }

    /// The name without the extension's, as a frame has it beside the extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whose own it is; none if it is there for all.
    pub fn extension(&self) -> Option<&ExtensionId> {
        self.extension.as_ref()
    }
}

fn refused(text: &str) -> Problem {
    let shown: String = text.chars().take(40).flat_map(char::escape_default).collect();
    Problem::new(Code::SecretName, format!("a secret cannot be called `{shown}`"))
}

impl FromStr for SecretName {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        match text.split_once('.') {
            Some((extension, name)) => Self::own(&extension.into(), name),
            None => Self::global(text),
        }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.extension {
            Some(extension) => write!(f, "{extension}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
