//! A chart of a sweep: one of its axes along the bottom, a line for each value of another.

use super::merged::{Group, called};
use super::spec::{PictureSpec, Sweep};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, Series};
use varve_spec::Bytes;

/// The chart that the file asks for, and how many groups it could not place: those without its figure, or without what they
/// are divided by.
pub fn chart(sweep: &Sweep, picture: &PictureSpec, groups: &[Group]) -> Option<(Chart, usize)> {
    let place = |name: &str| sweep.axes.iter().position(|axis| axis.name == name);
    let (x, lines) = (place(&picture.x)?, place(&picture.lines)?);
    let base = |group: &Group| -> Option<f64> {
        let Some(over) = &picture.over else {
            return Some(1.0);
        };
        let same = |other: &&Group| {
            other.name == group.name
                && sweep.shown(lines, other.at[lines]) == *over
                && (0..sweep.axes.len())
                    .all(|axis| axis == x || axis == lines || other.at[axis] == group.at[axis])
        };
        // A bound has the same value everywhere along the axis; else the one at the same place.
        let exact = groups
            .iter()
            .filter(same)
            .find(|other| other.at[x] == group.at[x]);
        exact
            .or_else(|| groups.iter().find(same))?
            .median(&picture.y)
    };
    let mut series: Vec<(String, Vec<(usize, f64)>)> = Vec::new();
    let mut left = 0;
    for group in groups {
        let y = group
            .median(&picture.y)
            .zip(base(group))
            .map(|(y, base)| y / base);
        let Some(y) = y.filter(|y| y.is_finite()) else {
            left += 1;
            continue;
        };
        let name = called(sweep, group, &[&picture.x]);
        match series.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push((group.at[x], y)),
            None => series.push((name, vec![(group.at[x], y)])),
        }
    }
    let what = match &picture.over {
        Some(over) => format!("{} over {over}", picture.y),
        None => picture.y.clone(),
    };
    let x_title = picture.x_title.as_ref().unwrap_or(&picture.x);
    let y_axis = Axis::new(
        picture.y_title.as_ref().unwrap_or(&what),
        if picture.over.is_some() { "x" } else { "" },
        Format::Number,
    );
    let places: Vec<String> = (0..sweep.axes[x].values.len())
        .map(|v| sweep.shown(x, v))
        .collect();
    let numbers: Option<Vec<f64>> = places.iter().map(|text| number(text)).collect();
    let title = (picture.title.clone()).unwrap_or_else(|| format!("{what} by {}", picture.x));
    let chart = match numbers {
        Some(at) => {
            let format = match places.iter().all(|text| text.ends_with('%')) {
                true => Format::Percent,
                false => Format::Number,
            };
            let lines = series.into_iter().map(|(name, mut points)| {
                points.sort_by(|a, b| at[a.0].total_cmp(&at[b.0]));
                let (xs, ys) = points.iter().map(|(place, y)| (at[*place], *y)).unzip();
                Series::new(name, xs, ys)
            });
            let x_axis = Axis::new(x_title, "", format);
            Chart::new("sweep", title, x_axis, y_axis, Data::Lines(lines.collect()))
        }
        None => {
            let bars = series.into_iter().map(|(name, points)| {
                let at = |place: usize| {
                    points
                        .iter()
                        .find(|(p, _)| *p == place)
                        .map_or(f64::NAN, |p| p.1)
                };
                Bars::new(name, (0..places.len()).map(at).collect())
            });
            let bars: Vec<Bars> = bars.collect();
            let x_axis = Axis::new(x_title, "", Format::Number);
            let data = Data::Bars {
                groups: places,
                bars,
                stacked: false,
            };
            Chart::new("sweep", title, x_axis, y_axis, data)
        }
    };
    Some((chart, left))
}

/// A number, a share or a size.
fn number(text: &str) -> Option<f64> {
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse().ok();
    }
    let plain = text.parse::<f64>().ok().filter(|n| n.is_finite());
    plain.or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sizes_and_numbers_have_places_on_an_axis() {
        assert_eq!(number("25%"), Some(25.0));
        assert_eq!(number("1.5"), Some(1.5));
        assert_eq!(number("2KiB"), Some(2048.0));
        assert_eq!(number("kg-n"), None);
    }
}
