//! The consistency conditions of TPC-C (clause 3.3.2), recomputed from every order and line. Slow; for tests and for
//! small databases.

use super::data::{CUSTOMERS, DISTRICTS, FIRST_OPEN, FIRST_PAYMENT, WAREHOUSE_YTD};
use super::db::Db;

/// Checks consistency. Returns the first violation in one line; `Ok` when every condition holds.
///
/// Conditions 1 to 4 and 8 to 12 in the specification's numbers; 5 to 7 (an order is open exactly as long as it has no
/// carrier and its lines no date) hold by construction, since being open is one number per district.
pub fn check(db: &Db) -> Result<(), String> {
    for (warehouse, &ytd) in db.data.warehouses.iter().enumerate() {
        let first = warehouse * DISTRICTS as usize;
        let districts = &db.data.districts[first..first + DISTRICTS as usize];
        let sum: i64 = districts.iter().map(|district| district.ytd).sum();
        equal(
            &format!("1: warehouse {warehouse}: W_YTD and sum of D_YTD"),
            ytd,
            sum,
        )?;
        let history: i64 = districts.iter().map(|district| district.history).sum();
        equal(
            &format!("8: warehouse {warehouse}: W_YTD and history"),
            ytd,
            history,
        )?;
    }
    let mut payments = 0;
    for district in 0..db.data.districts.len() {
        check_district(db, district)?;
        payments += check_customers(db, district)?;
    }
    let taken: i64 = db
        .data
        .warehouses
        .iter()
        .map(|ytd| ytd - WAREHOUSE_YTD)
        .sum();
    equal("payments of customers and money taken", payments, taken)
}

fn check_district(db: &Db, number: usize) -> Result<(), String> {
    let district = &db.data.districts[number];
    equal(
        &format!("9: district {number}: D_YTD and history"),
        district.ytd,
        district.history,
    )?;
    let last = district.orders.len() as i64 + i64::from(FIRST_OPEN) - 1 + 900;
    let next = i64::from(district.next_order);
    equal(
        &format!("2: district {number}: D_NEXT_O_ID and the last order"),
        next - 1,
        last,
    )?;
    let open = next - i64::from(district.oldest_open);
    if open < 0 {
        return Err(format!("3: district {number}: {open} open orders"));
    }
    let counted: i64 = district
        .orders
        .iter()
        .map(|order| i64::from(order.count))
        .sum();
    let lines = district.lines.len() as i64;
    equal(
        &format!("4: district {number}: sum of O_OL_CNT and lines"),
        counted,
        lines,
    )?;
    Ok(())
}

/// Conditions 10 and 12 for every customer of a district; returns the sum of their payments since the start.
fn check_customers(db: &Db, number: usize) -> Result<i64, String> {
    let mut delivered = vec![0i64; CUSTOMERS as usize];
    let mut deliveries = vec![0u16; CUSTOMERS as usize];
    for order_number in 1..db.data.districts[number].oldest_open {
        let order = db.order(number, order_number);
        let customer = order.customer as usize - 1;
        deliveries[customer] += u16::from(order_number >= FIRST_OPEN);
        for line in 0..order.count {
            delivered[customer] +=
                i64::from(db.data.line(number, order_number, &order, line).amount);
        }
    }
    let first = number * CUSTOMERS as usize;
    let mut payments = 0;
    for (place, customer) in db.data.customers[first..first + CUSTOMERS as usize]
        .iter()
        .enumerate()
    {
        let what = format!("district {number} customer {}", place + 1);
        let (balance, paid) = (
            customer.balance - FIRST_PAYMENT,
            customer.paid + FIRST_PAYMENT,
        );
        equal(
            &format!("10: {what}: balance and lines less payments"),
            balance,
            delivered[place] - paid,
        )?;
        equal(
            &format!("12: {what}: balance and payments and lines"),
            balance + paid,
            delivered[place],
        )?;
        let count = i64::from(customer.deliveries);
        equal(
            &format!("{what}: delivered orders"),
            count,
            i64::from(deliveries[place]),
        )?;
        payments += customer.paid;
    }
    Ok(payments)
}

fn equal(what: &str, left: i64, right: i64) -> Result<(), String> {
    if left == right {
        Ok(())
    } else {
        Err(format!("{what}: {left} is not {right}"))
    }
}
