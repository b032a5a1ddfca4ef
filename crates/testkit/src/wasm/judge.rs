//! Guardrails and sanitizers that go wrong, at any of their points.

use super::VERSION;

/// How a made guardrail goes wrong when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// It traps.
    Traps,
    /// It never ends.
    Loops,
    /// It says a verdict that there is not.
    Babbles,
    /// It blocks, for a reason that lies outside its memory.
    PointsAway,
}

/// A component with a guardrail or a sanitizer at the hook point of this name in `wit/`, such as `guard-input`.
pub fn broken_guard(point: &str, breaks: Breaks) -> Vec<u8> {
    let block = if point.starts_with("sanitize") { 3 } else { 2 };
    let said = |verdict: u32, at: u32| {
        format!(
            "(i32.store (i32.const 512) (i32.const 0)) (i32.store (i32.const 516) (i32.const {verdict}))
             (i32.store (i32.const 520) (i32.const {at})) (i32.store (i32.const 524) (i32.const 64))
             (i32.const 512)"
        )
    };
    let body = match breaks {
        Breaks::Traps => "(unreachable)".to_owned(),
        Breaks::Loops => "(loop (br 0)) (unreachable)".to_owned(),
        Breaks::Babbles => said(99, 4096),
        Breaks::PointsAway => said(block, 0x7fff_0000),
    };
    let (of_call, call, given) = if point.ends_with("-result") {
        ("i64 i32 i32 i32 i32", r#"(param "call" $tool-call)"#, "result")
    } else if point.ends_with("-output") {
        ("", "", "answer")
    } else {
        ("", "", "text")
    };
    let (name, cases) = match block {
        3 => (
            "sanitized",
            r#"(case "unchanged") (case "replaced" $content) (case "flagged" string) (case "blocked" string)"#,
        ),
        _ => ("verdict", r#"(case "allow") (case "flag" string) (case "block" string)"#),
    };
    let shared = match call {
        "" => "",
        _ => r#"(export "tool-call" (type $tool-call))"#,
    };
    let text = format!(
        r#"(component
  (core module $code
    (memory (export "memory") 2)
    (global $free (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "judge") (param {of_call} i32 i32 i32) (result i32)
      (global.set $free (i32.const 65536))
      {body}))
  (core instance $code (instantiate $code))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $content (variant (case "text" string) (case "json" string)))
  (type $tool-call (record (field "id" u64) (field "tool" string) (field "arguments" string)))
  (type $said (variant {cases}))
  (func $judge {call} (param "{given}" $content) (result (result $said (error $failure)))
    (canon lift (core func $code "judge")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (instance $guard
    (export "failure" (type $failure)) (export "content" (type $content)) {shared}
    (export "{name}" (type $said)) (export "{point}" (func $judge)))
  (export "holdfast:extension/{point}@{VERSION}" (instance $guard)))"#,
    );
    wat::parse_str(&text).unwrap()
}
