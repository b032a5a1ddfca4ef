;; attacks: exports nothing
;; expect: HF-4104
;; at: load
(component)
