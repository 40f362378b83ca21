//! Tables in Markdown, for a book.

use crate::{Chart, Claim, Kind, RunTable, StudyResult, Value, fmt, svg, table};

/// A study as a page of Markdown: its subject, its claims in a table, notes below it, its other tables, and its
/// [`pictures`]. The same result makes the same page.
///
/// ```
/// use varve_report::{Claim, StudyResult, markdown};
/// let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
/// result.claims.push(Claim::new("D12", "metadata", 50.0, 41.0, "MB"));
/// let page = markdown::study(&result);
/// assert!(page.contains("| D12 | metadata (MB) | 50 | 41 | 0.82x | ◐ | model |"), "{page}");
/// ```
pub fn study(result: &StudyResult) -> String {
    let title = match &result.title[..] {
        "" => &result.study,
        title => title,
    };
    let coarse = match result.coarse {
        true => ", the coarse version (`--quick`)",
        false => "",
    };
    let mut out = format!(
        "# {title}\n\nMachine {}, seed {}, varve {}{coarse}.\n",
        result.machine, result.seed, result.version
    );
    for paragraph in result.about.iter().chain(&result.failures) {
        out.push_str(&format!("\n{paragraph}\n"));
    }
    let certain = |c: &Claim| c.spread.is_some() || c.sensitivity.is_some();
    let certain = result.claims.iter().any(certain);
    out.push_str("\n| | claim (unit) | published | ours | ratio | | from |");
    out.push_str(if certain { " how sure |\n" } else { "\n" });
    out.push_str("|---|---|---|---|---|---|---|");
    out.push_str(if certain { "---|\n" } else { "\n" });
    for c in &result.claims {
        let sign = match c.kind {
            Kind::Input => "",
            _ => c.agreement().symbol().trim(),
        };
        let mut cells = vec![
            c.id.clone(),
            named(c),
            c.published.to_string(),
            c.ours.to_string(),
            c.ratio.map_or(fmt::NONE.into(), fmt::ratio),
            sign.into(),
            c.kind.word().into(),
        ];
        if certain {
            cells.push(table::certainty(c).unwrap_or_default());
        }
        out.push_str(&row(&cells));
    }
    out.push_str(
        "\n● as published (within 10 %), ◐ near (within 1.5x), ○ far. *model*: computed, the same wherever it is run; *here*: measured\n\
         on the host that ran it; *input*: the published value chose a number of ours, so that agreement proves nothing.\n",
    );
    let mut told: Vec<(&str, &str)> = Vec::new();
    for c in result.claims.iter().filter(|c| !c.note.is_empty()) {
        // Rows of one claim often share theirs.
        if !told.contains(&(&c.id, &c.note)) {
            out.push_str(if told.is_empty() { "\n" } else { "" });
            out.push_str(&format!("- {}: {}\n", c.id, c.note));
            told.push((&c.id, &c.note));
        }
    }
    for table in &result.tables {
        out.push_str(&runs(table));
    }
    for (chart, file, _) in drawn(result) {
        out.push_str(&format!(
            "\n## {}\n\n![{}]({file})\n",
            chart.title, chart.title
        ));
        if !chart.note.is_empty() {
            out.push_str(&format!("\n{}\n", chart.note));
        }
    }
    out
}

/// The pictures of the page of [`study`]: the path of each picture beside the page, and its SVG.
pub fn pictures(result: &StudyResult) -> Vec<(String, String)> {
    drawn(result).map(|(_, file, svg)| (file, svg)).collect()
}

fn drawn(result: &StudyResult) -> impl Iterator<Item = (&Chart, String, String)> {
    result.charts.iter().filter_map(|chart| {
        let file = format!("{}/{}.svg", result.study, chart.id);
        Some((chart, file, svg::picture(chart)?))
    })
}

