//! Components made from text, a vault for them, and a lane on it: no guest toolchain is needed.

mod asks;
mod judge;
mod streamer;
mod talker;
mod telltale;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::{Grants, Manifest};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::{FoundExtension, SubscriptionSpec};
use holdfast_contract::wire::{Bundle, Lane, Vault};
use holdfast_lane_wasm::WasmLane;

pub use asks::{Loops, api, relay, service};
pub use judge::{Breaks, broken_guard};
pub use streamer::{Objects, chunk_guard, streamer};
pub use talker::talker;
pub use telltale::telltale;

/// The version of the interface that components are built for.
pub const VERSION: &str = "0.1.0-draft";

/// A vault in memory.
#[derive(Default)]
pub struct MapVault {
    objects: Mutex<BTreeMap<Digest, Vec<u8>>>,
    derived: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl MapVault {
    /// Keeps an extension with this manifest and component, and says how discovery reports it.
    pub fn add(&self, manifest: &str, component: Vec<u8>, options: &SandboxOptions) -> FoundExtension {
        self.add_granted(manifest, component, options, Grants::default())
    }

    /// The same, with grants.
    pub fn add_granted(
        &self,
        manifest: &str,
        component: Vec<u8>,
        options: &SandboxOptions,
        grants: Grants,
    ) -> FoundExtension {
        let id = parsed(manifest).id;
        let entrypoint = format!("{id}.wasm");
        let files = [(entrypoint.as_str(), component)];
        let bundle = Bundle {
            entrypoint: entrypoint.clone(),
            grants,
            budgets: options.budgets,
            ..bundle(manifest, "wasm")
        };
        self.keep(bundle, files)
    }

    /// Keeps an extension of another lane, with these files.
    pub fn add_files<const N: usize>(
        &self,
        manifest: &str,
        lane: &str,
        files: [(&str, Vec<u8>); N],
    ) -> FoundExtension {
        self.add_files_granted(manifest, lane, files, Grants::default())
    }

    /// The same, with grants.
    pub fn add_files_granted<const N: usize>(
        &self,
        manifest: &str,
        lane: &str,
        files: [(&str, Vec<u8>); N],
        grants: Grants,
    ) -> FoundExtension {
        self.keep(Bundle { grants, ..bundle(manifest, lane) }, files)
    }

    /// Adds an extension for the Python worker.
    pub fn add_python<const N: usize>(
        &self,
        manifest: &str,
        entrypoint: &str,
        files: [(&str, Vec<u8>); N],
    ) -> FoundExtension {
        let entrypoint = entrypoint.to_owned();
        self.keep(Bundle { entrypoint, ..bundle(manifest, "python") }, files)
    }

    /// Adds a native plugin.
    pub fn add_plugin(&self, manifest: &str, entrypoint: &str, library: Vec<u8>) -> FoundExtension {
        let bundle = Bundle { entrypoint: entrypoint.to_owned(), ..bundle(manifest, "plugin") };
        self.keep(bundle, [(entrypoint, library)])
    }

    /// Keeps an extension as this bundle describes it, with these files, and says how discovery reports it.
    pub fn keep<const N: usize>(&self, mut bundle: Bundle, files: [(&str, Vec<u8>); N]) -> FoundExtension {
        let mut objects = self.objects.lock().unwrap();
        for (name, bytes) in files {
            bundle.files.insert(name.to_owned(), Digest::of(&bytes));
            objects.insert(Digest::of(&bytes), bytes);
        }
        let bytes = holdfast_contract::digest::canonical(&bundle).unwrap();
        let digest = Digest::of(&bytes);
        objects.insert(digest, bytes);
        let parsed = parsed(&bundle.manifest);
        FoundExtension {
            id: parsed.id,
            version: parsed.version.as_str().into(),
            digest,
            lane: bundle.lane,
            may_call: bundle.grants.extensions,
            secrets: bundle.grants.secrets,
            interfaces: bundle.grants.interfaces,
            depends_on: parsed.depends_on,
            priority: parsed.priority,
            subscribes: parsed.events.subscribes.iter().map(SubscriptionSpec::from).collect(),
            schedules: parsed.schedules.iter().map(Into::into).collect(),
            ..FoundExtension::default()
        }
    }

    fn object(&self, digest: Digest, code: Code) -> Result<Vec<u8>, Fault> {
        let objects = self.objects.lock().unwrap();
        objects.get(&digest).cloned().ok_or_else(|| Fault::new(code, format!("{digest} is not in the vault")))
    }
}

fn parsed(manifest: &str) -> Manifest {
    holdfast_contract::manifest::parse("manifest.yaml".as_ref(), manifest).unwrap().manifest
}

/// A bundle for a lane with this manifest, without files and grants.
pub fn bundle(manifest: &str, lane: &str) -> Bundle {
    Bundle {
        lane: lane.to_owned(),
        manifest: manifest.to_owned(),
        entrypoint: String::new(),
        files: BTreeMap::new(),
        config: Content::of(&parsed(manifest).config),
        grants: Grants::default(),
        budgets: Budgets::default(),
        pinned: None,
    }
}

impl Vault for MapVault {
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault> {
        Ok(serde_json::from_slice(&self.object(digest, Code::ExtensionUnknown)?).unwrap())
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        self.object(digest, Code::ExtensionGone)
    }

