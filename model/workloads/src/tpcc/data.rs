//! Contents of the database. Initial contents are functions of the keys; only changes take memory.

use varve_access::random::{Rng, mix};

/// Districts of a warehouse (TPC-C, clause 1.2.1, as all cardinalities here).
pub const DISTRICTS: u64 = 10;
/// Customers of a district.
pub const CUSTOMERS: u64 = 3000;
/// Items, and stock rows of a warehouse.
pub const ITEMS: u64 = 100_000;
/// Initial orders of a district.
pub const ORDERS: u64 = 3000;
/// Initial orders that are still open: the last ones.
pub const NEW_ORDERS: u64 = 900;
/// The first open order.
pub const FIRST_OPEN: u32 = (ORDERS - NEW_ORDERS) as u32 + 1;
/// Lines of a district's initial orders.
pub const LINES: u64 = lines_before(ORDERS + 1);
/// Last names.
pub const NAMES: u64 = 1000;

/// Money that a warehouse has taken at the start, in cents; a tenth of it in each district (clause 4.3.3.1).
pub const WAREHOUSE_YTD: i64 = 30_000_000;
/// Amount of each initial history entry, in cents.
pub const FIRST_PAYMENT: i64 = 1_000;

/// Numbers of lines of eleven initial orders in a row, each of 5 to 15 once.
const COUNTS: [u8; 11] = [9, 14, 5, 12, 7, 10, 15, 6, 13, 8, 11];
/// Their sum.
const PER_ELEVEN: u64 = 110;

/// Lines of the initial orders 1 to `order - 1` of a district.
pub const fn lines_before(order: u64) -> u64 {
    let orders = order - 1;
    let mut sum = orders / 11 * PER_ELEVEN;
    let mut rest = 0;
    while rest < orders % 11 {
        sum += COUNTS[rest as usize] as u64;
        rest += 1;
    }
    sum
}

/// A district's changing columns, and everything ordered since the start.
#[derive(Clone, Debug)]
pub struct District {
    /// Money taken, in cents.
    pub ytd: i64,
    /// Number of the next order.
    pub next_order: u32,
    /// Number of the oldest open order.
    pub oldest_open: u32,
    /// Sum of the history entries, in cents.
    pub history: i64,
    /// Orders beyond the initial ones.
    pub orders: Vec<TpccOrder>,
    /// Their lines.
    pub lines: Vec<OrderLine>,
}

/// An order and where its records lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccOrder {
    /// Customer number, 1 to 3000.
    pub customer: u16,
    /// Number of lines.
    pub count: u8,
    /// Rank of the first line among all lines of the district.
    pub first_line: u32,
    /// Address of the order's record.
    pub address: u64,
    /// Address of the first line's record; the others follow.
    pub lines: u64,
    /// Address of the open order's record.
    pub open: u64,
}

/// An order line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLine {
    /// Item number, 1 to 100,000.
    pub item: u32,
    /// Supplying warehouse, from 0.
    pub supply: u32,
    /// Price times quantity, in cents.
    pub amount: u32,
    /// Quantity, 1 to 10.
    pub quantity: u8,
}

/// A customer's changes since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Customer {
    /// Added to the balance of -10.00, in cents.
    pub balance: i64,
    /// Added to the payments of 10.00, in cents.
    pub paid: i64,
    /// Number of the latest order; 0: an initial one.
    pub last_order: u32,
    /// Payments beside the first.
    pub payments: u16,
    /// Deliveries.
    pub deliveries: u16,
}

/// A stock row's changes since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stock {
    /// Quantity sold.
    pub ytd: u32,
    /// Orders, and those from other warehouses.
    pub orders: u16,
    /// Orders from other warehouses.
    pub remote: u16,
    /// Quantity in stock; 0: the initial one.
    quantity: u8,
}

/// The whole database.
#[derive(Clone, Debug)]
pub struct TpccDatabase {
    seed: u64,
    /// Money taken by each warehouse, in cents.
    pub warehouses: Vec<i64>,
    /// Districts, ten for each warehouse.
    pub districts: Vec<District>,
    /// Customers, 3000 for each district.
    pub customers: Vec<Customer>,
    /// Stock, 100,000 for each warehouse.
    pub stock: Vec<Stock>,
    /// Customers (from 0) of any district, sorted by last name, and where each name starts.
    named: Vec<u16>,
    names: Vec<u16>,
    /// Customers in the order of the initial orders, and the inverse.
    buyers: Vec<u16>,
    bought: Vec<u16>,
}

