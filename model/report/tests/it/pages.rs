//! Pages: well-formed, self-contained, escaped, complete.

use crate::sample;
use proptest::prelude::*;
use roxmltree::{Document, Node, ParsingOptions};
use varve_report::fmt::Format;
use varve_report::{
    Axis, Bars, Chart, Claim, Data, GanttSpan, HeatRow, Scale, Series, StudyResult, html,
};

/// A page as a strict parser reads it; a browser is kinder.
fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    match Document::parse_with_options(page, options) {
        Ok(document) => document,
        Err(e) => panic!("{e}\n{page}"),
    }
}

/// The text of a node and of all that is in it.
fn text(node: Node) -> String {
    node.descendants()
        .filter(Node::is_text)
        .filter_map(|n| n.text())
        .collect()
}

fn elements<'a>(document: &'a Document, tag: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document
        .descendants()
        .filter(move |n| n.tag_name().name() == tag)
}

/// Forbidden contents of a page: anything that runs or loads, numbers that are none.
fn faults(document: &Document) -> Vec<String> {
    let mut faults = Vec::new();
    for node in document.descendants().filter(Node::is_element) {
        let tag = node.tag_name().name();
        if [
            "script", "link", "img", "iframe", "object", "embed", "base", "form", "a", "use",
            "image",
        ]
        .contains(&tag)
        {
            faults.push(format!("<{tag}>"));
        }
        for a in node.attributes() {
            let (name, value) = (a.name(), a.value());
            if name.starts_with("on") || ["src", "href", "srcset", "action"].contains(&name) {
                faults.push(format!("{name}={value}"));
            }
            let geometry = [
                "x",
                "y",
                "x1",
                "y1",
                "x2",
                "y2",
                "cx",
                "cy",
                "width",
                "height",
                "viewBox",
                "d",
                "fill-opacity",
            ];
            if geometry.contains(&name) && (value.contains("NaN") || value.contains("inf")) {
                faults.push(format!("{name}={value}"));
            }
            if ["width", "height", "r"].contains(&name) && value.starts_with('-') {
                faults.push(format!("{name}={value}"));
            }
        }
        if tag == "style" && (text(node).contains("url(") || text(node).contains("@import")) {
            faults.push("the style sheet loads something".into());
        }
    }
    faults
}

#[test]
fn both_pages_are_well_formed_and_load_nothing() {
    let pages = [
        html::study(&sample::study()).unwrap(),
        html::runs(&sample::report()).unwrap(),
    ];
    for page in &pages {
        let document = parse(page);
        assert_eq!(faults(&document), [""; 0]);
        let policy = elements(&document, "meta")
            .find(|m| m.attribute("http-equiv").is_some())
            .unwrap();
        assert!(
            policy
                .attribute("content")
                .unwrap()
                .starts_with("default-src 'none'")
        );
    }
}

#[test]
fn the_check_itself_finds_what_loads_or_runs() {
    for bad in [
        "<p><script/></p>",
        "<p onclick='x'/>",
        "<img src='x'/>",
        "<rect width='-1'/>",
        "<path d='M NaN 1'/>",
    ] {
        assert!(!faults(&parse(bad)).is_empty(), "{bad}");
    }
}

#[test]
fn a_page_says_where_it_comes_from_and_shows_everything() {
    let study = sample::study();
    let page = html::study(&study).unwrap();
    let document = parse(&page);
    let all = text(document.root());
    for fact in [
        &study.title,
        &study.machine,
        &study.command,
        "7",
        "varve 0.1.0",
    ] {
        assert!(all.contains(fact), "{fact}");
    }
    for c in &study.claims {
        assert!(all.contains(&c.what) && all.contains(&c.note), "{}", c.id);
    }
    let figures: Vec<Node> = elements(&document, "figure").collect();
    assert_eq!(figures.len(), study.charts.len());
    for (figure, chart) in figures.iter().zip(&study.charts) {
        let drawings: Vec<Node> = figure
            .descendants()
            .filter(|n| n.tag_name().name() == "svg")
            .collect();
        assert_eq!(drawings.len(), 2, "one for a desk, one for a phone");
        for svg in drawings {
            assert!(svg.attribute("aria-label").unwrap().contains(&chart.title));
            assert_eq!(svg.attribute("role"), Some("img"));
            assert!(text(svg).contains(&chart.y.what) || matches!(chart.data, Data::Gantt { .. }));
            assert!(text(svg).contains(&chart.x.what), "{}", chart.id);
        }
        let data = figure
            .descendants()
            .find(|n| n.tag_name().name() == "details")
            .unwrap();
        assert!(data.descendants().any(|n| n.tag_name().name() == "td"));
    }
}