    fn derived(&self, name: &str) -> Option<Vec<u8>> {
        self.derived.lock().unwrap().get(name).cloned()
    }

    fn keep_derived(&self, name: &str, bytes: &[u8]) {
        self.derived.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
    }
}

/// A small lane on a vault.
pub fn lane(vault: &Arc<MapVault>) -> Arc<dyn Lane> {
    lane_with(vault, SandboxOptions::small())
}

/// A lane on a vault.
pub fn lane_with(vault: &Arc<MapVault>, options: SandboxOptions) -> Arc<dyn Lane> {
    Arc::new(WasmLane::new(options, vault.clone()).unwrap())
}

/// A manifest with this id and these further lines.
pub fn manifest(id: &str, more: &str) -> String {
    format!("id: {id}\nname: {id}\nentrypoint: {id}.wasm\n{more}")
}

/// What a made tool does when it is called.
pub enum Does<'a> {
    /// Answers with this text.
    Says(&'a str),
    /// Fails in its own words.
    Fails(&'a str),
    /// Traps.
    Traps,
    /// Never ends.
    Loops,
}

/// A component with one tool of this name.
pub fn tool(name: &str, does: &Does<'_>) -> Vec<u8> {
    let description = "A tool of a test.";
    let schema = r#"{"type":"object"}"#;
    let said = match does {
        Does::Says(text) | Does::Fails(text) => *text,
        Does::Traps | Does::Loops => "",
    };
    let mut data = Data::new(4096);
    let (name, description, schema, said) =
        (data.put(name), data.put(description), data.put(schema), data.put(said));
    let spec = [name, description, schema].map(|(at, bytes)| [at, bytes]).concat();
    // Three texts, no output schema, pure, no timeout, no rendering.
    let words = spec.into_iter().chain([0, 0, 0, 1, 0, 0, 0, 0, 0]);
    let mut stores = String::new();
    for (index, word) in words.enumerate() {
        writeln!(stores, "(i32.store (i32.const {}) (i32.const {word}))", 1024 + index * 4).unwrap();
    }
    let failed = i32::from(matches!(does, Does::Fails(_)));
    let case = if failed == 1 { 3 } else { 0 };
    let (at, bytes) = said;
    let body = match does {
        Does::Traps => "unreachable".to_owned(),
        Does::Loops => "(loop (br 0)) (unreachable)".to_owned(),
        Does::Says(_) | Does::Fails(_) => format!(
            "(i32.store (i32.const 512) (i32.const {failed})) (i32.store (i32.const 516) (i32.const {case}))
             (i32.store (i32.const 520) (i32.const {at})) (i32.store (i32.const 524) (i32.const {bytes}))
             (i32.const 512)"
        ),
    };
    let text = format!(
        r#"(component
  (core module $code
    (memory (export "memory") 4)
    (global $free (mut i32) (i32.const 65536))
    {data}
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "list") (result i32)
      {stores}
      (i32.store (i32.const 256) (i32.const 1024)) (i32.store (i32.const 260) (i32.const 1))
      (i32.const 256))
    (func (export "call") (param i32 i32 i32 i32) (result i32)
      (global.set $free (i32.const 65536))
      {body}))
  (core instance $code (instantiate $code))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $content (variant (case "text" string) (case "json" string)))
  (type $effects (enum "unknown" "pure" "read" "write" "exec" "network"))
  (type $spec (record (field "name" string) (field "description" string) (field "input-schema" string)
    (field "output-schema" (option string)) (field "effects" $effects) (field "timeout-ms" (option u32))
    (field "render" (option string))))
  (func $list (result (list $spec))
    (canon lift (core func $code "list") (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (func $call (param "tool" string) (param "arguments" string) (result (result $content (error $failure)))
    (canon lift (core func $code "call") (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (instance $tools
    (export "failure" (type $failure)) (export "content" (type $content)) (export "effects" (type $effects))
    (export "tool-spec" (type $spec)) (export "list" (func $list)) (export "call" (func $call)))
  (export "holdfast:extension/tools@{VERSION}" (instance $tools)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}

/// Texts in a component's memory.
struct Data {
    text: String,
    next: usize,
}

impl Data {
    fn new(next: usize) -> Self {
        Self { text: String::new(), next }
    }

    fn put(&mut self, text: &str) -> (usize, usize) {
        let at = self.next;
        let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        writeln!(self.text, "(data (i32.const {at}) \"{escaped}\")").unwrap();
        self.next = at + text.len().next_multiple_of(8);
        (at, text.len())
    }
}

/// What a made gate does when it is asked.
pub enum Gates {
    /// Allows.
    Allows,
    /// Allows so many times in the life of its instance, and then denies.
    AllowsTimes(u32),
    /// Traps.
    Traps,
    /// Never ends.
    Loops,
}

/// A component with a gate on tool calls. One that waits imports the clock, and reads it whenever it is asked.
pub fn gate(does: &Gates, waits: bool) -> Vec<u8> {
    let mut data = Data::new(4096);
    let (reason, bytes) = data.put("it was asked too often");
    let times = match does {
        Gates::AllowsTimes(times) => *times,
        Gates::Allows | Gates::Traps | Gates::Loops => u32::MAX,
    };
    let body = match does {
        Gates::Traps => "unreachable".to_owned(),
        Gates::Loops => "(loop (br 0)) (unreachable)".to_owned(),
        Gates::Allows | Gates::AllowsTimes(_) => format!(
            "(i64.store (i32.const 512) (i64.const 0)) (i64.store (i32.const 520) (i64.const 0))
             (if (i32.gt_u (global.get $calls) (i32.const {times})) (then
               (i32.store (i32.const 516) (i32.const 1))
               (i32.store (i32.const 520) (i32.const {reason})) (i32.store (i32.const 524) (i32.const {bytes}))))
             (i32.const 512)"
        ),
    };
    let (import, lower, imported, read) = if waits {
        (
            format!(
                r#"(import "holdfast:extension/clock@{VERSION}" (instance $clock (export "now" (func (result u64)))))"#
            ),
            r#"(core func $now (canon lower (func $clock "now")))
               (core instance $host (export "now" (func $now)))"#,
            r#"(import "host" "now" (func $now (result i64)))"#,
            "(drop (call $now))",
        )
    } else {
        (String::new(), "", "", "")
    };
    let with = if waits { r#"(with "host" (instance $host))"# } else { "" };
    let text = format!(
        r#"(component
  {import}
  {lower}
  (core module $code
    {imported}
    (memory (export "memory") 2)
    (global $free (mut i32) (i32.const 65536))
    (global $calls (mut i32) (i32.const 0))
    {data}
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "tool-gate") (param i64 i32 i32 i32 i32) (result i32)
      (global.set $free (i32.const 65536))
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      {read}
      {body}))
  (core instance $code (instantiate $code {with}))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $tool-call (record (field "id" u64) (field "tool" string) (field "arguments" string)))
  (type $decision (variant (case "allow") (case "deny" string) (case "ask" string)))
  (func $tool-gate (param "call" $tool-call) (result (result $decision (error $failure)))
    (canon lift (core func $code "tool-gate")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (instance $gate
    (export "failure" (type $failure)) (export "tool-call" (type $tool-call)) (export "decision" (type $decision))
    (export "tool-gate" (func $tool-gate)))
  (export "holdfast:extension/tool-gate@{VERSION}" (instance $gate)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}

/// A component whose start never ends by itself.
pub fn never_starts() -> Vec<u8> {
    let text = format!(
        r#"(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "start") (result i32) (loop (br 0)) (unreachable)))
  (core instance $code (instantiate $code))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (func $start (result (result (error $failure)))
    (canon lift (core func $code "start") (memory (core memory $code "memory"))))
  (instance $life (export "failure" (type $failure)) (export "start" (func $start)))
  (export "holdfast:extension/lifecycle-start@{VERSION}" (instance $life)))"#
    );
    wat::parse_str(&text).unwrap()
}

/// A component that is a subscriber and a channel. What it is handed it publishes: an event's payload on `heard`, and what it is to
/// send, as a text, on `sent`. It needs the grant `events`.
pub fn radio() -> Vec<u8> {
    let mut data = Data::new(4096);
    let ((heard, heard_bytes), (sent, sent_bytes)) = (data.put("heard"), data.put("sent"));
    let text = format!(
        r#"(component
  (import "holdfast:extension/events@{VERSION}" (instance $events
    (type $failure (variant
      (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
    (export "failure" (type $exported (eq $failure)))
    (export "publish" (func (param "topic" string) (param "payload" string) (param "key" (option string))
      (result (result (error $exported)))))))
  (core module $memory
    (memory (export "memory") 4)
    (global $free (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core func $publish (canon lower (func $events "publish")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core instance $host (export "publish" (func $publish)))
  (core module $code
    (import "memory" "memory" (memory 4))
    (import "host" "publish" (func $publish (param i32 i32 i32 i32 i32 i32 i32 i32)))
    {data}
    ;; What publishing came to is the answer: both are a result of the same shape.
    (func $tell (param $topic i32) (param $bytes i32) (param $payload i32) (param $length i32) (result i32)
      (call $publish (local.get $topic) (local.get $bytes) (local.get $payload) (local.get $length)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512))
      (i32.const 512))
    (func (export "on-event")
      (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $tell (i32.const {heard}) (i32.const {heard_bytes}) (local.get 4) (local.get 5)))
    (func (export "send-to-user") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
      (i32.store8 (i32.const 8192) (i32.const 34))
      (memory.copy (i32.const 8193) (local.get 2) (local.get 3))
      (i32.store8 (i32.add (i32.const 8193) (local.get 3)) (i32.const 34))
      (call $tell (i32.const {sent}) (i32.const {sent_bytes})
        (i32.const 8192) (i32.add (local.get 3) (i32.const 2)))))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $event (record (field "id" string) (field "topic" string) (field "payload" string)
    (field "key" (option string)) (field "correlation" (option string)) (field "attempt" u32)
    (field "repeat" bool)))
  (type $delivery (record (field "id" string) (field "repeat" bool)))
  (func $on-event (param "event" $event) (result (result (error $failure)))
    (canon lift (core func $code "on-event")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $send (param "user" string) (param "text" string) (param "delivery" $delivery)
    (result (result (error $failure)))
    (canon lift (core func $code "send-to-user")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $subscriber
    (export "failure" (type $failure)) (export "event" (type $event)) (export "on-event" (func $on-event)))
  (instance $channel
    (export "failure" (type $failure)) (export "delivery" (type $delivery)) (export "send-to-user" (func $send)))
  (export "holdfast:extension/subscriber@{VERSION}" (instance $subscriber))
  (export "holdfast:extension/channel@{VERSION}" (instance $channel)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}
