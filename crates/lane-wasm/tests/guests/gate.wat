;; A gate that allows every call. It counts its calls in memory and denies from the third on if the arguments' first byte is `[`,
;; so that tests can see whether an instance remembers.
(component
  (core module $code
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    (global $calls (mut i32) (i32.const 0))
    (data (i32.const 64) "it remembers")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "tool-gate") (param $id i64) (param $tool i32) (param $tool-bytes i32)
      (param $arguments i32) (param $arguments-bytes i32) (result i32)
      (global.set $free (i32.const 1024))
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (i64.store (i32.const 16) (i64.const 0))
      (i64.store (i32.const 24) (i64.const 0))
      (if (i32.and
            (i32.gt_u (global.get $calls) (i32.const 2))
            (i32.eq (i32.load8_u (local.get $arguments)) (i32.const 0x5b)))
        (then
          (i32.store (i32.const 20) (i32.const 1))
          (i32.store (i32.const 24) (i32.const 64))
          (i32.store (i32.const 28) (i32.const 12))))
      (i32.const 16)))
  (core instance $code (instantiate $code))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $tool-call (record (field "id" u64) (field "tool" string) (field "arguments" string)))
  (type $decision (variant (case "allow") (case "deny" string) (case "ask" string)))
  (func $tool-gate (param "call" $tool-call) (result (result $decision (error $failure)))
    (canon lift (core func $code "tool-gate")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (instance $gate
    (export "failure" (type $failure))
    (export "tool-call" (type $tool-call))
    (export "decision" (type $decision))
    (export "tool-gate" (func $tool-gate)))
  (export "holdfast:extension/tool-gate@0.1.0-draft" (instance $gate)))
