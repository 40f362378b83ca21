//! A study outside of this crate: an entry, and a function that returns claims. Nothing else names a claim.

use varve_report::{Claim, Look, StudyResult, Value, html, table};
use varve_run::{Error, Keep};
use varve_studies::{Effort, Study, StudyOptions, Watch, list};

const STUDY: Study = Study {
    name: "toy",
    about: "two and two: claims Z1-Z2",
    claims: ('Z', 1, 2),
    rounds: 1,
    run,
};

fn run(options: &StudyOptions, _: Watch) -> Result<StudyResult, Error> {
    let mut out = StudyResult::new(STUDY.name, "none", options.seed, "1");
    for claim in [
        Claim::new("Z1", "two and two", 4.0, 4.0, "").with_note("counted by hand"),
        Claim::new("Z2", "twice as much", 8.0, Value::Missing, "apples"),
        // An added claim is one more line here.
        Claim::new("Z2", "half of it", 2.0, 1.0, "apples"),
    ] {
        if options.wants(&claim.id) {
            out.claims.push(claim);
        }
    }
    Ok(out)
}

fn made(only: &[&str]) -> StudyResult {
    let options = StudyOptions {
        effort: Effort::Tiny,
        only: only.iter().map(|id| id.to_string()).collect(),
        seed: 1,
        workers: 1,
        keep: Keep::nothing(),
        recordings: None,
        stock_only: false,
        without: None,
        program: None,
    };
    (STUDY.run)(&options, &|_| true).unwrap()
}

#[test]
fn a_claim_is_one_line_and_comes_out_everywhere() {
    assert!(list().iter().all(|study| study.name != STUDY.name));
    assert!(STUDY.answers("Z2") && !STUDY.answers("Z3") && !STUDY.answers("D5"));
    let all = made(&[]);
    let printed = [
        table::claims(&all, Look::plain()),
        html::study(&all).unwrap(),
        all.to_json(),
    ];
    for text in printed {
        for claim in &all.claims {
            assert!(
                text.contains(&claim.id) && text.contains(&claim.what),
                "{text}"
            );
        }
    }
    let one = made(&["Z2"]);
    assert_eq!(one.claims, all.claims[1..]);
}
