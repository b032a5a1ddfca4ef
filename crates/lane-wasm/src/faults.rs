//! Maps the engine's errors to this project's codes. The text of a fault is the same on every machine: no addresses, no paths, one
//! line.

use std::fmt;

use holdfast_contract::problem::{Code, Fault};
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use crate::wit::abi::Failure;

/// An error that the host raises in the middle of a guest call, with its fault.
#[derive(Debug)]
pub(crate) struct Stop(pub Fault);

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Stop {}

/// Stops the guest.
pub(crate) fn stop(code: Code, message: impl Into<String>) -> wasmtime::Error {
    Stop(Fault::new(code, message)).into()
}

/// Functions of the backtrace in a trap's message, innermost first.
const MAX_NAMED_FRAMES: usize = 4;

/// Characters of a function's name in a message; the guest chooses the name.
const MAX_NAME_CHARS: usize = 60;

/// Characters of an engine message.
const MAX_MESSAGE_CHARS: usize = 400;

/// The fault of an engine error.
pub(crate) fn fault(error: &wasmtime::Error) -> Fault {
    if let Some(Stop(fault)) = error.downcast_ref::<Stop>() {
        return fault.clone();
    }
    if let Some(error) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return slots(&error.to_string());
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return trapped(*trap, error);
    }
    let text = error.root_cause().to_string();
    let known = KNOWN.iter().find(|(part, ..)| text.contains(part));
    match known {
        Some((_, code, message)) => Fault::new(*code, *message),
        None => Fault::new(Code::ComponentTrap, format!("{}{}", one_line(&text), place(error))),
    }
}

/// Errors that the engine distinguishes only by their text. The hostile corpus checks each of them against the engine.
const KNOWN: &[(&str, Code, &str)] = &[
    (
        "fuel allocated for hostcalls has been exhausted",
        Code::AnswerTooLarge,
        "it passed more data than its limit (`answer_bytes`)",
    ),
    (
        "resource limit exceeded",
        Code::MemoryExhausted,
        "it has more instances, memories or tables than the limit",
    ),
    (
        "store handle limit exceeded",
        Code::MemoryExhausted,
        "it holds more handles than its limit (`handles`)",
    ),
    (
        "exceeds the limit of",
        Code::MemoryExhausted,
        "it requested more memory or table elements than the pool can hold",
    ),
];

fn slots(text: &str) -> Fault {
    let setting = [
        ("stack", "stacks"),
        ("fiber", "stacks"),
        ("memor", "memories"),
        ("table", "tables"),
        ("component instance", "instances"),
        ("instance", "core_instances"),
    ];
    let named = setting.iter().find(|(part, _)| text.contains(part)).map_or("instances", |(_, name)| name);
    let message = format!(
        "the instance pool is exhausted: {text}; raise `pools.{named}` under `wasm:` in the settings"
    );
    Fault::new(Code::SlotsExhausted, message)
}

fn trapped(trap: Trap, error: &wasmtime::Error) -> Fault {
    match trap {
        Trap::OutOfFuel => Fault::new(Code::FuelExhausted, format!("out of fuel{}", place(error))),
        Trap::Interrupt => Fault::new(Code::ComponentLate, "the call exceeded its CPU deadline"),
        Trap::StackOverflow => Fault::new(Code::StackExhausted, format!("stack overflow{}", place(error))),
        other => Fault::new(Code::ComponentTrap, format!("{}{}", one_line(&other.to_string()), place(error))),
    }
}

/// The guest's functions on the stack, by name.
fn place(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let names = backtrace.frames().iter().filter_map(|frame| frame.func_name());
    let names: Vec<_> = names.take(MAX_NAMED_FRAMES).map(|name| short(name, MAX_NAME_CHARS)).collect();
    if names.is_empty() { String::new() } else { format!(" (in {})", names.join(" < ")) }
}

/// The text without line breaks and control characters, truncated.
pub(crate) fn one_line(text: &str) -> String {
    short(text, MAX_MESSAGE_CHARS)
}

fn short(text: &str, limit: usize) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().take(limit).map(printable).collect()
}

impl Failure {
    /// The guest's message.
    pub(crate) fn text(self) -> String {
        match self {
            Self::InvalidArguments(text) | Self::Denied(text) | Self::NotFound(text) | Self::Failed(text) => {
                text
            }
        }
    }

    /// A tool's, method's or agent's failure as a fault.
    pub(crate) fn into_fault(self) -> Fault {
        let code = match self {
            Self::InvalidArguments(_) => Code::ToolArguments,
            _ => Code::ToolFailed,
        };
        Fault::new(code, self.text())
    }
}

/// A fault of the host as a guest receives it.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.code {
            Code::ToolArguments => Self::InvalidArguments(fault.message),
            Code::ToolDenied | Code::PathRefused | Code::ComponentImport | Code::HookSideEffect => {
                Self::Denied(fault.message)
            }
            Code::StoreMissing | Code::FileMissing => Self::NotFound(fault.message),
            _ => Self::Failed(fault.message),
        }
    }
}
