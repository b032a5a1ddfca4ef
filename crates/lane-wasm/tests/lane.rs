//! Components through the lane: what they register, how long an instance is used, which host calls they make.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::log::Progress;
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::role::Role;
use holdfast_contract::sandbox::{Pools, SandboxOptions};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{Call, Host, Instance, Lane, Later, Reply};
use holdfast_lane_wasm::WasmLane;
use serde_json::json;
use support::{Extension, MemoryVault, NotingHost, gate, tool};

fn lane() -> (Arc<MemoryVault>, WasmLane) {
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::small(), vault.clone()).unwrap();
    (vault, lane)
}

async fn load(extension: Extension) -> Arc<dyn Instance> {
    let (vault, lane) = lane();
    lane.load(&vault.put(&extension)).await.unwrap()
}

async fn call(instance: &Arc<dyn Instance>, call: Call) -> Result<Reply, Fault> {
    instance.call(call, Arc::new(NotingHost::default())).await
}

async fn descriptors(instance: &Arc<dyn Instance>) -> Vec<Descriptor> {
    match call(instance, Call::Lifecycle(LifecycleCommand::Load)).await.unwrap() {
        Reply::Descriptors(descriptors) => descriptors,
        other => panic!("{other:?}"),
    }
}

fn poll(later: &mut Later<Result<Reply, Fault>>) -> Poll<Result<Reply, Fault>> {
    Pin::new(later).poll(&mut Context::from_waker(Waker::noop()))
}

fn scope_and_replayable(instance: &Arc<dyn Instance>) -> (Scope, bool) {
    let capabilities = instance.capabilities();
    (capabilities.scope, capabilities.replayable)
}

const ALLOW: Reply = Reply::Decision(Decision::Allow);

fn remembered() -> Reply {
    Reply::Decision(Decision::Deny { reason: "it remembers".to_owned() })
}

#[tokio::test]
async fn an_instance_keeps_state_within_a_turn_and_a_fresh_one_has_none() {
    let loaded = load(Extension::guest("gate.wat")).await;
    assert_eq!(scope_and_replayable(&loaded), (Scope::Turn, true));
    let turn = loaded.fresh().unwrap();
    for expected in [ALLOW, ALLOW, remembered(), remembered()] {
        assert_eq!(call(&turn, gate(json!([]))).await, Ok(expected));
    }
    assert_eq!(call(&loaded.fresh().unwrap(), gate(json!([]))).await, Ok(ALLOW));
    for _ in 0..4 {
        assert_eq!(call(&loaded, gate(json!([]))).await, Ok(ALLOW), "outside a turn no state is kept");
    }
}

#[tokio::test]
async fn scope_call_keeps_no_state_and_scope_shared_keeps_all() {
    let each = load(Extension::guest("gate.wat").manifest("scope: call")).await;
    assert_eq!(scope_and_replayable(&each), (Scope::Call, true));
    let fresh = each.fresh().unwrap();
    for _ in 0..4 {
        assert_eq!(call(&fresh, gate(json!([]))).await, Ok(ALLOW));
    }
    let shared = load(Extension::guest("gate.wat").manifest("scope: shared")).await;
    assert_eq!(scope_and_replayable(&shared), (Scope::Shared, false));
    assert!(shared.fresh().is_none());
    for expected in [ALLOW, ALLOW, remembered()] {
        assert_eq!(call(&shared, gate(json!([]))).await, Ok(expected));
    }
}

#[tokio::test]
async fn a_gate_without_host_calls_answers_synchronously() {
    let loaded = load(Extension::guest("gate.wat")).await;
    let fresh = loaded.fresh().unwrap();
    let mut answer = fresh.call(gate(json!({})), Arc::new(NotingHost::default()));
    assert_eq!(poll(&mut answer), Poll::Ready(Ok(ALLOW)));
}

