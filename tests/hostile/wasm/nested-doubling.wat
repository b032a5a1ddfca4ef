;; attacks: nests forty components of which each holds the one below twice
;; expect: HF-4108
;; at: load
(component
  (component $c0 (core module $m) (core instance (instantiate $m)))
  (component $c1
    (alias outer 1 $c0 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c2
    (alias outer 1 $c1 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c3
    (alias outer 1 $c2 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c4
    (alias outer 1 $c3 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c5
    (alias outer 1 $c4 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c6
    (alias outer 1 $c5 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c7
    (alias outer 1 $c6 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c8
    (alias outer 1 $c7 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c9
    (alias outer 1 $c8 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c10
    (alias outer 1 $c9 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c11
    (alias outer 1 $c10 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c12
    (alias outer 1 $c11 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c13
    (alias outer 1 $c12 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c14
    (alias outer 1 $c13 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c15
    (alias outer 1 $c14 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c16
    (alias outer 1 $c15 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c17
    (alias outer 1 $c16 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c18
    (alias outer 1 $c17 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c19
    (alias outer 1 $c18 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c20
    (alias outer 1 $c19 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c21
    (alias outer 1 $c20 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c22
    (alias outer 1 $c21 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c23
    (alias outer 1 $c22 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c24
    (alias outer 1 $c23 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c25
    (alias outer 1 $c24 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c26
    (alias outer 1 $c25 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c27
    (alias outer 1 $c26 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c28
    (alias outer 1 $c27 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c29
    (alias outer 1 $c28 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c30
    (alias outer 1 $c29 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c31
    (alias outer 1 $c30 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c32
    (alias outer 1 $c31 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c33
    (alias outer 1 $c32 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c34
    (alias outer 1 $c33 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c35
    (alias outer 1 $c34 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c36
    (alias outer 1 $c35 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c37
    (alias outer 1 $c36 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c38
    (alias outer 1 $c37 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c39
    (alias outer 1 $c38 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (component $c40
    (alias outer 1 $c39 (component $below))
    (instance (instantiate $below))
    (instance (instantiate $below)))
  (instance (instantiate $c40))
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
