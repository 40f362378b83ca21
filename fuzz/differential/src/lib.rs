//! Runs generated modules on this engine and on another one, and says where they differ.
//!
//! What is compared is all that a program can show: results, kinds of traps, exceptions that escape, exported globals, tables and
//! memories, and what references lead to.

mod arguments;
pub mod generate;
mod ours;
mod seen;
mod theirs;

pub use generate::Case;
pub use seen::{End, Seen, Tally, Value};

/// How a case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Both did the same, to the end.
    Same,
    /// Both did the same until one of them ran out of memory or stack, which the standard leaves open.
    Exhausted,
    /// The bytes make no module.
    Nothing,
}

/// Runs a case on all engines, and counts what happened.
///
/// # Errors
/// Where they differ, in one line.
pub fn check(case: &Case, tally: &mut Tally) -> Result<Outcome, String> {
    let theirs = theirs::run(case);
    tally.add(&theirs);
    let mut outcome = Outcome::Same;
    let kept = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
    for (name, config) in ours::configurations(case, kept.path()) {
        let ours = ours::run(case, config);
        if seen::compare(&ours, &theirs).map_err(|e| format!("{name}: {e}"))? == Outcome::Exhausted
        {
            outcome = Outcome::Exhausted;
        }
    }
    Ok(outcome)
}

/// As [`check`], from bytes that a fuzzer chose.
///
/// # Errors
/// Where the engines differ.
pub fn check_bytes(bytes: &[u8]) -> Result<Outcome, String> {
    match Case::new(bytes) {
        Some(case) => check(&case, &mut Tally::default()),
        None => Ok(Outcome::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the engines show of one module, beside what they show of another.
    fn compare(ours: &str, theirs: &str) -> Result<Outcome, String> {
        let case = |text: &str| Case::of_module(text.as_bytes()).unwrap();
        let (name, config) = ours::configurations(&case(ours), "nowhere".as_ref()).remove(0);
        assert_eq!(name, "baseline");
        seen::compare(&ours::run(&case(ours), config), &theirs::run(&case(theirs)))
    }

    /// Pairs of modules that do nearly the same.
    #[test]
    fn every_kind_of_difference_is_seen() {
        let pairs = [
            (
                "(func (export \"f\") (result i32) (i32.const 1))",
                "(func (export \"f\") (result i32) (i32.const 2))",
            ),
            ("(func (export \"f\"))", "(func (export \"f\") unreachable)"),
            (
                "(func (export \"f\") (drop (i32.div_u (i32.const 1) (i32.const 0))))",
                "(func (export \"f\") unreachable)",
            ),
            (
                "(func (export \"f\") (param f64))",
                "(func (export \"g\") (param f64))",
            ),
            ("(func $s unreachable) (start $s)", ""),
            (
                "(memory (export \"m\") 1) (data (i32.const 9) \"a\")",
                "(memory (export \"m\") 1) (data (i32.const 9) \"b\")",
            ),
            ("(memory (export \"m\") 1)", "(memory (export \"m\") 2)"),
            (
                "(table (export \"t\") 3 funcref)",
                "(func $f) (table (export \"t\") funcref (elem $f $f $f))",
            ),
            (
                "(global (export \"g\") i64 (i64.const 1))",
                "(global (export \"g\") i64 (i64.const 2))",
            ),
            (
                "(global (export \"g\") (ref i31) (ref.i31 (i32.const 1)))",
                "(global (export \"g\") (ref i31) (ref.i31 (i32.const 2)))",
            ),
            (
                "(type $a (array i8)) (global (export \"g\") (ref $a) (array.new $a (i32.const 1) (i32.const 5)))",
                "(type $a (array i8)) (global (export \"g\") (ref $a) (array.new $a (i32.const 2) (i32.const 5)))",
            ),
            (
                "(type $s (struct (field i64))) (global (export \"g\") (ref $s) (struct.new $s (i64.const 1)))",
                "(type $s (struct (field i64))) (global (export \"g\") (ref $s) (struct.new $s (i64.const 2)))",
            ),
            (
                "(tag $t (param i32)) (func (export \"f\") (throw $t (i32.const 1)))",
                "(tag $t (param i32)) (func (export \"f\") (throw $t (i32.const 2)))",
            ),
            (
                "(import \"env\" \"log\" (func $l (param i32))) (func (export \"f\") (call $l (i32.const 1)))",
                "(import \"env\" \"log\" (func $l (param i32))) (func (export \"f\") (call $l (i32.const 2)))",
            ),
            ("(func (export \"f\") (result i32))", ""),
        ];
        for (a, b) in pairs {
            let (a, b) = (format!("(module {a})"), format!("(module {b})"));
            assert_eq!(compare(&a, &a), Ok(Outcome::Same), "{a}");
            assert!(compare(&a, &b).is_err(), "{a}\n{b}");
            assert!(compare(&b, &a).is_err(), "{b}\n{a}");
        }
    }

    #[test]
    fn what_the_standard_leaves_open_is_no_difference() {
        let deep = "(module (func $f (export \"f\") (call $f)))";
        let none = "(module (func (export \"f\")))";
        assert_eq!(compare(deep, none), Ok(Outcome::Exhausted));
    }
}
