//! Regions of programs that were built anew: classes that came, went, moved and changed, and names that say what is what.
//! `programs/evolve-before` and `programs/evolve-after` are one program in two versions.

use crate::common::{Said, on_region as on, varve};
use std::path::{Path, PathBuf};

const BEFORE: &str = "programs/dist/evolve-before.wasm";
const AFTER: &str = "programs/dist/evolve-after.wasm";

/// A region of the first version, in a folder that goes with the result.
fn shop() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("shop.region");
    let said = on(&region, BEFORE, &["show"]).well().out;
    assert_eq!(said, on(&region, BEFORE, &["leave"]).well().out);
    (folder, region)
}

fn lines(said: Said) -> Vec<String> {
    said.well().out.lines().map(str::to_string).collect()
}

/// The second version has numbers that are wider, a field less and one more, a superclass in between that took a field along, a class and a
/// field with other names, a class less, and one more that is not durable and has fields whose names durable classes have too.
#[test]
fn a_program_that_was_built_anew_finds_what_it_kept() {
    let (_folder, region) = shop();
    let first = lines(on(&region, AFTER, &[]));
    assert_eq!(
        first[0],
        "kettle -100 -30000 65533 -2000000000 0.10000000149011612 1099511627776 0 3 4"
    );
    assert_eq!(first[4], "opened 1, 0 arguments");
    assert_eq!(first[5], "Ada 1815 St James's Square");
    let again = lines(on(&region, AFTER, &[]));
    assert_eq!(again[4], "opened 2, 0 arguments");
    assert_eq!((&first[..4], &first[5..]), (&again[..4], &again[5..]));
    varve(&["durable", "check", region.to_str().unwrap()]).well();
}

/// Names of fields are numbered by the compiler over the whole program, unless the region knows them from the source.
#[test]
fn names_in_a_region_are_those_of_the_source() {
    let (_folder, region) = shop();
    for program in [BEFORE, AFTER] {
        on(&region, program, &["show"]).well();
        let export = varve(&["durable", "export", region.to_str().unwrap()])
            .well()
            .out;
        let deque = export
            .lines()
            .find(|l| l.contains("\"type\":\"java.util.ArrayDeque\""))
            .unwrap();
        for field in ["\"version\":", "\"head\":", "\"tail\":", "\"array\":"] {
            assert!(deque.contains(field), "no {field} in {deque}");
        }
        // One class declares a field that its superclass has too.
        let ware = export
            .lines()
            .find(|l| l.contains("\"type\":\"varve.evolve.Ware\""))
            .unwrap();
        assert!(
            ware.contains("\"next\":4") && ware.contains("\"varve.evolve.Ware.next\":3"),
            "{ware}"
        );
        // Characters are no negative numbers.
        assert!(ware.contains("\"letter\":65533"), "{ware}");
    }
}

/// Classes without names are numbered in the order of the source, which is another one in the second version.
#[test]
fn classes_without_names_stay_what_they_are() {
    let (_folder, region) = shop();
    assert_eq!(lines(on(&region, BEFORE, &["show"]))[2], "KEEP DROP");
    assert_eq!(lines(on(&region, AFTER, &[]))[2], "KEEP DROP");
}

/// A lambda has a number for a name, and nothing else; a set of constants has their numbers.
#[test]
fn lambdas_with_their_lines_and_sets_of_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("lambda.region");
    let said = on(&region, BEFORE, &["lambda"]);
    said.refuses(
        1,
        &[
            "varve.evolve.Main$lambda",
            "a lambda or a method reference in Main.java:",
            "make it a class with a name",
        ],
    );
    let set = on(&region, BEFORE, &["set"]);
    set.refuses(1, &["java.util.GenericEnumSet", "keep a HashSet"]);
    // Without a region it is as ever.
    let said = varve(&["run", BEFORE, "--", "lambda"]).well();
    assert_eq!(said.out, "KEEP\n");
}

/// Objects that stand for classes are the same ones in each run, and maps that have them find their values, whatever numbers constants have.
#[test]
fn classes_and_maps_of_constants_survive() {
    let (_folder, region) = shop();
    let before = lines(on(&region, BEFORE, &["show"]));
    assert_eq!(before[1], "[Grace] CALM calm {CALM=1, MERRY=2, PLAIN=3}");
    assert_eq!(before[3], "true true true true varve.evolve.Customer");
    for _ in 0..2 {
        let after = lines(on(&region, AFTER, &[]));
        assert_eq!(after[1], "[Grace] CALM calm {PLAIN=3, GLAD=2, CALM=1}");
        assert_eq!(after[3], "true true true true varve.evolve.Account");
    }
}

