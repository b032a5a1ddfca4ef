;; attacks: answers with invalid JSON
;; expect: HF-4105
;; call: tool burn {}
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
    (func (export "list") (result i32) (i32.const 16))
    (func (export "call") (param i32 i32 i32 i32) (result i32)
      (i32.store (i32.const 200) (i32.const 256)) (i32.store (i32.const 204) (i32.const 4)) (i32.store (i32.const 196) (i32.const 1)) (i32.store (i32.const 192) (i32.const 0)) (i32.const 192)))
  (core instance $code (instantiate $code
    (with "memory" (instance $memory))))
  (type $content (variant (case "text" string) (case "json" string)))
  (type $failure (variant
    (case "invalid-arguments" string) (case "denied" string) (case "not-found" string) (case "failed" string)))
  (type $effects (enum "unknown" "pure" "read" "write" "exec" "network"))
  (type $tool-spec (record
    (field "name" string) (field "description" string) (field "input-schema" string)
    (field "output-schema" (option string)) (field "effects" $effects) (field "timeout-ms" (option u32))
    (field "render" (option string))))
  (func $list (result (list $tool-spec))
    (canon lift (core func $code "list") (memory (core memory $memory "memory"))))
  (func $call (param "tool" string) (param "arguments" string) (result (result $content (error $failure)))
    (canon lift (core func $code "call")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $tools
    (export "content" (type $content))
    (export "failure" (type $failure))
    (export "effects" (type $effects))
    (export "tool-spec" (type $tool-spec))
    (export "list" (func $list))
    (export "call" (func $call)))
  (export "holdfast:extension/tools@0.1.0-draft" (instance $tools)))
