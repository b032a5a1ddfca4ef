//! What the host offers, as plain functions. The module is the interface's; what an extension does not call is not imported.

/// An answer that the host gives as JSON.
fn read(answer: Result<String, crate::Failure>) -> Result<crate::Value, crate::Failure> {
    let text = answer?;
    serde_json::from_str(&text)
        .map_err(|error| crate::Failure::Failed(format!("the host's answer is not JSON: {error}")))
}

/// Lines for the host's log.
pub mod log {
    use crate::bindings::log::holdfast::extension::log as host;
    pub use host::Level;

    /// A line.
    pub fn line(level: Level, message: &str) {
        host::log(level, message);
    }
    /// A line for debugging.
    pub fn debug(message: &str) {
        line(Level::Debug, message);
    }
    /// A line about what happens.
    pub fn info(message: &str) {
        line(Level::Info, message);
    }
    /// A line about what may be wrong.
    pub fn warning(message: &str) {
        line(Level::Warning, message);
    }
    /// A line about what is wrong.
    pub fn error(message: &str) {
        line(Level::Error, message);
    }
}

/// The extension's configuration: the user's settings over the manifest's.
pub mod config {
    use crate::Value;
    use crate::bindings::config::holdfast::extension::config as host;

    /// One value by its name at the top.
    pub fn get(name: &str) -> Option<Value> {
        serde_json::from_str(&host::get(name)?).ok()
    }
    /// All of it, as an object.
    pub fn all() -> Value {
        serde_json::from_str(&host::all()).unwrap_or_default()
    }
}

/// The turn that is served.
pub mod session {
    pub use crate::bindings::session::holdfast::extension::session::{TurnInfo, current};
}

/// What lasts: values of this extension in this session, each change a frame.
pub mod state {
    use crate::bindings::state::holdfast::extension::state as host;
    use crate::{Failure, Value};

    /// A value, if there is one.
    pub fn get(key: &str) -> Result<Option<Value>, Failure> {
        Ok(host::get(key)?.and_then(|text| serde_json::from_str(&text).ok()))
    }
    /// Keeps a value.
    pub fn set(key: &str, value: &Value) -> Result<(), Failure> {
        host::set(key, Some(&value.to_string()))
    }
    /// Forgets a value.
    pub fn remove(key: &str) -> Result<(), Failure> {
        host::set(key, None)
    }
}

/// Messages for the conversation.
pub mod messages {
    pub use crate::bindings::messages::holdfast::extension::messages::inject;
}

/// The time, recorded.
pub mod clock {
    pub use crate::bindings::clock::holdfast::extension::clock::now;
}

/// Random bytes, recorded.
pub mod random {
    pub use crate::bindings::random::holdfast::extension::random::bytes;
}

/// The bus. Needs the grant `events`.
pub mod events {
    use crate::bindings::events::holdfast::extension::events as host;
    use crate::{Failure, Value};

    /// Publishes an event; those with one key stay in order.
    pub fn publish(topic: &str, payload: &Value, key: Option<&str>) -> Result<(), Failure> {
        host::publish(topic, &payload.to_string(), key)
    }

    /// An event with everything that it can have.
    #[derive(Clone, Debug, Default)]
    pub struct NewEvent<'a> {
        /// The topic.
        pub topic: &'a str,
        /// The payload.
        pub payload: Value,
        /// Events with the same key are delivered in order.
        pub key: Option<&'a str>,
        /// What the event answers.
        pub correlation: Option<&'a str>,
        /// An event with the same one is published once.
        pub idempotency: Option<&'a str>,
    }

    /// Publishes an event with everything that it can have, and gives its id.
    pub fn publish_event(event: &NewEvent<'_>) -> Result<String, Failure> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        host::publish_event(&host::NewEvent {
            topic: event.topic.to_owned(),
            payload: event.payload.to_string(),
            key: owned(event.key),
            correlation: owned(event.correlation),
            idempotency: owned(event.idempotency),
        })
    }
}

/// Subscriptions besides those in the manifest. Needs the grant `subscriptions`.
pub mod subscriptions {
    pub use crate::bindings::subscriptions::holdfast::extension::subscriptions::{subscribe, unsubscribe};
}

