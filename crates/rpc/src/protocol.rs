//! Every request, its answer, and every notification. Requests are in groups, one file each: `session`, `extensions`, `system`,
//! `bus`, `schedules`, `secrets`.
//!
//! A client has no store, so every value in an answer is complete, see `line.rs`. The exception are frames, which come as they
//! are stored: a `{"blob": …}` there is fetched with `session.content`.

/// Declares a group of methods: its enum as it is written on the wire, and its part of the method table.
macro_rules! methods {
    (
        $(#[doc = $about:literal])+
        $group:ident: $methods:ident {
            $($(#[doc = $doc:literal])+ $method:literal => $name:ident($params:ty),)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "method", content = "params")]
        pub enum $methods {
            $($(#[doc = $doc])+ #[serde(rename = $method)] $name($params),)+
        }

        impl $methods {
            /// The methods of this group.
            pub(super) const TABLE: &[Method] = &[
                $(Method {
                    name: $method,
                    read: |params| Ok(Request::$group(Self::$name(serde_json::from_value(params)?))),
                },)+
            ];
        }

        impl ClientRequest for $methods {}

        impl From<$methods> for Request {
            fn from(method: $methods) -> Self {
                Self::$group(method)
            }
        }
    };
}

mod bus;
mod extensions;
mod notification;
mod schedules;
mod secrets;
mod session;
mod system;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::bus::*;
pub use self::extensions::*;
pub use self::notification::Notification;
pub use self::schedules::*;
pub use self::secrets::*;
pub use self::session::*;
pub use self::system::*;

/// The protocol's version. A client and an owner of different versions do not talk.
pub const VERSION: u32 = 1;

/// The name of a client that is a command: it ends by itself.
pub const COMMAND: &str = "cli";

/// A request. `method` and `params` stand beside JSON-RPC's `id`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// Of a session.
    Session(SessionMethod),
    /// Of extensions.
    Extensions(ExtensionMethod),
    /// Of the home.
    System(SystemMethod),
    /// Of the bus.
    Bus(BusMethod),
    /// Of schedules.
    Schedules(ScheduleMethod),
    /// Of secrets.
    Secrets(SecretMethod),
}

/// Something that a client can ask.
pub trait ClientRequest: Serialize {}

impl ClientRequest for Request {}

/// A row of the method table.
struct Method {
    name: &'static str,
    read: fn(Value) -> Result<Request, serde_json::Error>,
}

/// Why a message is not a request.
#[derive(Debug)]
pub enum RequestError {
    /// There is no such method.
    UnknownMethod,
    /// Its parameters do not fit.
    InvalidParams(serde_json::Error),
}

impl Request {
    /// The methods of all groups.
    const TABLES: &[&[Method]] = &[
        SessionMethod::TABLE,
        ExtensionMethod::TABLE,
        SystemMethod::TABLE,
        BusMethod::TABLE,
        ScheduleMethod::TABLE,
        SecretMethod::TABLE,
    ];

    /// A request of this method.
    pub fn read(method: &str, params: Value) -> Result<Self, RequestError> {
        let found = Self::TABLES.iter().copied().flatten().find(|row| row.name == method);
        let row = found.ok_or(RequestError::UnknownMethod)?;
        (row.read)(params).map_err(RequestError::InvalidParams)
    }
}

/// One choice per method, whichever group it is in.
impl JsonSchema for Request {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Request".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let groups = [
            SessionMethod::json_schema(generator),
            ExtensionMethod::json_schema(generator),
            SystemMethod::json_schema(generator),
            BusMethod::json_schema(generator),
            ScheduleMethod::json_schema(generator),
            SecretMethod::json_schema(generator),
        ];
        let methods = groups.iter().filter_map(|group| group.get("oneOf")?.as_array());
        let methods: Vec<&Value> = methods.flatten().collect();
        let about = "A request. `method` and `params` stand beside JSON-RPC's `id`.";
        let mut schema = Schema::default();
        schema.insert("description".to_owned(), json!(about));
        schema.insert("oneOf".to_owned(), json!(methods));
        schema
    }
}

/// No parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// The JSON Schemas of requests and notifications.
pub fn schema() -> Value {
    let request = schemars::schema_for!(Request).to_value();
    let notice = schemars::schema_for!(Notification).to_value();
    json!({ "version": VERSION, "request": request, "notice": notice })
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