#[tokio::test]
async fn host_calls_of_a_gate_reach_its_host() {
    let loaded = load(Extension::guest("waiting.wat")).await;
    let host = Arc::new(NotingHost::default());
    assert_eq!(loaded.fresh().unwrap().call(gate(json!({})), host.clone()).await, Ok(ALLOW));
    let value = Some(Content::new(json!({})));
    let state = HostCall::StateSet { key: "done".to_owned(), value };
    assert_eq!(*host.asked.lock().unwrap(), [HostCall::Clock, state]);
    let refusing = Arc::new(NotingHost { refuses: true, ..NotingHost::default() });
    let fault = loaded.fresh().unwrap().call(gate(json!({})), refusing).await.unwrap_err();
    assert_eq!(
        fault,
        Fault::new(Code::ExtensionFault, "the host refuses"),
        "a clock has no failure to answer with"
    );
}

#[tokio::test]
async fn a_cancelled_call_releases_its_instance_and_host() {
    for scope in ["scope: turn", "scope: call", "scope: shared"] {
        let loaded = load(Extension::guest("waiting.wat").manifest(scope)).await;
        let handle = loaded.fresh().unwrap_or_else(|| loaded.clone());
        let host = Arc::new(NotingHost { silent: true, ..NotingHost::default() });
        let mut given_up = handle.call(gate(json!({})), host.clone() as Arc<dyn Host>);
        // An epoch tick may make it yield before its host call.
        while host.asked.lock().unwrap().is_empty() {
            assert!(poll(&mut given_up).is_pending());
        }
        assert_eq!(*host.asked.lock().unwrap(), [HostCall::Clock]);
        drop(given_up);
        assert_eq!(call(&handle, gate(json!({}))).await, Ok(ALLOW), "{scope}");
        assert_eq!(Arc::strong_count(&host), 1, "{scope}: the host is released");
    }
}

#[tokio::test]
async fn a_second_call_on_a_busy_instance_gets_its_own() {
    let loaded = load(Extension::guest("waiting.wat")).await;
    let turn = loaded.fresh().unwrap();
    let silent = Arc::new(NotingHost { silent: true, ..NotingHost::default() });
    let mut first = turn.call(gate(json!({})), silent);
    assert!(poll(&mut first).is_pending());
    assert_eq!(call(&turn, gate(json!({}))).await, Ok(ALLOW));
    assert!(poll(&mut first).is_pending());
}

#[tokio::test]
async fn calls_of_a_shared_instance_wait_for_each_other() {
    let loaded = load(Extension::guest("waiting.wat").manifest("scope: shared")).await;
    let silent = Arc::new(NotingHost { silent: true, ..NotingHost::default() });
    let mut first = loaded.call(gate(json!({})), silent);
    assert!(poll(&mut first).is_pending());
    let host = Arc::new(NotingHost::default());
    let mut second = loaded.call(gate(json!({})), host.clone());
    assert!(poll(&mut second).is_pending());
    assert!(host.asked.lock().unwrap().is_empty(), "it waits for the first call");
    drop(first);
    assert_eq!(second.await, Ok(ALLOW));
}

#[tokio::test]
async fn an_instance_is_replaced_after_a_trap() {
    let text = std::fs::read_to_string(support::here().join("tests/guests/gate.wat")).unwrap();
    let text = text.replace("(i32.store (i32.const 20) (i32.const 1))", "(unreachable)");
    for scope in ["scope: turn", "scope: shared"] {
        let loaded = load(Extension::of(wat::parse_str(&text).unwrap()).manifest(scope)).await;
        let handle = loaded.fresh().unwrap_or_else(|| loaded.clone());
        for _ in 0..2 {
            assert_eq!(call(&handle, gate(json!([]))).await, Ok(ALLOW));
            assert_eq!(call(&handle, gate(json!([]))).await, Ok(ALLOW));
            assert_eq!(call(&handle, gate(json!([]))).await.unwrap_err().code, Code::ComponentTrap);
        }
    }
}

