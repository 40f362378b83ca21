//! Terminal tables: accepted texts, width, colour.

use crate::{golden, sample};
use proptest::prelude::*;
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, Look, RunTable, StudyResult, Value, table};

#[test]
fn claims_stand_beside_each_other() {
    golden::check(
        "claims.txt",
        &table::claims(&sample::study(), Look::plain()),
    );
}

#[test]
fn a_wide_comparison_goes_on_below() {
    golden::check("runs.txt", &table::runs(&sample::runs(), Look::plain()));
}

#[test]
fn a_comparison_of_nothing_is_still_a_table() {
    golden::check(
        "runs-empty.txt",
        &table::runs(&RunTable::new("nothing yet", "policy"), Look::plain()),
    );
}

#[test]
fn colour_adds_only_escapes() {
    let plain = table::claims(&sample::study(), Look::plain());
    let colour = table::claims(
        &sample::study(),
        Look {
            colour: true,
            ..Look::plain()
        },
    );
    assert_ne!(plain, colour);
    let mut stripped = String::new();
    let mut escaped = false;
    for c in colour.chars() {
        match c {
            '\x1b' => escaped = true,
            'm' if escaped => escaped = false,
            _ if !escaped => stripped.push(c),
            _ => {}
        }
    }
    assert_eq!(plain, stripped);
}

/// Words as users and programs make them: long ones, wide ones, ones with line breaks and escapes.
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,60}", "[a-z/]{30,120}", any::<String>()]
}

/// Columns that a terminal gives a text.
fn width(line: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(line)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_claim_is_wider_than_the_terminal(
        id in "[A-Z][0-9]{1,2}", what in words(), note in words(), text in words(), x in any::<f64>()
    ) {
        let mut s = StudyResult::new(what.clone(), text.clone(), 1, "v");
        s.claims.push(Claim::new(id, what, text.as_str(), x, "s").with_note(note));
        for line in table::claims(&s, Look::plain()).lines() {
            prop_assert!(width(line) <= 80, "{} columns: {line}", width(line));
            prop_assert!(!line.contains('\x1b'));
        }
    }

    #[test]
    fn no_comparison_is_wider_than_the_terminal(
        names in prop::collection::vec(words(), 1..4),
        headings in prop::collection::vec(words(), 0..12),
        x in any::<f64>(),
        text in words(),
    ) {
        let mut t = RunTable::new("t", "run");
        t.columns = headings.iter().map(|h| Column::new(h, Format::Bytes, Better::Lower)).collect();
        for (i, name) in names.iter().enumerate() {
            let value = |c: usize| if c % 5 == 4 { Value::from(text.as_str()) } else { (x * (i + c) as f64).into() };
            t.push(name, (0..headings.len()).map(value));
        }
        for line in table::runs(&t, Look::plain()).lines() {
            prop_assert!(width(line) <= 80, "{} columns: {line}", width(line));
        }
    }
}
