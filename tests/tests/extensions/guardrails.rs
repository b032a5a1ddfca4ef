//! The guardrails that are built in, as the program carries them: that they are made of their sources, what they find in their corpora, and
//! what becomes of a turn when one of them, or anybody's, finds something, fails, hangs or makes no sense.

mod built;
mod closed;
mod corpora;
mod sandboxed;
mod turns;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::{CallView, TurnContext};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Call, Host, Instance, Later, Reply};
use holdfast_testkit::wasm::{MapVault, lane};

/// The guardrails that are built in.
pub const BUILT_IN: &[&str] = &["injection-guard", "length-guard", "secret-redaction"];

/// The folder of an extension that is built in.
pub fn folder(id: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../extensions").join(id)
}

/// A guardrail in a vault, with these lines of its manifest replaced.
pub fn kept(vault: &MapVault, id: &str, set: &[(&str, &str)]) -> FoundExtension {
    let mut manifest = std::fs::read_to_string(folder(id).join("manifest.yaml")).unwrap();
    for (from, to) in set {
        assert!(manifest.contains(from), "{from}");
        manifest = manifest.replace(from, to);
    }
    let component = std::fs::read(folder(id).join(format!("{id}.wasm"))).unwrap();
    vault.add(&manifest, component, &SandboxOptions::small())
}

/// A guardrail that can be asked.
pub struct Asked(Arc<dyn Instance>, String);

impl Asked {
    /// With these lines of its manifest replaced.
    pub async fn new(id: &str, set: &[(&str, &str)]) -> Self {
        let vault = Arc::new(MapVault::default());
        let (found, lane) = (kept(&vault, id, set), lane(&vault));
        Self(lane.load(&found.activation(1)).await.unwrap(), id.to_owned())
    }

    /// What it decides about a subject.
    pub async fn decide(&self, point: HookPoint, subject: Content) -> Result<Decision, Fault> {
        let call = CallView { tool: "fetch".into(), ..CallView::default() };
        let input = HookInput {
            hook: format!("{}/0", self.1).as_str().into(),
            point,
            call: Some(call),
            subject: Some(subject),
            turn: Arc::new(TurnContext::default()),
        };
        let instance = self.0.fresh().unwrap();
        match instance.call(Call::Hook(input), Arc::new(Nobody)).await? {
            Reply::Decision(decision) => Ok(decision),
            other => panic!("{other:?}"),
        }
    }
}

struct Nobody;

impl Host for Nobody {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let fault = Fault::new(Code::Internal, format!("a guardrail asked for {call:?}"));
        Box::pin(std::future::ready(Err(fault)))
    }
}
