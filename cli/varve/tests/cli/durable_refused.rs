//! Versions of a program that a region refuses: in one line that says what to do, and with every byte of the file as it was.

use crate::common::on_region as on;
use std::path::{Path, PathBuf};

/// A program in text: its types, what its custom section says, further definitions, and what it does.
#[derive(Clone, Default)]
struct Version {
    types: Vec<(String, String)>,
    classes: Vec<String>,
    definitions: String,
    body: String,
}

impl Version {
    /// Adds a class with this name and these fields.
    fn with(mut self, class: &str, extends: &str, fields: &[&str]) -> Version {
        let own: Vec<&str> = fields.iter().filter_map(|f| f.split(' ').next()).collect();
        let of_super = self.types.iter().find(|(name, _)| name == extends);
        let inherited = of_super.map_or(String::new(), |(_, t)| fields_of(t));
        let own_text: Vec<String> = fields.iter().map(|f| format!("(field ${f})")).collect();
        let extends = match extends {
            "" => String::new(),
            class => format!("${class}"),
        };
        let text = format!(
            "(sub {extends} (struct {inherited} {}))",
            own_text.join(" ")
        );
        let line = format!("class\t{class}\t{}", own.join("\t"));
        match self.types.iter().position(|(name, _)| name == class) {
            Some(i) => {
                self.types[i].1 = text;
                self.classes[i] = line;
            }
            None => {
                self.types.push((class.into(), text));
                self.classes.push(line);
            }
        }
        self
    }

    fn without(mut self, class: &str) -> Version {
        let i = self.types.iter().position(|(name, _)| name == class);
        let i = i.expect("a class of the program");
        self.types.remove(i);
        self.classes.remove(i);
        self
    }

    fn saying(mut self, line: &str) -> Version {
        self.classes.push(line.into());
        self
    }

    fn doing(mut self, body: &str) -> Version {
        self.body = body.into();
        self
    }

