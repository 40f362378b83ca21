//! From values to places along an axis, and the values with ticks.

use crate::axis::{Axis, Scale};
use crate::fmt::{self, Format};

/// An axis laid out from `start` to `end`, in pixels.
pub struct Placed {
    scale: Scale,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    /// Values with ticks, each with its label.
    pub ticks: Vec<(f64, String)>,
    /// The axis' name with the unit of its labels.
    pub heading: String,
}

impl Placed {
    /// Lay out an axis over the values it must show. `room` is how many pixels a tick's label needs;
    /// `zero` whether the axis must begin at zero.
    pub fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        (start, end): (f64, f64),
        room: f64,
        zero: bool,
    ) -> Placed {
        let shown = |v: &f64| v.is_finite() && (axis.scale == Scale::Linear || *v > 0.0);
        let (mut low, mut high) = values
            .chain(axis.range.0)
            .chain(axis.range.1)
            .filter(shown)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                (l.min(v), h.max(v))
            });
        if low > high {
            (low, high) = if axis.scale == Scale::Linear {
                (0.0, 1.0)
            } else {
                (1.0, 10.0)
            };
        }
        let steps = ((end - start).abs() / room).floor().clamp(2.0, 12.0);
        let mut placed = Placed {
            scale: axis.scale,
            low,
            high,
            start,
            end,
            ticks: Vec::new(),
            heading: String::new(),
        };
        match axis.scale {
            Scale::Linear => placed.linear(axis, steps, zero),
            Scale::Log10 => placed.logarithmic(axis, 10.0, steps),
            Scale::Log2 => placed.logarithmic(axis, 2.0, steps),
        }
        placed
    }

    /// Where a value lies; `None` where the axis does not show it.
    pub fn at(&self, value: f64) -> Option<f64> {
        let f = |v: f64| {
            if self.scale == Scale::Linear {
                v
            } else {
                v.ln()
            }
        };
        let share = (f(value) - f(self.low)) / (f(self.high) - f(self.low));
        let slack = 1e-9;
        let inside = share.is_finite() && (-slack..=1.0 + slack).contains(&share);
        inside.then_some(self.start + share * (self.end - self.start))
    }

    /// Where a value lies, or the nearest end of the axis.
    pub fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.low, self.high))
            .unwrap_or(self.start)
    }

    /// The lowest value shown.
    pub fn low(&self) -> f64 {
        self.low
    }

    fn linear(&mut self, axis: &Axis, steps: f64, zero: bool) {
        // Beyond it, the distance of two values has no number.
        const MOST: f64 = 1e300;
        (self.low, self.high) = (self.low.clamp(-MOST, MOST), self.high.clamp(-MOST, MOST));
        // Zero is shown where it costs at most half of the axis.
        if axis.range.0.is_none() && self.low > 0.0 && (zero || self.low < self.high / 2.0) {
            self.low = 0.0;
        }
        if axis.range.1.is_none() && zero && self.high < 0.0 {
            self.high = 0.0;
        }
        if self.low == self.high {
            let spread = if self.low == 0.0 {
                1.0
            } else {
                self.low.abs() / 2.0
            };
            (self.low, self.high) = (self.low - spread, self.high + spread);
        }
        let scaled = axis
            .format
            .scaled(&axis.unit, self.low.abs().max(self.high.abs()));
        let d = scaled.divisor;
        let step = nice(
            (self.high - self.low) / d / steps,
            axis.format == Format::Bytes,
        ) * d;
        // Round ends outward to a tick, unless they were asked for.
        if axis.range.0.is_none() {
            self.low = (self.low / step + 1e-9).floor() * step;
        }
        if axis.range.1.is_none() {
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let ticks: Vec<f64> = (first..=last).map(|i| i as f64 * step).collect();
        self.ticks = ticks
            .iter()
            .map(|t| (*t, fmt::significant(t / d, 6)))
            .collect();
        self.heading = axis.heading(&scaled.unit);
    }

    fn logarithmic(&mut self, axis: &Axis, base: f64, steps: f64) {
        let power = |v: f64| v.ln() / base.ln();
        let mut first = (power(self.low) + 1e-9).floor();
        let mut last = (power(self.high) - 1e-9).ceil();
        if first == last {
            (first, last) = (first - 1.0, last + 1.0);
        }
        // Powers of two already fill the axis well; a whole decade beyond the data would be waste.
        if axis.range.0.is_none() {
            self.low = base.powf(first);
        }
        if axis.range.1.is_none() {
            self.high = base.powf(last);
        }
        if self.low >= self.high {
            self.high = self.low * base;
        }
        let stride = ((last - first) / steps).ceil().max(1.0) as usize;
        let within: &[f64] = if base == 10.0 && (last - first) * 3.0 <= steps {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        for p in (first as i32..=last as i32).step_by(stride) {
            for m in within {
                let t = base.powi(p) * m;
                if t >= self.low * (1.0 - 1e-9) && t <= self.high * (1.0 + 1e-9) {
                    self.ticks.push((t, label(axis, t)));
                }
            }
        }
        self.heading = match axis.format {
            // Ticks over many prefixes carry their own.
            Format::Number | Format::Integer => axis.heading(&axis.unit),
            _ => axis.what.clone(),
        };
    }
}

/// A tick of a logarithmic axis, with its own prefix where the format has prefixes.
fn label(axis: &Axis, value: f64) -> String {
    match axis.format {
        Format::Number | Format::Integer => fmt::significant(value, 3),
        Format::PerSecond => Format::PerSecond.one("", value),
        format => format.one(&axis.unit, value),
    }
}

/// The next step of 1, 2, 5, 10 (of 1, 2, 4, 8, 16 for bytes) at least as large.
fn nice(step: f64, binary: bool) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    if binary {
        return 2f64.powf(step.log2().ceil());
    }
    let power = 10f64.powf(step.log10().floor());
    let m = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|m| m * power >= step * (1.0 - 1e-9))
        .unwrap_or(10.0);
    m * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis(format: Format, scale: Scale) -> Axis {
        Axis::new("a", "u", format).on(scale)
    }

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let placed = Placed::new(axis, values.iter().copied(), (0.0, 500.0), 60.0, false);
        placed.ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round_and_carry_one_unit() {
        let time = axis(Format::DurationNs, Scale::Linear);
        assert_eq!(
            labels(&time, &[0.0, 60e9]),
            ["0", "10", "20", "30", "40", "50", "60"]
        );
        let placed = Placed::new(&time, [0.0, 60e9].into_iter(), (0.0, 500.0), 60.0, false);
        assert_eq!(placed.heading, "a (s)");
        assert_eq!(
            labels(&axis(Format::Number, Scale::Log10), &[1.4, 305.0]),
            ["1", "10", "100", "1,000"]
        );
        let bytes = axis(Format::Bytes, Scale::Log2);
        assert_eq!(
            labels(&bytes, &[64.0, 1048576.0]),
            [
                "64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"
            ]
        );
    }

    proptest! {
        /// Whatever the data: few ticks, all on the axis, and every shown value has a place between its ends.
        #[test]
        fn every_value_has_a_place(
            values in prop::collection::vec(prop::num::f64::NORMAL, 0..6), log in any::<bool>()
        ) {
            let values: Vec<f64> = values.into_iter().filter(|v| v.abs() < 1e100 && v.abs() > 1e-100).collect();
            let scale = if log { Scale::Log10 } else { Scale::Linear };
            let axis = axis(Format::Number, scale);
            let placed = Placed::new(&axis, values.iter().copied(), (500.0, 0.0), 60.0, false);
            prop_assert!(placed.ticks.len() <= 30, "{}", placed.ticks.len());
            for v in values.into_iter().filter(|v| !log || *v > 0.0) {
                let place = placed.at(v);
                prop_assert!(place.is_some_and(|p| (-0.01..=500.01).contains(&p)), "{v} at {place:?}");
            }
            for (t, _) in &placed.ticks {
                prop_assert!(placed.at(*t).is_some());
            }
        }
    }
}
