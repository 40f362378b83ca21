//! Lines as rows of blocks, for a terminal: how throughput went over time, at a glance.

use crate::chart::{Chart, Data, Series};
use crate::fmt;
use crate::term::{Look, printable, wrap};
use crate::{Axis, Scale};

/// Eight heights within one character.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Lines of text that each series takes.
const ROWS: usize = 2;

/// Values as one row of blocks, one character each, from zero (or the lowest, where that is below) to the highest. A
/// value that is not finite is a blank.
///
/// ```
/// use varve_report::plot::sparkline;
/// assert_eq!(sparkline(&[0.0, 25.0, f64::NAN, 50.0, 100.0]), "▁▂ ▄█");
/// ```
pub fn sparkline(values: &[f64]) -> String {
    let (low, high) = ends(values.iter().copied().chain([0.0]));
    heights(values, low, high, Scale::Linear, 1)
        .iter()
        .map(|h| block(*h, 0))
        .collect()
}

/// A chart of lines, every series in a row of its own, all on the same scale; at most 80 columns wide.
/// `None` where the chart shows something else.
///
/// ```
/// use varve_report::{Axis, Chart, Data, Look, Series, fmt::Format, plot};
/// let line = Series::new("static", vec![0.0, 1e9, 2e9], vec![1e6, 20e6, 25e6]);
/// let (x, y) = (Axis::new("time", "", Format::DurationNs), Axis::new("rate", "", Format::PerSecond));
/// let chart = Chart::new("gups", "GUPS over time", x, y, Data::Lines(vec![line]));
/// println!("{}", plot::lines(&chart, Look::stdout()).unwrap());
/// ```
pub fn lines(chart: &Chart, look: Look) -> Option<String> {
    let Data::Lines(series) = &chart.data else {
        return None;
    };
    let (first, last) = ends(series.iter().flat_map(|s| s.points().map(|p| p.0)));
    let ys = series.iter().flat_map(|s| s.points().map(|p| p.1));
    let zero = (chart.y.scale == Scale::Linear).then_some(0.0);
    let (low, high) = ends(ys.chain(chart.levels.iter().map(|l| l.value)).chain(zero));
    let low = chart.y.range.0.unwrap_or(low);
    let high = chart.y.range.1.unwrap_or(high);

    let mut out = wrap(&printable(&chart.title), look.width, "");
    out.push('\n');
    if first > last {
        out.push_str("nothing was recorded\n");
        return Some(out);
    }
    let unit = chart.y.format.scaled(&chart.y.unit, high);
    let number = |v: f64| fmt::significant(v / unit.divisor, 3);
    let span = format!(
        "{}, each row {} to {}",
        chart.y.heading(&unit.unit),
        number(low),
        number(high)
    );
    out.push_str(&wrap(&printable(&span), look.width, ""));
    out.push_str("\n\n");

    let name = |s: &Series| clip(&printable(&s.shown_name()), look.width / 3);
    let names: Vec<String> = series.iter().map(name).collect();
    let ended: Vec<String> = series
        .iter()
        .map(|s| s.points().last().map_or(fmt::NONE.into(), |p| number(p.1)))
        .collect();
    let longest = |words: &[String]| words.iter().map(|w| w.chars().count()).max().unwrap_or(0);
    let (left, right) = (longest(&names), longest(&ended));
    let width = look.width.saturating_sub(left + right + 4).max(8);

    for (i, s) in series.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let columns = columns(s, &chart.x, first, last, width);
        let heights = heights(&columns, low, high, chart.y.scale, ROWS);
        for row in (0..ROWS).rev() {
            let bars: String = heights.iter().map(|h| block(*h, row)).collect();
            let (name, end) = if row == 0 {
                (names[i].as_str(), ended[i].as_str())
            } else {
                ("", "")
            };
            out.push_str(format!("{name:<left$}  {bars:<width$}  {end:>right$}").trim_end());
            out.push('\n');
        }
    }
    out.push_str(&axis(&chart.x, first, last, left + 2, width));
    out.push('\n');
    Some(out)
}

/// Characters of the first kinds of spans.
const FILLS: [char; 4] = ['█', '▒', '▓', '░'];

