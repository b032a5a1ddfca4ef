;; attacks: exports a function outside of any interface
;; expect: HF-4104
;; at: load
(component
  (core module $code (func (export "run")))
  (core instance $code (instantiate $code))
  (func $run (canon lift (core func $code "run")))
  (export "run" (func $run)))
