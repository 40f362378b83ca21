//! Both queries against loops over rows that know of no columns, threads or hash tables.

use super::data::{OlapTables, Q1_DAY, Q3_DAY, Q3_SEGMENT};
use super::queries::{ENTRY, Queries, program};
use crate::harness::{self, CallOrder};
use crate::loops::Loops;
use proptest::prelude::*;
use std::collections::BTreeMap;
use varve_access::{Kind, Program};

fn made(line: &str) -> Loops<Queries> {
    let (entry, values) = crate::registry::parse(line).unwrap();
    assert_eq!(entry.name, ENTRY.name);
    program(&values).unwrap()
}

/// Lines, pieces, cents, and charges, by flag and status.
fn q1(data: &OlapTables) -> BTreeMap<(u8, u8), [u128; 4]> {
    let mut groups = BTreeMap::<_, [u128; 4]>::new();
    for line in (0..data.lines).map(|at| data.line(at)) {
        if line.shipped > Q1_DAY {
            continue;
        }
        let sums = groups.entry((line.flag, line.status)).or_default();
        let charged = line.price * (100 - line.discount) * (100 + line.tax);
        let row = [1, line.quantity, line.price, charged];
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += u128::from(value);
        }
    }
    groups
}

/// Revenue by order, the ten that have most.
fn q3(data: &OlapTables) -> Vec<(u64, u64)> {
    let mut revenue = BTreeMap::<u64, u64>::new();
    for line in (0..data.lines).map(|at| data.line(at)) {
        let order = data.order(line.order);
        let asked = order.day < Q3_DAY
            && line.shipped > Q3_DAY
            && data.segment(order.customer) == Q3_SEGMENT;
        if asked {
            *revenue.entry(line.order).or_default() += line.price * (100 - line.discount);
        }
    }
    let mut all: Vec<(u64, u64)> = revenue.into_iter().collect();
    // Stable: of equals the lowest order stays first.
    all.sort_by_key(|&(_, revenue)| std::cmp::Reverse(revenue));
    all.truncate(10);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn answers_are_those_of_plain_loops(
        lines in 28u64..20_000,
        threads in 1usize..6,
        seed in any::<u32>(),
        order in any::<u64>(),
    ) {
        let text = format!("olap:lines={lines},passes=2,threads={threads},seed={seed}");
        let mut program = made(&text);
        let tally = harness::run(&mut program, CallOrder::Random(order), u64::MAX);
        prop_assert_eq!(tally.requests[&0], 2);
        let data = OlapTables::new(lines, seed.into());
        prop_assert_eq!(program.kernel.best(), q3(&data));
        let ours: Vec<[u128; 4]> = program.kernel.groups().iter().filter(|s| s.lines > 0)
            .map(|s| [s.lines.into(), s.quantity.into(), s.price.into(), s.charged])
            .collect();
        let want: Vec<[u128; 4]> = q1(&data).into_values().collect();
        prop_assert_eq!(ours, want);
    }
}

/// A run may end some threads before others (the first part of a program is measured so): their unfinished work must
/// not turn the chains of the table into circles.
#[test]
fn threads_that_end_early_leave_chains_that_end() {
    for early in [1000, 2000, 3000, 4000] {
        let mut program = made("olap:lines=7324,passes=12,threads=2");
        let (mut given, mut out) = (0, Vec::with_capacity(64));
        let mut more = true;
        while more {
            for thread in [1, 0] {
                if thread == 1 && given > early {
                    continue;
                }
                out.clear();
                more = program.fill(thread, 0, &mut out);
                given += out.len();
                assert!(out.len() < 2000, "a step that does not end");
            }
        }
    }
}

#[test]
fn columns_are_read_line_by_line_and_the_join_waits_for_its_directory() {
    let mut program = made("olap:lines=28000,passes=1,threads=3");
    let regions = program.regions();
    let region = |name: &str| regions.iter().find(|r| r.name == name).unwrap().clone();
    let (shipped, entries) = (region("lineitem.shipped"), region("join.entries"));
    let (mut dates, mut waited) = (0, 0);
    harness::each(&mut program, CallOrder::RoundRobin, |_, op| {
        let is_in = |r: &varve_access::Region| (r.base..r.base + r.bytes).contains(&op.addr);
        if is_in(&shipped) && op.kind == Kind::Read {
            dates += u64::from(op.size);
        }
        waited += u64::from(is_in(&entries) && op.dependent == 1);
    });
    // Once for each query.
    assert_eq!(dates, 2 * 28_000 * 4);
    let data = OlapTables::new(28_000, 1);
    let found = (0..data.lines).map(|at| data.line(at)).filter(|line| {
        let order = data.order(line.order);
        line.shipped > Q3_DAY && order.day < Q3_DAY && data.segment(order.customer) == Q3_SEGMENT
    });
    assert!(waited >= found.count() as u64);
}
