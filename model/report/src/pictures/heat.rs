//! Addresses over time as a picture: how much they are accessed, or which memory they are in.

use super::png;
use crate::fmt;
use crate::markup::{Markup, Px};

/// Accesses to a part of memory in one interval, and its tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Accesses to it.
    pub accesses: u64,
    /// Bytes of it that were in fast memory at the end of the interval.
    pub fast_bytes: u64,
    /// Bytes of it that were in slow memory then.
    pub slow_bytes: u64,
}

/// A part of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Its first address.
    pub begin: u64,
    /// Behind its last one.
    pub end: u64,
    /// One cell for each interval; all ranges of a map have as many.
    pub cells: Vec<Cell>,
}

/// The memory of one run over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatMap {
    /// Name of the run.
    pub name: String,
    /// In the order of addresses. Where one does not begin at the other's end, there is nothing between.
    pub ranges: Vec<Range>,
    /// When the last interval ends, ns.
    pub end_ns: u64,
    /// Whether there are two memories, and it is known where pages are.
    pub memories: bool,
}

/// Meaning of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// How many accesses.
    Accesses,
    /// Which memory.
    Memory,
}

/// Pixels: of the whole, left of maps for addresses, of a map.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 132.0;
const HEIGHT: f64 = 256.0;
/// Between two maps, with the title of the second and the times of the first.
const APART: f64 = 64.0;
const TOP: f64 = 56.0;
/// Addresses stand so far apart.
const LINE: f64 = 14.0;

/// Colours by number: nothing there, there and not used, and from there on a ramp.
const RAMP: usize = 254;
const NOTHING: [u8; 3] = [255, 255, 255];
const UNUSED: [u8; 3] = [226, 229, 233];
/// From little to much: light to dark, so that the ramp can be read without colours too.
const HEAT: [[u8; 3]; 5] = [
    [255, 237, 160],
    [254, 178, 76],
    [240, 59, 32],
    [158, 1, 66],
    [56, 0, 40],
];
/// From slow to fast.
const MEMORY: [[u8; 3]; 3] = [[230, 97, 1], [190, 174, 160], [44, 105, 176]];

fn palette(colour: Colour) -> Vec<[u8; 3]> {
    let stops: &[[u8; 3]] = match colour {
        Colour::Accesses => &HEAT,
        Colour::Memory => &MEMORY,
    };
    let mix = |at: usize| {
        let place = at as f64 / (RAMP - 1) as f64 * (stops.len() - 1) as f64;
        let (low, part) = (place as usize, place.fract());
        let high = (low + 1).min(stops.len() - 1);
        std::array::from_fn(|c| {
            (f64::from(stops[low][c]) * (1.0 - part) + f64::from(stops[high][c]) * part).round()
                as u8
        })
    };
    [NOTHING, UNUSED]
        .into_iter()
        .chain((0..RAMP).map(mix))
        .collect()
}

/// The colour of a cell; `most` accesses are the most of any.
fn number(cell: &Cell, colour: Colour, most: u64) -> u8 {
    let bytes = cell.fast_bytes + cell.slow_bytes;
    let share = match colour {
        // By the logarithm: a few accesses are seen beside millions.
        Colour::Accesses if cell.accesses > 0 => {
            (1.0 + cell.accesses as f64).ln() / (1.0 + most as f64).ln()
        }
        Colour::Memory if bytes > 0 => cell.fast_bytes as f64 / bytes as f64,
        Colour::Accesses if bytes > 0 => return 1,
        _ => return 0,
    };
    2 + (share * (RAMP - 1) as f64).round() as u8
}

/// Maps below each other; nothing if there is nothing to see.
pub fn draw(maps: &[HeatMap], colour: Colour) -> Option<String> {
    let shows = |m: &&HeatMap| !m.ranges.is_empty() && (colour == Colour::Accesses || m.memories);
    let maps: Vec<&HeatMap> = maps.iter().filter(shows).collect();
    let ranges = maps.iter().flat_map(|m| &m.ranges);
    let cells = ranges.flat_map(|r| &r.cells);
    let most = cells.map(|c| c.accesses).max()?;
    let height = TOP + maps.len() as f64 * (HEIGHT + APART);
    let mut page = Markup::default();
    let view = format!("0 0 {} {}", Px(WIDTH), Px(height));
    page.open(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("width", &Px(WIDTH)),
            ("height", &Px(height)),
            ("font-family", &"system-ui, sans-serif"),
            ("font-size", &"12"),
            ("fill", &"#222"),
        ],
    );
    page.empty(
        "rect",
        &[
            ("width", &Px(WIDTH)),
            ("height", &Px(height)),
            ("fill", &"#fff"),
        ],
    );
    let palette = palette(colour);
    legend(&palette, colour, most, &mut page);
    for (number, map) in maps.iter().enumerate() {
        let top = TOP + number as f64 * (HEIGHT + APART) + 16.0;
        one(map, colour, most, &palette, top, &mut page);
    }
    Some(page.finish())
}