/// A Gantt chart, a row for each lane; at most 80 columns wide. `None` where the chart shows something else.
///
/// ```
/// use varve_report::{Axis, Chart, Data, GanttSpan, Look, fmt::Format, plot};
/// let span = |lane, kind: &str, start, end| GanttSpan { lane, name: "a".into(), kind: kind.into(), start, end };
/// let spans = vec![span(0, "fast", 0.0, 2e9), span(1, "slow", 1e9, 4e9)];
/// let data = Data::Gantt { lanes: vec!["a".into(), "b".into()], spans };
/// let (x, y) = (Axis::new("time", "", Format::DurationNs), Axis::new("program", "", Format::Number));
/// println!("{}", plot::gantt(&Chart::new("g", "Group", x, y, data), Look::stdout()).unwrap());
/// ```
pub fn gantt(chart: &Chart, look: Look) -> Option<String> {
    let Data::Gantt { lanes, spans } = &chart.data else {
        return None;
    };
    let mut kinds: Vec<&str> = Vec::new();
    for s in spans {
        if !kinds.contains(&s.kind.as_str()) {
            kinds.push(&s.kind);
        }
    }
    kinds.sort_unstable();
    let fill = |kind: &str| {
        let at = kinds.iter().position(|k| *k == kind).unwrap_or(0);
        FILLS[at % FILLS.len()]
    };
    let (_, data_end) = ends(spans.iter().map(|s| s.end));
    let last = chart.x.range.1.unwrap_or(data_end);
    let mut out = wrap(&printable(&chart.title), look.width, "");
    out.push('\n');
    let names: Vec<String> = lanes
        .iter()
        .map(|l| clip(&printable(l), look.width / 3))
        .collect();
    let left = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let width = look.width.saturating_sub(left + 2).max(8);
    let place = |t: f64| {
        let share = if last > 0.0 { t / last } else { 0.0 };
        (share.clamp(0.0, 1.0) * width as f64).round() as usize
    };
    for (lane, name) in names.iter().enumerate() {
        let mut row = vec![' '; width];
        for s in spans.iter().filter(|s| s.lane == lane) {
            // A span takes at least one character, however short.
            let from = place(s.start).min(width - 1);
            for cell in &mut row[from..place(s.end).max(from + 1)] {
                *cell = fill(&s.kind);
            }
        }
        let row: String = row.into_iter().collect();
        out.push_str(format!("{name:<left$}  {row}").trim_end());
        out.push('\n');
    }
    out.push_str(&axis(&chart.x, 0.0, last, left + 2, width));
    out.push('\n');
    if kinds.len() > 1 {
        let legend: Vec<String> = kinds
            .iter()
            .map(|k| format!("{} {}", fill(k), printable(k)))
            .collect();
        out.push_str(&format!("{:1$}{2}\n", "", left + 2, legend.join("   ")));
    }
    Some(out)
}

/// A heat map, a character for each cell, from blank for the least to full for the most; `-` where there is no value. `None`
/// where the chart shows something else.
///
/// ```
/// use varve_report::{Axis, Chart, Data, HeatRow, Look, fmt::Format, plot};
/// let rows = vec![HeatRow { name: "a".into(), cells: vec![0.0, 50.0, f64::NAN, 100.0] }];
/// let columns = ["w", "x", "y", "z"].map(String::from).to_vec();
/// let (x, y) = (Axis::new("beside", "", Format::Number), Axis::new("lost", "", Format::Percent).between(0.0, 100.0));
/// let text = plot::heat(&Chart::new("h", "Lost", x, y, Data::HeatMap { columns, rows }), Look::plain()).unwrap();
/// assert!(text.contains("a   ▒-█"), "{text}");
/// ```
pub fn heat(chart: &Chart, look: Look) -> Option<String> {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let Data::HeatMap { columns, rows } = &chart.data else {
        return None;
    };
    let (low, high) = ends(rows.iter().flat_map(|r| r.cells.iter().copied()));
    let low = chart.y.range.0.unwrap_or(low);
    let high = chart.y.range.1.unwrap_or(high);
    let shade = |v: f64| {
        let share = (v - low) / (high - low);
        match v.is_finite() {
            false => '-',
            true if !share.is_finite() => SHADES[0],
            true => SHADES[(share.clamp(0.0, 1.0) * 4.0).round() as usize],
        }
    };
    let mut out = wrap(&printable(&chart.title), look.width, "");
    out.push('\n');
    let names: Vec<String> = rows
        .iter()
        .map(|r| clip(&printable(&r.name), look.width / 3))
        .collect();
    let left = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let room = look.width.saturating_sub(left + 2);
    for (row, name) in rows.iter().zip(&names) {
        let cells: String = row.cells.iter().take(room).map(|v| shade(*v)).collect();
        out.push_str(format!("{name:<left$}  {cells}").trim_end());
        out.push('\n');
    }
    let number = |v: f64| chart.y.format.one(&chart.y.unit, v);
    let legend = format!(
        "{}: '{}' {} to '{}' {}; columns in the order of the rows' kind: {} to {}",
        printable(&chart.y.what),
        SHADES[0],
        number(low),
        SHADES[4],
        number(high),
        columns.first().map_or("", |c| c),
        columns.last().map_or("", |c| c),
    );
    out.push_str(&wrap(&legend, look.width, "  "));
    out.push('\n');
    Some(out)
}

