//! One self-contained page: no script, nothing loaded from elsewhere, light and dark, on paper and on a phone. Pictures that have
//! files of their own are in it too, as images.
//!
//! ```
//! use varve_report::{Claim, StudyResult, html};
//! let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
//! result.claims.push(Claim::new("D5", "a < b & c", 85.0, 82.5, "% of DRAM"));
//! let page = html::study(&result)?;
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("a &lt; b &amp; c"));
//! # Ok::<(), varve_report::Error>(())
//! ```

mod tables;

use crate::markup::Markup;
use crate::pictures::{CompanionFile, base64};
use crate::study::check_charts;
use crate::{Chart, Error, Origin, RunReport, RunTable, StudyResult, svg};

/// Nothing may be loaded, whatever text the results contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// The width that charts are drawn for on a desk and on a phone, in pixels.
const DESK: f64 = 768.0;
const PHONE: f64 = 344.0;

/// The page of a study: claims, charts, comparisons.
pub fn study(result: &StudyResult) -> Result<String, Error> {
    result.check()?;
    let title = if result.title.is_empty() {
        &result.study
    } else {
        &result.title
    };
    let mut page = begin(title, &result.origin(), Some(&result.study));
    for paragraph in &result.about {
        page.prose_leaf("p", &[], paragraph);
    }
    if !result.claims.is_empty() {
        page.leaf("h2", &[], "Published beside ours");
        tables::claims(result, &mut page);
    }
    charts(&result.charts, &mut page);
    for table in &result.tables {
        comparison(table, &mut page);
    }
    Ok(end(page))
}

/// The page of a comparison of runs: the table, its trade-off, and the charts of the runs.
pub fn runs(report: &RunReport) -> Result<String, Error> {
    report.table.check()?;
    report.details.iter().try_for_each(RunTable::check)?;
    check_charts(&report.charts)?;
    let mut page = begin(&report.table.title, &report.origin, None);
    let (answers, notes) = split(&report.table);
    for answer in answers {
        page.prose_leaf("p", &[("class", &"answer")], answer);
    }
    tables::runs(&report.table, &mut page);
    for note in notes {
        page.prose_leaf("p", &[], note);
    }
    beside(&report.pictures, &mut page);
    if let Some(chart) = report.table.trade_off_chart("trade-off") {
        figure(&chart, &mut page);
    }
    charts(&report.charts, &mut page);
    for details in &report.details {
        comparison(details, &mut page);
    }
    Ok(end(page))
}

/// Splits the notes: the advice, which the last notes of a comparison hold, comes first, as the answer to the question;
/// the others stand below the table.
fn split(runs: &RunTable) -> (&[String], &[String]) {
    let is_advice = |note: &String| note.starts_with("Advice: ");
    let first = runs.notes.iter().position(is_advice);
    let (others, answers) = runs.notes.split_at(first.unwrap_or(runs.notes.len()));
    (answers, others)
}

/// The files beside the page, each with its contents: drawings, and links.
fn beside(files: &[CompanionFile], page: &mut Markup) {
    if files.is_empty() {
        return;
    }
    page.leaf("h2", &[], "Pictures beside this page");
    for CompanionFile { file, says, drawn } in files {
        page.open("figure", &[("id", file)]);
        if let Some(svg) = drawn {
            page.open("a", &[("href", file)]);
            let data = format!("data:image/svg+xml;base64,{}", base64(svg.as_bytes()));
            page.empty("img", &[("src", &data), ("alt", says)]);
            page.close();
        }
        page.open("p", &[("class", &"soft")]);
        page.leaf("a", &[("href", file)], file);
        page.prose(&format!(": {says}"));
        page.close();
        page.close();
    }
}

fn begin(title: &str, origin: &Origin, study: Option<&str>) -> Markup {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n");
    page.open("html", &[("lang", &"en")]);
    page.open("head", &[]);
    page.empty("meta", &[("charset", &"utf-8")]);
    page.empty(
        "meta",
        &[
            ("http-equiv", &"Content-Security-Policy"),
            ("content", &POLICY),
        ],
    );
    page.empty(
        "meta",
        &[
            ("name", &"viewport"),
            ("content", &"width=device-width, initial-scale=1"),
        ],
    );
    page.leaf("title", &[], title);
    page.open("style", &[]);
    page.raw(include_str!("style.css"));
    page.close();
    page.close();
    page.open("body", &[]);
    page.open("main", &[]);
    page.leaf("h1", &[], title);
    page.open("dl", &[("class", &"origin")]);
    // A result without random numbers has no seed.
    let seed = match origin.seed {
        0 => String::new(),
        seed => seed.to_string(),
    };
    let version = format!("varve {}", origin.version);
    let facts = [
        ("study", study.unwrap_or("")),
        ("machine", &origin.machine),
        ("seed", &seed),
        ("version", &version),
    ];
    for (name, fact) in facts.into_iter().filter(|f| !f.1.is_empty()) {
        page.leaf("dt", &[], name);
        page.leaf("dd", &[], fact);
    }
    if !origin.command.is_empty() {
        page.leaf("dt", &[], "made by");
        page.open("dd", &[]);
        page.leaf("code", &[], &origin.command);
        page.close();
    }
    page.close();
    page
}

fn end(mut page: Markup) -> String {
    page.close();
    page.open("footer", &[("class", &"soft")]);
    page.text("This page is one file: it loads nothing and runs nothing.");
    page.finish()
}

fn comparison(runs: &RunTable, page: &mut Markup) {
    page.leaf("h2", &[], &runs.title);
    table(runs, page);
}

fn table(runs: &RunTable, page: &mut Markup) {
    tables::runs(runs, page);
    for note in &runs.notes {
        page.prose_leaf("p", &[], note);
    }
}

fn charts(charts: &[Chart], page: &mut Markup) {
    for chart in charts {
        figure(chart, page);
    }
}

/// A chart, drawn for a desk and for a phone, with its note and its data.
fn figure(chart: &Chart, page: &mut Markup) {
    page.open("figure", &[("id", &format!("chart-{}", chart.id))]);
    page.leaf("figcaption", &[], &chart.title);
    for (class, width) in [("scroll desk", DESK), ("scroll phone", PHONE)] {
        page.open("div", &[("class", &class)]);
        svg::draw(chart, width, page);
        page.close();
    }
    if !chart.note.is_empty() {
        page.prose_leaf("p", &[("class", &"soft")], &chart.note);
    }
    page.open("details", &[]);
    page.leaf("summary", &[], "Data");
    tables::data(chart, page);
    page.close();
    page.close();
}
