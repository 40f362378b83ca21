//! Points with their names, such as runs in a trade-off.

use super::scale::Placed;
use super::{Canvas, Plot, begin, colour, frame, text, text_width};
use crate::chart::{Chart, Series};
use crate::fmt::Format;
use crate::markup::{Markup, Px};
use crate::{Axis, Scale};

/// A label's box: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

pub fn draw(chart: &Chart, series: &[Series], canvas: Canvas, page: &mut Markup) {
    let top = 28.0;
    let bottom = top + (canvas.width * 0.42).clamp(200.0, 320.0);
    let ys = series
        .iter()
        .flat_map(|s| s.points().map(|p| p.1))
        .chain(chart.levels.iter().map(|l| l.value));
    let y = Placed::new(&chart.y, ys, (bottom, top), 44.0, false);
    let plot = Plot {
        left: frame::ticks_width(&y) + 10.0,
        right: canvas.width - 16.0,
        top,
        bottom,
    };
    let xs = series.iter().flat_map(|s| s.points().map(|p| p.0));
    let xs = roomy(&chart.x, xs.collect());
    let x = Placed::new(
        &chart.x,
        xs.into_iter(),
        (plot.left, plot.right),
        64.0,
        false,
    );

    begin(chart, "Scatter chart", (canvas.width, bottom + 40.0), page);
    frame::y_axis(&y, plot, page);
    frame::x_axis(&x, plot, page);
    frame::levels(chart, &y, plot, page);
    frame::level_names(chart, &y, plot, page);

    // Points that each have their own name need no colours beside it.
    let named = series.iter().all(|s| s.x.len() <= 1);
    let mut taken: Vec<Area> = Vec::new();
    let mut labels = Vec::new();
    for (i, s) in series.iter().enumerate() {
        for (px, py) in s.points() {
            let (Some(cx), Some(cy)) = (x.at(px), y.at(py)) else {
                continue;
            };
            let tip = format!(
                "{}: {} at {}",
                s.name,
                chart.y.format.one(&chart.y.unit, py),
                chart.x.format.one(&chart.x.unit, px)
            );
            let class = format!("dot {}", colour(if named { 0 } else { i }));
            page.open(
                "circle",
                &[
                    ("cx", &Px(cx)),
                    ("cy", &Px(cy)),
                    ("r", &"5"),
                    ("class", &class),
                ],
            );
            page.leaf("title", &[], &tip);
            page.close();
            taken.push((cx - 5.0, cy - 5.0, cx + 5.0, cy + 5.0));
        }
        if let Some((cx, cy)) = s
            .points()
            .filter_map(|p| Some((x.at(p.0)?, y.at(p.1)?)))
            .last()
        {
            labels.push((s.name.as_str(), cx, cy));
        }
    }
    for (name, cx, cy) in labels {
        // A point without room for its name has it where the pointer rests.
        let Some(area) = place(name, (cx, cy), plot, &taken) else {
            continue;
        };
        let near = (cx.clamp(area.0, area.2), cy.clamp(area.1, area.3));
        if (near.0 - cx).hypot(near.1 - cy) > NEAR {
            let end = (cx + (near.0 - cx) * 0.95, cy + (near.1 - cy) * 0.95);
            let [x1, y1, x2, y2] = [cx, cy, end.0, end.1].map(Px);
            page.empty(
                "line",
                &[
                    ("x1", &x1),
                    ("y1", &y1),
                    ("x2", &x2),
                    ("y2", &y2),
                    ("class", &"grid"),
                ],
            );
        }
        text(page, (area.0, area.3 - 3.0), "start", "note halo", name);
        taken.push(area);
    }
    page.close();
}

/// The values with a little room on both sides, so that no point lies on the chart's edge.
fn roomy(axis: &Axis, mut values: Vec<f64>) -> Vec<f64> {
    let ends = |(l, h): (f64, f64), v: &f64| (l.min(*v), h.max(*v));
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    if low < high && axis.scale == Scale::Linear {
        let room = (high - low) * 0.04;
        // But not across zero: there is no negative share.
        values.push(if low >= 0.0 {
            (low - room).max(0.0)
        } else {
            low - room
        });
        // A share has none beyond the whole.
        values.push(match axis.format {
            Format::Percent if high <= 100.0 => (high + room).min(100.0),
            _ => high + room,
        });
    }
    values.retain(|v| axis.range.0.is_none_or(|l| *v >= l) && axis.range.1.is_none_or(|h| *v <= h));
    values
}

/// A name that is further from its point has a line to it, in pixels.
const NEAR: f64 = 12.0;

/// The first free place around a point: right, left, above, below, and then further away.
fn place(name: &str, (cx, cy): (f64, f64), plot: Plot, taken: &[Area]) -> Option<Area> {
    let (w, h) = (text_width(name), 14.0);
    let middle = cx - w / 2.0;
    let at = |x: f64, y: f64| (x, y, x + w, y + h);
    let tries = [
        at(cx + 9.0, cy - h / 2.0),
        at(cx - 9.0 - w, cy - h / 2.0),
        at(middle, cy - 8.0 - h),
        at(middle, cy + 8.0),
        at(cx + 7.0, cy - 6.0 - h),
        at(cx + 7.0, cy + 6.0),
    ];
    let free = |a: &Area| {
        let inside =
            a.0 >= plot.left && a.2 <= plot.right + 12.0 && a.3 <= plot.bottom + 2.0 && a.1 >= 0.0;
        inside
            && !taken
                .iter()
                .any(|b| a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3)
    };
    let away = (1..=8).flat_map(|ring| {
        let (dx, dy) = (9.0 + 14.0 * f64::from(ring), 14.0 * f64::from(ring));
        [
            at(cx + dx, cy - h / 2.0),
            at(cx + 9.0, cy - dy - h / 2.0),
            at(cx + 9.0, cy + dy - h / 2.0),
            at(cx + dx, cy - dy - h / 2.0),
            at(cx + dx, cy + dy - h / 2.0),
            at(cx - 9.0 - w, cy - dy - h / 2.0),
            at(cx - 9.0 - w, cy + dy - h / 2.0),
            at(cx - dx - w, cy - h / 2.0),
        ]
    });
    tries.into_iter().chain(away).find(free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However close points are, no name is over another one, over a point, or outside of the chart.
        #[test]
        fn names_are_beside_each_other(
            points in prop::collection::vec((40.0f64..700.0, 30.0f64..330.0, "[a-z]{2,20}"), 1..40), close in any::<bool>()
        ) {
            let plot = Plot { left: 40.0, right: 750.0, top: 28.0, bottom: 340.0 };
            let near = |at: f64, low: f64| if close { low + (at - low) / 10.0 } else { at };
            let points: Vec<_> = points.iter().map(|(x, y, name)| (near(*x, 40.0), near(*y, 30.0), name)).collect();
            let mut taken: Vec<Area> = points.iter().map(|(x, y, _)| (x - 5.0, y - 5.0, x + 5.0, y + 5.0)).collect();
            let apart = |a: &Area, b: &Area| a.0 >= b.2 || b.0 >= a.2 || a.1 >= b.3 || b.1 >= a.3;
            let mut named = 0;
            for (x, y, name) in &points {
                if let Some(area) = place(name, (*x, *y), plot, &taken) {
                    prop_assert!(taken.iter().all(|other| apart(&area, other)));
                    prop_assert!(area.0 >= plot.left && area.2 <= plot.right + 12.0);
                    taken.push(area);
                    named += 1;
                }
            }
            prop_assert!(named >= points.len().min(8), "{} of {}", named, points.len());
        }
    }
}
