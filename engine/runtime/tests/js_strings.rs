//! Stories of strings that modules import functions for: the result of each function, and where it traps.

use varve_runtime::host::js_string;
use varve_runtime::{
    Config, Engine, Error, Instance, Linker, Module, Rooted, Store, Tier, TrapKind, Val,
};

/// Every function, exported under its own name.
const ALL: &str = r#"
    (type $units (array (mut i16)))
    (type $bytes (array (mut i8)))
    (import "wasm:js-string" "cast" (func $cast (param externref) (result (ref extern))))
    (import "wasm:js-string" "test" (func $test (param externref) (result i32)))
    (import "wasm:js-string" "fromCharCodeArray" (func $fromCharCodeArray (param (ref null $units) i32 i32) (result (ref extern))))
    (import "wasm:js-string" "intoCharCodeArray" (func $intoCharCodeArray (param externref (ref null $units) i32) (result i32)))
    (import "wasm:js-string" "fromCharCode" (func $fromCharCode (param i32) (result (ref extern))))
    (import "wasm:js-string" "fromCodePoint" (func $fromCodePoint (param i32) (result (ref extern))))
    (import "wasm:js-string" "charCodeAt" (func $charCodeAt (param externref i32) (result i32)))
    (import "wasm:js-string" "codePointAt" (func $codePointAt (param externref i32) (result i32)))
    (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
    (import "wasm:js-string" "concat" (func $concat (param externref externref) (result (ref extern))))
    (import "wasm:js-string" "substring" (func $substring (param externref i32 i32) (result (ref extern))))
    (import "wasm:js-string" "equals" (func $equals (param externref externref) (result i32)))
    (import "wasm:js-string" "compare" (func $compare (param externref externref) (result i32)))
    (import "wasm:text-encoder" "measureStringAsUTF8" (func $measure (param externref) (result i32)))
    (import "wasm:text-encoder" "encodeStringIntoUTF8Array" (func $encodeInto (param externref (ref null $bytes) i32) (result i32)))
    (import "wasm:text-encoder" "encodeStringToUTF8Array" (func $encode (param externref) (result (ref $bytes))))
    (import "wasm:text-decoder" "decodeStringFromUTF8Array" (func $decode (param (ref null $bytes) i32 i32) (result (ref extern))))
    (export "cast" (func $cast)) (export "test" (func $test))
    (export "fromCharCodeArray" (func $fromCharCodeArray)) (export "intoCharCodeArray" (func $intoCharCodeArray))
    (export "fromCharCode" (func $fromCharCode)) (export "fromCodePoint" (func $fromCodePoint))
    (export "charCodeAt" (func $charCodeAt)) (export "codePointAt" (func $codePointAt))
    (export "length" (func $length)) (export "concat" (func $concat)) (export "substring" (func $substring))
    (export "equals" (func $equals)) (export "compare" (func $compare))
    (export "measure" (func $measure)) (export "encodeInto" (func $encodeInto))
    (export "encode" (func $encode)) (export "decode" (func $decode))
    (func (export "units") (param i32) (result (ref $units)) (array.new_default $units (local.get 0)))
    (func (export "bytes") (param i32) (result (ref $bytes)) (array.new_default $bytes (local.get 0)))"#;

struct Program {
    store: Store<()>,
    instance: Instance,
}

fn program_with(config: Config, text: &str) -> Result<Program, Error> {
    let engine = Engine::new(config);
    let module = Module::new(&engine, &wat::parse_str(text).unwrap())?;
    let mut store = Store::new(&engine, ())?;
    let mut linker = Linker::new(&engine);
    js_string::link(&mut linker, &mut store, &module)?;
    let instance = linker.instantiate(&mut store, &module)?;
    Ok(Program { store, instance })
}

/// All functions, while every allocation moves every object.
fn all() -> Program {
    let config = Config {
        gc_stress: true,
        ..Config::default()
    };
    program_with(config, &format!("(module {ALL})")).unwrap()
}

impl Program {
    fn string(&mut self, text: &str) -> Val {
        self.of_units(&text.encode_utf16().collect::<Vec<_>>())
    }

    fn of_units(&mut self, units: &[u16]) -> Val {
        Val::ExternRef(Some(Rooted::string(&mut self.store, units).unwrap()))
    }

    fn call(&mut self, name: &str, args: &[Val]) -> Result<Val, Error> {
        let f = self.instance.get_func(&mut self.store, name).unwrap();
        let mut result = [Val::I32(0)];
        f.call(&mut self.store, args, &mut result)?;
        Ok(result[0])
    }

    fn number(&mut self, name: &str, args: &[Val]) -> i32 {
        self.call(name, args).unwrap().i32().unwrap()
    }

    fn units(&mut self, string: Val) -> Vec<u16> {
        let string = string.rooted().expect("a string is not null");
        string.string_units(&mut self.store).unwrap().unwrap()
    }

    fn text(&mut self, name: &str, args: &[Val]) -> String {
        let string = self.call(name, args).unwrap();
        String::from_utf16(&self.units(string)).unwrap()
    }

    fn trap(&mut self, name: &str, args: &[Val]) -> TrapKind {
        let error = self.call(name, args).unwrap_err();
        error.trap().unwrap_or_else(|| panic!("{error}")).kind
    }

    /// An array of 16-bit units.
    fn array(&mut self, units: &[u16]) -> Val {
        let array = self.call("units", &[Val::I32(units.len() as i32)]).unwrap();
        let r = array.rooted().unwrap();
        r.write_u16_elements(&mut self.store, 0, units).unwrap();
        array
    }

    /// An array with the text in UTF-8.
    fn bytes(&mut self, text: &str) -> Val {
        let string = self.string(text);
        self.call("encode", &[string]).unwrap()
    }
}

const NULL: Val = Val::ExternRef(None);
const NO_ARRAY: Val = Val::AnyRef(None);

fn i(v: i32) -> Val {
    Val::I32(v)
}

#[test]
fn strings_are_known_from_everything_else() {
    let mut p = all();
    let (ada, empty) = (p.string("Ada"), p.string(""));
    let number = Val::ExternRef(Some(Rooted::external(&mut p.store, 7u32).unwrap()));
    let small = Val::ExternRef(Some(Rooted::i31(&mut p.store, 7)));
    let Val::AnyRef(array) = p.array(&[65, 100, 97]) else {
        panic!()
    };
    let array = Val::ExternRef(array);
    for string in [ada, empty] {
        assert_eq!(p.number("test", &[string]), 1);
        let same = p.call("cast", &[string]).unwrap().rooted().unwrap();
        let string = string.rooted().unwrap();
        assert!(same.same(&string, &mut p.store).unwrap());
    }
    for other in [number, small, array] {
        assert_eq!(p.number("test", &[other]), 0);
        assert_eq!(p.trap("cast", &[other]), TrapKind::CastFailure);
        for name in ["length", "measure", "encode"] {
            assert_eq!(p.trap(name, &[other]), TrapKind::CastFailure, "{name}");
        }
        for name in ["concat", "equals", "compare"] {
            assert_eq!(p.trap(name, &[ada, other]), TrapKind::CastFailure, "{name}");
            assert_eq!(p.trap(name, &[other, ada]), TrapKind::CastFailure, "{name}");
        }
        assert_eq!(p.trap("charCodeAt", &[other, i(0)]), TrapKind::CastFailure);
        assert_eq!(
            p.trap("substring", &[other, i(0), i(1)]),
            TrapKind::CastFailure
        );
    }
    assert_eq!(p.number("test", &[NULL]), 0);
    for (name, args) in [
        ("cast", &[NULL][..]),
        ("length", &[NULL]),
        ("concat", &[ada, NULL]),
        ("compare", &[NULL, ada]),
        ("codePointAt", &[NULL, i(0)]),
        ("substring", &[NULL, i(0), i(0)]),
    ] {
        assert_eq!(p.trap(name, args), TrapKind::NullReference, "{name}");
    }
}

#[test]
fn units_and_characters_are_read_by_their_positions() {
    let mut p = all();
    let s = p.string("a\u{1f600}é");
    assert_eq!(p.number("length", &[s]), 4);
    let units: Vec<i32> = (0..4).map(|n| p.number("charCodeAt", &[s, i(n)])).collect();
    assert_eq!(units, [0x61, 0xd83d, 0xde00, 0xe9]);
    let points: Vec<i32> = (0..4)
        .map(|n| p.number("codePointAt", &[s, i(n)]))
        .collect();
    // The second half of a pair stands for itself.
    assert_eq!(points, [0x61, 0x1f600, 0xde00, 0xe9]);
    for name in ["charCodeAt", "codePointAt"] {
        for index in [4, -1, i32::MAX] {
            let trap = p.trap(name, &[s, i(index)]);
            assert_eq!(trap, TrapKind::StringOutOfBounds, "{name} {index}");
        }
    }
    let half = p.of_units(&[0xd83d]);
    assert_eq!(p.number("codePointAt", &[half, i(0)]), 0xd83d);
}

#[test]
fn strings_are_made_of_codes() {
    let mut p = all();
    assert_eq!(p.text("fromCharCode", &[i(0xe9)]), "é");
    // Only the low 16 bits count.
    assert_eq!(p.text("fromCharCode", &[i(0x10041)]), "A");
    assert_eq!(p.text("fromCodePoint", &[i(0x41)]), "A");
    assert_eq!(p.text("fromCodePoint", &[i(0x1f600)]), "\u{1f600}");
    let half = p.call("fromCodePoint", &[i(0xd800)]).unwrap();
    assert_eq!(p.units(half), [0xd800]);
    for wrong in [0x110000, -1] {
        assert_eq!(p.trap("fromCodePoint", &[i(wrong)]), TrapKind::CodePoint);
    }
}

#[test]
fn units_go_from_arrays_and_into_them() {
    let mut p = all();
    let array = p.array(&[72, 101, 108, 108, 111]);
    let from = |start, end| [array, i(start), i(end)];
    assert_eq!(p.text("fromCharCodeArray", &from(0, 5)), "Hello");
    assert_eq!(p.text("fromCharCodeArray", &from(1, 3)), "el");
    assert_eq!(p.text("fromCharCodeArray", &from(5, 5)), "");
    for (start, end) in [(0, 6), (3, 2), (6, 6), (-1, 2)] {
        let trap = p.trap("fromCharCodeArray", &from(start, end));
        assert_eq!(trap, TrapKind::ArrayOutOfBounds, "{start}..{end}");
    }
    let none = [NO_ARRAY, i(0), i(0)];
    assert_eq!(p.trap("fromCharCodeArray", &none), TrapKind::NullReference);

    let s = p.string("ad");
    assert_eq!(p.number("intoCharCodeArray", &[s, array, i(3)]), 2);
    let units = array.rooted().unwrap().u16_elements(&mut p.store).unwrap();
    assert_eq!(String::from_utf16(&units).unwrap(), "Helad");
    for start in [4, 5, -1] {
        let trap = p.trap("intoCharCodeArray", &[s, array, i(start)]);
        assert_eq!(trap, TrapKind::ArrayOutOfBounds, "{start}");
    }
    let trap = p.trap("intoCharCodeArray", &[s, NO_ARRAY, i(0)]);
    assert_eq!(trap, TrapKind::NullReference);
    let units = array.rooted().unwrap().u16_elements(&mut p.store).unwrap();
    assert_eq!(
        String::from_utf16(&units).unwrap(),
        "Helad",
        "nothing was written"
    );
}

#[test]
fn strings_are_joined_and_cut() {
    let mut p = all();
    let (a, b, empty) = (p.string("Hello, "), p.string("Ada"), p.string(""));
    assert_eq!(p.text("concat", &[a, b]), "Hello, Ada");
    assert_eq!(p.text("concat", &[b, empty]), "Ada");
    assert_eq!(p.text("concat", &[a, a]), "Hello, Hello, ");
    for (start, end, part) in [
        (0, 5, "Hello"),
        (3, 5, "lo"),
        (5, 100, ", "),
        (2, -1, "llo, "),
        (5, 5, ""),
        (5, 3, ""),
        (100, 200, ""),
        (-1, -1, ""),
    ] {
        let text = p.text("substring", &[a, i(start), i(end)]);
        assert_eq!(text, part, "{start}..{end}");
    }
}

#[test]
fn strings_are_compared_by_their_units() {
    let mut p = all();
    let (a, b, long) = (p.string("a"), p.string("b"), p.string("ab"));
    let (again, wide, high) = (p.string("a"), p.string("\u{1f600}"), p.string("\u{ff5e}"));
    assert_eq!(p.number("equals", &[a, again]), 1);
    assert_eq!(p.number("equals", &[a, b]), 0);
    assert_eq!(p.number("equals", &[a, NULL]), 0);
    assert_eq!(p.number("equals", &[NULL, a]), 0);
    assert_eq!(p.number("equals", &[NULL, NULL]), 1);
    for (x, y, order) in [
        (a, again, 0),
        (a, b, -1),
        (b, a, 1),
        (a, long, -1),
        (long, b, -1),
        // Not by characters: the first half of a pair is less.
        (wide, high, -1),
    ] {
        assert_eq!(p.number("compare", &[x, y]), order);
    }
}

#[test]
fn text_becomes_utf8_and_comes_from_it() {
    let mut p = all();
    let s = p.string("aé\u{1f600}");
    assert_eq!(p.number("measure", &[s]), 7);
    let array = p.bytes("aé\u{1f600}");
    assert_eq!(array.rooted().unwrap().len(&mut p.store).unwrap(), 7);
    assert_eq!(p.text("decode", &[array, i(0), i(7)]), "aé\u{1f600}");
    assert_eq!(p.text("decode", &[array, i(1), i(3)]), "é");
    // Cut and invalid characters are replaced.
    assert_eq!(p.text("decode", &[array, i(0), i(2)]), "a\u{fffd}");
    let half = p.of_units(&[0x61, 0xd800]);
    assert_eq!(p.number("measure", &[half]), 4);
    let marked = p.bytes("\u{feff}x");
    assert_eq!(p.text("decode", &[marked, i(0), i(4)]), "x");
    for (start, end) in [(0, 8), (2, 1), (-1, 0)] {
        let trap = p.trap("decode", &[array, i(start), i(end)]);
        assert_eq!(trap, TrapKind::ArrayOutOfBounds, "{start}..{end}");
    }
    let none = [NO_ARRAY, i(0), i(0)];
    assert_eq!(p.trap("decode", &none), TrapKind::NullReference);

    let room = p.call("bytes", &[i(9)]).unwrap();
    assert_eq!(p.number("encodeInto", &[s, room, i(2)]), 7);
    assert_eq!(p.text("decode", &[room, i(2), i(9)]), "aé\u{1f600}");
    for start in [3, -1] {
        let trap = p.trap("encodeInto", &[s, room, i(start)]);
        assert_eq!(trap, TrapKind::ArrayOutOfBounds);
    }
    let trap = p.trap("encodeInto", &[s, NO_ARRAY, i(0)]);
    assert_eq!(trap, TrapKind::NullReference);
}

/// As compilers have literals: globals that are imported by their own text.
#[test]
fn constants_are_imported_by_their_own_text() {
    let text = r#"(module
        (import "'" "Hello, " (global $hello (ref extern)))
        (import "'" "\f0\9f\98\80" (global $face externref))
        (import "'" "" (global $empty (ref extern)))
        (import "wasm:js-string" "concat" (func $concat (param externref externref) (result (ref extern))))
        (func (export "greet") (result externref)
            (call $concat (call $concat (global.get $hello) (global.get $face)) (global.get $empty))))"#;
    for tier in [Tier::Baseline, Tier::Optimizing] {
        for gc_stress in [false, true] {
            let config = Config {
                tier,
                gc_stress,
                ..Config::default()
            };
            let mut p = program_with(config, text).unwrap();
            assert_eq!(p.text("greet", &[]), "Hello, \u{1f600}");
        }
    }
}

