//! The part of WASI 0.2 that toolchains require, without ambient authority: no arguments, no environment, no files; output goes to
//! the log; time and random bytes are host calls, and so recorded. Every other function traps when it is called.
//!
//! Streams have no state here: the number of a handle identifies the stream.

use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::Code;
use wasmtime::component::types::{ComponentExtern, ComponentItem};
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, ResourceType};
use wasmtime::{Result, StoreContextMut};

use crate::faults::stop;
use crate::host::link::{draw, now};
use crate::instance::guest::Guest;
use crate::wit::interfaces::Name;

/// Bytes that a stream accepts per write.
const MAX_WRITE_BYTES: u64 = 4096;

/// Nanoseconds in a millisecond.
const NANOS_PER_MILLI: u64 = 1_000_000;

/// `wasi:io/error.error`. Never created here.
pub(crate) struct IoError;
/// `wasi:io/streams.input-stream`: always at end of file.
pub(crate) struct Input;
/// `wasi:io/streams.output-stream`: the log, at a level chosen by its number.
pub(crate) struct Output;
/// `wasi:io/poll.pollable`: always ready.
pub(crate) struct Pollable;
/// `wasi:filesystem/types.descriptor`. Never created here.
pub(crate) struct Folder;
/// `wasi:cli/terminal-*`. Never created here.
pub(crate) struct TerminalInput;
/// `wasi:cli/terminal-*`. Never created here.
pub(crate) struct TerminalOutput;

const STDOUT: u32 = 1;
const STDERR: u32 = 2;

/// `wasi:io/streams.stream-error`.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    Failed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

/// `wasi:clocks/wall-clock.datetime`.
#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

type At<'a, 'b> = &'a mut LinkerInstance<'b, Guest>;
type Context<'a> = StoreContextMut<'a, Guest>;

/// Whether the functions of an interface wait for the host.
pub(crate) fn waits(name: &Name<'_>) -> bool {
    matches!(name.package, "wasi:clocks" | "wasi:random")
}

/// Links an interface: the implemented functions, and for the others functions that trap.
pub(crate) fn link<'a>(
    at: At<'_, '_>,
    name: &Name<'_>,
    import: &str,
    items: impl Iterator<Item = (&'a str, ComponentExtern<'a>)>,
) -> Result<()> {
    for (item, export) in items {
        match export.ty {
            ComponentItem::Resource(_) => at.resource(item, resource(item), |_, _| Ok(()))?,
            ComponentItem::ComponentFunc(_) => {
                let message =
                    format!("it calls `{import}#{item}`, which a sandboxed extension does not have");
                at.func_new(item, move |_, _, _, _| Err(stop(Code::ComponentTrap, message.clone())))?;
            }
            _ => {}
        }
    }
    match (name.package, name.interface) {
        ("wasi:cli", "environment") => environment(at),
        ("wasi:cli", "exit") => exit(at),
        ("wasi:cli", "stdin") => at.func_wrap("get-stdin", |mut store: Context<'_>, (): ()| {
            store.data_mut().count()?;
            Ok((Resource::<Input>::new_own(0),))
        }),
        ("wasi:cli", "stdout") => at.func_wrap("get-stdout", |mut store: Context<'_>, (): ()| {
            store.data_mut().count()?;
            Ok((Resource::<Output>::new_own(STDOUT),))
        }),
        ("wasi:cli", "stderr") => at.func_wrap("get-stderr", |mut store: Context<'_>, (): ()| {
            store.data_mut().count()?;
            Ok((Resource::<Output>::new_own(STDERR),))
        }),
        ("wasi:cli", "terminal-stdin") => {
            at.func_wrap("get-terminal-stdin", |mut store: Context<'_>, (): ()| {
                store.data_mut().count()?;
                Ok((None::<Resource<TerminalInput>>,))
            })
        }
        ("wasi:cli", "terminal-stdout") => no_terminal(at, "get-terminal-stdout"),
        ("wasi:cli", "terminal-stderr") => no_terminal(at, "get-terminal-stderr"),
        ("wasi:io", "poll") => poll(at),
        ("wasi:io", "streams") => streams(at),
        ("wasi:clocks", "monotonic-clock") => monotonic(at),
        ("wasi:clocks", "wall-clock") => wall(at),
        ("wasi:random", "random") => bytes(at, "get-random-bytes", "get-random-u64"),
        ("wasi:random", "insecure") => bytes(at, "get-insecure-random-bytes", "get-insecure-random-u64"),
        ("wasi:random", "insecure-seed") => seed(at),
        ("wasi:filesystem", "preopens") => {
            at.func_wrap("get-directories", |mut store: Context<'_>, (): ()| {
                store.data_mut().count()?;
                Ok((Vec::<(Resource<Folder>, String)>::new(),))
            })
        }
        _ => Ok(()),
    }
}

/// The host's type of a resource. Interfaces re-export each other's resources, so a name is the same type in all of them.
fn resource(name: &str) -> ResourceType {
    match name {
        "error" => ResourceType::host::<IoError>(),
        "input-stream" => ResourceType::host::<Input>(),
        "output-stream" => ResourceType::host::<Output>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "descriptor" => ResourceType::host::<Folder>(),
        "terminal-input" => ResourceType::host::<TerminalInput>(),
        "terminal-output" => ResourceType::host::<TerminalOutput>(),
        _ => ResourceType::host::<()>(),
    }
}