#[tokio::test]
async fn a_cached_extension_is_loaded_without_its_code() {
    let (vault, lane) = lane();
    let extension = vault.put(&Extension::guest("echo.wat"));
    let first = descriptors(&lane.load(&extension).await.unwrap()).await;
    assert_eq!(vault.files_read.load(Ordering::Relaxed), 1);
    vault.derived.lock().unwrap().retain(|name, _| name.starts_with("descriptors-"));
    let second = lane.load(&extension).await.unwrap();
    assert_eq!(descriptors(&second).await, first);
    assert_eq!(vault.files_read.load(Ordering::Relaxed), 1, "no file was read to load it");
    let (one, two) = (second.fresh().unwrap(), second.fresh().unwrap());
    let both = tokio::join!(call(&one, tool("echo", json!({}))), call(&two, tool("echo", json!({}))));
    assert_eq!(both.0, Ok(Reply::Content(json!({}).into())));
    assert_eq!(both.1, both.0);
    assert_eq!(vault.files_read.load(Ordering::Relaxed), 2, "two concurrent first calls load the code once");
}

#[tokio::test]
async fn extensions_with_the_same_component_share_its_code_and_nothing_else() {
    let (vault, lane) = lane();
    let one = lane.load(&vault.put(&Extension::guest("gate.wat"))).await.unwrap();
    let other = Extension { id: "other".to_owned(), ..Extension::guest("gate.wat") };
    let other = lane.load(&vault.put(&other)).await.unwrap();
    assert_eq!(vault.files_read.load(Ordering::Relaxed), 1);
    let (one, other) = (one.fresh().unwrap(), other.fresh().unwrap());
    assert_eq!(call(&one, gate(json!([]))).await, Ok(ALLOW));
    assert_eq!(call(&one, gate(json!([]))).await, Ok(ALLOW));
    assert_eq!(call(&one, gate(json!([]))).await, Ok(remembered()), "it remembers");
    assert_eq!(call(&other, gate(json!([]))).await, Ok(ALLOW), "the other has no state");
}

#[tokio::test]
async fn an_instance_started_while_its_code_loads_answers_synchronously_afterwards() {
    let (vault, lane) = lane();
    let extension = vault.put(&Extension::guest("gate.wat"));
    lane.load(&extension).await.unwrap();
    let turn = lane.load(&extension).await.unwrap().fresh().unwrap();
    assert_eq!(call(&turn, gate(json!([]))).await, Ok(ALLOW), "its code had to be loaded");
    for expected in [ALLOW, remembered()] {
        let mut next = turn.call(gate(json!([])), Arc::new(NotingHost::default()));
        assert_eq!(poll(&mut next), Poll::Ready(Ok(expected)), "the same instance, and no task");
    }
}

#[tokio::test]
async fn compiled_code_is_cached_and_an_invalid_cache_entry_is_compiled_again() {
    let (vault, lane) = lane();
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = received.clone();
    let lane = lane.with_progress(Arc::new(move |id, progress| {
        sink.lock()
            .unwrap()
            .push((id.to_string(), matches!(progress, Progress::Compiling { bytes } if bytes > 0)));
    }));
    let extension = vault.put(&Extension::guest("gate.wat"));
    lane.load(&extension).await.unwrap();
    assert_eq!(*received.lock().unwrap(), [("guest".to_owned(), true), ("guest".to_owned(), false)]);
    let again = lane.load(&extension).await.unwrap();
    assert_eq!(call(&again, gate(json!({}))).await, Ok(ALLOW));
    assert_eq!(received.lock().unwrap().len(), 2, "compiled once");
    drop(again);
    for (name, bytes) in vault.derived.lock().unwrap().iter_mut() {
        if name.starts_with("compiled-") {
            *bytes = b"something else".to_vec();
        }
    }
    let again = lane.load(&extension).await.unwrap();
    assert_eq!(call(&again, gate(json!({}))).await, Ok(ALLOW));
    assert_eq!(received.lock().unwrap().len(), 4, "compiled again where the cache is invalid");
}

