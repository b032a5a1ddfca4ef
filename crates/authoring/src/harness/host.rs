//! The hosts that an extension sees in the harness. A test case's calls have state that lasts for the case, and a clock and random
//! bytes that are always the same. One that is loaded to see what it registers may ask for anything, and has no effect.

use std::collections::BTreeMap;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{Capability, HostCall};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use parking_lot::Mutex;

/// The moment that every test case plays in: 2026-01-01T00:00:00Z.
const NOON: Millis = Millis(1_767_225_600_000);

#[derive(Default)]
pub(super) struct CaseHost {
    state: Mutex<BTreeMap<String, Content>>,
}

impl Host for CaseHost {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let mut state = self.state.lock();
        let answer = match call {
            HostCall::Clock => Ok(Content::of(&NOON)),
            HostCall::Random { bytes } => Ok(Content::text("a5".repeat(bytes as usize))),
            HostCall::StateGet { key } => Ok(state.get(&key).cloned().unwrap_or_default()),
            HostCall::StateSet { key, value: Some(value) } => {
                state.insert(key, value);
                Ok(Content::default())
            }
            HostCall::StateSet { key, value: None } => {
                state.remove(&key);
                Ok(Content::default())
            }
            HostCall::Inject { .. } | HostCall::Ui(_) => Ok(Content::default()),
            call => {
                let message = format!("a test case has no host call `{}`", call.name());
                Err(Fault::new(Code::ExtensionFault, message))
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The host during loading, which some extensions use to initialise themselves: host calls have no effect and return nothing.
#[derive(Default)]
pub(super) struct LoadHost(CaseHost);

impl Host for LoadHost {
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>> {
        let answer = match call.kind() {
            Some(kind) if kind.has_its_own_frame() => return self.0.call_within(call, timeout),
            Some(kind) if kind.capability() == Capability::Secrets => {
                let message = format!("there is no secret `{}` here", call.record().arguments.to_text());
                Err(Fault::new(Code::SecretMissing, message))
            }
            _ => Ok(Content::default()),
        };
        Box::pin(std::future::ready(answer))
    }
}