#[test]
fn axes_carry_units_and_marks_carry_tooltips() {
    let page = html::study(&sample::study()).unwrap();
    let document = parse(&page);
    let words: Vec<String> = elements(&document, "text").map(text).collect();
    for heading in [
        "time (s)",
        "throughput (% of all-hot-in-DRAM)",
        "minor collection (ms)",
        "slowdown (x)",
        "bandwidth lost (%)",
    ] {
        assert!(
            words.iter().any(|w| w == heading),
            "{heading} is not in {words:?}"
        );
    }
    for tick in ["1 ns", "100 ns", "1 us", "64 B", "1 KiB"] {
        assert!(words.iter().any(|w| w == tick), "{tick}");
    }
    let tips: Vec<String> = elements(&document, "title").map(text).collect();
    for tip in [
        "BC 26, first-touch: 3.1x",
        "random write, threads on PM 10: 99.8 %",
        "dedup (write-intensive): 64 s to 70 s, 6 s",
        "hotset: 1.12x at 48 %",
        "DRAM: 96 ns at 16 GiB",
    ] {
        assert!(tips.iter().any(|t| t == tip), "{tip} is not in {tips:?}");
    }
}

#[test]
fn colour_is_not_the_only_sign() {
    let page = html::study(&sample::study()).unwrap();
    let document = parse(&page);
    for (class, symbol) in [("close", "●"), ("near", "◐"), ("far", "○")] {
        let cell = elements(&document, "td")
            .find(|n| n.attribute("class") == Some(class))
            .unwrap();
        assert_eq!(text(cell), symbol);
        assert!(cell.attribute("title").is_some());
    }
}

#[test]
fn many_points_stay_a_small_page() {
    let x: Vec<f64> = (0..200_000).map(|i| f64::from(i) * 1e6).collect();
    let y: Vec<f64> = x.iter().map(|t| (t / 3e9).sin()).collect();
    let axis = Axis::new("time", "", Format::DurationNs);
    let mut study = sample::study();
    study.charts = vec![Chart::new(
        "many",
        "many",
        axis,
        Axis::default(),
        Data::Lines(vec![Series::new("s", x, y)]),
    )];
    let page = html::study(&study).unwrap();
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("Every 1000th of 200000 points"));
}

#[test]
fn a_chart_of_nothing_says_so() {
    let mut study = sample::study();
    let gap = Series::new("gap", vec![0.0, 1.0], vec![f64::NAN, f64::NAN]);
    study.charts = vec![
        Chart::new(
            "gap",
            "gap",
            Axis::default(),
            Axis::default(),
            Data::Lines(vec![gap]),
        ),
        Chart::new(
            "none",
            "none",
            Axis::default(),
            Axis::default(),
            Data::HeatMap {
                columns: vec![],
                rows: vec![],
            },
        ),
    ];
    let page = html::study(&study).unwrap();
    let document = parse(&page);
    assert_eq!(elements(&document, "svg").count(), 0);
    assert_eq!(
        elements(&document, "figure")
            .filter(|f| text(*f).contains("Nothing was recorded."))
            .count(),
        2
    );
}

/// Texts that try to break out.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("</style><script>alert(1)</script>".to_string()),
        Just("\" onload=\"x' ]]> <!-- &amp; \u{0} \u{1b}[31m".to_string()),
    ]
}