/// The ends of the horizontal axis, its name between them.
fn axis(x: &Axis, first: f64, last: f64, indent: usize, width: usize) -> String {
    // Zero is zero in every unit.
    let one = |v: f64| {
        if v == 0.0 {
            "0".to_string()
        } else {
            x.format.one(&x.unit, v)
        }
    };
    let (from, to) = (one(first), one(last));
    let (from, to) = (
        clip(&printable(&from), width / 3),
        clip(&printable(&to), width / 3),
    );
    let room = width.saturating_sub(from.chars().count() + to.chars().count());
    let what = clip(&printable(&x.what), room.saturating_sub(2));
    format!("{:indent$}{from}{what:^room$}{to}", "")
}

/// The lowest and highest finite value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    })
}

/// The mean of the points in each column of the axis; between points the last value holds.
fn columns(s: &Series, x: &Axis, first: f64, last: f64, width: usize) -> Vec<f64> {
    let f = |v: f64| if x.scale == Scale::Linear { v } else { v.ln() };
    let place = |v: f64| {
        let share = (f(v) - f(first)) / (f(last) - f(first));
        if share.is_finite() {
            ((share * width as f64) as usize).min(width - 1)
        } else {
            0
        }
    };
    let mut sums = vec![(0.0, 0u32, false); width];
    for (px, py) in s.x.iter().zip(&s.y).filter(|p| p.0.is_finite()) {
        let cell = &mut sums[place(*px)];
        cell.2 = true;
        if py.is_finite() {
            cell.0 += py;
            cell.1 += 1;
        }
    }
    let mut held = f64::NAN;
    let end = s.points().map(|p| place(p.0)).max().unwrap_or(0);
    let column = |(i, (sum, n, touched)): (usize, (f64, u32, bool))| {
        if touched {
            // A column of gaps only is a gap, and the gap holds until the next point.
            held = if n > 0 { sum / f64::from(n) } else { f64::NAN };
        }
        if i <= end { held } else { f64::NAN }
    };
    sums.into_iter().enumerate().map(column).collect()
}

/// Height of each value in eighths of a character, at least one; `None` for a gap.
fn heights(values: &[f64], low: f64, high: f64, scale: Scale, rows: usize) -> Vec<Option<usize>> {
    let f = |v: f64| if scale == Scale::Linear { v } else { v.ln() };
    let most = BLOCKS.len() * rows;
    let height = |v: &f64| {
        let share = (f(*v) - f(low)) / (f(high) - f(low));
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        v.is_finite()
            .then(|| ((share * most as f64).round() as usize).max(1))
    };
    values.iter().map(height).collect()
}

/// The block of a height in a row of text, counted from the bottom.
fn block(height: Option<usize>, row: usize) -> char {
    match height.unwrap_or(0).saturating_sub(row * BLOCKS.len()) {
        0 => ' ',
        h => BLOCKS[h.min(BLOCKS.len()) - 1],
    }
}

/// At most `most` characters.
fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_the_last_value_holds_and_a_gap_stays_a_gap() {
        let s = Series::new("s", vec![0.0, 4.0, 8.0], vec![1.0, f64::NAN, 3.0]);
        let columns = columns(&s, &Axis::default(), 0.0, 10.0, 10);
        let shown: String = columns
            .iter()
            .map(|v| {
                if v.is_nan() {
                    '.'
                } else {
                    v.to_string().remove(0)
                }
            })
            .collect();
        assert_eq!(
            shown, "1111....3.",
            "nothing is made up after the last point"
        );
    }

    #[test]
    fn a_column_of_many_points_is_their_mean() {
        let x: Vec<f64> = (0..100).map(f64::from).collect();
        let y = x.iter().map(|v| v % 2.0).collect();
        let columns = columns(&Series::new("s", x, y), &Axis::default(), 0.0, 99.0, 5);
        assert!(
            columns.iter().all(|v| (v - 0.5).abs() < 0.05),
            "{columns:?}"
        );
    }

    #[test]
    fn two_rows_stack() {
        let h = heights(&[0.0, 50.0, 100.0], 0.0, 100.0, Scale::Linear, 2);
        let row = |r| h.iter().map(|h| block(*h, r)).collect::<String>();
        assert_eq!((row(0).as_str(), row(1).as_str()), ("▁██", "  █"));
    }
}
