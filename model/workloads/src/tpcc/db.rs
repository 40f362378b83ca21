//! The database: values, places, and the reads that transactions share.

use varve_access::Op;

use super::data::{
    CUSTOMERS, LINES, NEW_ORDERS, ORDERS, TpccDatabase, TpccOrder, draw_customer, draw_name,
    lines_before,
};
use super::index::Growing;
use super::tables::{Tables, record, row};
use super::tx::Tx;
use varve_access::random::Rng;

/// The database, and the transaction under way.
pub struct Db {
    /// Values.
    pub data: TpccDatabase,
    /// Places.
    pub tables: Tables,
    pub(super) tx: Tx,
    /// Items seen by a stock-level transaction.
    pub(super) seen: Vec<u32>,
}

impl Db {
    /// A database as loaded.
    pub fn new(data: TpccDatabase, tables: Tables) -> Db {
        Db {
            data,
            tables,
            tx: Tx::default(),
            seen: Vec::with_capacity(512),
        }
    }

    pub(super) fn read_warehouse(&mut self, warehouse: u32, out: &mut Vec<Op>) {
        self.tables.by_warehouse.walk(u64::from(warehouse), out);
        self.tx.read(
            self.tables.warehouses.at(u64::from(warehouse)),
            row::WAREHOUSE,
            out,
        );
    }

    pub(super) fn read_district(&mut self, district: usize, out: &mut Vec<Op>) {
        self.tables.by_district.walk(district as u64, out);
        self.tx.read(
            self.tables.districts.at(district as u64),
            row::DISTRICT,
            out,
        );
    }

    pub(super) fn read_customer(&mut self, district: usize, customer: u16, out: &mut Vec<Op>) {
        let buyer = customer_row(district, customer);
        self.tables.by_customer.walk(buyer, out);
        self.tx
            .read(self.tables.customers.at(buyer), row::CUSTOMER, out);
    }

    /// A customer, for 60 % by last name: the middle one of those with the name (clause 2.5.2.2). Reads the record.
    pub(super) fn some_customer(
        &mut self,
        district: usize,
        rng: &mut Rng,
        out: &mut Vec<Op>,
    ) -> u16 {
        let customer = if rng.below(100) < 60 {
            let (low, high) = self.data.with_name(draw_name(rng));
            let first = district as u64 * CUSTOMERS;
            self.tables.by_name.walk(first + low as u64, out);
            for place in low..high {
                self.tx
                    .read(self.tables.names.at(first + place as u64), row::NAME, out);
            }
            self.data.named(low + (high - low - 1) / 2)
        } else {
            draw_customer(rng)
        };
        self.read_customer(district, customer, out);
        customer
    }

    pub(super) fn read_order(
        &mut self,
        district: usize,
        number: u32,
        out: &mut Vec<Op>,
    ) -> TpccOrder {
        let order = self.order(district, number);
        self.tables
            .by_order
            .walk(district, u64::from(number) - 1, out);
        self.tx.read(order.address, row::ORDER, out);
        order
    }

    /// Reads the records of an order's lines by a scan of their index; `each` gets line number and address.
    pub(super) fn read_lines(
        &mut self,
        district: usize,
        order: &TpccOrder,
        mut each: impl FnMut(usize, u64),
        out: &mut Vec<Op>,
    ) {
        for line in 0..u64::from(order.count) {
            let rank = u64::from(order.first_line) + line;
            if line == 0 {
                self.tables.by_line.walk(district, rank, out);
            } else if Growing::starts_leaf(rank) {
                self.tables.by_line.step(district, rank, out);
            }
            let address = order.lines + line * record(row::LINE);
            self.tx.read(address, row::LINE, out);
            each(line as usize, address);
        }
    }

    /// An order of a district, initial or new.
    pub fn order(&self, district: usize, number: u32) -> TpccOrder {
        if u64::from(number) > ORDERS {
            return self.data.districts[district].orders[number as usize - 1 - ORDERS as usize];
        }
        let tables = &self.tables;
        let (group, rank) = (district as u64, u64::from(number) - 1);
        let first_line = lines_before(u64::from(number));
        let open = match rank.checked_sub(ORDERS - NEW_ORDERS) {
            Some(rank) => tables.new_orders.at(group * NEW_ORDERS + rank),
            None => 0,
        };
        TpccOrder {
            customer: self.data.buyer(district, number),
            count: TpccDatabase::initial_count(number),
            first_line: first_line as u32,
            address: tables.orders.at(group * ORDERS + rank),
            lines: tables.lines.at(group * LINES + first_line),
            open,
        }
    }
}

/// Row number of a customer.
pub(super) fn customer_row(district: usize, customer: u16) -> u64 {
    district as u64 * CUSTOMERS + u64::from(customer) - 1
}

/// Rank of an open order among all that ever were open in its district.
pub(super) fn open_rank(number: u32) -> u64 {
    u64::from(number) - 1 - (ORDERS - NEW_ORDERS)
}
