//! The allocation sites of native programs under plans, as tables and in words.

use super::columns::Cell;
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, Value};
use varve_run::objects::{ObjectResult, PlacedSite};

/// Sites that are shown.
const SHOWN: usize = 12;

/// The columns that native programs have of their own.
pub fn cells<'a>() -> Vec<Cell<'a, ObjectResult>> {
    vec![
        Cell::share("slow reads", |r: &ObjectResult| r.slow_share),
        Cell::share("waiting", |r: &ObjectResult| r.stalls.total()),
    ]
}

/// Whether a plan knows where the memory of each site is.
fn knows_sites(r: &ObjectResult) -> bool {
    r.placed.iter().any(|site| site.fast_quota_bytes.is_some())
}

/// The allocation sites under a plan, those that take most first, with what they cost beside a run with all in DRAM.
pub fn sites(r: &ObjectResult, base: &ObjectResult) -> RunTable {
    let cost = Column::new("in slow memory costs", Format::Percent, Better::Lower);
    let in_dram = Column::new("in DRAM", Format::Percent, Better::Neither);
    let mut table = listed(r, &[cost, in_dram], |site| {
        vec![
            (100.0 * self::cost(site) / base.seconds).into(),
            fast_share(site),
        ]
    });
    table.notes.push(
        "in slow memory costs: time that threads wait longer for this site's memory, % of the time with all in DRAM; of all threads"
            .into(),
    );
    if !knows_sites(r) {
        table.notes.push(
            "in DRAM: `-`, since pages are placed here, whichever sites have memory in them".into(),
        );
    }
    table
}

/// The allocation sites of a plan that knows hot and cold, those that take most first.
pub fn coloured(r: &ObjectResult) -> RunTable {
    let hot = Column::new("hot", Format::Percent, Better::Neither);
    listed(r, &[hot], |site| vec![fast_share(site)])
}

fn listed(
    r: &ObjectResult,
    more: &[Column],
    values: impl Fn(&PlacedSite) -> Vec<Value>,
) -> RunTable {
    let mut table = RunTable::new(format!("Allocation sites, under `{}`", r.plan), "site");
    table.columns = vec![
        Column::new("peak", Format::Bytes, Better::Neither),
        Column::new("objects", Format::Number, Better::Neither),
        Column::new("misses", Format::Number, Better::Neither),
    ];
    table.columns.extend(more.iter().cloned());
    for site in r.placed.iter().take(SHOWN) {
        let c = &site.counts;
        let mut row = vec![
            (c.peak_bytes as f64).into(),
            (c.objects as f64).into(),
            ((c.misses + c.write_misses) as f64).into(),
        ];
        row.extend(values(site));
        table.push(&site.site, row);
    }
    table
}

/// The share of a site's memory that is in fast memory, or hot, if it is known.
fn fast_share(site: &PlacedSite) -> Value {
    let of = |bytes: u64| 100.0 * bytes as f64 / site.counts.peak_bytes.max(1) as f64;
    site.fast_quota_bytes
        .map_or(Value::Missing, |bytes| of(bytes).into())
}

/// The cost of a site in slow memory, s of all threads.
fn cost(site: &PlacedSite) -> f64 {
    site.counts.slow_ns.saturating_sub(site.counts.fast_ns) as f64 / 1e9
}
