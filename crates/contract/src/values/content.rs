//! Values that pass through the runtime without being looked into: arguments, results, texts.
//!
//! A [`Content`] is shared, never copied. Its canonical bytes and digest are computed once, on whichever thread first needs
//! them: the deciding thread only where it shows them to a sandboxed hook. Past [`INLINE_LIMIT`] it is written as a reference to a
//! content-addressed blob, so that a large value is stored once however often frames and snapshots mention it.
//!
//! A [`Content`] always has its value. A reference is not a [`Content`] and cannot be read as one: a reader of stored JSON replaces
//! its references first, with [`load_references`]. What is written for a reader who has no store is [`written_whole`].

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::MAX_EXACT_INTEGER;
use crate::digest::{Digest, canonical};
use crate::problem::Fault;

/// Canonical bytes beyond which a value or a frame's body is kept as a blob.
pub const INLINE_LIMIT: usize = 4096;

/// An immutable JSON value with a lazily computed canonical form.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    value: Value,
    /// Whether the form that `serde_json` writes is its canonical one, for half of the instructions: no fractions, and no field names
    /// that sort differently as UTF-16.
    plain: bool,
    canonical: OnceLock<Box<str>>,
    digest: OnceLock<Digest>,
}

/// Where a large value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// The digest of the value's canonical bytes, and the blob's key.
    pub digest: Digest,
    /// How many canonical bytes it has.
    pub bytes: u64,
}

