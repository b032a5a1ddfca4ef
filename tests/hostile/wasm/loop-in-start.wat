;; attacks: computes without end before any function is called
;; expect: HF-4106
;; call: gate {}
;; budget: fuel=2000000 hook_fuel=2000000
(component
  (core module $memory
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
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
  (core module $code
    (import "memory" "memory" (memory 1))
    (func $start (loop $again (br $again)) (unreachable))
    (start $start)
    (func (export "tool-gate") (param i64 i32 i32 i32 i32) (result i32)
      (i32.const 320)))
  (core instance $code (instantiate $code
    (with "memory" (instance $memory))))
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