/// The text as a parser returns it: XML does not have some characters, and reads line ends as one.
fn as_read(text: &str) -> String {
    let replaced = |c: char| match c {
        '\n' | '\t' => c,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

fn any_data(s: String, v: Vec<f64>) -> impl Strategy<Value = Data> {
    let series = vec![
        Series::new(&s, v.clone(), v.iter().rev().copied().collect()),
        Series::new("other", v.clone(), v.clone()).published(),
    ];
    let names: Vec<String> = v.iter().map(|x| format!("{s} {x}")).collect();
    let positive: Vec<f64> = v.iter().map(|x| x.abs()).collect();
    let span = |(i, x): (usize, &f64)| GanttSpan {
        lane: i,
        name: s.clone(),
        kind: format!("{i}"),
        start: 0.0,
        end: if x.is_finite() { x.abs() } else { 0.0 },
    };
    prop_oneof![
        Just(Data::Lines(series.clone())),
        Just(Data::Points(series)),
        Just(Data::Bars {
            groups: names.clone(),
            bars: vec![Bars::new(&s, v.clone()), Bars::new("b", v.clone())],
            stacked: false
        }),
        Just(Data::Bars {
            groups: names.clone(),
            bars: vec![Bars::new(&s, positive.clone()), Bars::new("b", positive)],
            stacked: true
        }),
        Just(Data::HeatMap {
            columns: names.clone(),
            rows: vec![HeatRow {
                name: s.clone(),
                cells: v.clone()
            }]
        }),
        Just(Data::Gantt {
            spans: v.iter().enumerate().map(span).collect(),
            lanes: names
        }),
    ]
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let number = prop_oneof![
        4 => -1e12f64..1e12,
        1 => any::<f64>(),
        1 => Just(0.0),
    ];
    let scale = prop_oneof![Just(Scale::Linear), Just(Scale::Log10), Just(Scale::Log2)];
    let format = prop_oneof![
        Just(Format::Number),
        Just(Format::Bytes),
        Just(Format::DurationNs),
        Just(Format::PerSecond)
    ];
    (
        hostile(),
        prop::collection::vec(number.clone(), 0..6),
        scale,
        format,
        number,
    )
        .prop_flat_map(|(s, v, scale, format, level)| {
            (any_data(s.clone(), v), Just((s, scale, format, level)))
        })
        .prop_map(|(data, (s, scale, format, level))| {
            let axis = || Axis::new(&s, &s, format).on(scale);
            Chart::new("any", &s, axis(), axis(), data)
                .with_level(&s, level)
                .with_note(&s)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_text_comes_back_as_it_was(s in hostile()) {
        let mut study = StudyResult::new(s.clone(), s.clone(), 1, s.clone());
        study.command = s.clone();
        study.claims.push(Claim::new(s.clone(), s.clone(), s.as_str(), 1.0, s.clone()).with_note(s.clone()));
        let page = html::study(&study).unwrap();
        let document = parse(&page);
        prop_assert_eq!(faults(&document), Vec::<String>::new());
        // A parser ends lines in one way, so compare without the difference.
        let title = text(elements(&document, "h1").next().unwrap());
        prop_assert_eq!(title, as_read(&s));
        let cell = text(elements(&document, "td").next().unwrap());
        prop_assert_eq!(cell, as_read(&s));
    }

    /// Whatever a chart shows, its page is well-formed and every coordinate is a number.
    #[test]
    fn every_chart_can_be_drawn(chart in any_chart()) {
        let mut study = sample::study();
        study.charts = vec![chart];
        let page = html::study(&study).unwrap();
        prop_assert_eq!(faults(&parse(&page)), Vec::<String>::new());
    }
}

#[test]
fn words_between_backticks_are_code() {
    let mut study = sample::study();
    study.about = vec!["Use `static`, not `dynamic`; one ` alone stays.".into()];
    let page = html::study(&study).unwrap();
    let document = parse(&page);
    let paragraph = elements(&document, "p")
        .find(|p| text(*p).starts_with("Use "))
        .unwrap();
    assert_eq!(
        text(paragraph),
        "Use static, not dynamic; one ` alone stays."
    );
    let code: Vec<String> = (paragraph.children())
        .filter(|n| n.has_tag_name("code"))
        .map(text)
        .collect();
    assert_eq!(code, ["static", "dynamic"]);
}

#[test]
fn shares_end_at_the_whole() {
    let point = |name: &str, x: f64, y: f64| Series::new(name, vec![x], vec![y]);
    let (x, y) = (
        Axis::new("DRAM", "", Format::Percent),
        Axis::new("time", "", Format::DurationNs),
    );
    let points = vec![point("dram", 100.0, 1e9), point("slow", 0.5, 2e9)];
    let mut study = sample::study();
    study.charts = vec![Chart::new("t", "Trade-off", x, y, Data::Points(points))];
    let page = html::study(&study).unwrap();
    let document = parse(&page);
    let ticks: Vec<String> = elements(&document, "text").map(text).collect();
    assert!(ticks.iter().any(|t| t == "100"), "{ticks:?}");
    assert!(!ticks.iter().any(|t| t == "110" || t == "120"), "{ticks:?}");
}
