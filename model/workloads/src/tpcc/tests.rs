//! The database under its mix.

use super::super::data::{CUSTOMERS, FIRST_OPEN, ORDERS};
use super::*;
use crate::harness::{self, CallOrder, Tally};
use varve_access::Kind;

const LIMIT: u64 = 1 << 26;

fn make(text: &str) -> Tpcc {
    Tpcc::new(&ENTRY.values(text).unwrap()).unwrap()
}

fn run(text: &str, order: CallOrder) -> (Tpcc, Tally) {
    let mut tpcc = make(text);
    let tally = harness::run(&mut tpcc, order, LIMIT);
    assert_eq!(tpcc.failure(), None);
    (tpcc, tally)
}

#[test]
fn the_database_is_consistent_at_the_start_and_after_any_run() {
    assert_eq!(check(&make("warehouses=2").db), Ok(()));
    for (warehouses, threads) in [(1, 1), (1, 3), (2, 3), (3, 2)] {
        let text = format!("warehouses={warehouses},threads={threads},transactions=2k");
        let (tpcc, _) = run(&text, CallOrder::Random(9));
        assert_eq!(check(&tpcc.db), Ok(()), "{text}");
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let (mut tpcc, _) = run(
        "warehouses=1,threads=1,transactions=500",
        CallOrder::RoundRobin,
    );
    let whole = tpcc.db.data.clone();
    type Damage = fn(&mut TpccDatabase);
    let damages: [(&str, Damage); 5] = [
        ("1: warehouse 0", |data| data.warehouses[0] += 1),
        ("9: district 3", |data| {
            data.districts[3].history += 1;
            data.districts[4].history -= 1;
        }),
        ("2: district 0", |data| data.districts[0].next_order += 1),
        ("4: district 1", |data| data.districts[1].lines.truncate(1)),
        ("10: district 0 customer 8", |data| {
            data.customers[7].balance += 1
        }),
    ];
    for (name, damage) in damages {
        tpcc.db.data = whole.clone();
        damage(&mut tpcc.db.data);
        let error = check(&tpcc.db).unwrap_err();
        assert!(error.starts_with(name), "{name}: {error}");
    }
}

#[test]
fn order_does_not_matter_when_threads_have_their_own_warehouses() {
    let tally = harness::assert_order_does_not_matter(
        || Box::new(make("warehouses=3,threads=3,transactions=300")),
        LIMIT,
    );
    assert_eq!(tally.requests.values().sum::<u64>(), 900);
}

#[test]
fn transactions_come_in_the_standard_mix() {
    let (tpcc, tally) = run(
        "warehouses=1,threads=1,transactions=10k",
        CallOrder::RoundRobin,
    );
    for (class, percent) in PERCENT.iter().enumerate() {
        let got = tally.requests[&(class as u64)];
        assert!(
            got.abs_diff(percent * 100) < 200,
            "{}: {got}",
            CLASSES[class]
        );
    }
    let new_orders: u64 = tpcc.committed[0] + tpcc.rolled_back;
    let share = tpcc.rolled_back as f64 / new_orders as f64;
    assert!(
        (0.004..0.018).contains(&share),
        "about 1 % roll back: {share}"
    );
}

/// The ordered quantities are those that the stock records as sold.
#[test]
fn stock_sold_is_what_the_new_lines_order() {
    let (tpcc, _) = run(
        "warehouses=2,threads=2,transactions=1k",
        CallOrder::Random(2),
    );
    let data = &tpcc.db.data;
    let mut sold = vec![0u32; data.stock.len()];
    for district in &data.districts {
        for line in &district.lines {
            sold[TpccDatabase::stock_row(line.supply, line.item) as usize] +=
                u32::from(line.quantity);
        }
    }
    assert!(
        sold.iter()
            .zip(&data.stock)
            .all(|(&sold, stock)| sold == stock.ytd)
    );
    let remote: u32 = data.stock.iter().map(|stock| u32::from(stock.remote)).sum();
    let lines: usize = data
        .districts
        .iter()
        .map(|district| district.lines.len())
        .sum();
    let share = f64::from(remote) / lines as f64;
    assert!(
        (0.004..0.02).contains(&share),
        "about 1 % of lines are remote: {share}"
    );
}

#[test]
fn deliveries_take_the_oldest_orders_first() {
    let (tpcc, _) = run(
        "warehouses=1,threads=2,transactions=2k",
        CallOrder::RoundRobin,
    );
    let deliveries: u64 = tpcc.committed[3];
    for district in &tpcc.db.data.districts {
        assert_eq!(u64::from(district.oldest_open - FIRST_OPEN), deliveries);
        assert_eq!(
            u64::from(district.next_order),
            ORDERS + 1 + district.orders.len() as u64
        );
    }
    let delivered: u64 = tpcc
        .db
        .data
        .customers
        .iter()
        .map(|c| u64::from(c.deliveries))
        .sum();
    assert_eq!(delivered, 10 * deliveries);
    assert_eq!(tpcc.db.data.customers.len() as u64, 10 * CUSTOMERS);
}

#[test]
fn records_and_marks_are_what_a_transaction_should_cost() {
    let (tpcc, tally) = run(
        "warehouses=1,threads=1,transactions=2k",
        CallOrder::RoundRobin,
    );
    assert_eq!(tally.of(Kind::Begin), 2000);
    // Of the mix: ten locks of stock for each new order and more; order lines of deliveries; so about a dozen a
    // transaction. Searches dominate: several hundred reads.
    let per = |kind| tally.of(kind) as f64 / 2000.0;
    assert!(
        (10.0..60.0).contains(&per(Kind::Update)),
        "{}",
        per(Kind::Update)
    );
    assert!(
        (150.0..600.0).contains(&per(Kind::Read)),
        "{}",
        per(Kind::Read)
    );
    assert!(tpcc.db.tables.heaps[0].lacking == 0);
}

#[test]
fn the_hot_tables_come_first_and_full_size_is_a_hundred_gigabytes() {
    let tpcc = make("threads=16");
    let regions = tpcc.regions();
    assert_eq!(regions[0].name, "warehouse");
    let at = |name: &str| {
        regions
            .iter()
            .position(|region| region.name == name)
            .unwrap()
    };
    assert!(at("district") < at("customer") && at("customer") < at("stock"));
    let loaded: u64 = tpcc
        .db
        .tables
        .loaded()
        .iter()
        .map(|array| array.bytes())
        .sum();
    assert!((loaded as f64 / 100e9 - 1.0).abs() < 0.02, "{loaded}");
}