#[test]
fn what_a_module_of_other_imports_lacks_is_no_constant() {
    let text = r#"(module
        (import "env" "name" (global (ref extern)))
        (import "env" "log" (func (param i32))))"#;
    let error = program_with(Config::default(), text).err().unwrap();
    assert!(
        matches!(&error, Error::MissingImport { module, name, .. } if module == "env" && name == "name"),
        "{error}"
    );
}

#[test]
fn a_function_of_another_type_is_refused_with_both_types() {
    let text = r#"(module (import "wasm:js-string" "length" (func (param i32) (result i32))))"#;
    let error = program_with(Config::default(), text).err().unwrap();
    let line = error.to_string();
    assert!(line.contains("`wasm:js-string` `length`"), "{line}");
    assert!(line.contains("function (i32) -> (i32)"), "{line}");
    assert!(line.contains("function (externref) -> (i32)"), "{line}");
}

/// Modules see that a string is there, and nothing in it.
#[test]
fn no_module_can_look_into_a_string() {
    let text = format!(
        r#"(module {ALL}
        (func (export "kind") (param externref) (result i32)
            (i32.or
                (ref.test (ref $units) (any.convert_extern (local.get 0)))
                (i32.or
                    (ref.test (ref array) (any.convert_extern (local.get 0)))
                    (ref.test (ref eq) (any.convert_extern (local.get 0)))))))"#
    );
    for tier in [Tier::Baseline, Tier::Optimizing] {
        let config = Config {
            tier,
            ..Config::default()
        };
        let mut p = program_with(config, &text).unwrap();
        let s = p.string("Ada");
        assert_eq!(p.number("kind", &[s]), 0);
    }
}

/// A list of strings is collected like other objects, and the heap stays small.
#[test]
fn strings_are_garbage_collected() {
    let text = r#"(module
        (import "_" "x" (global $x (ref extern)))
        (import "wasm:js-string" "concat" (func $concat (param externref externref) (result (ref extern))))
        (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
        (func (export "grow") (param $n i32) (result i32)
            (local $s externref)
            (local.set $s (global.get $x))
            (loop $more
                (local.set $s (call $concat (local.get $s) (global.get $x)))
                (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (call $length (local.get $s))))"#;
    // 20 000 strings of up to 40 KB: 400 MB in a heap of 16 MiB.
    let config = Config {
        heap_max: 16 << 20,
        ..Config::default()
    };
    let mut p = program_with(config, text).unwrap();
    assert_eq!(p.number("grow", &[i(20_000)]), 20_001);
}