fn no_terminal(at: At<'_, '_>, name: &str) -> Result<()> {
    at.func_wrap(name, |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((None::<Resource<TerminalOutput>>,))
    })
}

fn environment(at: At<'_, '_>) -> Result<()> {
    at.func_wrap("get-environment", |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((Vec::<(String, String)>::new(),))
    })?;
    at.func_wrap("get-arguments", |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((Vec::<String>::new(),))
    })?;
    at.func_wrap("initial-cwd", |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((None::<String>,))
    })
}

fn exit(at: At<'_, '_>) -> Result<()> {
    at.func_wrap("exit", |_: Context<'_>, (status,): (Result<(), ()>,)| -> Result<()> {
        let how = if status.is_ok() { "success" } else { "failure" };
        Err(stop(Code::ComponentTrap, format!("it exited with {how}, but an extension must return")))
    })
}

fn poll(at: At<'_, '_>) -> Result<()> {
    at.func_wrap("[method]pollable.ready", |mut store: Context<'_>, (_,): (Resource<Pollable>,)| {
        store.data_mut().count()?;
        Ok((true,))
    })?;
    at.func_wrap("[method]pollable.block", |mut store: Context<'_>, (_,): (Resource<Pollable>,)| {
        store.data_mut().count()
    })?;
    at.func_wrap("poll", |mut store: Context<'_>, (all,): (Vec<Resource<Pollable>>,)| {
        store.data_mut().count()?;
        let ready: Vec<u32> = (0..all.len() as u32).collect();
        Ok((ready,))
    })
}

fn streams(at: At<'_, '_>) -> Result<()> {
    for name in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        at.func_wrap(name, |mut store: Context<'_>, (_, _): (Resource<Input>, u64)| {
            store.data_mut().count()?;
            Ok((Err::<Vec<u8>, _>(StreamError::Closed),))
        })?;
    }
    at.func_wrap("[method]input-stream.subscribe", |mut store: Context<'_>, (_,): (Resource<Input>,)| {
        store.data_mut().count()?;
        Ok((Resource::<Pollable>::new_own(0),))
    })?;
    at.func_wrap(
        "[method]output-stream.check-write",
        |mut store: Context<'_>, (_,): (Resource<Output>,)| {
            store.data_mut().count()?;
            Ok((Ok::<_, StreamError>(MAX_WRITE_BYTES),))
        },
    )?;
    for name in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        type Write = (Resource<Output>, Vec<u8>);
        at.func_wrap(name, |mut store: Context<'_>, (stream, bytes): Write| {
            store.data_mut().count()?;
            let level = if stream.rep() == STDERR { LogLevel::Warning } else { LogLevel::Info };
            let text = String::from_utf8_lossy(&bytes);
            store.data_mut().log(level, text.trim_end_matches('\n'))?;
            Ok((Ok::<_, StreamError>(()),))
        })?;
    }
    for name in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        at.func_wrap(name, |mut store: Context<'_>, (_,): (Resource<Output>,)| {
            store.data_mut().count()?;
            Ok((Ok::<_, StreamError>(()),))
        })?;
    }
    at.func_wrap("[method]output-stream.subscribe", |mut store: Context<'_>, (_,): (Resource<Output>,)| {
        store.data_mut().count()?;
        Ok((Resource::<Pollable>::new_own(0),))
    })
}

fn monotonic(at: At<'_, '_>) -> Result<()> {
    at.func_wrap_async("now", |mut store: Context<'_>, (): ()| {
        Box::new(async move { Ok((now(&mut store).await?.saturating_mul(NANOS_PER_MILLI),)) })
    })?;
    at.func_wrap("resolution", |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((NANOS_PER_MILLI,))
    })?;
    // Components cannot sleep: every pollable is ready immediately.
    for name in ["subscribe-instant", "subscribe-duration"] {
        at.func_wrap(name, |mut store: Context<'_>, (_,): (u64,)| {
            store.data_mut().count()?;
            Ok((Resource::<Pollable>::new_own(0),))
        })?;
    }
    Ok(())
}

fn wall(at: At<'_, '_>) -> Result<()> {
    at.func_wrap_async("now", |mut store: Context<'_>, (): ()| {
        Box::new(async move {
            let millis = now(&mut store).await?;
            let nanoseconds = (millis % 1000 * NANOS_PER_MILLI) as u32;
            Ok((Datetime { seconds: millis / 1000, nanoseconds },))
        })
    })?;
    at.func_wrap("resolution", |mut store: Context<'_>, (): ()| {
        store.data_mut().count()?;
        Ok((Datetime { seconds: 0, nanoseconds: NANOS_PER_MILLI as u32 },))
    })
}

fn bytes(at: At<'_, '_>, many: &str, one: &str) -> Result<()> {
    at.func_wrap_async(many, |mut store: Context<'_>, (count,): (u64,)| {
        Box::new(async move { Ok((draw(&mut store, count).await?,)) })
    })?;
    at.func_wrap_async(one, |mut store: Context<'_>, (): ()| {
        Box::new(async move { Ok((number(&draw(&mut store, 8).await?),)) })
    })
}

fn seed(at: At<'_, '_>) -> Result<()> {
    at.func_wrap_async("insecure-seed", |mut store: Context<'_>, (): ()| {
        Box::new(async move {
            let bytes = draw(&mut store, 16).await?;
            let (first, second) = bytes.split_at(8);
            Ok(((number(first), number(second)),))
        })
    })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}
