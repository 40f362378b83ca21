//! Objects that are as far from the heap's base as references reach: code gets there, whatever objects are aligned to.

use crate::api::val::Val;
use crate::engine::{Checks, Config, Engine, Tier};
use crate::store::Store;
use crate::types::TypeIndex;
use crate::{Instance, Linker, Module};
use varve_heap::{ObjectAlign, layout};

/// A list of numbers, and the operations on it.
const LIST: &str = r#"(module
    (type $node (struct (field $number (mut i64)) (field $next (mut (ref null $node)))))
    (type $longs (array (mut i64)))
    (func $sum (export "sum") (param $at (ref null $node)) (result i64) (local $sum i64)
        (block $end
            (loop $l
                (br_if $end (ref.is_null (local.get $at)))
                (local.set $sum (i64.add (local.get $sum) (struct.get $node $number (local.get $at))))
                (struct.set $node $number (local.get $at) (i64.const 1))
                (local.set $at (struct.get $node $next (local.get $at)))
                (br $l)))
        (local.get $sum))
    (func (export "element") (param $a (ref null $longs)) (param $i i32) (result i64)
        (array.get $longs (local.get $a) (local.get $i)))
    (func (export "near") (param $next (ref null $node)) (result i64)
        (call $sum (struct.new $node (i64.const 1000) (local.get $next)))))"#;

const PAGE: u64 = 4096;

struct World {
    store: Store<()>,
    instance: Instance,
    align: ObjectAlign,
}

impl World {
    fn new(config: Config) -> World {
        let align = config.object_align;
        let engine = Engine::new(config);
        let module = Module::new(&engine, &wat::parse_str(LIST).unwrap()).unwrap();
        let mut store = Store::new(&engine, ()).unwrap();
        let instance = Linker::new(&engine)
            .instantiate(&mut store, &module)
            .unwrap();
        World {
            store,
            instance,
            align,
        }
    }

    fn type_index(&self, at: usize) -> TypeIndex {
        self.store.vm().instances[0].module.types[at]
    }

    /// A zeroed object at an offset from the heap's base that is after the heap: its reference, and its words.
    fn object(&mut self, ty: usize, offset: u64) -> (u32, *mut u64) {
        let header = layout::new_header(self.type_index(ty), 0, 0);
        let address = self.store.vm().heap_base as u64 + offset;
        let page = std::ptr::with_exposed_provenance_mut((address & !(PAGE - 1)) as usize);
        // SAFETY: the heap reserved the addresses, and has no objects there.
        let failed =
            unsafe { libc::mprotect(page, 2 * PAGE as usize, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
        let words = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        // SAFETY: it can be written now.
        unsafe { words.write(header) };
        (self.align.reference(offset).0, words)
    }

    fn call(&mut self, name: &str, reference: u32, more: &[Val]) -> i64 {
        let handle = (reference != 0).then(|| self.store.inner.vm.roots.push(reference));
        let mut arguments = vec![Val::AnyRef(handle)];
        arguments.extend(more.iter().cloned());
        let f = self.instance.get_func(&mut self.store, name).unwrap();
        let mut results = [Val::I64(0)];
        f.call(&mut self.store, &arguments, &mut results).unwrap();
        match results {
            [Val::I64(v)] => v,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn compiled_code_reaches_objects_far_from_the_heap() {
    for align in ObjectAlign::all() {
        for (tier, checks) in [
            (Tier::Baseline, Checks::None),
            (Tier::Optimizing, Checks::None),
            (Tier::Auto, Checks::Unbiased),
        ] {
            let mut world = World::new(Config {
                object_align: align,
                tier,
                checks: Some(checks),
                hot: 2,
                background: false,
                ..Config::default()
            });
            let end = align.durable_end();
            let places = [
                align.durable_start(),
                align.round_down(end / 4 * 3),
                end - align.object_size(24),
            ];
            assert_eq!(places[2] > 16 << 30, align > ObjectAlign::default());
            let (mut next, mut expected) = (0, 1000);
            for (i, at) in places.into_iter().enumerate() {
                let (reference, words) = world.object(0, at);
                expected += 10 + i as i64;
                // SAFETY: the fields of a node.
                unsafe {
                    words.add(1).write(10 + i as u64);
                    words.add(2).write(u64::from(next));
                }
                next = reference;
            }
            assert_eq!(
                world.call("near", next, &[]),
                expected,
                "{align:?} {tier:?}"
            );
            for _ in 0..5 {
                assert_eq!(world.call("sum", next, &[]), 3, "{align:?} {tier:?}");
            }
            let (array, words) = world.object(1, align.round_down(end / 5 * 4));
            // SAFETY: the length of an array, and its elements.
            unsafe {
                words.add(1).write(100);
                (0..100).for_each(|i| words.add(2 + i).write(7 * i as u64));
            }
            for i in [0, 1, 99] {
                let element = world.call("element", array, &[Val::I32(i)]);
                assert_eq!(element, 7 * i64::from(i), "{align:?} {tier:?}");
            }
        }
    }
}
