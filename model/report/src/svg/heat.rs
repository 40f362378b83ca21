//! A matrix of cells, stronger for more.

use super::{Canvas, LINE, Plot, begin, broken, fit, frame, text, text_width};
use crate::Scale;
use crate::chart::{Chart, HeatRow};
use crate::fmt::{self, typical};
use crate::markup::{Markup, Px};

/// The faintest a cell is drawn, so that it is seen to be there.
const FAINT: f64 = 0.06;
/// From here on a cell is so strong that its number is written in the colour of the page: between 0.63 and
/// 0.76, where the two colours are equally easy to read on dark and on light pages.
const STRONG: f64 = 0.7;

pub fn draw(
    chart: &Chart,
    columns: &[String],
    rows: &[HeatRow],
    canvas: Canvas,
    page: &mut Markup,
) {
    let longest = rows.iter().map(|r| text_width(&r.name)).fold(0.0, f64::max);
    let left = longest.min(canvas.width * 0.36) + 8.0;
    let cell = ((canvas.width - left) / columns.len().max(1) as f64).max(14.0);
    let high = if rows.len() > 24 { 18.0 } else { 30.0 };
    let width = left + cell * columns.len() as f64;
    let top = 44.0;
    let plot = Plot {
        left,
        right: width,
        top,
        bottom: top + high * rows.len() as f64,
    };

    let all: Vec<f64> = rows
        .iter()
        .flat_map(|r| r.cells.iter().copied())
        .filter(|v| v.is_finite())
        .collect();
    let shade = Shade::new(chart, &all);
    let scaled = chart.y.format.scaled(&chart.y.unit, typical(&all));
    begin(
        chart,
        "Heat map",
        (width.max(canvas.width), plot.bottom + 2.0 * LINE + 8.0),
        page,
    );
    text(
        page,
        (0.0, 12.0),
        "start",
        "axis",
        &chart.y.heading(&scaled.unit),
    );
    ramp(&shade, scaled.divisor, canvas.width, page);
    for (r, row) in rows.iter().enumerate() {
        let y = top + high * r as f64;
        text(
            page,
            (left - 8.0, y + high / 2.0 + 4.0),
            "end",
            "note",
            &fit(&row.name, left - 8.0),
        );
        for (c, value) in row.cells.iter().enumerate() {
            let x = left + cell * c as f64;
            let strength = shade.strength(*value);
            let tip = format!(
                "{}, {} {}: {}",
                row.name,
                chart.x.what,
                columns[c],
                chart.y.format.one(&chart.y.unit, *value)
            );
            page.open(
                "rect",
                &[
                    ("x", &Px(x + 1.0)),
                    ("y", &Px(y + 1.0)),
                    ("width", &Px(cell - 2.0)),
                    ("height", &Px(high - 2.0)),
                    ("class", &if strength.is_some() { "heat" } else { "none" }),
                    ("fill-opacity", &format!("{:.2}", strength.unwrap_or(0.0))),
                ],
            );
            page.leaf("title", &[], &tip);
            page.close();
            let words = fmt::significant(value / scaled.divisor, 3);
            if text_width(&words) + 4.0 <= cell && high >= 20.0 {
                let class = if strength.unwrap_or(0.0) > STRONG {
                    "value strong"
                } else {
                    "value"
                };
                text(
                    page,
                    (x + cell / 2.0, y + high / 2.0 + 4.0),
                    "middle",
                    class,
                    &words,
                );
            }
        }
    }
    // Where columns are narrow, only names that there is room for.
    let widest = columns
        .iter()
        .map(|c| text_width(c))
        .fold(1.0, f64::max)
        .min(60.0);
    let every = ((widest + 6.0) / cell).ceil().max(1.0) as usize;
    for (c, name) in columns.iter().enumerate().step_by(every) {
        let at = (left + cell * (c as f64 + 0.5), plot.bottom + 15.0);
        let words = broken(name, cell * every as f64, 1).join(" ");
        text(page, at, "middle", "tick", &words);
    }
    frame::x_heading(
        &chart.x.heading(&chart.x.format.base_unit(&chart.x.unit)),
        plot,
        plot.bottom + 15.0 + LINE,
        page,
    );
    page.close();
}

/// From a value to how strong its cell is.
struct Shade {
    low: f64,
    high: f64,
    log: bool,
}

impl Shade {
    fn new(chart: &Chart, values: &[f64]) -> Shade {
        let log = chart.y.scale != Scale::Linear;
        let shown = values.iter().copied().filter(|v| !log || *v > 0.0);
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let (low, high) = (
            chart.y.range.0.unwrap_or(low),
            chart.y.range.1.unwrap_or(high),
        );
        Shade { low, high, log }
    }

    /// From [`FAINT`] to 1; `None` where there is no value.
    fn strength(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        let f = |v: f64| if self.log { v.ln() } else { v };
        let share = (f(value) - f(self.low)) / (f(self.high) - f(self.low));
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        };
        Some(FAINT + share * (1.0 - FAINT))
    }
}

/// The legend: a few steps from the lowest to the highest value.
fn ramp(shade: &Shade, divisor: f64, width: f64, page: &mut Markup) {
    if !(shade.low.is_finite() && shade.high.is_finite()) {
        return;
    }
    let high = fmt::significant(shade.high / divisor, 3);
    let steps = 6;
    let end = width - text_width(&high) - 4.0;
    let start = end - 14.0 * f64::from(steps);
    for i in 0..steps {
        let share = f64::from(i) / f64::from(steps - 1);
        let opacity = format!("{:.2}", FAINT + share * (1.0 - FAINT));
        let x = Px(start + 14.0 * f64::from(i));
        let attributes: crate::markup::Attributes = &[
            ("x", &x),
            ("y", &"18"),
            ("width", &"14"),
            ("height", &"12"),
            ("class", &"heat"),
            ("fill-opacity", &opacity),
        ];
        page.empty("rect", attributes);
    }
    text(
        page,
        (start - 4.0, 28.0),
        "end",
        "tick",
        &fmt::significant(shade.low / divisor, 3),
    );
    text(page, (end + 4.0, 28.0), "start", "tick", &high);
}