    fn built(&self, folder: &Path, name: &str) -> PathBuf {
        let types: Vec<String> = self
            .types
            .iter()
            .map(|(name, text)| format!("(type ${name} {text})"))
            .collect();
        let said = self.classes.join("\n").replace('\t', "\\t");
        let text = format!(
            r#"(module
                (import "varve" "root_unit" (func $unit (param i32)))
                (import "varve" "root" (func $root (result anyref)))
                (import "varve" "set_root" (func $set_root (param anyref)))
                (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                (memory (export "memory") 1)
                (rec (type $chars (array (mut i16))) {})
                {}
                (@custom "varve.classes" "{}")
                (func (export "_start") i32.const 65 call $unit {}))"#,
            types.join(" "),
            self.definitions,
            said.replace('\n', "\\n"),
            self.body
        );
        let path = folder.join(name);
        let bytes = wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// The fields in a struct's text.
fn fields_of(text: &str) -> String {
    let begin = text.find("(struct").expect("a struct") + "(struct".len();
    text[begin..text.len() - 2].to_string()
}

const S: &str = "(mut (ref null $a.S))";
const OBJECT: &str = "(mut (ref null $java.lang.Object))";

/// A box with numbers, two constants of an enumeration, one of them with code of its own, and objects of two classes.
fn first() -> Version {
    let (s, t) = (format!("s {S}"), format!("t {S}"));
    let (any, day) = (format!("any {OBJECT}"), format!("day {OBJECT}"));
    Version::default()
        .with("java.lang.Object", "", &[])
        .with(
            "java.lang.Enum",
            "java.lang.Object",
            &["name (mut (ref null $chars))", "ordinal (mut i32)"],
        )
        .with("a.S", "java.lang.Enum", &[])
        .with("a.S.BUSY", "a.S", &[])
        .with("a.One", "java.lang.Object", &["x (mut i32)"])
        .with("java.time.Day", "java.lang.Object", &["d (mut i32)"])
        .with(
            "a.Box",
            "java.lang.Object",
            &["n (mut i32)", "l (mut i64)", &s, &t, &any, &day],
        )
}

/// The code that makes the box, whose number is 7.
fn made() -> String {
    let text = |text: &str| {
        let units: Vec<String> = text.bytes().map(|b| format!("i32.const {b}")).collect();
        format!("{} array.new_fixed $chars {}", units.join(" "), text.len())
    };
    format!(
        "i32.const 7 i64.const 8
        {} i32.const 0 struct.new $a.S
        {} i32.const 1 struct.new $a.S.BUSY
        i32.const 3 struct.new $a.One
        i32.const 4 struct.new $java.time.Day
        struct.new $a.Box call $set_root",
        text("DONE"),
        text("BUSY"),
    )
}

const READ: &str = "call $root ref.cast (ref $a.Box) struct.get $a.Box $n call $exit";

/// A region of the first version, in a folder that goes with the result, and a program that reads it.
fn region() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let make = first().doing(&made()).built(folder.path(), "make.wasm");
    on(&region, make.to_str().unwrap(), &[]).well();
    let read = first().doing(READ).built(folder.path(), "read.wasm");
    (folder, region, read)
}

/// The refused change, the next version of the program, and parts of the message.
type Refused = (&'static str, Version, &'static [&'static str]);

fn refusals() -> Vec<Refused> {
    let field = |name: &str, ty: &str| format!("{name} {ty}");
    let boxed = |n: &str, l: &str, any: &str| {
        let fields = [
            n.to_string(),
            l.to_string(),
            field("s", S),
            field("t", S),
            any.to_string(),
            field("day", OBJECT),
        ];
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        first().with("a.Box", "java.lang.Object", &fields)
    };
    let (n, l, any) = ("n (mut i32)", "l (mut i64)", field("any", OBJECT));
    let one = "any (mut (ref null $a.Two))";
    let mut narrower = first().with("a.Two", "a.One", &[]);
    let found = narrower.types.pop().expect("just added");
    narrower.types.insert(5, found);
    let with_two = boxed(n, l, one);
    narrower.types.retain(|(name, _)| name != "a.Box");
    narrower.types.extend(with_two.types.last().cloned());
    let no_enumeration = first().with(
        "a.S",
        "java.lang.Object",
        &["name (mut (ref null $chars))", "ordinal (mut i32)"],
    );
    vec![
        (
            "an enumeration became a class",
            no_enumeration,
            &["a.S was an enumeration and is none now", "another name"],
        ),
        (
            "a class became an enumeration",
            first().with("a.One", "java.lang.Enum", &["x (mut i32)"]),
            &["a.One was no enumeration and is one now", "another name"],
        ),
        (
            "a constant got code of its own",
            first().with("a.S.DONE", "a.S", &[]),
            &["constant DONE of the enumeration a.S had no code of its own"],
        ),
        (
            "a constant lost its code",
            first().without("a.S.BUSY"),
            &["constant BUSY of the enumeration a.S had code of its own"],
        ),
        (
            "constants exchange their names",
            first()
                .saying("field\ta.S\tOPEN\tDONE")
                .saying("field\ta.S\tDONE\tOPEN")
                .with("a.More", "java.lang.Object", &[]),
            &["constant DONE of the enumeration a.S", "third name"],
        ),
        (
            "a field was renamed, or removed",
            boxed("m (mut i32)", l, &any),
            &["field n of a.Box", "field m is new", "@Renamed(\"n\")"],
        ),
        (
            "a number became narrower",
            boxed(n, "l (mut i32)", &any),
            &["field l of a.Box", "a long", "an int"],
        ),
        (
            "a field holds what it may not hold any more",
            narrower,
            &["field any of a.Box holds a a.One", "a.Two"],
        ),
        (
            "a field is new and has no default",
            first().with(
                "a.One",
                "java.lang.Object",
                &["x (mut i32)", "y (ref $chars)"],
            ),
            &["field y of a.One is new and has no default"],
        ),
        (
            "a class of another program has the name",
            first().with(
                "a.Box",
                "java.lang.Object",
                &["title (mut (ref null $chars))", "price (mut f64)"],
            ),
            &["a.Box", "not there any more", "is new"],
        ),
        (
            "a class is gone",
            first().without("a.One"),
            &[
                "objects of type a.One",
                "@Renamed(\"a.One\")",
                "--region FILE",
            ],
        ),
        (
            "a class of the library is gone",
            first().without("java.time.Day"),
            &["objects of type java.time.Day", "--region FILE"],
        ),
    ]
}

#[test]
fn what_refuses_a_version_leaves_every_byte() {
    let (folder, region, read) = region();
    let whole = std::fs::read(&region).unwrap();
    for (what, version, words) in refusals() {
        let program = version
            .doing("drop")
            .doing("")
            .built(folder.path(), "next.wasm");
        let said = on(&region, program.to_str().unwrap(), &[]);
        println!("{what}: {}", said.err.trim_end());
        said.refuses(2, words);
        assert!(std::fs::read(&region).unwrap() == whole, "{what}");
        let left = std::fs::read_dir(folder.path()).unwrap();
        let hidden = left.filter(|e| {
            e.as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with('.')
        });
        assert_eq!(hidden.count(), 0, "{what}");
    }
    // Another program altogether.
    on(&region, "programs/dist/accounts.wasm", &["1"]).refuses(2, &["a.region"]);
    assert!(std::fs::read(&region).unwrap() == whole);
    assert_eq!(on(&region, read.to_str().unwrap(), &[]).code, 7);
}

/// Constants that nothing durable refers to do not keep an enumeration in a program: it may go, or become something else.
#[test]
fn an_enumeration_that_nothing_refers_to_may_go() {
    for (what, version, words) in refusals() {
        if !what.contains("enumeration became") && !what.contains("lost its code") {
            continue;
        }
        let (folder, region, _) = region();
        let clear = "call $root ref.cast (ref $a.Box) ref.null $a.S struct.set $a.Box $s
            i32.const 65 call $unit call $root ref.cast (ref $a.Box) ref.null $a.S struct.set $a.Box $t";
        let next = version.doing(READ).built(folder.path(), "next.wasm");
        let next = next.to_str().unwrap();
        on(&region, next, &[]).refuses(2, words);
        let cleared = first().doing(clear).built(folder.path(), "clear.wasm");
        on(&region, cleared.to_str().unwrap(), &[]).well();
        assert_eq!(on(&region, next, &[]).code, 7, "{what}");
        crate::common::varve(&["durable", "check", region.to_str().unwrap()]).well();
    }
}

/// Class data are made again before the file changes: what is missing for them refuses, with equal tables and with others.
#[test]
fn a_function_that_is_missing_leaves_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let version = |name: &str, more: bool| {
        let mut v = Version::default()
            .with("a.Table", "", &["f (ref null $work)"])
            .with(
                "a.Box",
                "",
                &["n (mut i32)", "table (mut (ref null $a.Table))"],
            );
        if more {
            v = v.with("a.More", "", &[]);
        }
        v.types.insert(0, ("work".into(), "(func)".into()));
        v.definitions = format!(
            "(func $first (type $work)) (func ${name} (type $work)) (elem declare func $first ${name})
            (global $a.Box@vt (ref $a.Table) ref.func $first struct.new $a.Table)"
        );
        v
    };
    let make = version("second", false)
        .doing("i32.const 7 ref.func $second struct.new $a.Table struct.new $a.Box call $set_root")
        .built(folder.path(), "make.wasm");
    on(&region, make.to_str().unwrap(), &[]).well();
    let whole = std::fs::read(&region).unwrap();
    for more in [false, true] {
        let next = version("other", more)
            .doing(READ)
            .built(folder.path(), "next.wasm");
        let said = on(&region, next.to_str().unwrap(), &[]);
        println!("{}", said.err.trim_end());
        said.refuses(said.code, &["the function second", "does not have"]);
        assert!(said.code == 1 || said.code == 2);
        assert!(std::fs::read(&region).unwrap() == whole, "{more}");
        let read = version("second", more)
            .doing(READ)
            .built(folder.path(), "read.wasm");
        let copy = folder.path().join("copy.region");
        std::fs::copy(&region, &copy).unwrap();
        assert_eq!(on(&copy, read.to_str().unwrap(), &[]).code, 7);
    }
}

/// Fields that exchange their names do so once, however often the program is started.
#[test]
fn fields_that_exchange_their_names_do_so_once() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let fields = ["n (mut i32)", "m (mut i32)"];
    let version = |body: &str| Version::default().with("a.Box", "", &fields).doing(body);
    let swapped = |body: &str| {
        version(body)
            .saying("field\ta.Box\tn\tm")
            .saying("field\ta.Box\tm\tn")
    };
    let code = |v: Version| {
        let program = v.built(folder.path(), "next.wasm");
        let said = on(&region, program.to_str().unwrap(), &[]);
        assert!(said.err.is_empty(), "{}", said.err);
        said.code
    };
    let make = version("i32.const 7 i32.const 9 struct.new $a.Box call $set_root");
    assert_eq!(code(make), 0);
    assert_eq!(code(version(READ)), 7);
    for _ in 0..3 {
        assert_eq!(code(swapped(READ)), 9);
    }
    // Another class changes: the region is written anew, and nothing is exchanged again.
    assert_eq!(code(swapped(READ).with("a.More", "", &[])), 9);
    // Nor by a version without the annotations; but then by one that has them again.
    assert_eq!(code(version(READ)), 9);
    assert_eq!(code(swapped(READ)), 7);
    assert_eq!(code(swapped(READ)), 7);
    crate::common::varve(&["durable", "check", region.to_str().unwrap()]).well();
}

/// Two versions that take turns, one of them with a field more: what both have stays, and the file does not grow.
#[test]
fn two_versions_may_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("a.region");
    let one = ["n (mut i32)"];
    let two = ["more (mut (ref null $chars))", "n (mut i32)"];
    let make = "i32.const 7 struct.new $a.Box call $set_root";
    let add =
        "call $root ref.cast (ref $a.Box) i32.const 65 call $unit call $root ref.cast (ref $a.Box)
        struct.get $a.Box $n i32.const 1 i32.add struct.set $a.Box $n";
    let version = |name: &str, fields: &[&str], body: &str| {
        let v = Version::default().with("a.Box", "", fields).doing(body);
        v.built(folder.path(), name)
    };
    let run = |program: &Path| on(&region, program.to_str().unwrap(), &[]);
    run(&version("make.wasm", &one, make)).well();
    let turns = [
        version("one.wasm", &one, add),
        version("two.wasm", &two, add),
    ];
    let bytes = std::fs::metadata(&region).unwrap().len();
    for round in 0..100 {
        run(&turns[round % 2]).well();
    }
    assert_eq!(run(&version("read.wasm", &one, READ)).code, 107);
    assert!(std::fs::metadata(&region).unwrap().len() <= bytes);
    crate::common::varve(&["durable", "check", region.to_str().unwrap()]).well();
}
