//! Optimized code caches fields and elements that it has read: never longer than their values are valid.

use varve_runtime::*;

/// Functions from an integer to an integer; each reads something, has it changed by other means, and reads it again.
const CHANGED: &str = r#"(module
    (type $cell (struct (field $n (mut i32)) (field $next (mut (ref null $cell)))))
    (type $ints (array (mut i32)))
    (tag $stop)
    (global $shared (mut (ref null $cell)) (ref.null $cell))
    (func $bump (struct.set $cell $n (global.get $shared)
        (i32.add (i32.const 1) (struct.get $cell $n (global.get $shared)))))
    (func $cell (result (ref $cell)) (local $c (ref null $cell))
        (local.set $c (struct.new $cell (i32.const 5) (ref.null $cell)))
        (struct.set $cell $next (local.get $c) (local.get $c))
        (global.set $shared (local.get $c))
        (ref.as_non_null (local.get $c)))

    (func (export "by another name") (param $i i32) (result i32) (local $c (ref null $cell))
        (local.set $c (call $cell))
        (drop (struct.get $cell $n (local.get $c)))
        (struct.set $cell $n (struct.get $cell $next (local.get $c)) (local.get $i))
        (struct.get $cell $n (local.get $c)))

    (func (export "by a call") (param $i i32) (result i32) (local $c (ref null $cell))
        (local.set $c (call $cell))
        (drop (struct.get $cell $n (local.get $c)))
        (call $bump)
        (struct.get $cell $n (local.get $c)))

    (func (export "at the end of a loop") (param $i i32) (result i32)
        (local $c (ref null $cell)) (local $sum i32)
        (local.set $c (call $cell))
        (local.set $sum (struct.get $cell $n (local.get $c)))
        (loop $more
            (local.set $sum (i32.add (local.get $sum) (struct.get $cell $n (local.get $c))))
            (struct.set $cell $n (global.get $shared) (local.get $i))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br_if $more (local.get $i)))
        (local.get $sum))

    (func (export "in one arm") (param $i i32) (result i32) (local $c (ref null $cell))
        (local.set $c (call $cell))
        (drop (struct.get $cell $n (local.get $c)))
        (if (i32.and (local.get $i) (i32.const 1))
            (then (struct.set $cell $n (global.get $shared) (i32.const 77)))
            (else (drop (struct.get $cell $n (local.get $c)))))
        (struct.get $cell $n (local.get $c)))

    (func (export "on the way out of a block") (param $i i32) (result i32) (local $c (ref null $cell))
        (local.set $c (call $cell))
        (drop (struct.get $cell $n (local.get $c)))
        (block $out
            (br_if $out (i32.and (local.get $i) (i32.const 1)))
            (call $bump)
            (br_if $out (i32.and (local.get $i) (i32.const 2)))
            (call $bump))
        (struct.get $cell $n (local.get $c)))

    (func (export "before it throws") (param $i i32) (result i32)
        (local $c (ref null $cell)) (local $sum i32)
        (local.set $c (call $cell))
        (loop $more
            (local.set $sum (i32.add (local.get $sum) (struct.get $cell $n (local.get $c))))
            (block $caught
                (try_table (catch_all $caught)
                    (if (i32.and (local.get $i) (i32.const 1)) (then (call $bump) (throw $stop)))
                    (drop (struct.get $cell $n (local.get $c)))))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br_if $more (local.get $i)))
        (local.get $sum))

    (func $fails (call $bump) (throw $stop))
    (func (export "in a function that throws") (param $i i32) (result i32)
        (local $c (ref null $cell)) (local $sum i32)
        (local.set $c (call $cell))
        (loop $more
            (local.set $sum (i32.add (local.get $sum) (struct.get $cell $n (local.get $c))))
            (block $caught (try_table (catch_all $caught) (call $fails)))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br_if $more (local.get $i)))
        (local.get $sum))

    (func (export "of an array by another name") (param $i i32) (result i32)
        (local $a (ref null $ints)) (local $b (ref null $ints)) (local $sum i32)
        (local.set $a (array.new $ints (i32.const 3) (i32.const 10)))
        (local.set $b (select (result (ref null $ints)) (local.get $a) (local.get $a) (local.get $i)))
        (loop $more
            (local.set $sum (i32.add (local.get $sum) (array.get $ints (local.get $a) (i32.const 4))))
            (array.set $ints (local.get $b) (i32.const 4) (local.get $i))
            (local.set $sum (i32.add (local.get $sum) (array.get $ints (local.get $a) (i32.const 4))))
            (array.copy $ints $ints (local.get $b) (i32.const 4) (local.get $a) (i32.const 5) (i32.const 1))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br_if $more (local.get $i)))
        (local.get $sum))

    (func (export "of an object that is another later") (param $i i32) (result i32)
        (local $c (ref null $cell)) (local $sum i32)
        (local.set $c (struct.new $cell (i32.const 1) (struct.new $cell (i32.const 2) (struct.new $cell (i32.const 3) (ref.null $cell)))))
        (block $end
            (loop $more
                (br_if $end (ref.is_null (local.get $c)))
                (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 10)) (struct.get $cell $n (local.get $c))))
                (local.set $c (struct.get $cell $next (local.get $c)))
                (br $more)))
        (local.get $sum))

    (func (export "of nothing") (param $i i32) (result i32)
        (local $c (ref null $cell)) (local $sum i32)
        (if (i32.and (local.get $i) (i32.const 1)) (then (local.set $c (call $cell))))
        (loop $more
            (if (ref.is_null (local.get $c)) (then (local.set $sum (i32.add (local.get $sum) (i32.const 1)))))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br_if $more (i32.and (local.get $i) (i32.ne (local.get $i) (i32.const 3))))
            (drop (ref.is_null (local.get $c))))
        (loop $never
            (br_if $never (i32.const 0))
            (if (i32.eqz (ref.is_null (local.get $c)))
                (then (local.set $sum (i32.add (local.get $sum) (struct.get $cell $n (local.get $c)))))))
        (local.get $sum)))"#;

fn results(tier: Tier, hot: u32) -> Vec<(String, Vec<i32>)> {
    let engine = Engine::new(Config {
        tier,
        hot,
        background: false,
        ..Config::default()
    });
    let module = Module::new(&engine, &wat::parse_str(CHANGED).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let names: Vec<String> = module.exports().map(str::to_owned).collect();
    names
        .into_iter()
        .map(|name| {
            let f = instance.get_func(&mut store, &name).unwrap();
            let results = (1..60).map(|i| {
                let mut result = [Val::I32(0)];
                f.call(&mut store, &[Val::I32(i)], &mut result).unwrap();
                match result[0] {
                    Val::I32(n) => n,
                    ref other => panic!("{other:?}"),
                }
            });
            let results = results.collect();
            (name, results)
        })
        .collect()
}

#[test]
fn what_was_read_is_read_again_once_it_may_be_another() {
    let expected = results(Tier::Baseline, 1);
    assert_eq!(expected[0].1[41], 42);
    assert_eq!(expected[1].1[0], 6);
    for (tier, hot) in [(Tier::Optimizing, 1), (Tier::Auto, 1), (Tier::Auto, 100)] {
        for (ours, expected) in results(tier, hot).iter().zip(&expected) {
            assert_eq!(ours, expected, "{tier:?}, hot after {hot}");
        }
    }
}
