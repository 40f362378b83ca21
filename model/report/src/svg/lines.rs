//! Lines over an axis, such as throughput over time; named at their right ends where there is room.

use super::frame::{self, Entry};
use super::scale::Placed;
use super::{Canvas, LINE, Plot, begin, colour};
use crate::Axis;
use crate::chart::{Chart, Series};
use crate::markup::{Markup, Px};
use std::fmt::Write;

/// Lines with at most this number of points show each of them as a dot.
const DOTS: usize = 40;
/// Limit of the points of a line with a tooltip.
const TIPS: usize = 48;

pub fn draw(chart: &Chart, series: &[Series], canvas: Canvas, page: &mut Markup) {
    // Names beside the lines are read faster than a legend.
    let names: Vec<String> = series.iter().map(Series::shown_name).collect();
    let marked = names
        .iter()
        .map(String::as_str)
        .chain(chart.levels.iter().map(|l| l.name.as_str()));
    let margin = frame::margin(marked, canvas.width).filter(|_| series.len() <= 10);
    let mut legend: Vec<Entry> = Vec::new();
    if margin.is_none() {
        legend.extend(
            names
                .iter()
                .enumerate()
                .map(|(i, n)| Entry::new(n, class(series, i))),
        );
        legend.extend(frame::level_entries(chart));
    }
    let legend_height = frame::legend_lines(&legend, canvas.width) as f64 * LINE;

    let top = 28.0 + legend_height;
    let height = (canvas.width * 0.42).clamp(200.0, 320.0);
    let bottom = top + height;
    let ys = || {
        series
            .iter()
            .flat_map(|s| s.points().map(|p| p.1))
            .chain(chart.levels.iter().map(|l| l.value))
    };
    let y = Placed::new(&chart.y, ys(), (bottom, top), 44.0, false);
    let plot = Plot {
        left: frame::ticks_width(&y) + 10.0,
        right: canvas.width - margin.unwrap_or(12.0),
        top,
        bottom,
    };
    let xs = series.iter().flat_map(|s| s.points().map(|p| p.0));
    let x = Placed::new(
        &unrounded(&chart.x, series),
        xs,
        (plot.left, plot.right),
        64.0,
        false,
    );

    begin(chart, "Line chart", (canvas.width, bottom + 40.0), page);
    frame::legend(&legend, canvas.width, page);
    frame::y_axis(&y, plot, page);
    frame::x_axis(&x, plot, page);
    frame::levels(chart, &y, plot, page);
    for (i, s) in series.iter().enumerate() {
        path(s, &class(series, i), &x, &y, page);
    }
    if margin.is_some() {
        frame::beside(ends(chart, series, &y), plot, page);
    }
    if canvas.wide {
        series.iter().for_each(|s| tips(chart, s, &x, &y, page));
    }
    page.close();
}

/// A horizontal axis ends where its data ends: empty space there has no meaning.
fn unrounded(axis: &Axis, series: &[Series]) -> Axis {
    let ends = series.iter().flat_map(|s| s.points().map(|p| p.0));
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
        (l.min(x), h.max(x))
    });
    if low >= high {
        return axis.clone();
    }
    let low = if low > 0.0 && low < high / 20.0 && axis.scale == crate::Scale::Linear {
        0.0
    } else {
        low
    };
    axis.clone()
        .between(axis.range.0.or(Some(low)), axis.range.1.or(Some(high)))
}

/// A line's classes: a published line has the colour of ours of the same name.
fn class(series: &[Series], i: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    for s in &series[..=i] {
        if !names.contains(&s.name.as_str()) {
            names.push(&s.name);
        }
    }
    let c = names.iter().position(|n| *n == series[i].name).unwrap_or(i);
    let published = if series[i].published {
        " published"
    } else {
        ""
    };
    format!("line {}{published}", colour(c))
}