/// The same with all kinds of code.
#[test]
fn what_changed_is_the_same_whatever_the_checks() {
    for checks in ["profiled", "unlikely", "unbiased", "likely", "deopt"] {
        let (_folder, region) = shop();
        let path = region.to_str().unwrap();
        let run = format!("run {AFTER} --durable {path} --domain memory --checks {checks}");
        for opened in 1..3 {
            let said = varve(&run).well().out;
            assert!(
                said.contains("KEEP DROP") && said.contains("{PLAIN=3, GLAD=2, CALM=1}"),
                "{checks}: {said}"
            );
            assert!(
                said.contains(&format!("opened {opened},")),
                "{checks}: {said}"
            );
        }
    }
}

/// The next version puts no date, number or square into collections that may hold anything. What the first one put there has all its methods, and
/// maps find it: by value, by a class that has another name now, by a record with a class.
#[test]
fn objects_that_a_version_does_not_store_have_all_their_methods() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("notes.region");
    let held = [
        "date = 2024-05-06",
        "list = [1, 2]",
        "number = 42",
        "shape = square of 3.0",
        "by value by class by class of an array by record",
        "shape 9.0",
        "circle 3.0",
    ];
    assert_eq!(lines(on(&region, BEFORE, &["notes"])), held);
    assert_eq!(lines(on(&region, BEFORE, &["notes"])), held);
    for _ in 0..2 {
        let after = lines(on(&region, AFTER, &["notes"]));
        assert_eq!(
            (after[0].as_str(), &after[1..]),
            ("4.0", &held.map(String::from)[..])
        );
    }
}

/// The first version knows nothing of the new names: the way back is refused, and nothing has changed.
#[test]
fn what_cannot_be_mapped_is_refused_before_anything_is_changed() {
    let (_folder, region) = shop();
    on(&region, AFTER, &[]).well();
    let whole = std::fs::read(&region).unwrap();
    let said = on(&region, BEFORE, &["show"]);
    said.refuses(
        2,
        &[
            "shop.region",
            "objects of type varve.evolve.Account",
            "@Renamed",
        ],
    );
    assert!(
        std::fs::read(&region).unwrap() == whole,
        "the region is as it was"
    );
    assert_eq!(lines(on(&region, AFTER, &[]))[4], "opened 2, 0 arguments");
}

/// A class that is not there any more must have no objects.
#[test]
fn objects_of_a_class_that_went_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("shop.region");
    on(&region, BEFORE, &["show"]).well();
    on(&region, AFTER, &[]).refuses(
        2,
        &[
            "shop.region",
            "objects of type varve.evolve.Passing, which it does not have",
        ],
    );
    on(&region, BEFORE, &["leave"]).well();
    on(&region, AFTER, &[]).well();
}

