//! What charts with axes share: headings, grid, levels, legends.

use super::scale::Placed;
use super::{LINE, Plot, colour, fit, line, text, text_width};
use crate::chart::Chart;
use crate::markup::{Markup, Px};

/// The vertical axis: its heading above, a light line at each tick.
pub fn y_axis(y: &Placed, plot: Plot, page: &mut Markup) {
    text(page, (0.0, plot.top - 10.0), "start", "axis", &y.heading);
    for (value, label) in &y.ticks {
        if let Some(at) = y.at(*value) {
            line(page, (plot.left, at), (plot.right, at), &"grid");
            text(page, (plot.left - 6.0, at + 4.0), "end", "tick", label);
        }
    }
}

/// The horizontal axis: ticks below, its heading below them.
pub fn x_axis(x: &Placed, plot: Plot, page: &mut Markup) {
    line(
        page,
        (plot.left, plot.bottom),
        (plot.right, plot.bottom),
        &"base",
    );
    for (value, label) in &x.ticks {
        if let Some(at) = x.at(*value) {
            line(page, (at, plot.bottom), (at, plot.bottom + 4.0), &"base");
            text(page, (at, plot.bottom + 17.0), "middle", "tick", label);
        }
    }
    x_heading(&x.heading, plot, plot.bottom + 17.0 + LINE, page);
}

/// The horizontal axis' name, in the middle below it.
pub fn x_heading(heading: &str, plot: Plot, at: f64, page: &mut Markup) {
    text(
        page,
        ((plot.left + plot.right) / 2.0, at),
        "middle",
        "axis",
        heading,
    );
}

/// Lines across the chart at values worth seeing, with their names.
pub fn levels(chart: &Chart, y: &Placed, plot: Plot, page: &mut Markup) {
    for level in &chart.levels {
        if let Some(at) = y.at(level.value) {
            line(page, (plot.left, at), (plot.right, at), &"level");
            let name = fit(&level.name, plot.right - plot.left - 8.0);
            text(
                page,
                (plot.left + 4.0, at - 5.0),
                "start",
                "note halo",
                &name,
            );
        }
    }
}

/// How wide the labels of the ticks are.
pub fn ticks_width(axis: &Placed) -> f64 {
    axis.ticks
        .iter()
        .map(|t| text_width(&t.1))
        .fold(0.0, f64::max)
}

/// How many lines a legend takes.
pub fn legend_lines(names: &[&str], width: f64) -> usize {
    places(names, width).last().map_or(0, |p| p.1 + 1)
}

/// A legend in lines from `top` on: a swatch of each colour with its name.
pub fn legend(names: &[&str], width: f64, top: f64, swatch: &str, page: &mut Markup) {
    for (i, ((x, row), name)) in places(names, width).into_iter().zip(names).enumerate() {
        let y = top + row as f64 * LINE;
        let class = format!("{swatch} {}", colour(i));
        if swatch == "line" {
            line(page, (x, y + 6.0), (x + 16.0, y + 6.0), &class);
        } else {
            let (x, y) = (Px(x), Px(y));
            page.empty(
                "rect",
                &[
                    ("x", &x),
                    ("y", &y),
                    ("width", &"12"),
                    ("height", &"12"),
                    ("class", &class),
                ],
            );
        }
        text(
            page,
            (x + 21.0, y + 10.5),
            "start",
            "note",
            &fit(name, width - 24.0),
        );
    }
}

/// Where each name of a legend begins: pixels from the left, and line.
fn places(names: &[&str], width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut out = Vec::new();
    for name in names {
        let needs = 24.0 + text_width(name);
        if x > 0.0 && x + needs > width {
            (x, row) = (0.0, row + 1);
        }
        out.push((x, row));
        x += needs + 14.0;
    }
    out
}
