//! Results as tables for a terminal, never wider than 80 columns.

use crate::term::{Look, paint, printable, wrap};
use crate::{Row, RunTable, StudyResult, fmt};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
    presets::NOTHING,
};

/// The claims of a study: published beside ours.
///
/// ```
/// use varve_report::{Claim, Look, StudyResult, table};
/// let mut result = StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
/// result.claims.push(Claim::new("D12", "metadata of 128 GB + 1 TB", 50.0, 41.0, "MB"));
/// let text = table::claims(&result, Look::plain());
/// assert!(text.lines().all(|line| line.chars().count() <= 80));
/// assert!(text.contains("0.82x"));
/// ```
pub fn claims(result: &StudyResult, look: Look) -> String {
    let mut out = String::new();
    let title = if result.title.is_empty() {
        &result.study
    } else {
        &result.title
    };
    out.push_str(&wrap(&printable(title), look.width, ""));
    out.push('\n');
    let origin = format!(
        "machine {}, seed {}, varve {}",
        printable(&result.machine),
        result.seed,
        printable(&result.version)
    );
    out.push_str(&wrap(&origin, look.width, ""));
    out.push_str("\n\n");

    let mut rows: Vec<Vec<String>> = Vec::new();
    for c in &result.claims {
        let what = if c.unit.is_empty() {
            c.what.clone()
        } else {
            format!("{} ({})", c.what, c.unit)
        };
        let cells = [
            c.id.clone(),
            what,
            c.published.to_string(),
            c.ours.to_string(),
            c.ratio.map_or(fmt::NONE.into(), fmt::ratio),
            c.agreement().symbol().into(),
        ];
        rows.push(cells.map(|cell| printable(&cell)).into());
    }
    let headings = ["id", "claim (unit)", "published", "ours", "ratio", ""].map(String::from);
    // Words give way to numbers, and numbers are never broken.
    let least = |c: usize| match c {
        1 => 8,
        2 | 3 => rows
            .iter()
            .filter(|r| is_number(&r[c]))
            .map(|r| chars(&r[c]))
            .max()
            .unwrap_or(1),
        _ => rows.iter().map(|r| chars(&r[c])).max().unwrap_or(1).min(12),
    };
    let least: Vec<usize> = (0..headings.len())
        .map(|c| least(c).max(longest_word(&headings[c])))
        .collect();
    let left = [true, true, false, false, false, true];
    out.push_str(&grid(&headings, &rows, &left, &least, look.width));

    out.push('\n');
    let [close, near, far, unknown] = result.tally().map(|(_, n)| n);
    let mut legend =
        format!("● {close} as published (within 10 %), ◐ {near} near (within 1.5x), ○ {far} far");
    if unknown > 0 {
        legend.push_str(&format!(", {unknown} not comparable"));
    }
    out.push_str(&wrap(&legend, look.width, "  "));
    out.push('\n');
    for c in result.claims.iter().filter(|c| !c.note.is_empty()) {
        let note = format!("{}: {}", c.id, c.note);
        out.push_str(&wrap(&printable(&note), look.width, "    "));
        out.push('\n');
    }
    paint(out, look)
}

/// A comparison of runs: `★` marks the best of a column, `◆` the runs on the frontier of the trade-off.
/// Columns that do not fit beside each other follow below, with the runs' names again.
pub fn runs(table: &RunTable, look: Look) -> String {
    let frontier = table
        .trade_off
        .map(|(a, b)| table.frontier(a, b))
        .unwrap_or_default();
    let mark = |on: bool| match (table.trade_off, on) {
        (None, _) => "",
        (_, true) => "◆ ",
        (_, false) => "  ",
    };
    let rows_are = format!("{}{}", mark(false), table.rows_are);
    let half = look.width / 2;
    let indent = chars(mark(false));
    let named = |(r, row): (usize, &Row)| {
        let lines = name_lines(&printable(&row.name), half - indent);
        let next = format!("\n{}", mark(false));
        format!("{}{}", mark(frontier.contains(&r)), lines.join(&next))
    };
    let names: Vec<String> = table.rows.iter().enumerate().map(named).collect();
    let name_width = names
        .iter()
        .flat_map(|name| name.lines())
        .chain([rows_are.as_str()])
        .map(chars)
        .max()
        .unwrap_or(0)
        .min(half);
    let mut columns = Vec::new();
    for c in 0..table.columns.len() {
        let (heading, mut cells) = table.column_text(c);
        cells.iter_mut().for_each(|cell| *cell = printable(cell));
        let best = table.best(c);
        // Where any cell carries the star, the others keep its place free, so that digits line up.
        for (r, cell) in cells.iter_mut().enumerate().filter(|_| !best.is_empty()) {
            cell.push_str(if best.contains(&r) { " ★" } else { "  " });
        }
        columns.push((heading, cells));
    }

    let mut out = wrap(&printable(&table.title), look.width, "");
    out.push_str("\n\n");
    let mut next = 0;
    while next < columns.len() || next == 0 {
        let widths: Vec<usize> = columns[next..].iter().map(least_width).collect();
        let block = fitting(name_width, &widths, look.width);
        let shown = &columns[next..next + block];
        let heading = std::iter::once(&rows_are).chain(shown.iter().map(|c| &c.0));
        let headings: Vec<String> = heading.cloned().collect();
        let cell = |r: usize| shown.iter().map(move |c| c.1[r].clone());
        let rows: Vec<Vec<String>> = (0..names.len())
            .map(|r| std::iter::once(names[r].clone()).chain(cell(r)).collect())
            .collect();
        let left: Vec<bool> = (0..=block).map(|c| c == 0).collect();
        let least: Vec<usize> = std::iter::once(name_width).chain(widths).collect();
        out.push_str(&grid(&headings, &rows, &left, &least, look.width));
        out.push('\n');
        next += block.max(1);
    }
    if let Some((a, b)) = table.trade_off {
        let name = |c: usize| &table.columns[c].name;
        let say = format!(
            "★ best of its column, ◆ no other run is better in both {} and {}",
            name(a),
            name(b)
        );
        out.push_str(&wrap(&printable(&say), look.width, "  "));
        out.push('\n');
    } else if (0..table.columns.len()).any(|c| !table.best(c).is_empty()) {
        out.push_str("★ best of its column\n");
    }
    for note in &table.notes {
        out.push_str(&wrap(&printable(note), look.width, "  "));
        out.push('\n');
    }
    paint(out, look)
}

