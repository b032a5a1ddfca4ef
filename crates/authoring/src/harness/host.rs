//! The hosts that an extension sees in the harness. A test case's calls have state that lasts for the case, and a clock and random
//! bytes that are always the same. One that is loaded to see what it registers may ask for anything, and nothing comes of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Ask, Host, Later};

/// The moment that every test case plays in: 2026-01-01T00:00:00Z.
const NOON: Millis = Millis(1_767_225_600_000);

#[derive(Default)]
pub(super) struct CaseHost {
    state: Mutex<BTreeMap<String, Content>>,
}

impl Host for CaseHost {
    fn ask(&self, ask: Ask) -> Later<Result<Content, Fault>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match ask {
            Ask::Clock => Ok(Content::of(&NOON)),
            Ask::Random { bytes } => Ok(Content::text("a5".repeat(bytes as usize))),
            Ask::StateGet { key } => Ok(state.get(&key).cloned().unwrap_or_default()),
            Ask::StateSet { key, value: Some(value) } => {
                state.insert(key, value);
                Ok(Content::default())
            }
            Ask::StateSet { key, value: None } => {
                state.remove(&key);
                Ok(Content::default())
            }
            Ask::Inject { .. } | Ask::Ui(_) => Ok(Content::default()),
            Ask::Other { name, .. } => {
                Err(Fault::new(Code::ExtensionFault, format!("a test case has nothing called `{name}`")))
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The host during loading, which some extensions use to initialise themselves: host calls have no effect and return nothing.
#[derive(Default)]
pub(super) struct LoadHost(CaseHost);

impl Host for LoadHost {
    fn ask(&self, ask: Ask) -> Later<Result<Content, Fault>> {
        let answer = match ask {
            Ask::Other { name, arguments, .. } if name.starts_with("secret.") => {
                let message = format!("there is no secret `{}` here", arguments.to_text());
                Err(Fault::new(Code::SecretMissing, message))
            }
            Ask::Other { .. } => Ok(Content::default()),
            ask => return self.0.ask(ask),
        };
        Box::pin(std::future::ready(answer))
    }
}
