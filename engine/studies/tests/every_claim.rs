//! Every study from end to end, at a sliver of its size: all claims with numbers, resumed without a trace, written as
//! readable files. A full run checks the numbers.

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::sync::atomic::{AtomicUsize, Ordering};
use varve_report::{Look, RunTable, StudyResult, Value, table};
use varve_run::Keep;
use varve_studies::{Effort, Study, StudyOptions, list};

fn options(keep: Keep) -> StudyOptions {
    StudyOptions {
        effort: Effort::Tiny,
        only: Vec::new(),
        seed: 1,
        workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
        keep,
        recordings: None,
        stock_only: false,
        without: None,
        program: None,
    }
}

fn study(name: &str) -> &'static Study {
    list()
        .iter()
        .find(|s| s.name == name)
        .expect("it is listed")
}

/// The answer from runs that two shares made, in as many rounds as the study says that it takes at most.
fn shared(study: &Study) -> StudyResult {
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::in_folder(folder.path());
    for _ in 0..study.rounds {
        for own in 0..2 {
            let made = (study.run)(&options(keep.share(own, 2)), &|_| true);
            assert!(made.is_ok() || made.is_err_and(|e| e.is_elsewhere()));
        }
    }
    let keep = keep.only_kept();
    let result = (study.run)(&options(keep.clone()), &|_| true).unwrap();
    assert!(keep.asked().values().all(|run| run.done));
    result
}

#[test]
fn johnny_cache_answers_every_claim_and_resumes_to_the_same_result() {
    let study = study("johnny-cache");
    let whole = (study.run)(&options(Keep::nothing()), &|_| true).unwrap();

    // Interrupted after twenty runs, and taken up again: some runs are kept, none is different.
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::in_folder(&folder.path().join("runs"));
    let interrupted = (study.run)(&options(keep.clone()), &|p| p.done < 20).unwrap_err();
    assert!(interrupted.is_interrupt(), "{interrupted}");
    let kept = fs::read_dir(folder.path().join("runs")).unwrap().count();
    assert!(kept >= 19, "{kept} runs were kept");
    let made = AtomicUsize::new(0);
    let resumed = (study.run)(&options(keep), &|p| {
        made.store(p.runs, Ordering::Relaxed);
        true
    })
    .unwrap();
    assert!(made.into_inner() > kept, "there was something left to do");
    assert!(
        whole.to_json() == resumed.to_json(),
        "a resumed study differs"
    );

    every_claim_has_a_number(&whole);
    files_can_be_read(&whole);
}

/// Each claim has figures of its own, and no run failed.
fn every_claim_has_a_number(result: &StudyResult) {
    for c in &result.claims {
        match &c.ours {
            Value::Number(x) => assert!(x.is_finite(), "{}: {}: {x}", c.id, c.what),
            Value::Text(text) => assert!(!text.is_empty(), "{}: {}", c.id, c.what),
            Value::YesNo(_) => {}
            other => panic!(
                "{}: {}: {other:?}: {:?} {:?}",
                c.id, c.what, result.about, result.failures
            ),
        }
    }
    let failed: Vec<&String> = result
        .about
        .iter()
        .filter(|a| a.contains("failed"))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(result.check().is_ok());
}

