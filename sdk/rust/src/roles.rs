//! Roles that several functions fill together: each attribute submits one entry, and these exports list and call them.

use crate::{Delivery, Failure, Value};

/// What an extension needs before it can work. `#[setup]` on the `impl` exports it.
pub trait Setup {
    /// A list of `{name, description, secret, required}`.
    fn schema() -> Value;
    /// Takes answers over: an object with a value for each name. A secret's value is its reference.
    fn apply(values: Value) -> Result<(), Failure>;
    /// Whether everything is there: a word for the user. The failure says what is missing.
    fn complete() -> Result<String, Failure>;
}

/// A channel that shows answers as they are written. `#[streaming_channel]` on the `impl` exports it; `#[send_to_user]` is needed besides.
///
/// What comes before the end is provisional. If one of these fails, the stream is over and the whole text goes to `#[send_to_user]`.
pub trait StreamingChannel {
    /// An answer to a user begins. The id is the stream's.
    fn start(user: String, id: String) -> Result<(), Failure>;
    /// More of the text.
    fn chunk(user: String, id: String, text: String) -> Result<(), Failure>;
    /// A line on what goes on meanwhile.
    fn status(user: String, id: String, status: String) -> Result<(), Failure>;
    /// The whole text as it counts, in place of what was shown.
    fn end(user: String, id: String, text: String, delivery: Delivery) -> Result<(), Failure>;
}

/// A JSON text, read.
pub fn json(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::InvalidArguments(error.to_string()))
}

/// Entries by name, so that a list is the same however the linker laid them out.
#[cfg(any(feature = "tools", feature = "commands", feature = "api"))]
fn by_name<T: inventory::Collect>(name: fn(&T) -> &'static str) -> Vec<&'static T> {
    let mut entries: Vec<&T> = inventory::iter::<T>.into_iter().collect();
    entries.sort_by_key(|entry| name(entry));
    entries
}

/// Tools.
#[cfg(feature = "tools")]
pub mod tools {
    use crate::bindings::tools::exports::holdfast::extension::tools::{Guest, ToolSpec};
    use crate::{Content, Effects, Failure, Value};

    /// A tool, as `#[tool]` submits it.
    #[derive(Debug)]
    pub struct Tool {
        /// The name that a model calls it by.
        pub name: &'static str,
        /// What it does.
        pub description: &'static str,
        /// What it does to the world.
        pub effects: Effects,
        /// How long a call may take.
        pub timeout_ms: Option<u32>,
        /// The arguments' schema.
        pub input_schema: fn() -> Value,
        /// The result's schema.
        pub output_schema: fn() -> Option<Value>,
        /// Runs it.
        pub call: fn(Value) -> Result<Content, Failure>,
    }

    inventory::collect!(Tool);

    struct Exported;

    impl Guest for Exported {
        fn list() -> Vec<ToolSpec> {
            let spec = |tool: &Tool| ToolSpec {
                name: tool.name.to_owned(),
                description: tool.description.to_owned(),
                input_schema: (tool.input_schema)().to_string(),
                output_schema: (tool.output_schema)().map(|schema| schema.to_string()),
                effects: tool.effects,
                timeout_ms: tool.timeout_ms,
                render: None,
            };
            super::by_name(|tool: &Tool| tool.name).into_iter().map(spec).collect()
        }

        fn call(name: String, arguments: String) -> Result<Content, Failure> {
            let tool = inventory::iter::<Tool>.into_iter().find(|tool| tool.name == name);
            let tool = tool.ok_or_else(|| Failure::NotFound(format!("there is no tool `{name}`")))?;
            (tool.call)(super::json(&arguments)?)
        }
    }

    #[allow(unsafe_code, reason = "the generated exports")]
    mod exported {
        use super::Exported;
        crate::bindings::tools::export_tools!(Exported with_types_in crate::bindings::tools);
    }
}

/// Slash commands.
#[cfg(feature = "commands")]
pub mod commands {
    use crate::bindings::commands::exports::holdfast::extension::commands::{CommandSpec, Guest};
    use crate::{Content, Failure};

    /// A slash command, as `#[command]` submits it.
    #[derive(Debug)]
    pub struct Command {
        /// The name, without the slash.
        pub name: &'static str,
        /// What it does.
        pub description: &'static str,
        /// Runs it.
        pub run: fn(String) -> Result<Content, Failure>,
    }

    inventory::collect!(Command);

    struct Exported;

    impl Guest for Exported {
        fn list() -> Vec<CommandSpec> {
            let spec = |command: &Command| CommandSpec {
                name: command.name.to_owned(),
                description: command.description.to_owned(),
            };
            super::by_name(|command: &Command| command.name).into_iter().map(spec).collect()
        }

        fn run(name: String, arguments: String) -> Result<Content, Failure> {
            let command = inventory::iter::<Command>.into_iter().find(|command| command.name == name);
            let command =
                command.ok_or_else(|| Failure::NotFound(format!("there is no command `{name}`")))?;
            (command.run)(arguments)
        }
    }

    #[allow(unsafe_code, reason = "the generated exports")]
    mod exported {
        use super::Exported;
        crate::bindings::commands::export_commands!(Exported with_types_in crate::bindings::commands);
    }
}

/// Methods for other extensions.
#[cfg(feature = "api")]
pub mod api {
    use crate::bindings::api::exports::holdfast::extension::api::{Guest, Method as MethodSpec};
    use crate::{Content, Failure, Value};

    /// A method, as `#[method]` submits it.
    #[derive(Debug)]
    pub struct Method {
        /// Its name.
        pub name: &'static str,
        /// What it does.
        pub description: &'static str,
        /// Runs it.
        pub call: fn(Value) -> Result<Content, Failure>,
    }

    inventory::collect!(Method);

    struct Exported;

    impl Guest for Exported {
        fn methods() -> Vec<MethodSpec> {
            let spec = |method: &Method| MethodSpec {
                name: method.name.to_owned(),
                description: method.description.to_owned(),
            };
            super::by_name(|method: &Method| method.name).into_iter().map(spec).collect()
        }

        fn call(name: String, arguments: String) -> Result<Content, Failure> {
            let method = inventory::iter::<Method>.into_iter().find(|method| method.name == name);
            let method = method.ok_or_else(|| Failure::NotFound(format!("there is no method `{name}`")))?;
            (method.call)(super::json(&arguments)?)
        }
    }

    #[allow(unsafe_code, reason = "the generated exports")]
    mod exported {
        use super::Exported;
        crate::bindings::api::export_api!(Exported with_types_in crate::bindings::api);
    }
}