fn text(page: &mut Markup, (x, y): (f64, f64), anchor: &str, size: &str, words: &str) {
    page.leaf(
        "text",
        &[
            ("x", &Px(x)),
            ("y", &Px(y)),
            ("text-anchor", &anchor),
            ("font-size", &size),
        ],
        words,
    );
}

fn image(page: &mut Markup, (x, y, width, height): (f64, f64, f64, f64), png: &[u8]) {
    let data = format!("data:image/png;base64,{}", png::base64(png));
    page.empty(
        "image",
        &[
            ("x", &Px(x)),
            ("y", &Px(y)),
            ("width", &Px(width)),
            ("height", &Px(height)),
            ("preserveAspectRatio", &"none"),
            ("style", &"image-rendering:pixelated"),
            ("href", &data),
        ],
    );
}

fn legend(palette: &[[u8; 3]], colour: Colour, most: u64, page: &mut Markup) {
    let (title, less, more) = match colour {
        Colour::Accesses => (
            "Accesses by address, over time",
            "1",
            format!("{} in a cell", fmt::significant(most as f64, 3)),
        ),
        Colour::Memory => ("Memory by address, over time", "slow", "fast".to_string()),
    };
    text(page, (8.0, 24.0), "start", "16", title);
    let (left, width) = (600.0, 160.0);
    let ramp: Vec<u8> = (2..=255).collect();
    text(page, (left - 8.0, 24.0), "end", "12", less);
    image(
        page,
        (left, 14.0, width, 12.0),
        &png::write(RAMP as u32, &ramp, palette),
    );
    text(page, (left + width + 8.0, 24.0), "start", "12", &more);
    if colour == Colour::Accesses {
        let grey = format!("#{:02x}{:02x}{:02x}", UNUSED[0], UNUSED[1], UNUSED[2]);
        page.empty(
            "rect",
            &[
                ("x", &Px(872.0)),
                ("y", &Px(14.0)),
                ("width", &Px(12.0)),
                ("height", &Px(12.0)),
                ("fill", &grey),
            ],
        );
        text(page, (890.0, 24.0), "start", "12", "not accessed");
    }
}

fn one(map: &HeatMap, colour: Colour, most: u64, palette: &[[u8; 3]], top: f64, page: &mut Markup) {
    let columns = map.ranges[0].cells.len().max(1);
    let (left, width) = (LEFT, WIDTH - LEFT - 16.0);
    text(page, (left, top - 6.0), "start", "13", &map.name);
    let high = HEIGHT / map.ranges.len() as f64;
    // High addresses stand above, as in drawings of memory.
    let rows = map.ranges.iter().rev();
    let pixels: Vec<u8> = rows
        .flat_map(|r| r.cells.iter().map(|c| number(c, colour, most)))
        .collect();
    image(
        page,
        (left, top, width, HEIGHT),
        &png::write(columns as u32, &pixels, palette),
    );
    page.empty(
        "rect",
        &[
            ("x", &Px(left)),
            ("y", &Px(top)),
            ("width", &Px(width)),
            ("height", &Px(HEIGHT)),
            ("fill", &"none"),
            ("stroke", &"#888"),
        ],
    );
    let mut free = top + HEIGHT + 4.0;
    let mut behind = None;
    for (number, range) in map.ranges.iter().enumerate() {
        let begins = behind != Some(range.begin);
        behind = Some(range.end);
        let y = top + HEIGHT - number as f64 * high;
        // Where many ranges lie apart, lines between all of them would hide their contents.
        if begins && y <= free && y - 4.0 > top {
            if number > 0 {
                page.empty(
                    "line",
                    &[
                        ("x1", &Px(left)),
                        ("x2", &Px(left + width)),
                        ("y1", &Px(y)),
                        ("y2", &Px(y)),
                        ("stroke", &"#888"),
                        ("stroke-width", &"0.5"),
                    ],
                );
            }
            text(
                page,
                (left - 6.0, y - 1.0),
                "end",
                "10",
                &format!("{:#x}", range.begin),
            );
            free = y - LINE;
        }
    }
    for part in 0..=4 {
        let x = left + width * f64::from(part) / 4.0;
        let anchor = match part {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        let time = fmt::duration_ns(map.end_ns as f64 * f64::from(part) / 4.0);
        text(page, (x, top + HEIGHT + 16.0), anchor, "11", &time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_colours_of_their_own() {
        let cell = |accesses, fast_bytes, slow_bytes| Cell {
            accesses,
            fast_bytes,
            slow_bytes,
        };
        let heat = |c| number(&c, Colour::Accesses, 1000);
        assert_eq!(heat(cell(0, 0, 0)), 0);
        assert_eq!(heat(cell(0, 4096, 0)), 1);
        assert_eq!(heat(cell(1000, 0, 0)), 255);
        assert!(heat(cell(1, 0, 0)) >= 2 && heat(cell(1, 0, 0)) < heat(cell(10, 0, 0)));
        let memory = |c| number(&c, Colour::Memory, 1000);
        assert_eq!(
            [
                memory(cell(5, 0, 0)),
                memory(cell(0, 0, 9)),
                memory(cell(0, 9, 0))
            ],
            [0, 2, 255]
        );
    }
}