#[test]
fn pima_answers_every_claim_on_programs_that_were_profiled_on_other_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::in_folder(folder.path());
    let kept = || fs::read_dir(folder.path()).unwrap().count();
    let result = (study("pima").run)(&options(keep.clone()), &|_| true).unwrap();
    let failed: Vec<&String> = result
        .about
        .iter()
        .filter(|a| a.contains("failed"))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    // At this size nothing is sensitive to slow memory, and some means are over no program; but every run gave something.
    for c in &result.claims {
        if let Value::Number(x) = c.ours {
            assert!(x.is_finite(), "{}: {}: {x}", c.id, c.what);
        }
    }
    // Plans that sample are timed from the first interval on, which is known under every plan.
    let costs = result
        .claims
        .iter()
        .filter(|c| c.what.contains("PIMA over"));
    let missing = costs.clone().filter(|c| c.ours == Value::Missing);
    assert_eq!(missing.map(|c| &c.what).collect::<Vec<_>>(), [""; 0]);
    assert!(costs.count() >= 6);
    let ours = |table: &&RunTable| table.title.starts_with("Programs,");
    let programs = result.tables.iter().find(ours).unwrap();
    assert_eq!(programs.rows.len(), 7, "programs");
    stock_machines_have_their_rows(&result);
    files_can_be_read(&result);

    // Nothing is run a second time: the profiles, which are made anew, are the same.
    let runs = kept();
    assert!(runs > 50, "{runs}");
    let again = (study("pima").run)(&options(keep), &|_| true).unwrap();
    assert_eq!(kept(), runs, "runs that were not kept");
    assert!(
        again.to_json() == result.to_json(),
        "a resumed study differs"
    );
}

/// Recordings of real programs collect, and lose in slow memory, under both collectors.
fn stock_machines_have_their_rows(result: &StudyResult) {
    let stock = result.claims.iter().filter(|c| c.id == "A17");
    let missing = stock.clone().filter(|c| c.ours == Value::Missing);
    assert_eq!(missing.map(|c| &c.what).collect::<Vec<_>>(), [""; 0]);
    assert!(stock.count() >= 6);
    let table = result.tables.iter().find(|t| t.title.contains("Stock"));
    let rows = &table.expect("it is beside table 1").rows;
    let names: Vec<&str> = rows.iter().map(|row| &row.name[..]).collect();
    assert_eq!(names, ["pagerank (G1)", "pagerank"]);
    let column = |name: &str| {
        let columns = &table.unwrap().columns;
        columns.iter().position(|c| c.name == name).unwrap()
    };
    for row in rows {
        for (name, least) in [("allocated", 1e6), ("minor", 1.0), ("Optane-only", 1.0)] {
            let Value::Number(x) = row.values[column(name)] else {
                panic!("{}: {name}: {:?}", row.name, row.values[column(name)]);
            };
            assert!(x >= least, "{}: {name}: {x}", row.name);
        }
    }
}

#[test]
fn a_folder_without_recordings_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut o = options(Keep::nothing());
    o.only = vec!["A17".into()];
    o.recordings = Some(folder.path().into());
    let error = (study("pima").run)(&o, &|_| true).unwrap_err().to_string();
    let said = error.contains("programs/jvm/record") && !error.contains('\n');
    assert!(said, "{error}");
}

#[test]
fn cross_layer_answers_every_claim_with_its_pictures() {
    let result = shared(study("cross-layer"));
    let failed = result.about.iter().filter(|a| a.contains("failed"));
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&String>::new());
    let without: Vec<&str> = result
        .claims
        .iter()
        .filter(|c| c.ours == Value::Missing)
        .map(|c| &c.what[..])
        .collect();
    // At this size the coarse sweep has no point at 250 ns with a loss before it; every other claim has its number.
    assert!(without.len() <= 2, "{without:?}");
    assert!(result.charts.iter().any(|c| c.id == "power-default"));
    files_can_be_read(&result);
}

/// The claims that the study's entry says it answers and no others, each figure once, and all of them in the table.
fn claims_are_those_of_the_entry(result: &StudyResult) {
    let (letter, first, last) = study(&result.study).claims;
    let wanted: BTreeSet<String> = (first..=last).map(|n| format!("{letter}{n}")).collect();
    let ids: BTreeSet<String> = result.claims.iter().map(|c| c.id.clone()).collect();
    assert_eq!(ids, wanted, "widen `claims` in the study's entry");
    let mut known = BTreeSet::new();
    // So wide that no text goes on in another line.
    let wide = Look {
        width: 1000,
        colour: false,
    };
    let table = table::claims(result, wide);
    for c in &result.claims {
        assert!(known.insert((&c.id, &c.what)), "{} twice: {}", c.id, c.what);
        let is_row = |line: &str| line.contains(&c.id) && line.contains(&c.what);
        assert!(table.lines().any(is_row), "{} {}:\n{table}", c.id, c.what);
    }
}

