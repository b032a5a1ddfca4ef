//! Compiling components in a process of their own. A component of some kilobytes can keep the compiler busy for minutes and make it use
//! gigabytes, so it is compiled by a limited child of this program, where there is one; see `holdfast_sandbox::Helper`.

use std::io::{Read, Write};
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_sandbox::{Helper, HelperFailure, HelperLimits};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::component::engine;
use crate::component::inspect::compile;
use crate::component::precompiled::deserialize;

/// The name of this work.
pub const COMPILE_WORK: &str = "compile";

/// How long compiling may take: a base, and for every MiB of the component.
const BASE_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_PER_MIB: Duration = Duration::from_secs(5);
/// What the compiler may use.
const MEMORY_BYTES: u64 = 2 << 30;
/// The largest compiled component.
const MAX_COMPILED_BYTES: u64 = 2 << 30;

/// What the first byte of an answer says.
const COMPILED: u8 = 0;
const REJECTED: u8 = 1;

/// Compiles a component for an engine with these options: in a limited process where this program has one, else here.
pub(crate) fn compile_limited(
    engine: &Engine,
    options: &SandboxOptions,
    bytes: &[u8],
) -> Result<Component, Fault> {
    let Some(helper) = Helper::installed() else { return compile(engine, bytes) };
    let internal = |message: &str| Fault::new(Code::Internal, message);
    let settings = serde_json::to_vec(options).map_err(|error| internal(&error.to_string()))?;
    let mut input = (settings.len() as u64).to_le_bytes().to_vec();
    input.extend(settings);
    input.extend_from_slice(bytes);
    let mib = u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
    let timeout = BASE_TIMEOUT + TIMEOUT_PER_MIB * mib;
    let limits = HelperLimits { memory_bytes: MEMORY_BYTES, timeout, output_bytes: MAX_COMPILED_BYTES };
    let answer = helper.run(COMPILE_WORK, input, &limits);
    let costly = |why: String| Fault::new(Code::ComponentCostly, why);
    let answer = answer.map_err(|failure| match failure {
        HelperFailure::Late => costly(format!("compiling took longer than {} s", timeout.as_secs())),
        HelperFailure::Died(how) => {
            costly(format!("the compiler ended without a result, with at most {MEMORY_BYTES} bytes: {how}"))
        }
        HelperFailure::Unavailable(error) => internal(&format!("the compiler could not be started: {error}")),
    })?;
    match answer.split_first() {
        Some((&COMPILED, code)) => deserialize(engine, code)
            .ok_or_else(|| internal("the compiled component does not fit the engine")),
        Some((&REJECTED, fault)) => {
            Err(serde_json::from_slice(fault).unwrap_or_else(|error| internal(&error.to_string())))
        }
        _ => Err(internal("the compiler gave no answer")),
    }
}

/// Compiles what comes in, as the process that `compile_limited` starts.
pub fn serve_compile(mut input: impl Read, mut output: impl Write) -> std::io::Result<()> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let mut settings = Vec::new();
    input.by_ref().take(u64::from_le_bytes(length)).read_to_end(&mut settings)?;
    let options: SandboxOptions = serde_json::from_slice(&settings)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let compiled = engine::shared(&options.few())
        .map_err(|problem| problem.to_fault())
        .and_then(|engine| compile(&engine, &bytes))
        .and_then(|component| {
            component.serialize().map_err(|error| Fault::new(Code::Internal, error.to_string()))
        });
    match compiled {
        Ok(code) => {
            output.write_all(&[COMPILED])?;
            output.write_all(&code)?;
        }
        Err(fault) => {
            output.write_all(&[REJECTED])?;
            output.write_all(&serde_json::to_vec(&fault)?)?;
        }
    }
    output.flush()
}
