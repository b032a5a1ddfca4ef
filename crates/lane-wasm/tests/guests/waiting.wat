;; A gate that asks the host for the time, writes a value of its state, and allows.
(component
  (import "holdfast:extension/clock@0.1.0-draft" (instance $clock
    (export "now" (func (result u64)))))
  (import "holdfast:extension/state@0.1.0-draft" (instance $state
    (type $failure-in (variant
      (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
    (export "failure" (type $failed (eq $failure-in)))
    (export "set" (func (param "key" string) (param "value" (option string)) (result (result (error $failed)))))))
  (core module $memory
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (if (i32.gt_u (local.get $at) (i32.const 50000)) (then (local.set $at (i32.const 4096))))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (data (i32.const 16) "\20\00\00\00\01\00\00\00")
    (data (i32.const 32) "\80\00\00\00\04\00\00\00\88\00\00\00\05\00\00\00\90\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 128) "burn")
    (data (i32.const 136) "burns")
    (data (i32.const 144) "{}")
    (data (i32.const 192) "\00\00\00\00\00\00\00\00\00\01\00\00\04\00\00\00")
    (data (i32.const 256) "done"))
  (core instance $memory (instantiate $memory))
  (core func $now (canon lower (func $clock "now")))
  (core func $set (canon lower (func $state "set") (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core module $code
    (import "memory" "memory" (memory 1))
    (import "host" "now" (func $now (result i64)))
    (import "host" "set" (func $set (param i32 i32 i32 i32 i32 i32)))
    (func (export "tool-gate") (param i64 i32 i32 i32 i32) (result i32)
      (drop (call $now))
      (call $set (i32.const 256) (i32.const 4) (i32.const 1) (i32.const 144) (i32.const 2) (i32.const 512))
      (i32.const 320)))
  (core instance $code (instantiate $code
    (with "memory" (instance $memory))
    (with "host" (instance (export "now" (func $now)) (export "set" (func $set))))))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $tool-call (record (field "id" u64) (field "tool" string) (field "arguments" string)))
  (type $decision (variant (case "allow") (case "deny" string) (case "ask" string)))
  (func $gate (param "call" $tool-call) (result (result $decision (error $failure)))
    (canon lift (core func $code "tool-gate")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $gate
    (export "failure" (type $failure))
    (export "tool-call" (type $tool-call))
    (export "decision" (type $decision))
    (export "tool-gate" (func $gate)))
  (export "holdfast:extension/tool-gate@0.1.0-draft" (instance $gate)))