/// A run's name in lines of at most `width` characters, broken behind what joins its parts where possible.
fn name_lines(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive([',', ':', '+', ' ']) {
        let last = lines.last_mut().expect("there is a line");
        if chars(&last) + chars(part) <= width {
            last.push_str(part);
            continue;
        }
        let part: Vec<char> = part.chars().collect();
        lines.extend(part.chunks(width).map(String::from_iter));
    }
    if lines[0].is_empty() && lines.len() > 1 {
        lines.remove(0);
    }
    lines
}

/// How many columns fit beside the names without breaking a word; at least one, where there is one.
fn fitting(name_width: usize, widths: &[usize], room: usize) -> usize {
    let mut used = name_width;
    let fits = |w: &&usize| {
        used += **w + GAP;
        used <= room
    };
    widths
        .iter()
        .take_while(fits)
        .count()
        .max(1)
        .min(widths.len())
}

/// Blanks between two columns.
const GAP: usize = 2;

fn chars(text: impl AsRef<str>) -> usize {
    text.as_ref().chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace()
        .map(|w| w.chars().count())
        .max()
        .unwrap_or(0)
}

/// What a column needs so that neither a word of its heading nor a cell is broken.
fn least_width((heading, cells): &(String, Vec<String>)) -> usize {
    cells
        .iter()
        .map(chars)
        .max()
        .unwrap_or(0)
        .max(longest_word(heading))
}

/// Headings over rows, a rule between. `left` says which columns are words and not numbers; `least` how
/// wide each must be, as far as there is room.
fn grid(
    headings: &[String],
    rows: &[Vec<String>],
    left: &[bool],
    least: &[usize],
    width: usize,
) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_style(TableComponent::HeaderLines, '─')
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width as u16)
        .set_header(headings.iter().map(|h| printable(h)));
    for row in rows {
        table.add_row(row);
    }
    let roomy = least
        .iter()
        .take(headings.len())
        .map(|w| w + GAP)
        .sum::<usize>()
        <= width + GAP;
    for (i, column) in table.column_iter_mut().enumerate() {
        let padding = if i + 1 == headings.len() { 0 } else { GAP };
        column.set_padding((0, padding as u16));
        if !left[i] {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if roomy {
            let width = Width::Fixed((least[i] + padding) as u16);
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
        }
    }
    let lines: Vec<String> = table.lines().map(|l| l.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}

/// Whether a cell is a number, perhaps with its sign for the best.
fn is_number(cell: &str) -> bool {
    let number = cell.trim_end_matches(['★', ' ', 'x']);
    number.replace(',', "").parse::<f64>().is_ok() || number == fmt::NONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fmt::Format;
    use crate::{Better, Column};

    #[test]
    fn a_long_name_goes_on_below_itself() {
        let mut table = RunTable::new("Plans", "plan");
        table.columns = ["MNTT", "DRAM"]
            .map(|name| Column::new(name, Format::Ratio, Better::Lower))
            .into();
        table.trade_off = Some((0, 1));
        table.push("dram", [1.0.into(), 3.0.into()]);
        table.push(
            "pima:alpha=1.5,hold-off=5ms,intervals=3,together=yes",
            [2.0.into(), 2.0.into()],
        );
        table.push("w".repeat(90), [3.0.into(), 3.0.into()]);
        let text = runs(&table, Look::plain());
        assert!(
            text.contains("\n◆ pima:alpha=1.5,hold-off=5ms,      "),
            "{text}"
        );
        assert!(text.contains("\n  intervals=3,together=yes\n"), "{text}");
        assert!(
            text.contains(&format!("\n  {}  ", "w".repeat(38))),
            "{text}"
        );
        assert!(
            text.contains(&format!("\n  {}\n", "w".repeat(14))),
            "{text}"
        );
        assert!(text.lines().all(|line| chars(line) <= 80), "{text}");
    }
}
