//! Parquet files read back with the library's own reader.

use crate::sample;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::BTreeMap;
use std::path::Path;
use varve_report::{Chart, Data, Error, Value, columnar};

/// The rows and the key-value metadata of a file.
fn read(path: &Path) -> (Vec<Row>, BTreeMap<String, String>) {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let notes = reader
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap()
        .iter();
    let notes = notes
        .map(|n| (n.key.clone(), n.value.clone().unwrap_or_default()))
        .collect();
    (
        reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect(),
        notes,
    )
}

fn cell<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter()
        .find(|(n, _)| *n == name)
        .unwrap_or_else(|| panic!("no column {name}"))
        .1
}

fn number(row: &Row, name: &str) -> Option<f64> {
    match cell(row, name) {
        Field::Double(x) => Some(*x),
        Field::Long(n) => Some(*n as f64),
        Field::Null => None,
        other => panic!("{name} is {other:?}"),
    }
}

fn text(row: &Row, name: &str) -> Option<String> {
    match cell(row, name) {
        Field::Str(s) => Some(s.clone()),
        Field::Null => None,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn claims_read_back_with_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims.parquet");
    let study = sample::study();
    columnar::claims(&study, &path).unwrap();
    let (rows, notes) = read(&path);
    assert_eq!(rows.len(), study.claims.len());
    for (row, claim) in rows.iter().zip(&study.claims) {
        assert_eq!(text(row, "id").as_ref(), Some(&claim.id));
        assert_eq!(text(row, "unit").as_ref(), Some(&claim.unit));
        assert_eq!(number(row, "ratio"), claim.ratio);
        assert_eq!(
            (number(row, "published_low"), number(row, "published_high")),
            claim.published.bounds()
        );
        let words = (claim.ours != Value::Missing).then(|| claim.ours.to_string());
        assert_eq!(text(row, "ours"), words);
    }
    for (key, value) in [
        ("machine", "sample-machine"),
        ("seed", "7"),
        ("study", "made-up"),
        ("unit.ratio", "x"),
    ] {
        assert_eq!(notes[key], value, "{key}");
    }
}

#[test]
fn a_comparison_keeps_base_units() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let report = sample::report();
    columnar::table(&report.table, &report.origin, &path).unwrap();
    let (rows, notes) = read(&path);
    assert_eq!(text(&rows[2], "policy").as_deref(), Some("static"));
    assert_eq!(number(&rows[2], "time"), Some(1.52e9));
    assert_eq!(number(&rows[3], "energy"), None, "what is missing is null");
    assert_eq!(text(&rows[0], "steady").as_deref(), Some("yes"));
    for (column, unit) in [
        ("time", "ns"),
        ("moved", "B"),
        ("rate", "accesses/s"),
        ("energy", "J"),
        ("DRAM", "%"),
    ] {
        assert_eq!(notes[&format!("unit.{column}")], unit);
    }
    assert!(notes["command"].starts_with("varve run"));
}

#[test]
fn runs_keep_everything_that_they_measured() {
    let folder = tempfile::tempdir().unwrap();
    let report = sample::report();
    let written = columnar::records(&report, folder.path()).unwrap();
    let names: Vec<_> = written.iter().map(|p| p.file_name().unwrap()).collect();
    assert_eq!(
        names,
        [
            "runs.parquet",
            "runs-timeline.parquet",
            "runs-latencies.parquet"
        ]
    );
    let (rows, notes) = read(&written[0]);
    assert_eq!(rows.len(), report.runs.len());
    assert_eq!(
        text(&rows[1], "policy").as_ref(),
        Some(&report.table.rows[1].name)
    );
    assert_eq!(number(&rows[0], "cache_hit_share"), None);
    assert_eq!(number(&rows[1], "cache_hit_share"), Some(0.25));
    assert_eq!(number(&rows[1], "stalls.load"), Some(0.5));
    assert_eq!(
        text(&rows[1], "answers").as_deref(),
        Some(r#"[["sum","42"]]"#)
    );
    assert_eq!(notes["machine"], "sample-machine");
    let (points, _) = read(&written[1]);
    assert_eq!(points.len(), 2 * report.runs.len());
    assert_eq!(
        text(&points[3], "policy").as_ref(),
        Some(&report.table.rows[1].name)
    );
    assert_eq!(number(&points[3], "accesses"), Some(20.0));
    let (latencies, _) = read(&written[2]);
    assert_eq!(
        latencies.len(),
        report.runs.len() - 1,
        "the first run has none"
    );

    let mut bare = report;
    bare.runs.clear();
    assert!(columnar::records(&bare, folder.path()).unwrap().is_empty());
    bare.runs = vec![serde_json::json!(3)];
    let error = columnar::records(&bare, folder.path()).unwrap_err();
    assert!(error.to_string().contains("run 0"), "{error}");
}

#[test]
fn whole_numbers_are_whole_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = sample::report();
    report.runs = vec![
        serde_json::json!({"pages": 7, "share": 1.0, "evicted": null}),
        serde_json::json!({"pages": 1u64 << 60, "share": 0.5, "evicted": 3}),
    ];
    let written = columnar::records(&report, folder.path()).unwrap();
    let (rows, _) = read(&written[0]);
    let cell = |row: usize, name| cell(&rows[row], name).clone();
    assert_eq!(cell(0, "pages"), Field::Long(7));
    assert_eq!(cell(1, "pages"), Field::Long(1 << 60), "no digit is lost");
    assert_eq!(
        (cell(0, "evicted"), cell(1, "evicted")),
        (Field::Null, Field::Long(3))
    );
    assert_eq!(cell(0, "share"), Field::Double(1.0));
}

