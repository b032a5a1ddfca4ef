//! A tool that writes a line into the log.

use super::{Data, VERSION};

/// A component with one tool of this name, which logs this line and answers that it has.
pub fn talker(name: &str, line: &str) -> Vec<u8> {
    let mut data = Data::new(4096);
    let texts = [name, "A tool of a test.", r#"{"type":"object"}"#].map(|text| data.put(text));
    let ((line, line_bytes), (said, said_bytes)) = (data.put(line), data.put("logged"));
    // Three texts, no output schema, pure, no timeout, no rendering.
    let words = texts.into_iter().flat_map(|(at, bytes)| [at, bytes]).chain([0, 0, 0, 1, 0, 0, 0, 0, 0]);
    let stores: String = words
        .enumerate()
        .map(|(index, word)| format!("(i32.store (i32.const {}) (i32.const {word}))", 1024 + index * 4))
        .collect();
    let text = format!(
        r#"(component
  (import "holdfast:extension/log@{VERSION}" (instance $log
    (type $level (enum "debug" "info" "warning" "error"))
    (export "level" (type $exported (eq $level)))
    (export "log" (func (param "level" $exported) (param "message" string)))))
  (core module $memory
    (memory (export "memory") 4)
    (global $free (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core func $log (canon lower (func $log "log") (memory (core memory $memory "memory"))))
  (core instance $host (export "log" (func $log)))
  (core module $code
    (import "memory" "memory" (memory 4))
    (import "host" "log" (func $log (param i32 i32 i32)))
    {data}
    (func (export "list") (result i32)
      {stores}
      (i32.store (i32.const 256) (i32.const 1024)) (i32.store (i32.const 260) (i32.const 1))
      (i32.const 256))
    (func (export "call") (param i32 i32 i32 i32) (result i32)
      (call $log (i32.const 2) (i32.const {line}) (i32.const {line_bytes}))
      (i32.store (i32.const 512) (i32.const 0)) (i32.store (i32.const 516) (i32.const 0))
      (i32.store (i32.const 520) (i32.const {said})) (i32.store (i32.const 524) (i32.const {said_bytes}))
      (i32.const 512)))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $content (variant (case "text" string) (case "json" string)))
  (type $effects (enum "unknown" "pure" "read" "write" "exec" "network"))
  (type $spec (record (field "name" string) (field "description" string) (field "input-schema" string)
    (field "output-schema" (option string)) (field "effects" $effects) (field "timeout-ms" (option u32))
    (field "render" (option string))))
  (func $list (result (list $spec))
    (canon lift (core func $code "list")
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
