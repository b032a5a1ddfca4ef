//! Components that ask the host for something: a tool that passes its arguments on, and loops in the background.

use std::fmt::Write;

use super::{Data, VERSION};

const TYPES: &str = r#"(type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $content (variant (case "text" string) (case "json" string)))"#;

const MEMORY: &str = r#"(core module $memory
    (memory (export "memory") 4)
    (global $free (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))"#;

/// A component with the tool `relay`, which calls a function of an interface of the host and answers as that does. The function's
/// parameters are these, the last of which is the tool's arguments; one without a text is skipped.
pub fn relay(interface: &str, function: &str, given: &[(&str, Option<&str>)], last: &str) -> Vec<u8> {
    let mut data = Data::new(4096);
    let texts = ["relay", "Passes its arguments on.", r#"{"type":"object"}"#].map(|text| data.put(text));
    let spec = texts.map(|(at, bytes)| [at, bytes]).concat();
    // Three texts, no output schema, writes, no timeout, no rendering.
    let words = spec.into_iter().chain([0, 0, 0, 3, 0, 0, 0, 0, 0]);
    let mut stores = String::new();
    for (index, word) in words.enumerate() {
        writeln!(stores, "(i32.store (i32.const {}) (i32.const {word}))", 1024 + index * 4).unwrap();
    }
    let (mut parameters, mut flat, mut passed) = (String::new(), String::new(), String::new());
    for (name, text) in given {
        let (kind, words) = match text {
            Some(text) => {
                let (at, bytes) = data.put(text);
                ("string", vec![at, bytes])
            }
            None => ("(option string)", vec![0, 0, 0]),
        };
        write!(parameters, r#"(param "{name}" {kind}) "#).unwrap();
        words.iter().for_each(|word| write!(passed, "(i32.const {word}) ").unwrap());
        flat.push_str(&"i32 ".repeat(words.len()));
    }
    let text = format!(
        r#"(component
  (import "holdfast:extension/{interface}@{VERSION}" (instance $asked
    {TYPES}
    (export "failure" (type $f (eq $failure)))
    (export "content" (type $c (eq $content)))
    (export "{function}" (func {parameters} (param "{last}" string) (result (result $c (error $f)))))))
  {MEMORY}
  (core func $asked (canon lower (func $asked "{function}")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core instance $host (export "ask" (func $asked)))
  (core module $code
    (import "memory" "memory" (memory 4))
    (import "host" "ask" (func $ask (param {flat} i32 i32 i32)))
    {data}
    (func (export "list") (result i32)
      {stores}
      (i32.store (i32.const 256) (i32.const 1024)) (i32.store (i32.const 260) (i32.const 1))
      (i32.const 256))
    ;; What is answered has the shape of a tool's answer.
    (func (export "call") (param i32 i32 i32 i32) (result i32)
      (call $ask {passed} (local.get 2) (local.get 3) (i32.const 512))
      (i32.const 512)))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  {TYPES}
  (type $effects (enum "unknown" "pure" "read" "write" "exec" "network"))
  (type $spec (record (field "name" string) (field "description" string) (field "input-schema" string)
    (field "output-schema" (option string)) (field "effects" $effects) (field "timeout-ms" (option u32))
    (field "render" (option string))))
  (func $list (result (list $spec)) (canon lift (core func $code "list")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $call (param "tool" string) (param "arguments" string) (result (result $content (error $failure)))
    (canon lift (core func $code "call")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $tools
    (export "failure" (type $failure)) (export "content" (type $content)) (export "effects" (type $effects))
    (export "tool-spec" (type $spec)) (export "list" (func $list)) (export "call" (func $call)))
  (export "holdfast:extension/tools@{VERSION}" (instance $tools)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}

/// What a made loop in the background does.
pub enum Loops {
    /// Waits, publishes on `tick`, and begins again. It needs the grant `events`.
    Ticks,
    /// Computes, and never waits.
    Spins,
    /// Ends at once.
    Ends,
}

/// A component with a loop in the background.
pub fn service(does: &Loops) -> Vec<u8> {
    let mut data = Data::new(4096);
    let ((topic, topic_bytes), (payload, payload_bytes)) = (data.put("tick"), data.put("1"));
    let body = match does {
        Loops::Ticks => format!(
            "(loop
               (call $wait (i64.const 0) (i32.const 600))
               (call $publish (i32.const {topic}) (i32.const {topic_bytes})
                 (i32.const {payload}) (i32.const {payload_bytes})
                 (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 700))
               (br 0))"
        ),
        Loops::Spins => "(loop (br 0))".to_owned(),
        Loops::Ends => String::new(),
    };
    let text = format!(
        r#"(component
  (import "holdfast:extension/timers@{VERSION}" (instance $timers
    {TYPES}
    (export "failure" (type $f (eq $failure)))
    (export "wait-until" (func (param "moment" u64) (result (result u64 (error $f)))))))
  (import "holdfast:extension/events@{VERSION}" (instance $events
    {TYPES}
    (export "failure" (type $f (eq $failure)))
    (export "publish" (func (param "topic" string) (param "payload" string) (param "key" (option string))
      (result (result (error $f)))))))
  {MEMORY}
  (core func $wait (canon lower (func $timers "wait-until")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $publish (canon lower (func $events "publish")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core instance $host (export "wait" (func $wait)) (export "publish" (func $publish)))
  (core module $code
    (import "memory" "memory" (memory 4))
    (import "host" "wait" (func $wait (param i64 i32)))
    (import "host" "publish" (func $publish (param i32 i32 i32 i32 i32 i32 i32 i32)))
    {data}
    (func (export "run") (result i32) {body} (i32.const 512)))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  {TYPES}
  (func $run (result (result (error $failure))) (canon lift (core func $code "run")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $service (export "failure" (type $failure)) (export "run-background" (func $run)))
  (export "holdfast:extension/service@{VERSION}" (instance $service)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}

/// A component whose `api` answers every method with the method's name and what it was given: `name {"a":1}`.
pub fn api() -> Vec<u8> {
    let text = format!(
        r#"(component
  {MEMORY}
  (core module $code
    (import "memory" "memory" (memory 4))
    (func (export "methods") (result i32)
      (i64.store (i32.const 256) (i64.const 0))
      (i32.const 256))
    (func (export "call") (param i32 i32 i32 i32) (result i32)
      (memory.copy (i32.const 8192) (local.get 0) (local.get 1))
      (i32.store8 (i32.add (i32.const 8192) (local.get 1)) (i32.const 32))
      (memory.copy (i32.add (i32.const 8193) (local.get 1)) (local.get 2) (local.get 3))
      (i64.store (i32.const 512) (i64.const 0))
      (i32.store (i32.const 520) (i32.const 8192))
      (i32.store (i32.const 524) (i32.add (i32.add (local.get 1) (local.get 3)) (i32.const 1)))
      (i32.const 512)))
  (core instance $code (instantiate $code (with "memory" (instance $memory))))
  {TYPES}
  (type $method (record (field "name" string) (field "description" string)))
  (func $methods (result (list $method)) (canon lift (core func $code "methods")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $call (param "method" string) (param "arguments" string) (result (result $content (error $failure)))
    (canon lift (core func $code "call")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $api
    (export "failure" (type $failure)) (export "content" (type $content)) (export "method" (type $method))
    (export "methods" (func $methods)) (export "call" (func $call)))
  (export "holdfast:extension/api@{VERSION}" (instance $api)))"#
    );
    wat::parse_str(&text).unwrap()
}
