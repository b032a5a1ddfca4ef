//! A channel that shows answers as they are written, and a guardrail on what is shown.

use super::{Data, VERSION};

/// A channel that publishes on `relay` whatever it is told, in order: `["start","ada"]`, `["chunk","ada","hello"]`, `["status","ada","…"]`,
/// `["end","ada","hello"]`, and `["whole","ada","hello"]` for what is sent to a user. It may trap at the first chunk. It needs the grant `events`.
pub fn streamer(traps: bool) -> Vec<u8> {
    let mut data = Data::new(4096);
    let mut put = |text: &str| {
        let (at, bytes) = data.put(text);
        format!("(i32.const {at}) (i32.const {bytes})")
    };
    let topic = put("relay");
    let [start, chunk, status, end, whole] =
        ["start", "chunk", "status", "end", "whole"].map(|it| put(&format!("[\"{it}\",\"")));
    let (next, last) = (put("\",\""), put("\"]"));
    let trap = if traps { "(unreachable)" } else { "" };
    let data = data.text;
    let lifted = |name: &str, parameters: &str| {
        format!(
            r#"(func ${name} {parameters} (result (result (error $failure)))
    (canon lift (core func $code "{name}")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))"#
        )
    };
    let to = r#"(param "user" string) (param "id" string)"#;
    let functions = [
        lifted("stream-start", to),
        lifted("stream-chunk", &format!(r#"{to} (param "text" string)"#)),
        lifted("stream-status", &format!(r#"{to} (param "status" string)"#)),
        lifted("stream-end", &format!(r#"{to} (param "text" string) (param "delivery" $delivery)"#)),
        lifted("send-to-user", r#"(param "user" string) (param "text" string) (param "delivery" $delivery)"#),
    ]
    .concat();
    let text = format!(
        r#"(component
  (import "holdfast:extension/events@{VERSION}" (instance $events
    (type $failure (variant
      (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
    (export "failure" (type $exported (eq $failure)))
    (export "publish" (func (param "topic" string) (param "payload" string) (param "key" (option string))
      (result (result (error $exported)))))))
  (core module $memory
    (memory (export "memory") 8)
    (global $free (mut i32) (i32.const 65536))
    (func (export "reset") (global.set $free (i32.const 65536)))
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
    (import "memory" "memory" (memory 8))
    (import "memory" "reset" (func $reset))
    (import "host" "publish" (func $publish (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (global $end (mut i32) (i32.const 8192))
    {data}
    (func $add (param $at i32) (param $bytes i32)
      (memory.copy (global.get $end) (local.get $at) (local.get $bytes))
      (global.set $end (i32.add (global.get $end) (local.get $bytes))))
    ;; What publishing came to is the answer: both are a result of the same shape.
    (func $tell (result i32)
      (call $add {last})
      (call $publish {topic} (i32.const 8192) (i32.sub (global.get $end) (i32.const 8192))
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512))
      (global.set $end (i32.const 8192))
      (call $reset)
      (i32.const 512))
    (func $said (param i32 i32 i32 i32) (result i32)
      (call $add (local.get 0) (local.get 1)) (call $add {next}) (call $add (local.get 2) (local.get 3))
      (call $tell))
    (func (export "stream-start") (param i32 i32 i32 i32) (result i32)
      (call $add {start}) (call $add (local.get 0) (local.get 1)) (call $tell))
    (func (export "stream-chunk") (param i32 i32 i32 i32 i32 i32) (result i32)
      {trap}
      (call $add {chunk}) (call $said (local.get 0) (local.get 1) (local.get 4) (local.get 5)))
    (func (export "stream-status") (param i32 i32 i32 i32 i32 i32) (result i32)
      (call $add {status}) (call $said (local.get 0) (local.get 1) (local.get 4) (local.get 5)))
    (func (export "stream-end") (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $add {end}) (call $said (local.get 0) (local.get 1) (local.get 4) (local.get 5)))
    (func (export "send-to-user") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $add {whole}) (call $said (local.get 0) (local.get 1) (local.get 2) (local.get 3))))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $delivery (record (field "id" string) (field "repeat" bool)))
  {functions}
  (instance $channel
    (export "failure" (type $failure)) (export "delivery" (type $delivery))
    (export "send-to-user" (func $send-to-user)))
  (instance $streaming
    (export "failure" (type $failure)) (export "delivery" (type $delivery))
    (export "stream-start" (func $stream-start)) (export "stream-chunk" (func $stream-chunk))
    (export "stream-end" (func $stream-end)))
  (instance $status (export "failure" (type $failure)) (export "stream-status" (func $stream-status)))
  (export "holdfast:extension/channel@{VERSION}" (instance $channel))
  (export "holdfast:extension/streaming-channel@{VERSION}" (instance $streaming))
  (export "holdfast:extension/streaming-status@{VERSION}" (instance $status)))"#,
    );
    wat::parse_str(&text).unwrap()
}

/// What a made guardrail does when it is asked about a text in which its word is.
pub enum Objects {
    /// It blocks the text.
    Blocks,
    /// It flags the text.
    Flags,
    /// It traps.
    Traps,
    /// It never ends.
    Loops,
}

/// A component with a guardrail on streamed text that has a word against one word.
pub fn chunk_guard(word: &str, does: &Objects) -> Vec<u8> {
    let mut data = Data::new(4096);
    let ((word, length), (reason, bytes)) = (data.put(word), data.put("a word that is not said"));
    let said = |verdict: u32| {
        format!(
            "(i32.store (i32.const 516) (i32.const {verdict}))
             (i32.store (i32.const 520) (i32.const {reason})) (i32.store (i32.const 524) (i32.const {bytes}))"
        )
    };
    let body = match does {
        Objects::Flags => said(1),
        Objects::Blocks => said(2),
        Objects::Traps => "(unreachable)".to_owned(),
        Objects::Loops => "(loop (br 0))".to_owned(),
    };
    let text = format!(
        r#"(component
  (core module $code
    (memory (export "memory") 2)
    (global $free (mut i32) (i32.const 65536))
    {data}
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func $is-here (param $at i32) (result i32)
      (local $place i32)
      (loop $next
        (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $place)))
                    (i32.load8_u (i32.add (i32.const {word}) (local.get $place))))
          (then (return (i32.const 0))))
        (local.set $place (i32.add (local.get $place) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $place) (i32.const {length}))))
      (i32.const 1))
    (func (export "guard-chunk") (param $kind i32) (param $at i32) (param $bytes i32) (result i32)
      (local $last i32)
      (global.set $free (i32.const 65536))
      (i64.store (i32.const 512) (i64.const 0)) (i64.store (i32.const 520) (i64.const 0))
      (local.set $last (i32.sub (i32.add (local.get $at) (local.get $bytes)) (i32.const {length})))
      (block $done
        (loop $next
          (br_if $done (i32.gt_s (local.get $at) (local.get $last)))
          (if (call $is-here (local.get $at)) (then {body} (br $done)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $next)))
      (i32.const 512)))
  (core instance $code (instantiate $code))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $content (variant (case "text" string) (case "json" string)))
  (type $verdict (variant (case "allow") (case "flag" string) (case "block" string)))
  (func $guard (param "chunk" $content) (result (result $verdict (error $failure)))
    (canon lift (core func $code "guard-chunk")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (instance $guard
    (export "failure" (type $failure)) (export "content" (type $content)) (export "verdict" (type $verdict))
    (export "guard-chunk" (func $guard)))
  (export "holdfast:extension/guard-chunk@{VERSION}" (instance $guard)))"#,
        data = data.text,
    );
    wat::parse_str(&text).unwrap()
}