/// One line, broken at its gaps.
fn path(s: &Series, class: &str, x: &Placed, y: &Placed, page: &mut Markup) {
    let place = |k: usize| Some((x.at(s.x[k])?, y.at(s.y[k])?));
    let places: Vec<Option<(f64, f64)>> = (0..s.x.len()).map(place).collect();
    let mut d = String::new();
    let mut alone = Vec::new();
    for run in places.split(Option::is_none) {
        let run: Vec<(f64, f64)> = run.iter().flatten().copied().collect();
        if let [one] = run[..] {
            alone.push(one);
        }
        for (k, (px, py)) in thinned(&run).into_iter().enumerate() {
            let _ = write!(d, "{}{} {}", if k == 0 { "M" } else { "L" }, Px(px), Px(py));
        }
    }
    if !d.is_empty() {
        page.open("path", &[("d", &d), ("class", &class)]);
        page.leaf("title", &[], &s.shown_name());
        page.close();
    }
    let dots = if s.x.len() <= DOTS {
        places.into_iter().flatten().collect()
    } else {
        alone
    };
    let class = class.replacen("line", "dot", 1);
    for (px, py) in dots {
        page.empty(
            "circle",
            &[
                ("cx", &Px(px)),
                ("cy", &Px(py)),
                ("r", &"2.5"),
                ("class", &class),
            ],
        );
    }
}

/// The visible points of a run: in each column of pixels the first, lowest, highest and last.
fn thinned(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for column in run.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 4 {
            out.extend_from_slice(column);
            continue;
        }
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let index = |p: &(f64, f64)| column.iter().position(|q| q == p).unwrap_or(0);
        let lowest = column.iter().min_by(by_y).map_or(0, index);
        let highest = column.iter().max_by(by_y).map_or(0, index);
        let mut keep = [0, lowest, highest, column.len() - 1];
        keep.sort();
        out.extend(keep.map(|k| column[k]));
    }
    out
}

/// The names of lines and levels, where they end.
fn ends(chart: &Chart, series: &[Series], y: &Placed) -> Vec<frame::LineLabel> {
    let last = |s: &Series| s.points().filter_map(|p| y.at(p.1)).last();
    let line = |(i, s): (usize, &Series)| {
        let class = class(series, i).replacen("line", "lead", 1);
        Some(frame::LineLabel {
            class,
            from: last(s)?,
            name: s.shown_name(),
        })
    };
    series
        .iter()
        .enumerate()
        .filter_map(line)
        .chain(frame::level_ends(chart, y))
        .collect()
}

/// Points with tooltips.
fn tips(chart: &Chart, s: &Series, x: &Placed, y: &Placed, page: &mut Markup) {
    let points: Vec<(f64, f64)> = s.points().collect();
    let every = points.len().div_ceil(TIPS).max(1);
    for (px, py) in points.iter().step_by(every) {
        let (Some(cx), Some(cy)) = (x.at(*px), y.at(*py)) else {
            continue;
        };
        let tip = format!(
            "{}: {} at {}",
            s.shown_name(),
            chart.y.format.one(&chart.y.unit, *py),
            chart.x.format.one(&chart.x.unit, *px)
        );
        page.open(
            "circle",
            &[
                ("cx", &Px(cx)),
                ("cy", &Px(cy)),
                ("r", &"7"),
                ("class", &"tip"),
            ],
        );
        page.leaf("title", &[], &tip);
        page.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Thinning keeps the highest and the lowest of every column of pixels.
        #[test]
        fn thinning_keeps_spikes(run in prop::collection::vec((0.0f64..5.0, 0.0f64..100.0), 1..200)) {
            let mut run = run;
            run.sort_by(|a, b| a.0.total_cmp(&b.0));
            let thin = thinned(&run);
            prop_assert!(thin.len() <= run.len().max(4 * 5));
            for column in 0..5 {
                let of = |points: &[(f64, f64)]| -> Vec<f64> {
                    points.iter().filter(|p| p.0.floor() == f64::from(column)).map(|p| p.1).collect()
                };
                let (all, kept) = (of(&run), of(&thin));
                prop_assert_eq!(all.iter().copied().reduce(f64::max), kept.iter().copied().reduce(f64::max));
                prop_assert_eq!(all.into_iter().reduce(f64::min), kept.into_iter().reduce(f64::min));
            }
        }
    }
}
