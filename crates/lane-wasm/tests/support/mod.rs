//! Shared by the tests of this lane: an in-memory vault, a scripted host, and guests from text.
#![allow(dead_code, reason = "every test file uses another part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

#[path = "../../../../tests/hostile/corpus.rs"]
pub mod corpus;
pub mod harness;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{HookInput, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Generation, Millis};
use holdfast_contract::manifest::Grants;
use holdfast_contract::message::{CallView, Origin, TurnContext, TurnView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Call, Host, Later, Vault};
use serde_json::{Value, json};

/// A vault in memory that counts what is read.
#[derive(Default)]
pub struct MemoryVault {
    bundles: Mutex<HashMap<Digest, Bundle>>,
    files: Mutex<HashMap<Digest, Vec<u8>>>,
    pub derived: Mutex<HashMap<String, Vec<u8>>>,
    /// How often a file was read.
    pub files_read: AtomicUsize,
}

impl MemoryVault {
    /// Adds an extension and returns the reference that loads it.
    pub fn put(&self, extension: &Extension) -> ExtensionRef {
        let component = Digest::of(&extension.bytes);
        self.files.lock().unwrap().insert(component, extension.bytes.clone());
        let bundle = Bundle {
            lane: "wasm".to_owned(),
            manifest: format!("id: {id}\nname: {id}\n{}", extension.manifest, id = extension.id),
            entrypoint: "guest.wasm".to_owned(),
            files: BTreeMap::from([("guest.wasm".to_owned(), component)]),
            config: Content::new(extension.config.clone()),
            grants: extension.grants.clone(),
            budgets: extension.budgets,
            pinned: None,
        };
        let digest = Digest::of_json(&bundle).unwrap();
        self.bundles.lock().unwrap().insert(digest, bundle);
        let id = extension.id.as_str().into();
        ExtensionRef { id, version: "1.0.0".into(), digest, generation: Generation(1) }
    }
}

impl Vault for MemoryVault {
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault> {
        let bundles = self.bundles.lock().unwrap();
        bundles.get(&digest).cloned().ok_or_else(|| Fault::new(Code::ExtensionGone, "no such bundle"))
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        self.files_read.fetch_add(1, Ordering::Relaxed);
        let files = self.files.lock().unwrap();
        files.get(&digest).cloned().ok_or_else(|| Fault::new(Code::ExtensionGone, "no such file"))
    }

    fn derived(&self, name: &str) -> Option<Vec<u8>> {
        self.derived.lock().unwrap().get(name).cloned()
    }

    fn keep_derived(&self, name: &str, bytes: &[u8]) {
        self.derived.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
    }
}

/// An extension that is put into a vault.
#[derive(Clone)]
pub struct Extension {
    pub id: String,
    pub bytes: Vec<u8>,
    /// Lines of the manifest besides its id and name.
    pub manifest: String,
    pub config: Value,
    pub grants: Grants,
    pub budgets: Budgets,
}

impl Extension {
    /// One with every default.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self {
            id: "guest".to_owned(),
            bytes,
            manifest: String::new(),
            config: json!({}),
            grants: Grants::default(),
            budgets: Budgets::default(),
        }
    }

    /// One of the guests beside these tests.
    pub fn guest(name: &str) -> Self {
        Self::of(component(&here().join("tests/guests").join(name)))
    }

    /// The same, with lines added to the manifest.
    pub fn manifest(mut self, lines: &str) -> Self {
        self.manifest = lines.to_owned();
        self
    }
}

pub fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A component from its text.
pub fn component(path: &Path) -> Vec<u8> {
    let text = std::fs::read_to_string(path).unwrap();
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A host that records its calls and answers from a list, or with a default.
#[derive(Default)]
pub struct NotingHost {
    pub asked: Mutex<Vec<HostCall>>,
    pub state: Mutex<HashMap<String, Content>>,
    /// Never answers.
    pub silent: bool,
    /// Refuses everything.
    pub refuses: bool,
}

impl Host for NotingHost {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        self.asked.lock().unwrap().push(call.clone());
        if self.silent {
            return Box::pin(std::future::pending());
        }
        if self.refuses {
            return Box::pin(std::future::ready(Err(Fault::new(Code::ExtensionFault, "the host refuses"))));
        }
        let answer = match call {
            HostCall::Clock => json!(1_700_000_000_123_u64).into(),
            // Counts up, as in a lab: the hostile corpus runs on both.
            HostCall::Random { bytes } => {
                Content::text((0..bytes).map(|byte| format!("{:02x}", byte as u8)).collect::<String>())
            }
            HostCall::StateGet { key } => self.state.lock().unwrap().get(&key).cloned().unwrap_or_default(),
            HostCall::StateSet { key, value } => {
                let mut state = self.state.lock().unwrap();
                match value {
                    Some(value) => drop(state.insert(key, value)),
                    None => drop(state.remove(&key)),
                }
                Content::default()
            }
            HostCall::Inject { .. } => Content::default(),
            HostCall::Ui(_) => Content::text("yes"),
            HostCall::SecretReference(_) => Content::text("{{secret:1}}"),
            _ => Content::default(),
        };
        // Not ready at the first poll, as with a session's actor.
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(answer)
        })
    }
}

pub fn turn() -> TurnView {
    Arc::new(TurnContext {
        session: "s-1".into(),
        turn: 3,
        agent: "main".into(),
        origin: Origin { channel: "cli".to_owned(), user: Some("ada".to_owned()) },
        ..TurnContext::default()
    })
}

/// A call of a tool.
pub fn tool(name: &str, arguments: Value) -> Call {
    let call = CallId { turn: 3, index: 1 };
    Call::Tool { call, tool: name.into(), arguments: Content::new(arguments), turn: turn() }
}

/// A hook's call on a tool call with these arguments, and on this subject.
pub fn hook(point: HookPoint, arguments: Value, subject: Option<Content>) -> Call {
    let arguments = Content::new(arguments);
    let call = CallView { id: CallId { turn: 3, index: 1 }, tool: "file_write".into(), arguments };
    Call::Hook(HookInput { hook: "guest/0".into(), point, call: Some(call), subject, turn: turn() })
}

/// A gate's call.
pub fn gate(arguments: Value) -> Call {
    hook(HookPoint::ToolGate, arguments, None)
}