/// JSON, Parquet and page, read back by others' parsers; and the claims are in order.
fn files_can_be_read(result: &StudyResult) {
    claims_are_those_of_the_entry(result);
    let folder = tempfile::tempdir().unwrap();
    let files = result.save(folder.path()).unwrap();
    let kinds = |kind: &str| {
        files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == kind))
            .count()
    };
    assert_eq!((kinds("json"), kinds("html")), (1, 1));
    assert!(kinds("parquet") > result.charts.len());
    for file in &files {
        match file.extension().and_then(|e| e.to_str()) {
            Some("parquet") => {
                let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
                let rows = reader
                    .get_row_iter(None)
                    .unwrap()
                    .map(Result::unwrap)
                    .count();
                assert!(rows > 0, "{}", file.display());
            }
            Some("html") => {
                let page = fs::read_to_string(file).unwrap();
                let options = roxmltree::ParsingOptions {
                    allow_dtd: true,
                    ..Default::default()
                };
                let page = roxmltree::Document::parse_with_options(&page, options).unwrap();
                let cells = page.descendants().filter(|n| n.has_tag_name("td"));
                let texts: BTreeSet<String> =
                    cells.filter_map(|n| n.text()).map(String::from).collect();
                for c in &result.claims {
                    let told = texts.iter().any(|t| t.starts_with(&c.what));
                    assert!(told && texts.contains(&c.id), "{}", c.what);
                }
                assert!(
                    page.descendants()
                        .filter(|n| n.tag_name().name() == "svg")
                        .count()
                        >= result.charts.len()
                );
            }
            _ => {
                let read = StudyResult::read(file).unwrap();
                assert_eq!(read.to_json(), result.to_json());
            }
        }
    }
}

#[test]
fn only_the_claims_that_are_asked_for_are_run() {
    let study = study("johnny-cache");
    let mut o = options(Keep::nothing());
    o.only = vec!["D12".into(), "D14".into()];
    let runs = AtomicUsize::new(0);
    let result = (study.run)(&o, &|p| {
        runs.store(p.runs, Ordering::Relaxed);
        true
    })
    .unwrap();
    let ids: BTreeSet<&str> = result.claims.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["D12", "D14"].into());
    assert_eq!(runs.into_inner(), 4, "the adversary's");
}

/// The measured values differ from run to run; the set of measurements does not.
#[test]
fn quickcheck_answers_every_claim() {
    let result = (study("quickcheck").run)(&options(Keep::nothing()), &|_| true).unwrap();
    every_claim_has_a_number(&result);
    assert!(
        result
            .about
            .iter()
            .any(|line| line.starts_with("Instructions were not counted: "))
    );
    files_can_be_read(&result);
}

#[test]
fn app_aware_answers_every_claim() {
    let result = (study("app-aware").run)(&options(Keep::nothing()), &|_| true).unwrap();
    assert!(
        shared(study("app-aware")).to_json() == result.to_json(),
        "shares differ from one process"
    );
    claims_are_those_of_the_entry(&result);
}

/// A number stands for one claim of one paper.
#[test]
fn no_two_studies_answer_the_same_claim() {
    let mut known = BTreeSet::new();
    for study in list() {
        let (letter, first, last) = study.claims;
        assert!(
            first <= last
                && study
                    .about
                    .ends_with(&format!("claims {letter}{first}-{letter}{last}"))
        );
        assert!(
            (first..=last).all(|n| known.insert((letter, n))),
            "{}",
            study.name
        );
    }
}
