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
/// assert!(page.contains("| D12 | metadata (MB) | 50 | 41 |  | 0.82x | 1.22x | ◐ | model |"), "{page}");
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
    out.push_str("\n| | claim (unit) | published | ours | alike | ratio | off by | | from |");
    out.push_str(if certain { " how sure |\n" } else { "\n" });
    out.push_str("|---|---|---|---|---|---|---|---|---|");
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
            c.alike().map_or(String::new(), |a| a.to_string()),
            c.ratio.map_or(fmt::NONE.into(), fmt::ratio),
            table::off(c),
            sign.into(),
            c.kind.word().into(),
        ];
        if certain {
            cells.push(table::certainty(c).unwrap_or_default());
        }
        out.push_str(&row(&cells));
    }
    out.push_str(
        "\n*alike*: what a machine would say on which what is compared makes no difference. *off by*: the factor between the published effect and ours,\n\
         which are the distances from *alike*; without that, between the values. ● within 10 %, ◐ within 1.5x, ○ far or the other direction.\n\
         *model*: computed, the same wherever it is run; *here*: measured on the host that ran it; *input*: the published value chose a number\n\
         of ours, so that agreement proves nothing.\n",
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

/// A page that sums studies up: how many of their answers are how far from the published ones, by effects and by values.
///
/// ```
/// use varve_report::{Claim, StudyResult, markdown};
/// let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
/// result.claims.push(Claim::new("D12", "metadata", 50.0, 41.0, "MB"));
/// result.claims.push(Claim::new("D8", "JC-static's time over all data in DRAM", 1.0, 1.03, "x"));
/// let page = markdown::all(&[result]);
/// assert!(page.contains("| [johnny-cache](johnny-cache.md) | 2 | 1 | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |"), "{page}");
/// assert!(page.contains("| [johnny-cache](johnny-cache.md) | 2 | 1 | 2 | 2 | 2 | 0 | 0 |"), "{page}");
/// ```
pub fn all(results: &[StudyResult]) -> String {
    let mut out = String::from(
        "# Published beside ours\n\nAnswers of all studies, by the factor between published and ours. What is a bound or a range has a factor of \
         one where it\nholds. *Other*: another direction, or another answer to yes or no. *Inputs*: published values that chose a number of ours; \
         they\nare no answers. *Not compared*: the paper or we have no number.\n\n",
    );
    if results.iter().any(|r| r.coarse) {
        out.push_str(
            "These are the coarse versions (`--quick`), of smaller and fewer programs.\n\n",
        );
    }
    out.push_str(
        "## By effects\n\nOf a slowdown or a gain the effect is compared: what it is more or less than 1. *Trivial* answers are left out of the \
         columns after\nthem: a machine on which nothing makes a difference would be within 25 % of what is published, or both are 0.\n\n",
    );
    let head = "| study | answers | trivial | within 10 % | within 25 % | within 1.5x | within 2x | farther | other | inputs | not compared |";
    sum_up(&mut out, head, results, by_effect);
    out.push_str(
        "\n## By values\n\nThe same by the values themselves, and trivial ones with them.\n\n",
    );
    let head = "| study | answers | within 10 % | within 25 % | within 1.5x | within 2x | farther | other |";
    sum_up(&mut out, head, results, |r| {
        let factor = |c: &Claim| Value::factor(&c.published, &c.ours);
        let all = Within::of(r.answers().filter_map(factor));
        [vec![all.count], all.cells()].concat()
    });
    out
}

/// A table with a line for each study, and one for all.
fn sum_up(
    out: &mut String,
    head: &str,
    results: &[StudyResult],
    counts: impl Fn(&StudyResult) -> Vec<usize>,
) {
    let columns = head.matches('|').count() - 1;
    out.push_str(&format!("{head}\n|{}\n", "---|".repeat(columns)));
    let mut sums = vec![0; columns - 1];
    let mut line = |name: &str, counts: &[usize]| {
        let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
        out.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    };
    for result in results {
        let counts = counts(result);
        let name = &result.study;
        line(&format!("[{name}]({name}.md)"), &counts);
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    line("all", &sums);
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

/// How many answers are within each factor, farther, and of another direction or answer.
struct Within {
    count: usize,
    factors: Vec<f64>,
}

impl Within {
    fn of(factors: impl Iterator<Item = f64>) -> Within {
        let factors: Vec<f64> = factors.collect();
        Within {
            count: factors.len(),
            factors,
        }
    }

    fn cells(&self) -> Vec<usize> {
        let within = |most: f64| {
            self.factors
                .iter()
                .filter(|f| **f <= most * (1.0 + 1e-9))
                .count()
        };
        let finite = self.factors.iter().filter(|f| f.is_finite()).count();
        let mut cells: Vec<usize> = [1.10, 1.25, 1.5, 2.0].map(within).into();
        cells.extend([finite - within(2.0), self.count - finite]);
        cells
    }
}

/// Answers; trivial ones; the others by how far their effects are; inputs; those with nothing to compare.
fn by_effect(result: &StudyResult) -> Vec<usize> {
    let compared: Vec<&Claim> = result.answers().filter(|c| c.off().is_some()).collect();
    let trivial = compared.iter().filter(|c| c.is_trivial()).count();
    let others = compared.iter().filter(|c| !c.is_trivial());
    let answers = result.answers().count();
    let mut cells = vec![compared.len(), trivial];
    cells.extend(Within::of(others.filter_map(|c| c.off())).cells());
    cells.extend([result.claims.len() - answers, answers - compared.len()]);
    cells
}
