//! The attributes of `holdfast-extension`. [`tool`](macro@tool), [`command`](macro@command) and [`method`](macro@method) submit an
//! entry to a list; a hook's attribute exports the hook's interface. `functions.rs` has the former, `hooks.rs` the latter,
//! `setup.rs` and `streaming.rs` those that take an `impl`, `argument.rs` the derive.

mod argument;
mod functions;
mod hooks;
mod setup;
mod streaming;

use proc_macro::TokenStream;

/// A tool: its arguments become the schema, doc comments the descriptions.
///
/// `#[tool(name = "…", description = "…", effects = "pure", timeout_ms = 1000)]`, each optional. `effects` is one of
/// `unknown`, `pure`, `read`, `write`, `exec`, `network`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    functions::expand(functions::Role::Tool, options.into(), function.into()).into()
}

/// A slash command: a function from the rest of the line to an answer. `#[command(name = "…", description = "…")]`.
#[proc_macro_attribute]
pub fn command(options: TokenStream, function: TokenStream) -> TokenStream {
    functions::expand(functions::Role::Command, options.into(), function.into()).into()
}

/// A method that other extensions may call. `#[method(name = "…", description = "…")]`.
#[proc_macro_attribute]
pub fn method(options: TokenStream, function: TokenStream) -> TokenStream {
    functions::expand(functions::Role::Method, options.into(), function.into()).into()
}

/// An agent: a function from a task to an answer. `#[agent(id = "…", description = "…", integration = "tool")]`.
#[proc_macro_attribute]
pub fn agent(options: TokenStream, function: TokenStream) -> TokenStream {
    functions::agent(options.into(), function.into()).into()
}

/// A struct or an enum without fields as an argument of a tool.
#[proc_macro_derive(Argument)]
pub fn derive_argument(item: TokenStream) -> TokenStream {
    argument::expand(item.into()).into()
}

/// What an extension needs before it can work: on the `impl` of `Setup` for a type of its own.
#[proc_macro_attribute]
pub fn setup(options: TokenStream, item: TokenStream) -> TokenStream {
    setup::expand(options.into(), item.into()).into()
}

/// A channel that shows answers as they are written: on the `impl` of `StreamingChannel` for a type of its own.
#[proc_macro_attribute]
pub fn streaming_channel(options: TokenStream, item: TokenStream) -> TokenStream {
    streaming::expand(options.into(), item.into()).into()
}