/// A comparison of runs, the best of a column in bold.
fn runs(table: &RunTable) -> String {
    let columns: Vec<(String, Vec<String>)> = (0..table.columns.len())
        .map(|c| table.column_text(c))
        .collect();
    let mut out = format!("\n## {}\n\n| {} |", table.title, table.rows_are);
    for (heading, _) in &columns {
        out.push_str(&format!(" {} |", escaped(heading)));
    }
    out.push_str(&format!("\n|---|{}\n", "---|".repeat(columns.len())));
    for (r, row) in table.rows.iter().enumerate() {
        out.push_str(&format!("| {} |", escaped(&row.name)));
        for (c, (_, cells)) in columns.iter().enumerate() {
            let cell = escaped(cells[r].trim());
            match table.best(c).contains(&r) {
                true => out.push_str(&format!(" **{cell}** |")),
                false => out.push_str(&format!(" {cell} |")),
            }
        }
        out.push('\n');
    }
    for note in &table.notes {
        out.push_str(&format!("\n{note}\n"));
    }
    out
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}

/// A page that sums studies up: how many of their answers are how far from the published ones.
///
/// ```
/// use varve_report::{Claim, StudyResult, markdown};
/// let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
/// result.claims.push(Claim::new("D12", "metadata", 50.0, 41.0, "MB"));
/// let page = markdown::all(&[result]);
/// assert!(page.contains("| [johnny-cache](johnny-cache.md) | 1 | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |"), "{page}");
/// ```
pub fn all(results: &[StudyResult]) -> String {
    let mut out = String::from(
        "# Published beside ours\n\nAnswers of all studies, by the factor between published and ours. What is a bound or a range has a factor of \
         one where it\nholds. *Other*: another sign, or another answer to yes or no. *Inputs*: published values that chose a number of ours; they \
         are no\nanswers. *Not compared*: the paper or we have no number.\n\n",
    );
    if results.iter().any(|r| r.coarse) {
        out.push_str(
            "These are the coarse versions (`--quick`), of smaller and fewer programs.\n\n",
        );
    }
    out.push_str(
        "| study | answers | within 10 % | within 25 % | within 1.5x | within 2x | farther | other | inputs | not compared |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut sums = [0; 9];
    for result in results {
        let counts = tally(result);
        let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
        let name = &result.study;
        out.push_str(&format!(
            "| [{name}]({name}.md) | {} |\n",
            cells.join(" | ")
        ));
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    let cells: Vec<String> = sums.iter().map(usize::to_string).collect();
    out.push_str(&format!("| all | {} |\n", cells.join(" | ")));
    out
}

/// A page with the rule of the model that moves each value most, if that was asked for.
///
/// ```
/// use varve_report::{Claim, Sensitivity, StudyResult, markdown};
/// let mut result = StudyResult::new("cross-layer", "haswell-2620v3", 1, "0.1.0");
/// result.claims.push(Claim::new("B7", "energy saved", 41.0, 34.0, "%"));
/// assert_eq!(markdown::sensitivity(&[result.clone()]), None);
/// let rule = "ranks that never sleep".to_string();
/// result.claims[0].sensitivity = Some(Sensitivity { rule, ours: 3.0.into() });
/// let page = markdown::sensitivity(&[result]).unwrap();
/// assert!(page.contains("| B7 | energy saved (%) | 41 | 34 | 3 | ranks that never sleep |"), "{page}");
/// ```
pub fn sensitivity(results: &[StudyResult]) -> Option<String> {
    let moved = |r: &StudyResult| r.claims.iter().any(|c| c.sensitivity.is_some());
    if !results.iter().any(moved) {
        return None;
    }
    let mut out = String::from(
        "# What each value hangs on\n\nThe same studies without one rule of the model at a time. Each row has the rule that moves it \
         most, and what the value is without it.\n*Without* is empty where no rule moves the value at all. What is measured on the host \
         hangs on no rule, and is left out.\n",
    );
    if results.iter().any(|r| r.coarse) {
        out.push_str(
            "\nThese are the coarse versions (`--quick`), of smaller and fewer programs.\n",
        );
    }
    for result in results {
        let modelled = |c: &&Claim| c.kind == Kind::Modelled && c.ours != Value::Missing;
        let claims: Vec<&Claim> = result.claims.iter().filter(modelled).collect();
        if claims.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {}\n\n", result.title));
        out.push_str(
            "| | claim (unit) | published | ours | without | a rule |\n|---|---|---|---|---|---|\n",
        );
        for c in claims {
            let (without, rule) = match &c.sensitivity {
                Some(s) => (s.ours.to_string(), s.rule.clone()),
                None => Default::default(),
            };
            let cells = [
                c.id.clone(),
                named(c),
                c.published.to_string(),
                c.ours.to_string(),
                without,
                rule,
            ];
            out.push_str(&row(&cells));
        }
    }
    Some(out)
}

/// A claim's text with its unit.
fn named(c: &Claim) -> String {
    match &c.unit[..] {
        "" => c.what.clone(),
        unit => format!("{} ({unit})", c.what),
    }
}

/// A line of a table.
fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Answers; those within each factor; those farther; those of another sign or answer; inputs; those with nothing to compare.
fn tally(result: &StudyResult) -> [usize; 9] {
    let factors: Vec<f64> = result
        .answers()
        .filter_map(|c| Value::factor(&c.published, &c.ours))
        .collect();
    let within = |most: f64| {
        factors
            .iter()
            .filter(|f| **f <= most * (1.0 + 1e-9))
            .count()
    };
    let finite = factors.iter().filter(|f| f.is_finite()).count();
    let answers = result.answers().count();
    [
        factors.len(),
        within(1.10),
        within(1.25),
        within(1.5),
        within(2.0),
        finite - within(2.0),
        factors.len() - finite,
        result.claims.len() - answers,
        answers - factors.len(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fmt::Format;
    use crate::{Axis, Better, Column, Data, Series};

    #[test]
    fn a_page_has_the_tables_and_pictures_of_its_study() {
        let mut result = StudyResult::new("pima", "optane-6242", 1, "0.1.0");
        let mut table = RunTable::new("Programs", "program");
        table
            .columns
            .push(Column::new("time", Format::Ratio, Better::Lower));
        table.push("a|b", [2.0.into()]);
        table.push("c", [1.0.into()]);
        table.notes.push("Beside DRAM.".into());
        result.tables.push(table);
        let axis = || Axis::new("x", "", Format::Number);
        for (id, points) in [("scaling", vec![1.0, 2.0]), ("empty", vec![])] {
            let lines = Data::Lines(vec![Series::new("PR", points.clone(), points)]);
            result.charts.push(
                Chart::new(id, "By cores", axis(), axis(), lines).with_note("One core each."),
            );
        }
        let page = study(&result);
        assert!(page.contains("seed 1, varve 0.1.0.\n"), "{page}");
        let table = "\n|---|---|\n| a\\|b | 2 |\n| c | **1** |\n\nBeside DRAM.\n";
        assert!(
            page.contains("## Programs\n\n| program | time (x) |"),
            "{page}"
        );
        assert!(page.contains(table), "{page}");
        assert!(
            page.contains("## By cores\n\n![By cores](pima/scaling.svg)\n\nOne core each.\n"),
            "{page}"
        );
        assert!(
            !page.contains("empty.svg"),
            "what has no data has no picture: {page}"
        );
        assert!(!all(&[result.clone()]).contains("--quick"));
        result.coarse = true;
        for page in [study(&result), all(&[result.clone()])] {
            assert!(page.contains("`--quick`"), "{page}");
        }
        let files = pictures(&result);
        assert_eq!(files.len(), 1);
        assert!(files[0].0 == "pima/scaling.svg" && files[0].1.starts_with("<svg"));
    }
}
