//! Bars in groups, side by side or stacked.

use super::frame::{self, Entry};
use super::scale::Placed;
use super::{Canvas, LINE, Plot, begin, broken, colour, rect, text, text_width};
use crate::Scale;
use crate::chart::{Bars, Chart};
use crate::fmt;
use crate::markup::Markup;

/// A bar is no wider than this: one alone would look like a wall.
const WIDEST: f64 = 56.0;

pub fn draw(
    chart: &Chart,
    groups: &[String],
    bars: &[Bars],
    stacked: bool,
    canvas: Canvas,
    page: &mut Markup,
) {
    let beside = if stacked {
        1.0
    } else {
        bars.len().max(1) as f64
    };
    // A chart of many bars grows wide and scrolls rather than become unreadable.
    let least = groups.len() as f64 * (beside * 9.0 + 14.0).max(52.0) + 60.0;
    let width = canvas.width.max(least);
    let levels = chart.levels.iter().map(|l| l.name.as_str());
    let margin =
        frame::margin(levels, canvas.width).filter(|_| canvas.wide && !chart.levels.is_empty());
    let legend = legend(chart, bars, margin.is_none());

    let top = 32.0 + frame::legend_lines(&legend, canvas.width) as f64 * LINE;
    let bottom = top + (canvas.width * 0.36).clamp(180.0, 260.0);
    let heights = heights(groups.len(), bars, stacked);
    let ys = heights
        .iter()
        .copied()
        .chain(chart.levels.iter().map(|l| l.value));
    let y = Placed::new(&chart.y, ys, (bottom, top), 40.0, true);
    let plot = Plot {
        left: frame::ticks_width(&y) + 10.0,
        right: width - margin.unwrap_or(4.0),
        top,
        bottom,
    };

    let slot = (plot.right - plot.left) / groups.len().max(1) as f64;
    let names: Vec<Vec<String>> = groups.iter().map(|g| broken(g, slot - 6.0, 3)).collect();
    let name_lines = names.iter().map(Vec::len).max().unwrap_or(1);
    // Names stand below the numbers of bars that point down.
    let named = bottom
        + if heights.iter().any(|v| *v < 0.0) {
            14.0
        } else {
            0.0
        };
    let below = named + 4.0 + name_lines as f64 * LINE;
    let kind = if stacked {
        "Stacked bar chart"
    } else {
        "Bar chart"
    };
    begin(chart, kind, (width, below + LINE + 8.0), page);
    frame::legend(&legend, canvas.width, page);
    frame::y_axis(&y, plot, page);

    let bar = ((slot - 14.0) / beside).min(WIDEST);
    let zero = y.clamped(if chart.y.scale == Scale::Linear {
        0.0
    } else {
        y.low()
    });
    let numbers = Numbers::new(chart, &heights, if stacked { slot } else { bar });
    for (g, name) in names.iter().enumerate() {
        let middle = plot.left + (g as f64 + 0.5) * slot;
        for (l, words) in name.iter().enumerate() {
            text(
                page,
                (middle, named + LINE * (l + 1) as f64),
                "middle",
                "tick",
                words,
            );
        }
        let place = Group {
            chart,
            name: &groups[g],
            index: g,
            middle,
            bar,
            zero,
            y: &y,
            numbers: &numbers,
        };
        if stacked {
            place.stack(bars, page)
        } else {
            place.side_by_side(bars, page)
        }
    }
    frame::levels(chart, &y, plot, page);
    if margin.is_some() {
        frame::beside(frame::level_ends(chart, &y), plot, page);
    }
    super::line(page, (plot.left, zero), (plot.right, zero), &"base");
    frame::x_heading(&chart.x.what, plot, below + LINE, page);
    page.close();
}

fn legend(chart: &Chart, bars: &[Bars], with_levels: bool) -> Vec<Entry> {
    let entry = |(i, b): (usize, &Bars)| Entry::new(&b.name, format!("fill {}", colour(i)));
    let mut legend: Vec<Entry> = bars
        .iter()
        .enumerate()
        .filter(|_| bars.len() > 1)
        .map(entry)
        .collect();
    if with_levels {
        legend.extend(frame::level_entries(chart));
    }
    legend
}

