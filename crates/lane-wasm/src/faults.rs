//! What the engine reports, as the codes of this project. The text of a fault is the same on every machine: no addresses, no
//! paths, one line.

use std::fmt;

use holdfast_contract::problem::{Code, Fault};
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use crate::wit::abi::Failure;

/// An error that the host raises in the middle of a guest, with what it comes to.
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

/// Functions that a trap's message names, the innermost first.
const NAMED_FRAMES: usize = 4;

/// Characters that a message keeps of a function's name, which is the guest's to choose.
const NAME_LIMIT: usize = 60;

/// Characters that a message keeps of the engine's.
const MESSAGE_LIMIT: usize = 400;

/// What an error of the engine comes to.
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

/// Errors that the engine tells apart by their text alone. The hostile corpus holds each of them against the engine.
const KNOWN: &[(&str, Code, &str)] = &[
    (
        "fuel allocated for hostcalls has been exhausted",
        Code::AnswerTooLarge,
        "it hands over more than it may (`answer_bytes`)",
    ),
    (
        "resource limit exceeded",
        Code::MemoryExhausted,
        "it consists of more instances, memories or tables than one may",
    ),
    ("store handle limit exceeded", Code::MemoryExhausted, "it holds more handles than it may (`handles`)"),
    (
        "exceeds the limit of",
        Code::MemoryExhausted,
        "it wants more memory or table elements than there is room for",
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
    let message = format!("all slots are taken: {text}; raise `pools.{named}` under `wasm:` in the settings");
    Fault::new(Code::SlotsExhausted, message)
}

fn trapped(trap: Trap, error: &wasmtime::Error) -> Fault {
    match trap {
        Trap::OutOfFuel => Fault::new(Code::FuelExhausted, format!("its fuel is used up{}", place(error))),
        Trap::Interrupt => Fault::new(Code::ComponentLate, "it computed for longer than its time"),
        Trap::StackOverflow => {
            Fault::new(Code::StackExhausted, format!("its stack is used up{}", place(error)))
        }
        other => Fault::new(Code::ComponentTrap, format!("{}{}", one_line(&other.to_string()), place(error))),
    }
}

/// The guest's functions that were running, by their names.
fn place(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let names = backtrace.frames().iter().filter_map(|frame| frame.func_name());
    let names: Vec<_> = names.take(NAMED_FRAMES).map(|name| short(name, NAME_LIMIT)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (in {})", names.join(" < ")),
    }
}

/// The text without line breaks and control characters, and not too much of it.
pub(crate) fn one_line(text: &str) -> String {
    short(text, MESSAGE_LIMIT)
}

fn short(text: &str, limit: usize) -> String {
    let harmless = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().take(limit).map(harmless).collect()
}

impl Failure {
    /// What the guest says.
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

/// A fault of the host's, as a guest is told of it.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.code {
            Code::ToolArguments => Self::InvalidArguments(fault.message),
            Code::ToolDenied => Self::Denied(fault.message),
            Code::StoreMissing => Self::NotFound(fault.message),
            _ => Self::Failed(fault.message),
        }
    }
}