/// A program in text, whose durable objects have what its custom section says.
fn module(folder: &Path, name: &str, section: &str, fields: &str, body: &str) -> PathBuf {
    let escaped = section.replace('\t', "\\t").replace('\n', "\\n");
    let section = match escaped.is_empty() {
        true => String::new(),
        false => format!("(@custom \"varve.classes\" \"{escaped}\")"),
    };
    let text = format!(
        r#"(module
            (import "varve" "root_unit" (func $unit (param i32)))
            (import "varve" "root" (func $root (result anyref)))
            (import "varve" "set_root" (func $set_root (param anyref)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (rec (type $a.Box (sub (struct {fields}))) (type $filler (struct)))
            {section}
            (func (export "_start") {body}))"#
    );
    let path = folder.join(name);
    std::fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    path
}

/// Data of a region without Java: fields by their names in a module.
#[test]
fn numbers_behind_names_mean_nothing_in_modules_that_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("box.region");
    let write = "i32.const 65 call $unit i32.const 7 i32.const 8 struct.new $a.Box call $set_root";
    let read = |field: &str| {
        format!(
            "i32.const 65 call $unit call $root ref.cast (ref $a.Box) struct.get $a.Box ${field} call $exit"
        )
    };
    let exits = |path: &Path, code| {
        let said = on(&region, path.to_str().unwrap(), &[]);
        assert_eq!(said.code, code, "{}", said.err);
    };
    // As an older compiler's plugin left it: without a section, with numbers.
    let two = "(field $version_0 (mut i32)) (field $size (mut i32))";
    let first = module(folder.path(), "first.wasm", "", two, write);
    exits(&first, 0);
    let swapped = "(field $size_3 (mut i32)) (field $version (mut i32))";
    let said = "class\ta.Box\tsize\tversion\n";
    exits(
        &module(
            folder.path(),
            "second.wasm",
            said,
            swapped,
            &read("version"),
        ),
        7,
    );
    // From now on names are those of the source: `size_3` would be another field.
    let removed = "(field $version (mut i32))";
    exits(
        &module(
            folder.path(),
            "third.wasm",
            "class\ta.Box\tversion\n",
            removed,
            &read("version"),
        ),
        7,
    );
    let renamed = "(field $edition (mut i64))";
    let lost = module(
        folder.path(),
        "fourth.wasm",
        "class\ta.Box\tedition\n",
        renamed,
        "",
    );
    on(&region, lost.to_str().unwrap(), &[]).refuses(
        2,
        &[
            "field version of a.Box",
            "field edition is new",
            "@Renamed(\"version\")",
        ],
    );
    let said = "class\ta.Box\tedition\nfield\ta.Box\tedition\tversion\n";
    let wider = read("edition").replace("call $exit", "i32.wrap_i64 call $exit");
    exits(
        &module(folder.path(), "fifth.wasm", said, renamed, &wider),
        7,
    );
    let narrow = module(
        folder.path(),
        "sixth.wasm",
        "class\ta.Box\tedition\n",
        "(field $edition (mut i32))",
        "",
    );
    on(&region, narrow.to_str().unwrap(), &[]).refuses(
        2,
        &[
            "field edition of a.Box has another type",
            "a long",
            "an int",
        ],
    );
}

/// A version that is killed while it rewrites the region, or before, or after: the file is the old one or the new one, whole.
#[test]
fn a_version_that_is_killed_while_it_migrates_leaves_one_of_both() {
    let (folder, before) = shop();
    let old = std::fs::read(&before).unwrap();
    let expected = {
        let region = folder.path().join("expected.region");
        std::fs::copy(&before, &region).unwrap();
        lines(on(&region, AFTER, &[]))
    };
    let mut seen = [0, 0];
    for round in 0..30u64 {
        let region = folder.path().join("killed.region");
        std::fs::copy(&before, &region).unwrap();
        let path = region.to_str().unwrap();
        let words = ["run", AFTER, "--durable", path, "--domain", "memory"];
        let mut child = crate::common::command(&words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Until the region is replaced, and some instants before and after that.
        let begun = std::time::Instant::now();
        let most = std::time::Duration::from_millis(2 * round);
        while begun.elapsed() < most && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let _ = child.kill();
        child.wait().unwrap();
        let is_old = std::fs::read(&region).unwrap() == old;
        seen[usize::from(is_old)] += 1;
        varve(&["durable", "check", path]).well();
        let now = lines(on(&region, AFTER, &[]));
        assert_eq!(
            (&now[..4], &now[5..]),
            (&expected[..4], &expected[5..]),
            "round {round}"
        );
        std::fs::remove_file(&region).unwrap();
    }
    println!("{} new, {} old", seen[0], seen[1]);
    assert!(seen[1] > 0);
}

/// Without room for the new region, the old one stays as it is.
#[test]
fn a_full_disk_leaves_the_region_of_the_version_before() {
    let Some(small) = crate::small_disk::SmallDisk::new(2048) else {
        return;
    };
    let (_folder, before) = shop();
    let region = small.path().join("shop.region");
    std::fs::copy(&before, &region).unwrap();
    let filler = small.path().join("filler");
    let mut bytes = 2 << 20;
    while std::fs::write(&filler, vec![1; bytes]).is_err() {
        bytes -= 4096;
    }
    on(&region, AFTER, &[]).refuses(1, &["shop.region", "make room"]);
    assert!(std::fs::read(&region).unwrap() == std::fs::read(&before).unwrap());
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 2);
    std::fs::remove_file(&filler).unwrap();
    on(&region, AFTER, &[]).well();
}
