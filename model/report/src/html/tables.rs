//! Tables of a page: claims, runs, and the data under each chart.

use crate::axis::Axis;
use crate::chart::{Data, Series};
use crate::markup::Markup;
use crate::{Agreement, Chart, Kind, RunTable, StudyResult, Value, fmt};

/// Limit of the rows in a chart's table; the Parquet file has all.
const MOST: usize = 200;

/// Published beside ours.
pub fn claims(result: &StudyResult, page: &mut Markup) {
    open(page);
    head(
        &[
            ("id", ""),
            ("claim", ""),
            ("published", "n"),
            ("ours", "n"),
            ("ratio", "n"),
            ("off by", "n"),
            ("", ""),
        ],
        page,
    );
    for c in &result.claims {
        let agreement = match c.kind {
            Kind::Input => Agreement::Unknown,
            _ => c.agreement(),
        };
        page.open("tr", &[]);
        page.leaf("td", &[], &c.id);
        page.open("td", &[("class", &"what")]);
        page.prose(&c.what);
        if !c.unit.is_empty() {
            page.text(&format!(" ({})", c.unit));
        }
        if !c.note.is_empty() {
            page.prose_leaf("span", &[("class", &"soft")], &c.note);
        }
        if let Some(line) = crate::table::certainty(c) {
            page.leaf("span", &[("class", &"soft")], &line);
        }
        page.close();
        for value in [&c.published, &c.ours] {
            let class = if matches!(value, Value::Text(_)) {
                "w"
            } else {
                "n"
            };
            page.leaf("td", &[("class", &class)], &value.to_string());
        }
        page.leaf(
            "td",
            &[("class", &"n")],
            &c.ratio.map_or(fmt::NONE.into(), fmt::ratio),
        );
        page.leaf("td", &[("class", &"n")], &crate::table::off(c));
        page.open(
            "td",
            &[("class", &class(agreement)), ("title", &agreement.words())],
        );
        page.text(match c.kind {
            Kind::Input => c.kind.word(),
            _ => agreement.symbol(),
        });
        page.close();
        page.close();
    }
    close(page);
    page.open("p", &[("class", &"soft")]);
    for (agreement, count) in result.tally().into_iter().filter(|t| t.1 > 0) {
        page.open("span", &[("class", &"key")]);
        page.leaf("span", &[("class", &class(agreement))], agreement.symbol());
        page.text(&format!(" {count} {}", agreement.words()));
        page.close();
    }
    page.close();
}

fn class(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Close => "close",
        Agreement::Near => "near",
        Agreement::Far => "far",
        Agreement::Unknown => "soft",
    }
}

/// One row per run; the best of a column in bold with a star.
pub fn runs(table: &RunTable, page: &mut Markup) {
    let columns: Vec<(String, Vec<String>)> = (0..table.columns.len())
        .map(|c| table.column_text(c))
        .collect();
    let frontier = table
        .trade_off
        .map(|(a, b)| table.frontier(a, b))
        .unwrap_or_default();
    open(page);
    let headings = columns.iter().map(|c| (c.0.as_str(), "n"));
    head(
        &std::iter::once((table.rows_are.as_str(), ""))
            .chain(headings)
            .collect::<Vec<_>>(),
        page,
    );
    for (r, row) in table.rows.iter().enumerate() {
        page.open("tr", &[]);
        let mark = if frontier.contains(&r) { "◆ " } else { "" };
        page.leaf("td", &[("class", &"name")], &format!("{mark}{}", row.name));
        for (c, (_, cells)) in columns.iter().enumerate() {
            let best = table.best(c).contains(&r);
            let class = if best { "n best" } else { "n" };
            page.leaf(
                "td",
                &[("class", &class)],
                &format!("{}{}", if best { "★ " } else { "" }, cells[r]),
            );
        }
        page.close();
    }
    close(page);
    let mut legend = "★ best of its column".to_string();
    if let Some((a, b)) = table.trade_off {
        let (a, b) = (&table.columns[a].name, &table.columns[b].name);
        legend.push_str(&format!(", ◆ no other run is better in both {a} and {b}"));
    }
    page.leaf("p", &[("class", &"soft")], &legend);
}

