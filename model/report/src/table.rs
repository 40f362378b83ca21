//! Results as tables for a terminal, never wider than it.

use crate::term::{Look, paint, printable, wrap};
use crate::{Claim, Kind, RunTable, StudyResult, fmt};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
    presets::NOTHING,
};
use std::collections::HashSet;

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
            off(c),
            match c.kind {
                Kind::Input => c.kind.word().into(),
                _ => c.agreement().symbol().into(),
            },
        ];
        rows.push(cells.map(|cell| printable(&cell)).into());
    }
    let headings = [
        "id",
        "claim (unit)",
        "published",
        "ours",
        "ratio",
        "off by",
        "",
    ]
    .map(String::from);
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
    let left = [true, true, false, false, false, false, true];
    out.push_str(&grid(&headings, &rows, &left, &least, look.width, GAP));

    out.push('\n');
    let [close, near, far, unknown] = result.tally().map(|(_, n)| n);
    let mut legend =
        format!("● {close} as published (within 10 %), ◐ {near} near (within 1.5x), ○ {far} far");
    let trivial = result.answers().filter(|c| c.is_trivial()).count();
    if trivial > 0 {
        legend.push_str(&format!(
            ", {trivial} that say next to nothing (a machine on which nothing makes a difference is within 25 %)"
        ));
    }
    if unknown > 0 {
        legend.push_str(&format!(", {unknown} not comparable"));
    }
    let inputs = result.claims.len() - result.answers().count();
    if inputs > 0 {
        legend.push_str(&format!(", {inputs} inputs, which prove nothing"));
    }
    out.push_str(&wrap(&legend, look.width, "  "));
    out.push('\n');
    let mut told = HashSet::new();
    let has_note = |c: &&Claim| !c.note.is_empty();
    for c in result.claims.iter().filter(has_note) {
        // Rows of one claim often share theirs.
        if told.insert((&c.id, &c.note)) {
            let note = format!("{}: {}", c.id, c.note);
            out.push_str(&wrap(&printable(&note), look.width, "    "));
            out.push('\n');
        }
    }
    for c in &result.claims {
        if let Some(line) = certainty(c).map(|line| format!("{}, {}: {line}", c.id, c.what)) {
            out.push_str(&wrap(&printable(&line), look.width, "    "));
            out.push('\n');
        }
    }
    paint(out, look)
}

/// The factor by which a claim's effect, or else its value, is off.
pub(crate) fn off(c: &Claim) -> String {
    match c.off() {
        None => fmt::NONE.into(),
        Some(off) if off.is_infinite() => "other".into(),
        Some(off) => fmt::ratio(off),
    }
}