impl Content {
    /// A value on its way into the runtime. Integers that JSON cannot carry exactly become text, whole fractions such as `23.0`
    /// become integers, and fields stand in order, as their canonical form has them: what is hashed, stored and replayed is what
    /// was seen.
    pub fn new(mut value: Value) -> Self {
        let plain = make_exact(&mut value);
        let (canonical, digest) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Inner { value, plain, canonical, digest }))
    }

    /// A value of any type that JSON can carry; `null` for one that it cannot.
    pub fn of<T: Serialize>(value: &T) -> Self {
        Self::new(serde_json::to_value(value).unwrap_or_default())
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Value::String(text.into()))
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// About how many bytes its JSON has.
    pub fn approximate_bytes(&self) -> u64 {
        let (mut bytes, mut left) = (0, vec![self.value()]);
        while let Some(value) = left.pop() {
            bytes += 8;
            match value {
                Value::String(text) => bytes += text.len() as u64,
                Value::Array(items) => left.extend(items),
                Value::Object(fields) => {
                    bytes += fields.keys().map(|name| name.len() as u64).sum::<u64>();
                    left.extend(fields.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        bytes
    }

    /// The text of a text value, and the JSON of any other.
    pub fn to_text(&self) -> String {
        match &self.0.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The canonical JSON.
    pub fn json(&self) -> &str {
        self.0.canonical()
    }

    /// The digest of the canonical bytes.
    pub fn digest(&self) -> Digest {
        self.0.digest()
    }

    /// The canonical bytes where they are too many to be written in place.
    pub fn as_blob(&self) -> Option<(BlobRef, &[u8])> {
        let bytes = self.json().as_bytes();
        let blob = || BlobRef { digest: self.digest(), bytes: bytes.len() as u64 };
        (bytes.len() > INLINE_LIMIT).then(|| (blob(), bytes))
    }

    /// How many canonical bytes the value has.
    pub fn bytes(&self) -> u64 {
        self.json().len() as u64
    }
}

impl Inner {
    fn canonical(&self) -> &str {
        self.canonical.get_or_init(|| {
            let plain = || serde_json::to_string(&self.value).unwrap_or_default();
            if self.plain {
                return plain().into();
            }
            // A JSON value with exact numbers always has a canonical form; the plain form stands in if that ever changes.
            let proper = canonical(&self.value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            proper.unwrap_or_else(plain).into()
        })
    }

    fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| Digest::of(self.canonical().as_bytes()))
    }
}

/// Makes numbers exact and puts fields in order. Gives whether the plain form is then the canonical one.
fn make_exact(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let too_large = number.as_u64().is_some_and(|n| n > MAX_EXACT_INTEGER)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() > MAX_EXACT_INTEGER);
            if too_large {
                *value = Value::String(number.to_string());
            } else if let Some(whole) = number
                .as_f64()
                .filter(|n| number.is_f64() && n.fract() == 0.0 && n.abs() <= MAX_EXACT_INTEGER as f64)
            {
                *value = Value::from(whole as i64);
            }
            !value.is_f64()
        }
        Value::Array(items) => items.iter_mut().fold(true, |plain, item| make_exact(item) & plain),
        Value::Object(fields) => {
            // A value that was read back has its fields in order, so one that just came must have them too. Whether a map keeps
            // another order is decided by a feature of `serde_json` that any dependency may switch on.
            if !fields.keys().is_sorted() {
                fields.sort_keys();
            }
            fields.iter_mut().fold(true, |plain, (name, field)| make_exact(field) & name.is_ascii() & plain)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// `null`, shared by all.
impl Default for Content {
    fn default() -> Self {
        static NULL: LazyLock<Content> = LazyLock::new(|| Content::new(Value::Null));
        NULL.clone()
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self::new(value)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// A failure as a model is told of it.
impl From<&Fault> for Content {
    fn from(fault: &Fault) -> Self {
        Self::text(format!("error {fault}"))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Written {
    /// The value itself.
    Json(Value),
    /// The value is a blob of its own.
    Blob(BlobRef),
}

thread_local! {
    /// Whether this thread writes for readers who have no store.
    static WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a serialisation in which every [`Content`] is written in place, however large. Whatever leaves the program is written so.
pub fn written_whole<T>(write: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            WHOLE.set(self.0);
        }
    }
    let _restore = Restore(WHOLE.replace(true));
    write()
}

/// A value as JSON, [written whole](written_whole).
pub fn to_whole_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Value> {
    written_whole(|| serde_json::to_value(value))
}

/// Writes a content in place, however large, for `#[serde(serialize_with = …)]`.
pub fn whole<S: serde::Serializer>(content: &Content, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_newtype_variant("Content", 0, "json", &content.0.value)
}

/// The stored form, in place or past [`INLINE_LIMIT`] as a reference, except in [`written_whole`].
impl Serialize for Content {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let blob = if WHOLE.get() { None } else { self.as_blob() };
        match blob {
            None => whole(self, serializer),
            Some((blob, _)) => serializer.serialize_newtype_variant("Content", 1, "blob", &blob),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Json(value) => Ok(Self::new(value)),
            Written::Blob(BlobRef { digest, bytes }) => {
                let what = format!(
                    "the value is a reference to blob {digest} of {bytes} bytes, which was not loaded"
                );
                Err(serde::de::Error::custom(what))
            }
        }
    }
}

/// Replaces every reference in the stored JSON of typed data by the value that `load` gives for it. What stands inside of a
/// `{"json": …}` is data of others and is not searched.
pub fn load_references<E>(
    json: &mut Value,
    load: &mut dyn FnMut(BlobRef) -> Result<Value, E>,
) -> Result<(), E> {
    match json {
        Value::Array(items) => items.iter_mut().try_for_each(|item| load_references(item, load)),
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("json") => Ok(()),
        Value::Object(fields) => {
            let only = if fields.len() == 1 { fields.get("blob") } else { None };
            let Some(blob) = only.and_then(|blob| BlobRef::deserialize(blob).ok()) else {
                return fields.values_mut().try_for_each(|field| load_references(field, load));
            };
            let value = load(blob)?;
            fields.clear();
            fields.insert("json".to_owned(), value);
            Ok(())
        }
        _ => Ok(()),
    }
}

impl JsonSchema for Content {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Content".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

/// The digest of a value, computed when it is first written down.
#[derive(Clone)]
pub enum DigestOf {
    /// The value is loaded.
    Value(Content),
    /// Read back from the log.
    Known(Box<Digest>),
}

impl DigestOf {
    /// The digest itself.
    pub fn get(&self) -> Digest {
        match self {
            Self::Value(content) => content.digest(),
            Self::Known(digest) => **digest,
        }
    }
}

impl From<&Content> for DigestOf {
    fn from(content: &Content) -> Self {
        Self::Value(content.clone())
    }
}

impl PartialEq for DigestOf {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for DigestOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for DigestOf {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DigestOf {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Digest::deserialize(deserializer).map(|digest| Self::Known(Box::new(digest)))
    }
}

impl JsonSchema for DigestOf {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Digest::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Digest::json_schema(generator)
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
