//! Programs in two versions that differ in ways that no compiler sees: each is `v1_NAME.java` and `v2_NAME.java` here.

use crate::build::can_build;
use crate::common::{on_region as on, varve_in};
use std::fs;
use std::path::{Path, PathBuf};

fn build(folder: &Path, version: &str, name: &str, source: &str) -> PathBuf {
    build_with(folder, version, name, source, &[])
}

fn build_with(folder: &Path, version: &str, name: &str, source: &str, more: &[&str]) -> PathBuf {
    let module = folder.join(format!("{version}.wasm"));
    fs::write(folder.join(format!("{name}.java")), source).unwrap();
    let words = [
        "build",
        &format!("{name}.java"),
        "-o",
        module.to_str().unwrap(),
    ];
    varve_in(folder, &[&words, more].concat()).well();
    module
}

/// The second version has the classes, and does not put objects of them where the first one put some. What they do is there all the same.
#[test]
fn objects_that_a_version_does_not_make_any_more_do_what_they_did() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = build(folder.path(), "v1", "F", include_str!("v1_F.java"));
    let second = build(folder.path(), "v2", "F", include_str!("v2_F.java"));
    let region = folder.path().join("f.region");
    let due = "d = 2024-05-06\nl = [1, 2]\nn = 42\ns = Sq 3.0\nt = text\n";
    let said = on(&region, first.to_str().unwrap(), &[]).well().out;
    assert_eq!(said, format!("{due}shape 9.0\ncircle 3.0\n"));
    let said = on(&region, second.to_str().unwrap(), &[]).well().out;
    assert_eq!(said, format!("9\n{due}shape\n9.0\ncircle\n3.0\n"));
}

/// An enumeration became a class: its constants cannot be mapped, and the file stays as it is.
#[test]
fn an_enumeration_that_became_a_class_is_refused_and_nothing_is_changed() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = build(folder.path(), "v1", "E", include_str!("v1_E.java"));
    let second = build(folder.path(), "v2", "E", include_str!("v2_E.java"));
    let region = folder.path().join("e.region");
    let first = first.to_str().unwrap();
    let before = on(&region, first, &[]).well().out;
    let bytes = fs::read(&region).unwrap();
    on(&region, second.to_str().unwrap(), &[]).refuses(2, &["E$S"]);
    assert!(fs::read(&region).unwrap() == bytes, "the file was changed");
    assert_eq!(on(&region, first, &[]).well().out, before);
}

/// A version that uses a class of the library nowhere is refused, with what helps; built for the region it has the class.
#[test]
fn a_class_that_a_version_does_not_use_is_kept_by_its_region() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = build(folder.path(), "v1", "F", include_str!("v1_F.java"));
    let region = folder.path().join("f.region");
    let before = on(&region, first.to_str().unwrap(), &[]).well().out;
    let third = include_str!("v3_F.java");
    let without = build(folder.path(), "v3", "F", third);
    on(&region, without.to_str().unwrap(), &[])
        .refuses(2, &["java.time.LocalDate", "varve build --region"]);
    let words = ["--region", region.to_str().unwrap()];
    let with = build_with(folder.path(), "v3", "F", third, &words);
    assert_eq!(on(&region, with.to_str().unwrap(), &[]).well().out, before);
}
