//! Bars in groups, side by side or stacked.

use super::frame::{self, Entry};
use super::scale::Placed;
use super::{Canvas, LINE, Plot, begin, broken, colour, rect, text, text_width};
use crate::chart::{Bars, Chart};
use crate::fmt;
use crate::markup::Markup;

pub fn draw(
    chart: &Chart,
    groups: &[String],
    bars: &[Bars],
    stacked: bool,
    canvas: Canvas,
    page: &mut Markup,
) {
    let beside = if stacked { 1 } else { bars.len().max(1) };
    // A chart of many bars grows wide and scrolls rather than become unreadable.
    let least = groups.len() as f64 * (beside as f64 * 9.0 + 14.0).max(52.0) + 60.0;
    let width = canvas.width.max(least);
    let margin = frame::margin(chart.levels.iter().map(|l| l.name.as_str()), canvas.width);
    let margin = margin.filter(|_| canvas.wide && !chart.levels.is_empty());
    let mut legend: Vec<Entry> = Vec::new();
    if bars.len() > 1 {
        legend.extend(
            bars.iter()
                .enumerate()
                .map(|(i, b)| Entry::new(&b.name, format!("fill {}", colour(i)))),
        );
    }
    if margin.is_none() {
        legend.extend(frame::level_entries(chart));
    }
    let legend_height = frame::legend_lines(&legend, canvas.width) as f64 * LINE;

    let top = 32.0 + legend_height;
    let bottom = top + (canvas.width * 0.36).clamp(180.0, 260.0);
    let total = |g: usize| {
        bars.iter()
            .map(|b| b.values[g])
            .filter(|v| v.is_finite())
            .sum::<f64>()
    };
    let tall: Vec<f64> = if stacked {
        (0..groups.len()).map(total).collect()
    } else {
        bars.iter().flat_map(|b| b.values.iter().copied()).collect()
    };
    let ys = tall
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
    let label_lines = groups
        .iter()
        .map(|g| broken(g, slot - 6.0, 3).len())
        .max()
        .unwrap_or(1);
    let below = bottom + 4.0 + label_lines as f64 * LINE;
    begin(
        chart,
        if stacked {
            "Stacked bar chart"
        } else {
            "Bar chart"
        },
        width,
        below + LINE + 8.0,
        page,
    );
    frame::legend(&legend, canvas.width, page);
    frame::y_axis(&y, plot, page);
    let zero = y.clamped(if chart.y.scale == crate::Scale::Linear {
        0.0
    } else {
        y.low()
    });
    // One bar alone would look like a wall: no wider than this.
    let bar = ((slot - 14.0) / beside as f64).min(56.0);
    let divisor = numbers(chart, &tall, if stacked { slot } else { bar });
    let over = |page: &mut Markup, value: f64, (x, y): (f64, f64)| {
        if let Some(divisor) = divisor {
            text(
                page,
                (x, y - 4.0),
                "middle",
                "value halo",
                &fmt::significant(value / divisor, 3),
            );
        }
    };
    for (g, group) in groups.iter().enumerate() {
        let middle = plot.left + (g as f64 + 0.5) * slot;
        for (l, words) in broken(group, slot - 6.0, 3).iter().enumerate() {
            text(
                page,
                (middle, bottom + LINE * (l + 1) as f64),
                "middle",
                "tick",
                words,
            );
        }
        let mut x = middle - bar * beside as f64 / 2.0;
        let mut base = 0.0;
        for (i, b) in bars.iter().enumerate() {
            let value = b.values[g];
            let tip = format!(
                "{group}, {}: {}",
                b.name,
                chart.y.format.one(&chart.y.unit, value)
            );
            if value.is_finite() {
                let (from, to) = if stacked {
                    (y.clamped(base), y.clamped(base + value))
                } else {
                    (zero, y.clamped(value))
                };
                let gap = if beside > 1 { 1.5 } else { 0.0 };
                let (place, size) = ((x, from.min(to)), (bar - gap, (from - to).abs()));
                rect(page, place, size, &format!("fill {}", colour(i)), &tip);
                base += value;
                if !stacked {
                    over(page, value, (x + bar / 2.0, from.min(to)));
                }
            } else if !stacked {
                text(
                    page,
                    (x + bar / 2.0, zero - 4.0),
                    "middle",
                    "tick",
                    fmt::NONE,
                );
            }
            if !stacked {
                x += bar;
            }
        }
        if stacked {
            over(page, base, (middle, y.clamped(base)));
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

/// The values to write above the bars: in the axis' own unit, and all of them or none.
fn numbers(chart: &Chart, tall: &[f64], room: f64) -> Option<f64> {
    let most = tall
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .map(f64::abs)
        .fold(0.0, f64::max);
    let divisor = chart.y.format.scaled(&chart.y.unit, most).divisor;
    let fits = |v: &f64| text_width(&fmt::significant(v / divisor, 3)) <= room + 4.0;
    tall.iter()
        .filter(|v| v.is_finite())
        .all(fits)
        .then_some(divisor)
}
