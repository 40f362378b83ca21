//! Lines as rows of blocks.

use crate::{golden, sample};
use proptest::prelude::*;
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Look, Series, plot};

#[test]
fn throughput_over_time_at_a_glance() {
    let charts = sample::charts();
    golden::check(
        "over-time.txt",
        &plot::lines(&charts[0], Look::plain()).unwrap(),
    );
    golden::check(
        "latency.txt",
        &plot::lines(&charts[1], Look::plain()).unwrap(),
    );
}

#[test]
fn bars_are_no_lines() {
    assert_eq!(plot::lines(&sample::charts()[2], Look::plain()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_plot_is_wider_than_the_terminal(
        name in "[ -~]{0,100}", what in "[ -~]{0,100}",
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..50),
        width in 40usize..=80,
    ) {
        let (x, y) = points.into_iter().unzip();
        let axis = || Axis::new(&what, &what, Format::Number);
        let data = Data::Lines(vec![Series::new(&name, x, y)]);
        let chart = Chart::new("c", &what, axis(), axis(), data);
        let text = plot::lines(&chart, Look { width, colour: false }).unwrap();
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
        }
    }
}