#[tokio::test]
async fn descriptors_combine_exports_and_manifest() {
    let hints = "tools: { echo: { timeout_ms: 1234, effects: write } }\ndescriptors: [{ id: echo, kind: tool, priority: 7 }]";
    let loaded = load(Extension::guest("echo.wat").manifest(hints)).await;
    let all = descriptors(&loaded).await;
    let [Descriptor { priority: Some(7), payload: Payload::Tool(spec), .. }] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("echo", "burns"));
    assert_eq!((spec.timeout, spec.effects), (Millis(1234), EffectClass::Write));

    let hints = "hooks: [{ point: tool_gate, priority: 5, timeout_ms: 99, matcher: { tools: [file_*] } }, { point: tool_gate }]";
    let loaded = load(Extension::guest("gate.wat").manifest(hints)).await;
    let all = descriptors(&loaded).await;
    let [first, second] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((first.id.as_str(), second.id.as_str()), ("guest/0", "guest/1"));
    let (Payload::Hook(first), Payload::Hook(second)) = (&first.payload, &second.payload) else {
        panic!("{all:?}")
    };
    assert_eq!((first.point, first.priority, first.timeout), (HookPoint::ToolGate, 5, Millis(99)));
    assert_eq!((second.priority, second.matcher.is_any()), (100, true));
}

#[tokio::test]
async fn tasks_and_setup_are_served_by_a_shared_instance() {
    let loaded = load(Extension::guest("chores.wat")).await;
    assert_eq!(loaded.capabilities().scope, Scope::Shared, "an extension with tasks has a shared instance");
    let roles = loaded.capabilities().roles;
    assert!(roles.contains(Role::Setup) && roles.contains(Role::Scheduler) && !roles.contains(Role::Agent));
    let told = call(&loaded, Call::Task { task: "clean".to_owned() }).await.unwrap();
    assert_eq!(told, Reply::Content(json!({ "text": "the house is clean" }).into()));
    let setup = |function: &str, arguments: serde_json::Value| Call::Function {
        role: Role::Setup,
        function: function.to_owned(),
        arguments: arguments.into(),
    };
    let asked = call(&loaded, setup("schema", json!(null))).await.unwrap();
    assert_eq!(asked, Reply::Content(json!([{ "name": "token", "secret": true, "required": true }]).into()));
    let missing = call(&loaded, setup("complete", json!(null))).await.unwrap_err();
    assert_eq!(missing.message, "there is no token");
    call(&loaded, setup("apply", json!({ "token": "secret:chores/token" }))).await.unwrap();
    let word = call(&loaded, setup("complete", json!(null))).await.unwrap();
    assert_eq!(word, Reply::Content(Content::text("the bot answers")));
    let other = load(Extension::guest("roles.wat")).await;
    assert!(call(&other, Call::Task { task: "clean".to_owned() }).await.is_err());
}

#[tokio::test]
async fn the_other_roles_register_and_answer() {
    let loaded = load(Extension::guest("roles.wat")).await;
    let kinds: Vec<_> = descriptors(&loaded).await;
    let kinds: Vec<_> = kinds.iter().map(|found| (found.kind.as_str(), found.id.as_str())).collect();
    assert_eq!(kinds, [("agent", "guest"), ("command", "helper"), ("api", "guest"), ("renderer", "guest")]);
    let text = |text: &str| Ok(Reply::Content(Content::text(text)));
    assert_eq!(call(&loaded, tool("helper", json!({ "task": "dig" }))).await, text("dig"));
    let method = Call::Api { method: "helper".to_owned(), arguments: json!([1]).into() };
    assert_eq!(call(&loaded, method).await, text("[1]"));
    let function = |role, function: &str, arguments: serde_json::Value| Call::Function {
        role,
        function: function.to_owned(),
        arguments: arguments.into(),
    };
    let command = function(Role::Commands, "run", json!({ "name": "helper", "arguments": "-v x" }));
    assert_eq!(call(&loaded, command).await, text("-v x"));
    let shown =
        function(Role::Renderer, "render-call", json!({ "tool": "grep", "arguments": { "pattern": "x" } }));
    assert_eq!(call(&loaded, shown).await, text("grep"));
    let start = call(&loaded, Call::Lifecycle(LifecycleCommand::Start)).await;
    assert_eq!(start, Err(Fault::new(Code::ExtensionFault, "not today")));
    assert_eq!(call(&loaded, Call::Lifecycle(LifecycleCommand::Stop)).await, Ok(Reply::Done));
    assert_eq!(call(&loaded, Call::Health).await, Ok(Reply::Health(true)));
    let task = call(&loaded, Call::Task { task: "nightly".to_owned() }).await;
    assert_eq!(task.unwrap_err().code, Code::ExtensionFault);
    let lost = call(&loaded, gate(json!({}))).await.unwrap_err();
    assert_eq!(lost, Fault::new(Code::ExtensionFault, "it has no `tool-gate.tool-gate`"));
}