/// Questions to the user. Needs the grant `ui`. None is no answer.
pub mod ui {
    use crate::bindings::ui::holdfast::extension::ui as host;
    use crate::{Failure, Value};
    pub use host::{confirm, input, select};

    /// In a surface's own words; others fall back on the prompt.
    pub fn custom(kind: &str, prompt: &str, payload: &Value) -> Result<Option<Value>, Failure> {
        let answer = host::custom(kind, prompt, &payload.to_string())?;
        Ok(answer.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// Secrets: the extension's own, and those that are granted by name. Prefer the reference, which the host replaces on its way out.
pub mod secrets {
    pub use crate::bindings::secrets::holdfast::extension::secrets::{get, keep, reference};
}

/// Waiting. Not for hooks, which a turn waits for.
pub mod timers {
    use crate::Failure;
    pub use crate::bindings::timers::holdfast::extension::timers::{next_due, wait_until};

    /// Waits for so many milliseconds, and gives the time.
    pub fn wait(millis: u64) -> Result<u64, Failure> {
        wait_until(super::clock::now().saturating_add(millis))
    }
}

/// Methods of the extensions that this one depends on. Needs the grant `extensions`.
pub mod extensions {
    use crate::bindings::extensions::holdfast::extension::extensions as host;
    use crate::{Content, Failure, Value};

    /// Calls a method.
    pub fn call(extension: &str, method: &str, arguments: &Value) -> Result<Content, Failure> {
        host::call(extension, method, &arguments.to_string())
    }
}

/// Services that extensions share, by their keys: `<extension>/<name>`. Needs the grant `services`.
pub mod services {
    use crate::bindings::services::holdfast::extension::services as host;
    use crate::{Content, Failure, Value};

    /// What its owner says of a service, which is made with these arguments if it is not there.
    pub fn get(key: &str, arguments: &Value) -> Result<Content, Failure> {
        host::get(key, &arguments.to_string())
    }
    /// Calls a method of a service, which is made if it is not there.
    pub fn call(key: &str, method: &str, arguments: &Value) -> Result<Content, Failure> {
        host::call(key, method, &arguments.to_string())
    }
}

/// The agents. Needs the grant `agents`.
pub mod agents {
    use crate::bindings::agents::holdfast::extension::agents as host;
    pub use crate::bindings::agents::holdfast::extension::agents::{
        CalledTool, Invocation, Recipient, Update, background, invoke, invoke_model, invoke_streamed, task,
    };
    use crate::{Content, Failure, Value};

    /// The agents that can be asked.
    pub fn list() -> Result<Value, Failure> {
        super::read(host::list())
    }

    /// Runs a tool that the extension's agent has, as a model's call of it would run.
    pub fn invoke_tool(tool: &str, arguments: &Value) -> Result<Content, Failure> {
        host::invoke_tool(tool, &arguments.to_string())
    }

    /// Has an agent do something and gives its answer, like [`invoke`]; `follow` gets what happens meanwhile.
    pub fn invoke_followed(
        agent: Option<&str>,
        task: &str,
        mut follow: impl FnMut(Update),
    ) -> Result<Content, Failure> {
        let invocation = invoke_streamed(agent, task)?;
        while let Some(update) = invocation.next() {
            follow(update);
        }
        invocation.answer()
    }
}

/// The channels that reach the user. Needs the grant `channels`.
pub mod channels {
    pub use crate::bindings::channels::holdfast::extension::channels::{KnownChannels, list, notify};
}

/// Prompts. Needs the grant `context`.
pub mod prompts {
    use crate::bindings::prompts::holdfast::extension::prompts as host;
    use crate::{Failure, Value};
    pub use host::enrich;

    /// An agent's models; of the extension's own, which is meant if none is named, also its instructions, tools, limits and parameters.
    pub fn describe_agent(agent: Option<&str>) -> Result<Value, Failure> {
        super::read(host::describe_agent(agent))
    }
}

/// Conversations, and the projects that they are in. Needs the grant `conversations`.
pub mod conversations {
    use crate::bindings::conversations::holdfast::extension::conversations as host;
    use crate::{Failure, Value};
    pub use host::{ThreadFilter, remove_project};

    /// Conversations with their titles and projects.
    pub fn list_threads(filter: &ThreadFilter) -> Result<Value, Failure> {
        super::read(host::list_threads(filter))
    }
    /// Changes a conversation: `title` and `project`, which null removes, and `archived`. With a `channel`, one that does not exist is
    /// created.
    pub fn update_thread(thread: &str, changes: &Value) -> Result<Value, Failure> {
        super::read(host::update_thread(thread, &changes.to_string()))
    }
    /// What the user and the agent have said.
    pub fn history(thread: &str) -> Result<Value, Failure> {
        super::read(host::history(thread))
    }
    /// The projects.
    pub fn list_projects() -> Result<Value, Failure> {
        super::read(host::list_projects())
    }
    /// Changes a project, or creates one if none is named.
    pub fn update_project(project: Option<&str>, fields: &Value) -> Result<Value, Failure> {
        super::read(host::update_project(project, &fields.to_string()))
    }
}

/// Tool results that this extension has truncated. Needs the grant `results`.
pub mod results {
    use crate::bindings::results::holdfast::extension::results as host;
    use crate::{Failure, Value};

    /// Reads on, from an offset in bytes: `text`, `offset`, `end` and `total`. The call is the id that a hook was given.
    pub fn read(call: u64, offset: u64, limit: u64) -> Result<Value, Failure> {
        super::read(host::read(call, offset, limit))
    }
}

/// The extensions and tools of this session. Needs the grant `discovery`.
pub mod discovery {
    use crate::bindings::discovery::holdfast::extension::discovery as host;
    use crate::{Failure, Value};

    /// Searches the tools by what they do.
    pub fn find_tools(query: &str, limit: Option<u32>) -> Result<Value, Failure> {
        super::read(host::find_tools(query, limit))
    }
    /// Lists the extensions and tools.
    pub fn list_capabilities() -> Result<Value, Failure> {
        super::read(host::list_capabilities())
    }
}

/// Setting up and examining extensions. Needs the grant `setup`.
pub mod maintenance {
    use crate::bindings::maintenance::holdfast::extension::maintenance as host;
    use crate::{Failure, Value};

    /// The extensions that are not set up.
    pub fn open() -> Result<Value, Failure> {
        super::read(host::open())
    }
    /// Which parameters an extension needs.
    pub fn show(extension: &str) -> Result<Value, Failure> {
        super::read(host::show(extension))
    }
    /// Sets a parameter.
    pub fn apply(extension: &str, name: &str, value: &Value) -> Result<Value, Failure> {
        super::read(host::apply(extension, name, &value.to_string()))
    }
    /// What is wrong with an extension, or with all.
    pub fn doctor(extension: Option<&str>) -> Result<Value, Failure> {
        super::read(host::doctor(extension))
    }
}

/// The process. Needs the grant `system`.
pub mod system {
    pub use crate::bindings::system::holdfast::extension::system::restart;
}

/// Requests over HTTP. Needs a granted host, or the grant `http`.
pub mod http {
    use crate::Failure;
    pub use crate::bindings::http::holdfast::extension::http::{Request, Response, send};

    /// Gets an address.
    pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Response, Failure> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (method, url) = ("GET".to_owned(), url.to_owned());
        send(&Request { method, url, headers, body: Vec::new(), timeout_ms: None })
    }
}

/// Files in the extension's own data folder and in granted folders.
pub mod files {
    use crate::Failure;
    pub use crate::bindings::files::holdfast::extension::files::{
        Entry, EntryKind, list, make_folder, read, remove, stat, write,
    };

    /// A file that is text.
    pub fn read_text(path: &str) -> Result<String, Failure> {
        String::from_utf8(read(path)?).map_err(|_| Failure::Failed(format!("{path} is not UTF-8")))
    }
}

/// Environment variables of the host. Needs a grant for each name.
pub mod environment {
    pub use crate::bindings::environment::holdfast::extension::environment::get;
}
