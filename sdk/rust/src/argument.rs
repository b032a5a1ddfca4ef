//! What an argument of a tool may be. Its type says what the model is told of it and how it is read:
//! text, numbers, booleans, lists, maps, `Option` for what may be left out, any JSON as [`Value`], and structs and
//! enums with `#[derive(Argument)]`.

use std::collections::BTreeMap;

use crate::{Failure, Value, json};

/// A type that an argument may have.
pub trait Argument: Sized {
    /// Whether it must be given.
    const REQUIRED: bool = true;
    /// Its JSON Schema.
    fn schema() -> Value;
    /// Reads it; the text says what is wrong.
    fn read(value: Value) -> Result<Self, String>;
    /// What it is when it was left out.
    fn absent() -> Result<Self, String> {
        Err("it is missing".to_owned())
    }
}

impl Argument for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err("it must be text".to_owned()),
        }
    }
}

impl Argument for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
    fn read(value: Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "it must be true or false".to_owned())
    }
}

impl Argument for Value {
    fn schema() -> Value {
        json!({})
    }
    fn read(value: Value) -> Result<Self, String> {
        Ok(value)
    }
}

macro_rules! integers {
    ($($type:ty: $as:ident),+) => {
        $(impl Argument for $type {
            fn schema() -> Value {
                json!({ "type": "integer", "minimum": <$type>::MIN, "maximum": <$type>::MAX })
            }
            fn read(value: Value) -> Result<Self, String> {
                let number = value.$as().and_then(|number| <$type>::try_from(number).ok());
                number.ok_or_else(|| {
                    format!("it must be a whole number from {} to {}", <$type>::MIN, <$type>::MAX)
                })
            }
        })+
    };
}

integers!(u8: as_u64, u16: as_u64, u32: as_u64, i8: as_i64, i16: as_i64, i32: as_i64);

macro_rules! wide_integers {
    ($($type:ty: $as:ident, $schema:tt);+) => {
        $(impl Argument for $type {
            fn schema() -> Value {
                json!($schema)
            }
            fn read(value: Value) -> Result<Self, String> {
                value.$as().ok_or_else(|| "it must be a whole number".to_owned())
            }
        })+
    };
}

wide_integers!(u64: as_u64, { "type": "integer", "minimum": 0 }; i64: as_i64, { "type": "integer" });

impl Argument for f64 {
    fn schema() -> Value {
        json!({ "type": "number" })
    }
    fn read(value: Value) -> Result<Self, String> {
        value.as_f64().ok_or_else(|| "it must be a number".to_owned())
    }
}

impl<T: Argument> Argument for Option<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        T::schema()
    }
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }
    fn absent() -> Result<Self, String> {
        Ok(None)
    }
}

impl<T: Argument> Argument for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => items.into_iter().map(T::read).collect(),
            _ => Err("it must be a list".to_owned()),
        }
    }
}

impl<T: Argument> Argument for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| Ok((name, T::read(value)?))).collect()
            }
            _ => Err("it must be an object".to_owned()),
        }
    }
}

/// The schema of an object, field by field.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Object {
    properties: serde_json::Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    /// The same with one more field.
    pub fn field<T: Argument>(mut self, name: &str, description: &str) -> Self {
        let mut schema = T::schema();
        if let (false, Some(fields)) = (description.is_empty(), schema.as_object_mut()) {
            fields.insert("description".to_owned(), description.into());
        }
        if T::REQUIRED {
            self.required.push(name.into());
        }
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// The schema.
    pub fn schema(self) -> Value {
        let mut schema =
            json!({ "type": "object", "properties": self.properties, "additionalProperties": false });
        if let (false, Some(fields)) = (self.required.is_empty(), schema.as_object_mut()) {
            fields.insert("required".to_owned(), Value::Array(self.required));
        }
        schema
    }
}

/// Takes a field out of an object.
#[doc(hidden)]
pub fn take<T: Argument>(arguments: &mut Value, name: &str) -> Result<T, Failure> {
    let value = arguments.as_object_mut().and_then(|fields| fields.remove(name));
    let read = value.map_or_else(T::absent, T::read);
    read.map_err(|wrong| Failure::InvalidArguments(format!("`{name}`: {wrong}")))
}