macro_rules! hooks {
    ($($(#[doc = $doc:literal])+ $name:ident: $module:literal, $function:literal, $parameters:literal;)+) => {
        $($(#[doc = $doc])+
        #[proc_macro_attribute]
        pub fn $name(options: TokenStream, function: TokenStream) -> TokenStream {
            let hook = hooks::Hook { module: $module, function: $function, parameters: $parameters };
            hooks::expand(&hook, options.into(), function.into()).into()
        })+
    };
}

hooks! {
    /// Once, before anything else: `fn() -> Result<(), Failure>`.
    initialize: "lifecycle_initialize", "initialize", "";
    /// Begin: `fn() -> Result<(), Failure>`.
    start: "lifecycle_start", "start", "";
    /// End: `fn() -> Result<(), Failure>`.
    stop: "lifecycle_stop", "stop", "";
    /// Free what is held: `fn() -> Result<(), Failure>`.
    destroy: "lifecycle_destroy", "destroy", "";
    /// Is it well: `fn() -> bool`.
    health_check: "lifecycle_health", "health_check", "";
    /// Takes an event of a topic that the extension subscribes to: `fn(event: Event) -> Result<(), Failure>`.
    on_event: "subscriber", "on_event", "event";
    /// Sends a text to one user of the channel: `fn(user: String, text: String, delivery: Delivery) -> Result<(), Failure>`.
    send_to_user: "channel", "send_to_user", "user, text, delivery";
    /// Sends a text to the channel's default recipient: `fn(text: String, delivery: Delivery) -> Result<(), Failure>`.
    send_message: "channel_message", "send_message", "text, delivery";
    /// Sends a file to one user, or to the channel's default recipient: `fn(user: Option<String>, file: File, delivery: Delivery) -> Result<(), Failure>`.
    send_file: "channel_file", "send_file", "user, file, delivery";
    /// Shows a question with choices to one user: `fn(user: String, text: String, choices: Vec<Choice>, delivery: Delivery) -> Result<(), Failure>`.
    send_question: "channel_question", "send_question", "user, text, choices, delivery";
    /// Runs a task that the manifest's schedules name: `fn(task: String) -> Option<Content>`. An object with a `text` tells the user.
    execute_task: "scheduler", "execute_task", "task";
    /// A loop in the background, which waits with `timers::wait_until`: `fn() -> Result<(), Failure>`.
    run_background: "service", "run_background", "";
    /// A session began: `fn()`.
    session_start: "session_start", "session_start", "";
    /// A session ended: `fn()`.
    session_end: "session_end", "session_end", "";
    /// A turn was cancelled: `fn()`.
    session_cancel: "session_cancel", "session_cancel", "";
    /// A turn begins: `fn()`.
    turn_start: "turn_start", "turn_start", "";
    /// A turn is about to end: `fn(answer: Option<Content>)`.
    turn_end: "turn_end", "turn_end", "answer";
    /// May rewrite the user's text: `fn(text: String) -> Option<Content>`.
    input_normalise: "input_normalise", "input_normalise", "text";
    /// May rewrite the user's text, or stop it: `fn(text: String) -> Sanitized`.
    sanitize_input: "sanitize_input", "sanitize_input", "text";
    /// Judges the user's text: `fn(text: String) -> Verdict`.
    guard_input: "guard_input", "guard_input", "text";
    /// Adds to the system role: `fn(prompt: String) -> Option<String>`.
    context: "context", "get_context", "prompt";
    /// Names a model: `fn(prompt: String) -> Option<Route>`.
    model_route: "model_route", "model_route", "prompt";
    /// Rewrites a tool call: `fn(call: ToolCall) -> Option<Modification>`.
    tool_modify: "tool_modify", "tool_modify", "call";
    /// Judges a tool call: `fn(call: ToolCall) -> Decision`.
    tool_gate: "tool_gate", "tool_gate", "call";
    /// May rewrite a tool's result: `fn(call: ToolCall, result: Content) -> Option<Enrichment>`.
    tool_after: "tool_after", "tool_after", "call, result";
    /// May rewrite a tool's result, or stop it: `fn(call: ToolCall, result: Content) -> Sanitized`.
    sanitize_result: "sanitize_result", "sanitize_result", "call, result";
    /// Judges a tool's result: `fn(call: ToolCall, result: Content) -> Verdict`.
    guard_result: "guard_result", "guard_result", "call, result";
    /// May rewrite the answer, or stop it: `fn(answer: String) -> Sanitized`.
    sanitize_output: "sanitize_output", "sanitize_output", "answer";
    /// Judges the answer: `fn(answer: String) -> Verdict`.
    guard_output: "guard_output", "guard_output", "answer";
    /// Judges a chunk of a streamed answer: `fn(chunk: String) -> Verdict`.
    guard_chunk: "guard_chunk", "guard_chunk", "chunk";
    /// Rewrites the answer: `fn(answer: String) -> Option<Content>`.
    response_process: "response_process", "response_process", "answer";
    /// Says what a summary must keep: `fn() -> Option<Plan>`.
    compaction_before: "compaction_before", "compaction_before", "";
    /// Writes the summary: `fn(messages: String) -> Option<String>`.
    compaction_provide: "compaction_provide", "compaction_provide", "messages";
    /// Shows a tool call as Markdown: `fn(tool: String, arguments: String) -> Option<String>`.
    render_call: "render_call", "render_call", "tool, arguments";
    /// Shows a tool's result as Markdown: `fn(tool: String, result: Content) -> Option<String>`.
    render_result: "render_result", "render_result", "tool, result";
}
