//! A channel that tells everything that happens to it, in order.

use super::{Data, VERSION};

/// A channel, of which each generation says which one it is. It publishes on `relay`, one event for each thing that happens to it and in
/// that order: `[7,"started"]`, `[7,"sent","ada","hello","bus.01/4",false]` with the delivery's id and whether it is a repeat, and
/// `[7,"stopped"]`. What goes to nobody in particular is sent to `*`, and a file, which is to be a text, as `name: text`. A question is sent as `text [yes=yes 7K3F2Q; no=no 7K3F2Q; ]`. It takes its time to send. It needs the grant `events`.
pub fn telltale(generation: u64) -> Vec<u8> {
    let mut data = Data::new(4096);
    let mut put = |text: &str| {
        let (at, bytes) = data.put(text);
        format!("(i32.const {at}) (i32.const {bytes})")
    };
    let topic = put("relay");
    let (started, stopped) =
        (put(&format!("[{generation},\"started\"]")), put(&format!("[{generation},\"stopped\"]")));
    let (sent, nobody) = (put(&format!("[{generation},\"sent\",\"")), put("*"));
    let colon = put(": ");
    let (opens, equals, ends, closes) = (put(" ["), put("="), put("; "), put("]"));
    let (next, last, yes, no) = (put("\",\""), put("\","), put("true]"), put("false]"));
    let data = data.text;
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
    (global $end (mut i32) (i32.const 8192))
    {data}
    (func $add (param $at i32) (param $bytes i32)
      (memory.copy (global.get $end) (local.get $at) (local.get $bytes))
      (global.set $end (i32.add (global.get $end) (local.get $bytes))))
    (func $byte (param $value i32)
      (i32.store8 (global.get $end) (local.get $value))
      (global.set $end (i32.add (global.get $end) (i32.const 1))))
    ;; A text as it stands in JSON: quotes, backslashes and line breaks are escaped.
    (func $quote (param $at i32) (param $bytes i32)
      (local $value i32)
      (block $done (loop $again
        (br_if $done (i32.eqz (local.get $bytes)))
        (local.set $value (i32.load8_u (local.get $at)))
        (if (i32.or (i32.eq (local.get $value) (i32.const 34)) (i32.eq (local.get $value) (i32.const 92)))
          (then (call $byte (i32.const 92))))
        (if (i32.eq (local.get $value) (i32.const 10))
          (then (call $byte (i32.const 92)) (local.set $value (i32.const 110))))
        (call $byte (local.get $value))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
        (br $again))))
    ;; What publishing came to is the answer: both are a result of the same shape.
    (func $tell (result i32)
      (call $publish {topic} (i32.const 8192) (i32.sub (global.get $end) (i32.const 8192))
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512))
      (global.set $end (i32.const 8192))
      (i32.const 512))
    (func (export "start") (result i32) (call $add {started}) (call $tell))
    (func (export "stop") (result i32) (call $add {stopped}) (call $tell))
    (func $send (export "send-to-user") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
      (local $count i32)
      (loop $again
        (local.set $count (i32.add (local.get $count) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $count) (i32.const 1000000))))
      (call $add {sent}) (call $add (local.get 0) (local.get 1))
      (call $add {next}) (call $quote (local.get 2) (local.get 3))
      (call $add {next}) (call $add (local.get 4) (local.get 5))
      (call $add {last})
      (if (local.get 6) (then (call $add {yes})) (else (call $add {no})))
      (call $tell))
    ;; To whom (whether, where, how long), the file's name, type and bytes, and the delivery.
    (func (export "send-file") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $add {sent})
      (if (local.get 0) (then (call $add (local.get 1) (local.get 2))) (else (call $add {nobody})))
      (call $add {next}) (call $add (local.get 3) (local.get 4))
      (call $add {colon}) (call $add (local.get 7) (local.get 8))
      (call $add {next}) (call $add (local.get 9) (local.get 10))
      (call $add {last})
      (if (local.get 11) (then (call $add {yes})) (else (call $add {no})))
      (call $tell))
    ;; To whom, the text, the choices (where, how many), and the delivery.
    (func (export "send-question") (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $add {sent}) (call $add (local.get 0) (local.get 1))
      (call $add {next}) (call $quote (local.get 2) (local.get 3))
      (call $add {opens})
      (block $done (loop $again
        (br_if $done (i32.eqz (local.get 5)))
        (call $quote (i32.load (local.get 4)) (i32.load offset=4 (local.get 4)))
        (call $add {equals})
        (call $quote (i32.load offset=8 (local.get 4)) (i32.load offset=12 (local.get 4)))
        (call $add {ends})
        (local.set 4 (i32.add (local.get 4) (i32.const 16)))
        (local.set 5 (i32.sub (local.get 5) (i32.const 1)))
        (br $again)))
      (call $add {closes})
      (call $add {next}) (call $add (local.get 6) (local.get 7))
      (call $add {last})
      (if (local.get 8) (then (call $add {yes})) (else (call $add {no})))
      (call $tell))
    (func (export "send-message") (param i32 i32 i32 i32 i32) (result i32)
      (call $send {nobody} (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4))))
  (core instance $code (instantiate $code (with "memory" (instance $memory)) (with "host" (instance $host))))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $delivery (record (field "id" string) (field "repeat" bool)))
  (func $start (result (result (error $failure)))
    (canon lift (core func $code "start")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $stop (result (result (error $failure)))
    (canon lift (core func $code "stop")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $send (param "user" string) (param "text" string) (param "delivery" $delivery)
    (result (result (error $failure)))
    (canon lift (core func $code "send-to-user")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $tell (param "text" string) (param "delivery" $delivery) (result (result (error $failure)))
    (canon lift (core func $code "send-message")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (type $file (record (field "name" string) (field "media-type" string) (field "content" (list u8))))
  (func $file (param "user" (option string)) (param "file" $file) (param "delivery" $delivery)
    (result (result (error $failure)))
    (canon lift (core func $code "send-file")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (type $choice (record (field "label" string) (field "answer" string)))
  (func $ask (param "user" string) (param "text" string) (param "choices" (list $choice)) (param "delivery" $delivery)
    (result (result (error $failure)))
    (canon lift (core func $code "send-question")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $started (export "failure" (type $failure)) (export "start" (func $start)))
  (instance $stopped (export "failure" (type $failure)) (export "stop" (func $stop)))
  (instance $channel
    (export "failure" (type $failure)) (export "delivery" (type $delivery)) (export "send-to-user" (func $send)))
  (instance $messages
    (export "failure" (type $failure)) (export "delivery" (type $delivery)) (export "send-message" (func $tell)))
  (instance $files
    (export "failure" (type $failure)) (export "delivery" (type $delivery)) (export "file" (type $file))
    (export "send-file" (func $file)))
  (instance $questions
    (export "failure" (type $failure)) (export "delivery" (type $delivery)) (export "choice" (type $choice))
    (export "send-question" (func $ask)))
  (export "holdfast:extension/lifecycle-start@{VERSION}" (instance $started))
  (export "holdfast:extension/lifecycle-stop@{VERSION}" (instance $stopped))
  (export "holdfast:extension/channel@{VERSION}" (instance $channel))
  (export "holdfast:extension/channel-message@{VERSION}" (instance $messages))
  (export "holdfast:extension/channel-file@{VERSION}" (instance $files))
  (export "holdfast:extension/channel-question@{VERSION}" (instance $questions)))"#,
    );
    wat::parse_str(&text).unwrap()
}