/// The data of a chart.
pub fn data(chart: &Chart, page: &mut Markup) {
    match &chart.data {
        Data::Lines(series) | Data::Points(series) => points(chart, series, page),
        Data::Bars { groups, bars, .. } => {
            let cells = |g: usize| bars.iter().map(move |b| b.values[g]).collect();
            let names: Vec<&str> = bars.iter().map(|b| b.name.as_str()).collect();
            let rows = groups
                .iter()
                .enumerate()
                .map(|(g, n)| (n.as_str(), cells(g)))
                .collect();
            matrix(&chart.x.what, &names, rows, &chart.y, page);
        }
        Data::HeatMap { columns, rows } => {
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let rows = rows
                .iter()
                .map(|r| (r.name.as_str(), r.cells.clone()))
                .collect();
            matrix(&chart.x.what, &names, rows, &chart.y, page);
        }
        Data::Gantt { lanes, spans } => {
            // Both ends in one unit, so that they can be compared.
            let ends: Vec<f64> = spans.iter().flat_map(|s| [s.start, s.end]).collect();
            let (unit, ends) = chart.x.format.column(&chart.x.unit, &ends);
            open(page);
            let (from, to) = (format!("from ({unit})"), format!("to ({unit})"));
            head(
                &[
                    (&chart.y.what, ""),
                    ("name", ""),
                    ("kind", ""),
                    (&from, "n"),
                    (&to, "n"),
                ],
                page,
            );
            for (i, s) in spans.iter().enumerate().take(MOST) {
                page.open("tr", &[]);
                for words in [&lanes[s.lane], &s.name, &s.kind] {
                    page.leaf("td", &[], words);
                }
                page.leaf("td", &[("class", &"n")], &ends[2 * i]);
                page.leaf("td", &[("class", &"n")], &ends[2 * i + 1]);
                page.close();
            }
            close(page);
            shortened(spans.len(), 1, page);
        }
    }
}

/// Series side by side where they share their places, else one below the other: name, x, y.
fn points(chart: &Chart, series: &[Series], page: &mut Markup) {
    let shared = series.windows(2).all(|w| w[0].x == w[1].x) && series.len() > 1;
    let total = if shared {
        series[0].x.len()
    } else {
        series.iter().map(|s| s.x.len()).sum()
    };
    let every = total.div_ceil(MOST).max(1);
    let column = |axis: &Axis, values: Vec<f64>| {
        let (unit, cells) = axis.format.column(&axis.unit, &values);
        (axis.heading(&unit), cells)
    };
    if shared {
        let names: Vec<String> = series.iter().map(Series::shown_name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = || (0..total).step_by(every);
        let (x, xs) = column(&chart.x, shown().map(|i| series[0].x[i]).collect());
        let row = |(place, i): (&'_ String, usize)| {
            (place.clone(), series.iter().map(|s| s.y[i]).collect())
        };
        let rows: Vec<(String, Vec<f64>)> = xs.iter().zip(shown()).map(row).collect();
        let rows = rows
            .iter()
            .map(|(x, ys)| (x.as_str(), ys.clone()))
            .collect();
        matrix(&x, &names, rows, &chart.y, page);
    } else {
        let some = |s: &Series| {
            (0..s.x.len())
                .step_by(every)
                .map(|i| (s.shown_name(), s.x[i], s.y[i]))
                .collect::<Vec<_>>()
        };
        let shown: Vec<(String, f64, f64)> = series.iter().flat_map(some).collect();
        let (x, xs) = column(&chart.x, shown.iter().map(|s| s.1).collect());
        let (y, ys) = column(&chart.y, shown.iter().map(|s| s.2).collect());
        open(page);
        head(&[("series", ""), (&x, "n"), (&y, "n")], page);
        for (i, (name, ..)) in shown.iter().enumerate() {
            page.open("tr", &[]);
            page.leaf("td", &[], name);
            page.leaf("td", &[("class", &"n")], &xs[i]);
            page.leaf("td", &[("class", &"n")], &ys[i]);
            page.close();
        }
        close(page);
    }
    shortened(total, every, page);
}

/// Names down, names across, one number in each cell.
fn matrix(
    rows_are: &str,
    columns: &[&str],
    rows: Vec<(&str, Vec<f64>)>,
    of: &Axis,
    page: &mut Markup,
) {
    let all: Vec<f64> = rows.iter().flat_map(|r| r.1.iter().copied()).collect();
    let (unit, cells) = of.format.column(&of.unit, &all);
    page.leaf("p", &[("class", &"soft")], &of.heading(&unit));
    open(page);
    let headings = columns.iter().map(|c| (*c, "n"));
    head(
        &std::iter::once((rows_are, ""))
            .chain(headings)
            .collect::<Vec<_>>(),
        page,
    );
    let mut cells = cells.iter();
    for (name, values) in &rows {
        page.open("tr", &[]);
        page.leaf("td", &[], name);
        for cell in cells.by_ref().take(values.len()) {
            page.leaf("td", &[("class", &"n")], cell);
        }
        page.close();
    }
    close(page);
}

/// Say so where rows were left out.
fn shortened(total: usize, every: usize, page: &mut Markup) {
    if every > 1 {
        let words = format!(
            "Every {every}th of {total} points; the Parquet file beside this page has all of them."
        );
        page.leaf("p", &[("class", &"soft")], &words);
    } else if total > MOST {
        let words = format!(
            "The first {MOST} of {total}; the Parquet file beside this page has all of them."
        );
        page.leaf("p", &[("class", &"soft")], &words);
    }
}

fn open(page: &mut Markup) {
    page.open("div", &[("class", &"scroll")]);
    page.open("table", &[]);
}

/// Headings, each with its class; the body follows.
fn head(headings: &[(&str, &str)], page: &mut Markup) {
    page.open("thead", &[]);
    page.open("tr", &[]);
    for (heading, class) in headings {
        page.leaf("th", &[("class", class), ("scope", &"col")], heading);
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
}

fn close(page: &mut Markup) {
    page.close();
    page.close();
    page.close();
}