/// Values that the axis must cover: every bar, or the top of every stack.
fn heights(groups: usize, bars: &[Bars], stacked: bool) -> Vec<f64> {
    let top = |g: usize| {
        bars.iter()
            .map(|b| b.values[g])
            .filter(|v| v.is_finite())
            .sum()
    };
    if stacked {
        (0..groups).map(top).collect()
    } else {
        bars.iter().flat_map(|b| b.values.iter().copied()).collect()
    }
}

/// One group of bars, or one stack.
struct Group<'a> {
    chart: &'a Chart,
    name: &'a str,
    index: usize,
    middle: f64,
    bar: f64,
    zero: f64,
    y: &'a Placed,
    numbers: &'a Numbers<'a>,
}

impl Group<'_> {
    fn tip(&self, of: &str, value: f64) -> String {
        let axis = &self.chart.y;
        format!(
            "{}, {of}: {}",
            self.name,
            axis.format.one(&axis.unit, value)
        )
    }

    fn side_by_side(&self, bars: &[Bars], page: &mut Markup) {
        let gap = if bars.len() > 1 { 1.5 } else { 0.0 };
        let left = self.middle - self.bar * bars.len() as f64 / 2.0;
        for (i, b) in bars.iter().enumerate() {
            let x = left + self.bar * i as f64;
            let (value, middle) = (b.values[self.index], x + self.bar / 2.0);
            if !value.is_finite() {
                text(page, (middle, self.zero - 4.0), "middle", "tick", fmt::NONE);
                continue;
            }
            let end = self.y.clamped(value);
            let size = (self.bar - gap, (end - self.zero).abs());
            let class = format!("fill {}", colour(i));
            rect(
                page,
                (x, end.min(self.zero)),
                size,
                &class,
                &self.tip(&b.name, value),
            );
            self.numbers
                .write(value, (middle, end), end > self.zero, page);
        }
    }

    fn stack(&self, bars: &[Bars], page: &mut Markup) {
        let mut sum = 0.0;
        for (i, b) in bars.iter().enumerate() {
            let value = b.values[self.index];
            if value.is_finite() {
                let (from, to) = (self.y.clamped(sum), self.y.clamped(sum + value));
                let place = (self.middle - self.bar / 2.0, from.min(to));
                let class = format!("fill {}", colour(i));
                rect(
                    page,
                    place,
                    (self.bar, (from - to).abs()),
                    &class,
                    &self.tip(&b.name, value),
                );
                sum += value;
            }
        }
        self.numbers
            .write(sum, (self.middle, self.y.clamped(sum)), false, page);
    }
}

/// The numbers at the ends of the bars: all of them, or none where one has no room.
struct Numbers<'a> {
    chart: &'a Chart,
    divisor: f64,
    fit: bool,
}

impl Numbers<'_> {
    fn new<'a>(chart: &'a Chart, heights: &[f64], room: f64) -> Numbers<'a> {
        let finite = || heights.iter().copied().filter(|v| v.is_finite());
        let most = finite().map(f64::abs).fold(0.0, f64::max);
        let divisor = chart.y.format.scaled(&chart.y.unit, most).divisor;
        let mut numbers = Numbers {
            chart,
            divisor,
            fit: false,
        };
        numbers.fit = finite().all(|v| text_width(&numbers.words(v)) <= room + 4.0);
        numbers
    }

    /// In the axis' own unit; on a logarithmic axis, whose ticks have many, with one of its own.
    fn words(&self, value: f64) -> String {
        let axis = &self.chart.y;
        match axis.scale {
            Scale::Linear => fmt::significant(value / self.divisor, 3),
            _ => axis.format.one(&axis.unit, value),
        }
    }

    fn write(&self, value: f64, (x, end): (f64, f64), below: bool, page: &mut Markup) {
        if self.fit {
            let y = if below { end + 12.0 } else { end - 4.0 };
            text(page, (x, y), "middle", "value halo", &self.words(value));
        }
    }
}
