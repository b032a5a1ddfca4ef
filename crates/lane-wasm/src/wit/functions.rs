//! The signatures of exported functions, how those of a component are checked, and how those of an instance are looked up.

use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{ComponentExportIndex, Instance, TypedFunc};
use wasmtime::{Result, Store, format_err};

use crate::instance::guest::Guest;
use crate::wit::abi::{
    AgentSpec, Choice, ContentIn, ContentOut, Delivery, Enrichment, Event, Failure, File, Gate, Modification,
    Named, Plan, Route, Sanitized, ToolCall, ToolSpec, Verdict,
};

macro_rules! shapes {
    ($($(#[doc = $doc:literal])+ $name:ident: ($($parameter:ty),*) -> $answer:ty;)+) => {
        /// A signature.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Shape { $($(#[doc = $doc])+ $name,)+ }

        /// A function of one instance.
        #[derive(Clone, Copy)]
        pub(crate) enum Typed { $($(#[doc = $doc])+ $name(TypedFunc<($($parameter,)*), ($answer,)>),)+ }

        impl Shape {
            /// Whether a component's function has this signature.
            pub(crate) fn check(
                self,
                function: &ComponentFunc,
                within: &wasmtime::component::__internal::InstanceType<'_>,
            ) -> Result<()> {
                if function.async_() {
                    return Err(format_err!("it is an async function"));
                }
                match self {
                    $(Shape::$name => function.typecheck::<($($parameter,)*), ($answer,)>(within),)+
                }
            }

            /// An instance's function of this signature.
            pub(crate) fn find(
                self,
                instance: &Instance,
                store: &mut Store<Guest>,
                index: &ComponentExportIndex,
            ) -> Result<Typed> {
                let function = instance.get_func(&mut *store, index);
                let function = function.ok_or_else(|| format_err!("an exported function is not there"))?;
                Ok(match self {
                    $(Shape::$name => Typed::$name(function.typed(&*store)?),)+
                })
            }
        }
    };
}

shapes! {
    /// A step without parameters and result.
    Step: () -> Result<(), Failure>;
    /// The end of a turn.
    Ending: (Option<ContentIn<'static>>) -> Result<(), Failure>;
    /// A text may be rewritten.
    Rewrite: (ContentIn<'static>) -> Result<Option<ContentOut>, Failure>;
    /// A text is sanitized.
    Sanitize: (ContentIn<'static>) -> Result<Sanitized, Failure>;
    /// A text is judged.
    Guard: (ContentIn<'static>) -> Result<Verdict, Failure>;
    /// A text is written from another.
    Write: (ContentIn<'static>) -> Result<Option<String>, Failure>;
    /// A model is named.
    Route: (ContentIn<'static>) -> Result<Option<Route>, Failure>;
    /// A tool call is rewritten.
    Modify: (ToolCall<'static>) -> Result<Option<Modification>, Failure>;
    /// A tool call is judged.
    Gate: (ToolCall<'static>) -> Result<Gate, Failure>;
    /// A result is enriched.
    After: (ToolCall<'static>, ContentIn<'static>) -> Result<Option<Enrichment>, Failure>;
    /// A result is sanitized.
    SanitizeResult: (ToolCall<'static>, ContentIn<'static>) -> Result<Sanitized, Failure>;
    /// A result is judged.
    GuardResult: (ToolCall<'static>, ContentIn<'static>) -> Result<Verdict, Failure>;
    /// A compaction is planned.
    Plan: () -> Result<Option<Plan>, Failure>;
    /// Tools are listed.
    Tools: () -> Vec<ToolSpec>;
    /// Methods or commands are listed.
    Named: () -> Vec<Named>;
    /// An agent describes itself.
    Agent: () -> AgentSpec;
    /// A tool, method or command is run by its name.
    Run: (&'static str, &'static str) -> Result<ContentOut, Failure>;
    /// An agent is asked.
    Invoke: (&'static str) -> Result<ContentOut, Failure>;
    /// A scheduled task is run.
    Task: (&'static str) -> Result<Option<ContentOut>, Failure>;
    /// A JSON text is returned.
    Json: () -> String;
    /// Values are applied.
    Apply: (&'static str) -> Result<(), Failure>;
    /// A status text is returned.
    Word: () -> Result<String, Failure>;
    /// A call is rendered.
    RenderCall: (&'static str, &'static str) -> Option<String>;
    /// A result is rendered.
    RenderResult: (&'static str, ContentIn<'static>) -> Option<String>;
    /// A text for one user.
    Send: (&'static str, &'static str, Delivery<'static>) -> Result<(), Failure>;
    /// A text for the channel's default recipient.
    Message: (&'static str, Delivery<'static>) -> Result<(), Failure>;
    /// A file for one user, or for the channel's default recipient.
    File: (Option<&'static str>, File<'static>, Delivery<'static>) -> Result<(), Failure>;
    /// A question to one user, with what can be chosen.
    Question: (&'static str, &'static str, &'static [Choice<'static>], Delivery<'static>) -> Result<(), Failure>;
    /// A stream to one user begins.
    StreamStart: (&'static str, &'static str) -> Result<(), Failure>;
    /// A chunk of a stream, or its status.
    StreamPiece: (&'static str, &'static str, &'static str) -> Result<(), Failure>;
    /// A stream's end, with the whole text.
    StreamEnd: (&'static str, &'static str, &'static str, Delivery<'static>) -> Result<(), Failure>;
    /// An event.
    Event: (Event<'static>) -> Result<(), Failure>;
    /// A health check.
    Health: () -> bool;
}