/// NURand's constants C for the last name, customer and item (clause 2.1.6); any do.
const C_NAME: u64 = 123;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7911;

/// The skewed random number of clause 2.1.6, in `low..=high`.
fn nurand(rng: &mut Rng, a: u64, c: u64, low: u64, high: u64) -> u64 {
    let either = rng.between(0, a) | rng.between(low, high);
    (either + c) % (high - low + 1) + low
}

/// A customer number for a transaction, 1 to 3000.
pub fn draw_customer(rng: &mut Rng) -> u16 {
    nurand(rng, 1023, C_CUSTOMER, 1, CUSTOMERS) as u16
}

/// An item number for an order line, 1 to 100,000.
pub fn draw_item(rng: &mut Rng) -> u32 {
    nurand(rng, 8191, C_ITEM, 1, ITEMS) as u32
}

/// A last name, 0 to 999.
pub fn draw_name(rng: &mut Rng) -> usize {
    nurand(rng, 255, C_NAME, 0, NAMES - 1) as usize
}

impl TpccDatabase {
    /// The initial database of `warehouses` warehouses.
    pub fn new(warehouses: u64, seed: u64) -> TpccDatabase {
        let districts = warehouses * DISTRICTS;
        let mut rng = Rng::new(seed, u64::MAX);
        // Every name once, the rest at random (clause 4.3.3.1).
        let names: Vec<usize> = (0..CUSTOMERS as usize)
            .map(|c| {
                if c < NAMES as usize {
                    c
                } else {
                    draw_name(&mut rng)
                }
            })
            .collect();
        let mut named: Vec<u16> = (0..CUSTOMERS as u16).collect();
        named.sort_by_key(|&c| names[c as usize]);
        let starts = (0..=NAMES as usize)
            .map(|name| named.partition_point(|&c| names[c as usize] < name) as u16)
            .collect();
        let mut buyers: Vec<u16> = (0..CUSTOMERS as u16).collect();
        for last in (1..buyers.len()).rev() {
            buyers.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut bought = vec![0; buyers.len()];
        for (order, &customer) in buyers.iter().enumerate() {
            bought[customer as usize] = order as u16;
        }
        let district = District {
            ytd: WAREHOUSE_YTD / DISTRICTS as i64,
            next_order: ORDERS as u32 + 1,
            oldest_open: FIRST_OPEN,
            history: FIRST_PAYMENT * CUSTOMERS as i64,
            orders: Vec::new(),
            lines: Vec::new(),
        };
        TpccDatabase {
            seed,
            warehouses: vec![WAREHOUSE_YTD; warehouses as usize],
            districts: vec![district; districts as usize],
            customers: vec![Customer::default(); (districts * CUSTOMERS) as usize],
            stock: vec![Stock::default(); (warehouses * ITEMS) as usize],
            named,
            names: starts,
            buyers,
            bought,
        }
    }

    /// Places of the customers of a last name in the list by name.
    pub fn with_name(&self, name: usize) -> (usize, usize) {
        (self.names[name] as usize, self.names[name + 1] as usize)
    }

    /// The customer number at a place of the list by name.
    pub fn named(&self, place: usize) -> u16 {
        self.named[place] + 1
    }

    /// Price of an item in cents: 1.00 to 100.00 (clause 4.3.3.1).
    pub fn price(&self, item: u32) -> u32 {
        100 + (mix(self.seed ^ u64::from(item)) % 9901) as u32
    }

    /// Row number of a stock entry.
    pub fn stock_row(warehouse: u32, item: u32) -> u64 {
        u64::from(warehouse) * ITEMS + u64::from(item) - 1
    }

    /// Quantity in stock: 10 to 100.
    pub fn quantity(&self, row: u64) -> u8 {
        match self.stock[row as usize].quantity {
            0 => 10 + (mix(self.seed ^ !row) % 91) as u8,
            quantity => quantity,
        }
    }

    /// Takes `quantity` out of stock, filled up by 91 when fewer than ten would remain (clause 2.4.2.2).
    pub fn sell(&mut self, row: u64, quantity: u8, remote: bool) {
        let before = self.quantity(row);
        let after = if before >= quantity + 10 {
            before - quantity
        } else {
            before + 91 - quantity
        };
        let stock = &mut self.stock[row as usize];
        stock.quantity = after;
        stock.ytd += u32::from(quantity);
        stock.orders = stock.orders.wrapping_add(1);
        stock.remote = stock.remote.wrapping_add(u16::from(remote));
    }

    /// Customer (1 to 3000) of an initial order.
    pub fn buyer(&self, district: usize, order: u32) -> u16 {
        let place = (order as usize - 1 + rotation(district)) % CUSTOMERS as usize;
        self.buyers[place] + 1
    }

    /// The latest order of a customer.
    pub fn last_order(&self, district: usize, customer: u16) -> u32 {
        let row = district * CUSTOMERS as usize + customer as usize - 1;
        match self.customers[row].last_order {
            0 => {
                let place = self.bought[customer as usize - 1] as usize + CUSTOMERS as usize;
                ((place - rotation(district)) % CUSTOMERS as usize) as u32 + 1
            }
            order => order,
        }
    }

    /// Line number `line` (from 0) of an order.
    pub fn line(&self, district: usize, number: u32, order: &TpccOrder, line: u8) -> OrderLine {
        if u64::from(number) > ORDERS {
            let first = order.first_line as usize - LINES as usize;
            return self.districts[district].lines[first + line as usize];
        }
        let key = (district as u64) << 32 | u64::from(number) << 8 | u64::from(line);
        let random = mix(self.seed ^ mix(key));
        // Delivered lines were free, the others cost up to 9999.99 (clause 4.3.3.1).
        let amount = if number < FIRST_OPEN {
            0
        } else {
            1 + (random >> 32) as u32 % 999_999
        };
        OrderLine {
            item: (random % ITEMS) as u32 + 1,
            supply: (district as u64 / DISTRICTS) as u32,
            amount,
            quantity: 5,
        }
    }

    /// Number of lines of an initial order.
    pub fn initial_count(order: u32) -> u8 {
        COUNTS[(order as usize - 1) % 11]
    }
}

/// By how much a district's list of buyers is rotated.
fn rotation(district: usize) -> usize {
    district * 7 % CUSTOMERS as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_orders_have_five_to_fifteen_lines_in_a_row() {
        let mut before = 0;
        for order in 1..=ORDERS {
            assert_eq!(lines_before(order), before);
            let count = TpccDatabase::initial_count(order as u32);
            assert!((5..=15).contains(&count));
            before += u64::from(count);
        }
        assert_eq!(LINES, before);
        assert!((LINES as f64 / ORDERS as f64 - 10.0).abs() < 0.01);
    }

    #[test]
    fn every_customer_has_one_initial_order() {
        let data = TpccDatabase::new(1, 5);
        for district in [0, 3, 9] {
            let mut seen = vec![false; CUSTOMERS as usize];
            for order in 1..=ORDERS as u32 {
                let customer = data.buyer(district, order);
                assert_eq!(data.last_order(district, customer), order);
                seen[customer as usize - 1] = true;
            }
            assert!(seen.iter().all(|&seen| seen));
        }
    }

    #[test]
    fn every_name_has_its_customers() {
        let data = TpccDatabase::new(1, 5);
        let mut total = 0;
        for name in 0..NAMES as usize {
            let (low, high) = data.with_name(name);
            assert!(low < high, "no customer is called {name}");
            assert!((low..high).any(|place| data.named(place) == name as u16 + 1));
            total += high - low;
        }
        assert_eq!(total, CUSTOMERS as usize);
    }

    #[test]
    fn stock_stays_between_ten_and_a_hundred() {
        let mut data = TpccDatabase::new(1, 5);
        let mut rng = Rng::new(1, 1);
        for _ in 0..1000 {
            data.sell(42, rng.between(1, 10) as u8, false);
            assert!(
                (10..=100).contains(&data.quantity(42)),
                "{}",
                data.quantity(42)
            );
        }
    }
}
