//! Native plugins for Holdfast, in Rust: a dynamic library that Holdfast loads into its own process under the profile `trusted`.
//!
//! Implement [`Plugin`], name the type in [`export!`], and build the crate as a `cdylib`. The messages are those of the process
//! protocol (`holdfast docs reference/process`), as JSON values. `abi` is the C interface below.
//!
//! ```
//! use holdfast_plugin::{Call, Failure, Plugin, export};
//! use serde_json::{Value, json};
//!
//! struct Shout;
//!
//! impl Plugin for Shout {
//!     fn describe(_: &Value) -> Result<(Self, Value), Failure> {
//!         let tools = json!([{ "name": "shout", "description": "Says it loudly.", "effects": "pure" }]);
//!         Ok((Self, json!({ "protocol": "0.1", "tools": tools })))
//!     }
//!
//!     fn call(&self, call: &Call<'_>) -> Result<Value, Failure> {
//!         let text = call.params["arguments"]["text"].as_str().ok_or(Failure::invalid("`text` is missing"))?;
//!         Ok(text.to_uppercase().into())
//!     }
//! }
//!
//! export!(Shout);
//! ```

mod abi;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use serde_json::{Value, json};

#[doc(hidden)]
pub use abi::{PluginTable, table};

/// A plugin. One value of it serves all calls, from several threads at once.
pub trait Plugin: Sized + Send + Sync + 'static {
    /// Says what the plugin is. `hello` has its id, its configuration and its data folder; the answer is a welcome of the process
    /// protocol.
    fn describe(hello: &Value) -> Result<(Self, Value), Failure>;

    /// Answers a request.
    fn call(&self, call: &Call<'_>) -> Result<Value, Failure>;
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    code: i64,
    message: String,
}

impl Failure {
    /// The plugin failed, for this reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// The arguments are wrong, for this reason.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    /// The reason.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// A request, and what can be asked of the host until it is answered.
pub struct Call<'a> {
    /// The method: `tool`, `hook`, `api` and so on.
    pub method: &'a str,
    /// Its parameters.
    pub params: &'a Value,
    id: u64,
    host: abi::HostLink<'a>,
}

impl Call<'_> {
    /// Asks the host, and waits for the answer.
    pub fn ask(&self, name: &str, arguments: Value) -> Result<Value, Failure> {
        self.question(1, json!({ "call": self.id, "name": name, "arguments": arguments }))
    }

    /// The same; `updated` gets what happens meanwhile, one update after the other and from another thread: `text`, or `tool` and
    /// `arguments`.
    pub fn ask_streamed(
        &self,
        name: &str,
        arguments: Value,
        updated: impl Fn(&Value) + Send + Sync + 'static,
    ) -> Result<Value, Failure> {
        static QUESTIONS: AtomicU64 = AtomicU64::new(2);
        let question = abi::Following::new(QUESTIONS.fetch_add(1, Ordering::Relaxed), Arc::new(updated));
        let asked = json!({ "call": self.id, "name": name, "arguments": arguments, "updates": true });
        self.question(question.0, asked)
    }

    fn question(&self, id: u64, question: Value) -> Result<Value, Failure> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "ask", "params": question });
        let answer: Value = serde_json::from_slice(&self.host.send(message.to_string().as_bytes()))
            .map_err(|_| Failure::new("the host did not answer"))?;
        match answer.get("error") {
            Some(error) => Err(Failure::new(error["message"].as_str().unwrap_or("the host refused"))),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Writes a line to the log.
    pub fn log(&self, text: &str) {
        self.tell("log", json!({ "text": text }));
    }

    /// Shows progress to those who wait for the call.
    pub fn progress(&self, text: &str) {
        self.tell("progress", json!({ "call": self.id, "text": text }));
    }

    /// Whether the answer is no longer wanted. A call that takes long must ask now and then, and return.
    pub fn is_cancelled(&self) -> bool {
        abi::is_cancelled(self.id)
    }

    fn tell(&self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.host.send(message.to_string().as_bytes());
    }
}

/// Where the value of a plugin is kept. Implemented by [`export!`].
#[doc(hidden)]
pub trait Exported: Plugin {
    /// The place.
    fn slot() -> &'static RwLock<Option<Arc<Self>>>;
}

/// Exports a plugin. Once in a crate.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        impl $crate::Exported for $plugin {
            fn slot() -> &'static ::std::sync::RwLock<::std::option::Option<::std::sync::Arc<Self>>> {
                static SLOT: ::std::sync::RwLock<::std::option::Option<::std::sync::Arc<$plugin>>> =
                    ::std::sync::RwLock::new(::std::option::Option::None);
                &SLOT
            }
        }

        /// The table of this plugin's functions.
        #[unsafe(no_mangle)]
        pub extern "C" fn holdfast_plugin_v1() -> *const $crate::PluginTable {
            $crate::table::<$plugin>()
        }
    };
}
