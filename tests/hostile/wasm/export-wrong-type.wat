;; attacks: exports a gate that takes and gives numbers
;; expect: HF-4104
;; at: load
(component
  (core module $code (func (export "gate") (param i32) (result i32) (local.get 0)))
  (core instance $code (instantiate $code))
  (func $run (param "call" u32) (result u32) (canon lift (core func $code "gate")))
  (instance $gate (export "tool-gate" (func $run)))
  (export "holdfast:extension/tool-gate@0.1.0-draft" (instance $gate)))
