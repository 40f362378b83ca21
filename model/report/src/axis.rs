//! Axes: quantity, unit and scale.

use crate::fmt::Format;
use serde::{Deserialize, Serialize};

/// How an axis maps values to places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Powers of ten; values that are not positive are left out.
    Log10,
    /// Powers of two, as for sizes and threads; values that are not positive are left out.
    Log2,
}

/// Quantity, unit and scale of an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity: `time`, `throughput`.
    pub what: String,
    /// The unit's own word (see [`Format::base_unit`]); empty for none.
    pub unit: String,
    /// How its numbers are stored and printed.
    pub format: Format,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// The axis begins and ends here where given, else at the data (a linear axis also shows zero
    /// where that costs little).
    pub range: (Option<f64>, Option<f64>),
}

impl Axis {
    /// A linear axis.
    pub fn new(what: impl Into<String>, unit: impl Into<String>, format: Format) -> Axis {
        Axis {
            what: what.into(),
            unit: unit.into(),
            format,
            ..Axis::default()
        }
    }

    /// The same axis on another scale.
    pub fn on(mut self, scale: Scale) -> Axis {
        self.scale = scale;
        self
    }

    /// The same axis from and to given values.
    pub fn between(mut self, low: impl Into<Option<f64>>, high: impl Into<Option<f64>>) -> Axis {
        self.range = (low.into(), high.into());
        self
    }

    /// Quantity and unit, for a heading; `unit` as chosen by [`Format::scaled`].
    pub(crate) fn heading(&self, unit: &str) -> String {
        if unit.is_empty() {
            self.what.clone()
        } else {
            format!("{} ({unit})", self.what)
        }
    }
}
