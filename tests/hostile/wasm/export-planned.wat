;; attacks: exports what is not offered yet
;; expect: HF-4104
;; at: load
(component
  (core module $code (func (export "run")))
  (core instance $code (instantiate $code))
  (func $run (canon lift (core func $code "run")))
  (instance $service (export "run-background" (func $run)))
  (export "holdfast:extension/service@0.1.0-draft" (instance $service)))
