//! What is inside the encrypted file: names and values as JSON. Memory that held values is cleared.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::name::SecretName;

/// The form that is written.
const VERSION: u32 = 1;

/// The secrets of a home.
#[derive(Clone, Default)]
pub(crate) struct SecretsContent {
    secrets: BTreeMap<SecretName, SecretString>,
}

/// The form in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    secrets: BTreeMap<String, Value>,
}

impl SecretsContent {
    /// Reads what [`Content::to_bytes`] wrote; none if it is something else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        let secrets = written.secrets.into_iter().map(|(name, value)| Some((name.parse().ok()?, value.0)));
        let secrets = secrets.collect::<Option<BTreeMap<_, _>>>()?;
        (written.version == VERSION).then_some(Self { secrets })
    }

    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // A sign takes six bytes at most. With room for all, no copy remains in a smaller buffer.
        let room: usize = self
            .secrets
            .iter()
            .map(|(name, value)| 6 * value.expose_secret().len() + name.to_string().len() + 8)
            .sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(room + 64));
        bytes.extend_from_slice(format!("{{\"version\":{VERSION},\"secrets\":{{").as_bytes());
        for (place, (name, value)) in self.secrets.iter().enumerate() {
            if place > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(format!("\"{name}\":").as_bytes());
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut *bytes, value.expose_secret());
        }
        bytes.extend_from_slice(b"}}");
        bytes
    }

    pub(crate) fn get(&self, name: &SecretName) -> Option<SecretString> {
        self.secrets.get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<SecretName> {
        self.secrets.keys().cloned().collect()
    }

    /// Sets a secret; none if it has this value already.
    pub(crate) fn set(&mut self, name: &SecretName, value: &SecretString) -> Option<()> {
        let old = self.secrets.insert(name.clone(), value.clone());
        let same = old.is_some_and(|old| old.expose_secret() == value.expose_secret());
        (!same).then_some(())
    }

    pub(crate) fn remove(&mut self, name: &SecretName) -> Option<()> {
        self.secrets.remove(name).map(drop)
    }
}

impl PartialEq for SecretsContent {
    fn eq(&self, other: &Self) -> bool {
        *self.to_bytes() == *other.to_bytes()
    }
}

/// A value, taken from the text without a copy in between.
struct Value(SecretString);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value(SecretString::from(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