#[tokio::test]
async fn an_exhausted_pool_is_a_fault_that_names_the_setting() {
    let vault = Arc::new(MemoryVault::default());
    let pools = Pools { memories: 2, ..SandboxOptions::small().pools };
    let lane = WasmLane::new(SandboxOptions { pools, ..SandboxOptions::small() }, vault.clone()).unwrap();
    let loaded = lane.load(&vault.put(&Extension::guest("gate.wat"))).await.unwrap();
    let held: Vec<_> = (0..2).map(|_| loaded.fresh().unwrap()).collect();
    for instance in &held {
        assert_eq!(call(instance, gate(json!({}))).await, Ok(ALLOW));
    }
    let full = call(&loaded.fresh().unwrap(), gate(json!({}))).await.unwrap_err();
    assert_eq!(full.code, Code::SlotsExhausted);
    assert!(full.message.contains("`pools.memories`"), "{full}");
    drop(held);
    assert_eq!(call(&loaded.fresh().unwrap(), gate(json!({}))).await, Ok(ALLOW));
}

#[tokio::test]
async fn spare_instances_are_reclaimed_when_the_pool_is_exhausted() {
    let vault = Arc::new(MemoryVault::default());
    let pools = Pools { memories: 2, ..SandboxOptions::small().pools };
    let lane = WasmLane::new(SandboxOptions { pools, ..SandboxOptions::small() }, vault.clone()).unwrap();
    let stocked = lane.load(&vault.put(&Extension::guest("gate.wat"))).await.unwrap();
    for _ in 0..2 {
        assert_eq!(call(&stocked.fresh().unwrap(), gate(json!({}))).await, Ok(ALLOW));
    }
    let other = Extension { id: "other".to_owned(), ..Extension::guest("gate.wat") };
    let other = lane.load(&vault.put(&other)).await.unwrap();
    let held: Vec<_> = (0..2).map(|_| other.fresh().unwrap()).collect();
    for instance in &held {
        assert_eq!(call(instance, gate(json!({}))).await, Ok(ALLOW));
    }
}

#[test]
fn pools_that_cannot_be_reserved_are_a_problem_that_names_the_setting() {
    let pools = Pools { memories: 1_000_000, ..Pools::default() };
    let refused = WasmLane::new(
        SandboxOptions { pools, ..SandboxOptions::default() },
        Arc::new(MemoryVault::default()),
    );
    let problem = refused.err().unwrap();
    assert_eq!(problem.code, Code::SlotsExhausted);
    assert!(problem.help.contains("pools.memories"), "{problem}");
}

#[tokio::test]
async fn a_lane_can_reserve_its_pools_lazily() {
    let vault = Arc::new(MemoryVault::default());
    let extension = vault.put(&Extension::guest("gate.wat"));
    let loaded =
        WasmLane::when_needed(SandboxOptions::small(), vault.clone()).load(&extension).await.unwrap();
    assert_eq!(call(&loaded, gate(json!({}))).await, Ok(ALLOW));
    let pools = Pools { memories: 1_000_000, ..Pools::default() };
    let options = SandboxOptions { pools, ..SandboxOptions::default() };
    let refused = WasmLane::new(options, vault.clone()).err().unwrap();
    assert_eq!(refused.code, Code::SlotsExhausted, "{refused}");
    let known = WasmLane::when_needed(options, vault.clone()).load(&extension).await.unwrap();
    assert_eq!(call(&known, gate(json!({}))).await, Ok(ALLOW), "it falls back to smaller pools");
}

#[tokio::test]
async fn a_missing_file_is_reported() {
    let (vault, lane) = lane();
    let mut extension = vault.put(&Extension::guest("gate.wat"));
    extension.digest = holdfast_contract::digest::Digest::ZERO;
    assert_eq!(lane.load(&extension).await.err().unwrap().code, Code::ExtensionGone);
}