/// How many points, bars, cells or spans a chart has.
fn size(chart: &Chart) -> usize {
    match &chart.data {
        Data::Lines(s) | Data::Points(s) => s.iter().map(|s| s.x.len()).sum(),
        Data::Bars { groups, bars, .. } => groups.len() * bars.len(),
        Data::HeatMap { columns, rows } => columns.len() * rows.len(),
        Data::Gantt { spans, .. } => spans.len(),
    }
}

#[test]
fn every_kind_of_chart_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let study = sample::study();
    let written = columnar::study(&study, folder.path()).unwrap();
    assert_eq!(written.len(), 1 + study.charts.len() + study.tables.len());
    for chart in &study.charts {
        let (rows, notes) = read(&folder.path().join(format!("chart-{}.parquet", chart.id)));
        assert_eq!(rows.len(), size(chart), "{}", chart.id);
        assert_eq!(notes["title"], chart.title);
    }
    let (rows, notes) = read(&folder.path().join("chart-over-time.parquet"));
    assert_eq!(
        (notes["unit.x"].as_str(), notes["unit.y"].as_str()),
        ("ns", "% of all-hot-in-DRAM")
    );
    assert_eq!(number(&rows[4], "x"), Some(1e9));
    let gap = rows.iter().filter(|r| number(r, "y").is_none()).count();
    assert_eq!(gap, 20, "the gap of the sample is null");
    let (rows, _) = read(&folder.path().join("chart-gantt.parquet"));
    assert_eq!(text(&rows[5], "lane").as_deref(), Some("PM, cores 10-15"));
    assert_eq!(number(&rows[5], "end"), Some(70e9));
    let (rows, _) = read(&folder.path().join("chart-heat.parquet"));
    assert_eq!(text(&rows[19], "row").as_deref(), Some("random write"));
    assert_eq!(text(&rows[19], "column").as_deref(), Some("10"));
}

#[test]
fn an_inconsistent_result_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = sample::study();
    study.charts[1].id = study.charts[0].id.clone();
    let error = columnar::study(&study, folder.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chart \"over-time\": another chart has the same id"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        columnar::claims(&sample::study(), &folder.path().join("no/claims.parquet")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }));
    assert!(error.to_string().contains("create it first"), "{error}");
}

#[test]
fn a_saved_result_is_complete_and_an_inconsistent_one_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let study = sample::study();
    let files = study.save(folder.path()).unwrap();
    assert_eq!(files.len(), 3 + study.charts.len() + study.tables.len());
    assert!(
        files
            .iter()
            .all(|f| f.metadata().is_ok_and(|m| m.len() > 0))
    );

    let folder = tempfile::tempdir().unwrap();
    let mut report = sample::report();
    // The page, JSON and the table; each chart as data and as a picture; the runs with their lists.
    let charts = 2 * report.charts.len();
    assert_eq!(report.save(folder.path()).unwrap().len(), 3 + charts + 3);
    let folder = tempfile::tempdir().unwrap();
    report.table.rows[1].values.pop();
    let error = report.save(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("row \"interleave\" has 9 values for 10 columns"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
