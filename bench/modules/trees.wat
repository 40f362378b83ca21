;; Binary trees on WebAssembly's own garbage-collected structs, with no language's runtime around them: many complete trees that die young
;; while one lives on. The same work as programs/trees, node for node. A WASI command: trees.wasm DEPTH ROUNDS
;; prints the nodes of each round, and each round's time in microseconds on standard error.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))

  ;; 0: two words for what WASI gives back. 16: a pair of address and length. 32 to 64: digits, from the right.
  ;; 64: what is said of a round. 1024: addresses of the arguments, 2048: the arguments themselves.
  (memory (export "memory") 1)
  (data (i32.const 64) "nodes: round:  us\n")

  (type $node (struct (field $left (ref null $node)) (field $right (ref null $node))))

  (func $build (param $depth i32) (result (ref $node))
    (if (result (ref $node)) (i32.eqz (local.get $depth))
      (then (struct.new $node (ref.null $node) (ref.null $node)))
      (else
        (struct.new $node
          (call $build (i32.sub (local.get $depth) (i32.const 1)))
          (call $build (i32.sub (local.get $depth) (i32.const 1)))))))

  (func $count (param $node (ref $node)) (result i32)
    (local $left (ref null $node))
    (local.set $left (struct.get $node $left (local.get $node)))
    (if (result i32) (ref.is_null (local.get $left))
      (then (i32.const 1))
      (else
        (i32.add
          (i32.const 1)
          (i32.add
            (call $count (ref.as_non_null (local.get $left)))
            (call $count (ref.as_non_null (struct.get $node $right (local.get $node)))))))))

  ;; A tree of depth + 1, then one of the depth that lives on, and 2^(depth - d + 4) trees of every second depth d from 4; all nodes.
  (func $round (export "round") (param $depth i32) (result i64)
    (local $long_lived (ref $node))
    (local $d i32)
    (local $trees i32)
    (local $nodes i64)
    (local.set $nodes (i64.extend_i32_u (call $count (call $build (i32.add (local.get $depth) (i32.const 1))))))
    (local.set $long_lived (call $build (local.get $depth)))
    (local.set $d (i32.const 4))
    (block $done
      (loop $depths
        (br_if $done (i32.gt_s (local.get $d) (local.get $depth)))
        (local.set $trees (i32.shl (i32.const 1) (i32.add (i32.sub (local.get $depth) (local.get $d)) (i32.const 4))))
        (loop $more
          (local.set $nodes
            (i64.add (local.get $nodes) (i64.extend_i32_u (call $count (call $build (local.get $d))))))
          (br_if $more (local.tee $trees (i32.sub (local.get $trees) (i32.const 1)))))
        (local.set $d (i32.add (local.get $d) (i32.const 2)))
        (br $depths)))
    (i64.add (local.get $nodes) (i64.extend_i32_u (call $count (local.get $long_lived)))))

  (func $write (param $fd i32) (param $from i32) (param $length i32)
    (i32.store (i32.const 16) (local.get $from))
    (i32.store (i32.const 20) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 16) (i32.const 1) (i32.const 0))))

  ;; A number that is not negative, in decimal digits.
  (func $write_number (param $fd i32) (param $n i64)
    (local $at i32)
    (local.set $at (i32.const 64))
    (loop $digits
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at)
        (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
      (br_if $digits
        (i64.ne (local.tee $n (i64.div_u (local.get $n) (i64.const 10))) (i64.const 0))))
    (call $write (local.get $fd) (local.get $at) (i32.sub (i32.const 64) (local.get $at))))

  ;; Nanoseconds of the monotonic clock.
  (func $now (result i64)
    (drop (call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 0)))
    (i64.load (i32.const 0)))

  ;; The argument at a position as a number, or the fallback if it is not there. Digits only are expected.
  (func $argument (param $position i32) (param $fallback i32) (result i32)
    (local $at i32)
    (local $n i32)
    (drop (call $args_sizes_get (i32.const 0) (i32.const 4)))
    (if (i32.ge_u (local.get $position) (i32.load (i32.const 0)))
      (then (return (local.get $fallback))))
    (drop (call $args_get (i32.const 1024) (i32.const 2048)))
    (local.set $at (i32.load (i32.add (i32.const 1024) (i32.mul (local.get $position) (i32.const 4)))))
    (block $done
      (loop $digits
        (br_if $done (i32.eqz (i32.load8_u (local.get $at))))
        (local.set $n
          (i32.add
            (i32.mul (local.get $n) (i32.const 10))
            (i32.sub (i32.load8_u (local.get $at)) (i32.const 48))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $digits)))
    (local.get $n))

  (func (export "_start")
    (local $depth i32)
    (local $rounds i32)
    (local $start i64)
    (local $nodes i64)
    (local.set $depth (call $argument (i32.const 1) (i32.const 16)))
    (local.set $rounds (call $argument (i32.const 2) (i32.const 1)))
    (loop $more
      (local.set $start (call $now))
      (local.set $nodes (call $round (local.get $depth)))
      (local.set $start (i64.sub (call $now) (local.get $start)))
      (call $write (i32.const 2) (i32.const 71) (i32.const 7))
      (call $write_number (i32.const 2) (i64.div_u (local.get $start) (i64.const 1000)))
      (call $write (i32.const 2) (i32.const 78) (i32.const 4))
      (call $write (i32.const 1) (i32.const 64) (i32.const 7))
      (call $write_number (i32.const 1) (local.get $nodes))
      (call $write (i32.const 1) (i32.const 81) (i32.const 1))
      (br_if $more (i32.gt_s (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1))) (i32.const 0))))))
