//! What functions may return: text stays text, anything else becomes JSON, and a failure may be words alone.

use crate::{Content, Failure, ToolCall, Value};

/// What a tool, a command or a method may return.
pub trait Answer {
    /// As the host takes it.
    fn content(self) -> Result<Content, Failure>;
    /// The JSON Schema of the result, where the type promises one.
    fn schema() -> Option<Value> {
        None
    }
}

impl Answer for Content {
    fn content(self) -> Result<Content, Failure> {
        Ok(self)
    }
}

impl Answer for String {
    fn content(self) -> Result<Content, Failure> {
        Ok(Content::Text(self))
    }
}

impl Answer for &str {
    fn content(self) -> Result<Content, Failure> {
        Ok(Content::Text(self.to_owned()))
    }
}

impl Answer for () {
    fn content(self) -> Result<Content, Failure> {
        Ok(Content::Json("null".to_owned()))
    }
}

impl<T: Answer, E: Into<Failure>> Answer for Result<T, E> {
    fn content(self) -> Result<Content, Failure> {
        self.map_err(Into::into)?.content()
    }
    fn schema() -> Option<Value> {
        T::schema()
    }
}

/// Any value that can be written as JSON.
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

impl<T: Into<Value>> Answer for Json<T> {
    fn content(self) -> Result<Content, Failure> {
        Ok(Content::Json(self.0.into().to_string()))
    }
}

macro_rules! as_json {
    ($($type:ty),+) => {
        $(impl Answer for $type {
            fn content(self) -> Result<Content, Failure> {
                Json(self).content()
            }
        })+
    };
}

as_json!(Value, bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<T: Into<Value>> Answer for Vec<T> {
    fn content(self) -> Result<Content, Failure> {
        Json(self).content()
    }
}

/// What a hook may return: its answer, or a result of it.
pub trait Outcome<T> {
    /// As the host takes it.
    fn outcome(self) -> Result<T, Failure>;
}

impl<T> Outcome<T> for T {
    fn outcome(self) -> Result<T, Failure> {
        Ok(self)
    }
}

impl<T, E: Into<Failure>> Outcome<T> for Result<T, E> {
    fn outcome(self) -> Result<T, Failure> {
        self.map_err(Into::into)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Failed(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self::Json(value.to_string())
    }
}

/// The text, or the JSON as text.
impl From<Content> for String {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) | Content::Json(text) => text,
        }
    }
}

impl Content {
    /// The text, or the JSON as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }
}

impl ToolCall {
    /// The arguments, read.
    pub fn arguments(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }
}