/// How sure a claim's value is, as far as that was asked for.
pub(crate) fn certainty(c: &Claim) -> Option<String> {
    let number = |x: f64| fmt::significant(x, 3);
    let spread = c
        .spread
        .map(|(low, high)| format!("{} to {} by seed", number(low), number(high)));
    let moved = c
        .sensitivity
        .as_ref()
        .map(|s| format!("{} with {}", s.ours, s.rule));
    let parts: Vec<String> = spread.into_iter().chain(moved).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A comparison of runs: `★` marks the best of a column, `◆` the runs on the frontier of the trade-off.
///
/// Where there is little room, names go on below themselves, columns stand closer, and then headings are broken. Only
/// columns that do not even fit then follow below, with the runs' names again.
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
    let named: Vec<(String, &str)> = (table.rows.iter().enumerate())
        .map(|(r, row)| (printable(&row.name), mark(frontier.contains(&r))))
        .collect();
    let indent = chars(mark(false));
    let layout = Layout::new(&rows_are, &named, indent, &columns, look.width);
    let names: Vec<String> = named
        .iter()
        .map(|(name, own)| {
            let lines = name_lines(name, layout.name - indent);
            format!("{own}{}", lines.join(&format!("\n{}", mark(false))))
        })
        .collect();
    let mut next = 0;
    while next < columns.len() || next == 0 {
        let widths = &layout.columns[next..];
        let block = fitting(layout.name, widths, look.width, layout.gap);
        let shown = &columns[next..next + block];
        let heading = std::iter::once(&rows_are).chain(shown.iter().map(|c| &c.0));
        let headings: Vec<String> = heading.cloned().collect();
        let cell = |r: usize| shown.iter().map(move |c| c.1[r].clone());
        let rows: Vec<Vec<String>> = (0..names.len())
            .map(|r| std::iter::once(names[r].clone()).chain(cell(r)).collect())
            .collect();
        let left: Vec<bool> = (0..=block).map(|c| c == 0).collect();
        let least: Vec<usize> = std::iter::once(layout.name)
            .chain(widths.iter().copied())
            .collect();
        out.push_str(&grid(
            &headings, &rows, &left, &least, look.width, layout.gap,
        ));
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

/// How the room of a comparison is shared out.
struct Layout {
    /// The column of names.
    name: usize,
    /// The least width of each other column.
    columns: Vec<usize>,
    /// Blanks between two columns.
    gap: usize,
}

impl Layout {
    /// The most generous one of which nothing has to follow below, or the most generous one of all.
    fn new(
        rows_are: &str,
        names: &[(String, &str)],
        indent: usize,
        columns: &[(String, Vec<String>)],
        width: usize,
    ) -> Layout {
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let whole = longest(&mut names.iter().map(|(name, _)| indent + chars(name)));
        let part = longest(&mut names.iter().map(|(name, _)| indent + longest_part(name)));
        let heading = longest_word(rows_are);
        let roomy = whole.max(chars(rows_are)).min(width / 2);
        let narrow = part.min(SHORT_NAME).max(heading).min(roomy);
        let words: Vec<usize> = columns.iter().map(|c| least_width(c, usize::MAX)).collect();
        let pieces: Vec<usize> = columns.iter().map(|c| least_width(c, PIECE)).collect();
        for (columns, gap) in [(&words, GAP), (&words, 1), (&pieces, 1)] {
            let used: usize = columns.iter().map(|w| w + gap).sum();
            if used + narrow <= width {
                return Layout {
                    name: roomy.min(width - used),
                    columns: columns.clone(),
                    gap,
                };
            }
        }
        Layout {
            name: roomy,
            columns: words,
            gap: GAP,
        }
    }
}

/// A run's name in lines of at most `width` characters, broken after the characters that join its parts where possible.
fn name_lines(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(JOINTS) {
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

/// The longest of a name's parts.
fn longest_part(name: &str) -> usize {
    name.split_inclusive(JOINTS).map(chars).max().unwrap_or(0)
}

/// How many columns fit beside the names; at least one, where there is one.
fn fitting(name_width: usize, widths: &[usize], room: usize, gap: usize) -> usize {
    let mut used = name_width;
    let fits = |w: &&usize| {
        used += **w + gap;
        used <= room
    };
    widths
        .iter()
        .take_while(fits)
        .count()
        .max(1)
        .min(widths.len())
}

/// Blanks between two columns, where there is room.
const GAP: usize = 2;
/// A name's column is not made narrower than its longest part or this.
const SHORT_NAME: usize = 16;
/// No piece of a broken heading is shorter, unless its column's cells are.
const PIECE: usize = 6;
/// Characters that join the parts of a run's name; a name may be broken after them.
const JOINTS: [char; 4] = [',', ':', '+', ' '];

fn chars(text: impl AsRef<str>) -> usize {
    text.as_ref().chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace()
        .map(|w| w.chars().count())
        .max()
        .unwrap_or(0)
}

/// The least width of a column in which no cell is broken, nor a word of its heading into pieces shorter than `piece`.
fn least_width((heading, cells): &(String, Vec<String>), piece: usize) -> usize {
    cells
        .iter()
        .map(chars)
        .max()
        .unwrap_or(0)
        .max(longest_word(heading).min(piece))
}

/// Headings over rows, a rule between. `left` says which columns are words and not numbers; `least` how
/// wide each must be, as far as there is room; `gap` how many blanks are between two.
fn grid(
    headings: &[String],
    rows: &[Vec<String>],
    left: &[bool],
    least: &[usize],
    width: usize,
    gap: usize,
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
        .map(|w| w + gap)
        .sum::<usize>()
        <= width + gap;
    for (i, column) in table.column_iter_mut().enumerate() {
        let padding = if i + 1 == headings.len() { 0 } else { gap };
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
    fn a_note_that_rows_of_a_claim_share_is_told_once() {
        let mut result = StudyResult::new("pima", "optane-6242", 1, "0.1.0");
        for (id, what) in [("A9", "mean"), ("A9", "worst"), ("A12", "mean")] {
            let claim = Claim::new(id, what, 2.0, 1.0, "x");
            result.claims.push(claim.with_note("another machine"));
        }
        let text = claims(&result, Look::plain());
        assert_eq!(text.matches("A9: another machine").count(), 1);
        assert_eq!(text.matches("A12: another machine").count(), 1);
    }

    #[test]
    fn a_long_name_goes_on_below_itself() {
        let mut table = RunTable::new("Plans", "plan");
        table.columns = ["slowdown", "DRAM"]
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

    /// As `varve run` prints the plans of a program.
    fn plans() -> RunTable {
        let mut table = RunTable::new("Plans", "plan");
        table.columns = [
            ("time", Format::DurationNs),
            ("slowdown", Format::Ratio),
            ("DRAM", Format::Percent),
            ("collecting", Format::Percent),
            ("longest pause", Format::DurationNs),
            ("moved", Format::Bytes),
        ]
        .map(|(name, format)| Column::new(name, format, Better::Lower))
        .into();
        table.trade_off = Some((0, 2));
        for (i, name) in [
            "dram",
            "slow-copy",
            "pima:alpha=1.5,hold-off=5ms,intervals=3",
        ]
        .into_iter()
        .enumerate()
        {
            let x = 1.0 + i as f64;
            table.push(
                name,
                [1.234e9 * x, 1.5 * x, 30.0 * x, 12.3 / x, 4e6 * x, 3e9 * x].map(Into::into),
            );
        }
        table
    }

    #[test]
    fn all_columns_stand_beside_each_other_on_every_usual_terminal() {
        for width in [60, 72, 80, 100, 120] {
            let look = Look {
                width,
                colour: false,
            };
            let text = runs(&plans(), look);
            assert!(text.lines().all(|l| chars(l) <= width), "{text}");
            let rules = text.lines().filter(|l| l.starts_with('─')).count();
            assert_eq!(rules, 1, "one table at {width}:\n{text}");
            for word in ["dram", "slow-copy", "hold-off=5ms,", "moved"] {
                assert!(text.contains(word), "{word} at {width}:\n{text}");
            }
        }
    }

    #[test]
    fn a_wide_terminal_has_its_headings_in_fewer_lines() {
        let lines = |width| {
            let look = Look {
                width,
                colour: false,
            };
            let text = runs(&plans(), look);
            let heading = |l: &&str| !l.starts_with('─');
            text.lines().skip(2).take_while(heading).count()
        };
        let (wide, usual) = (lines(120), lines(80));
        assert!(wide < usual, "{wide} and {usual} lines");
    }
}
