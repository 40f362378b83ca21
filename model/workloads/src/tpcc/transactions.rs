//! The five transactions (TPC-C, clauses 2.4 to 2.8): each runs to its end at once, on the data and as accesses.

use varve_access::{Kind, Op};

use super::data::{
    CUSTOMERS, DISTRICTS, ITEMS, LINES, OrderLine, TpccDatabase, TpccOrder, draw_customer,
    draw_item,
};
use super::db::{Db, customer_row, open_rank};
use super::tables::{Tables, record, row};
use crate::node::{self, CAPACITY, NODE};
use varve_access::random::Rng;

/// Instructions around a transaction: drawing its inputs, the call, begin and epoch check of the commit protocol.
const FRAME: u32 = 300;

/// One thread's client.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Its random numbers.
    pub rng: Rng,
    /// Thread number.
    pub thread: usize,
    /// Its warehouses, `low..high`.
    pub low: u32,
    /// See `low`.
    pub high: u32,
}

/// Names of the five transactions, in the order of their `End` marks.
pub const CLASSES: [&str; 5] = [
    "new-order",
    "payment",
    "order-status",
    "delivery",
    "stock-level",
];

/// Percentages of the mix, as Silo runs it (at least those of clause 5.2.3).
pub const PERCENT: [u64; 5] = [45, 43, 4, 4, 4];

impl Db {
    /// Runs transaction `class`, marks included. Returns whether it committed.
    pub fn run(&mut self, class: usize, worker: &mut Worker, out: &mut Vec<Op>) -> bool {
        out.push(Op::new(Kind::Begin, 0, 0, FRAME));
        let warehouse = worker
            .rng
            .between(u64::from(worker.low), u64::from(worker.high) - 1)
            as u32;
        let committed = match class {
            0 => self.new_order(warehouse, worker, out),
            1 => self.payment(warehouse, worker, out),
            2 => self.order_status(warehouse, worker, out),
            3 => self.delivery(warehouse, worker, out),
            _ => self.stock_level(warehouse, worker, out),
        };
        if committed {
            self.tx.commit(out);
        } else {
            self.tx.abort();
        }
        out.push(Op::mark(Kind::End, class as u64));
        committed
    }

    fn new_order(&mut self, warehouse: u32, worker: &mut Worker, out: &mut Vec<Op>) -> bool {
        let rng = &mut worker.rng;
        let district = some_district(warehouse, rng);
        let customer = draw_customer(rng);
        let count = rng.between(5, 15) as u8;
        let rolls_back = rng.below(100) == 0;
        self.read_warehouse(warehouse, out);
        self.read_district(district, out);
        self.tx.write(self.tables.districts.at(district as u64), 4);
        self.read_customer(district, customer, out);

        let heap = &mut self.tables.heaps[worker.thread];
        let address = heap.take(record(row::ORDER));
        let open = heap.take(record(row::NEW_ORDER));
        let lines = heap.take(u64::from(count) * record(row::LINE));
        let known = &self.data.districts[district];
        let number = known.next_order;
        let first_line = LINES as u32 + known.lines.len() as u32;
        let order = TpccOrder {
            customer,
            count,
            first_line,
            address,
            lines,
            open,
        };
        if !rolls_back {
            self.insert_order(district, number, &order, worker.thread, out);
        }
        let lines_before = self.data.districts[district].lines.len();
        for line in 0..count {
            let rng = &mut worker.rng;
            let item = draw_item(rng);
            let quantity = rng.between(1, 10) as u8;
            let supply = self.supplier(warehouse, rng);
            if rolls_back && line + 1 == count {
                // The last item is unused: its lookup finds nothing, and all is undone. Silo has not written
                // anything yet.
                self.tables.by_item.walk(ITEMS - 1, out);
                self.data.districts[district].lines.truncate(lines_before);
                return false;
            }
            self.order_line(
                district,
                &order,
                line,
                OrderLine {
                    item,
                    supply,
                    quantity,
                    amount: 0,
                },
                out,
            );
            if !rolls_back {
                self.data.sell(
                    TpccDatabase::stock_row(supply, item),
                    quantity,
                    supply != warehouse,
                );
                self.insert_line(district, &order, line, worker.thread, out);
            }
        }
        let known = &mut self.data.districts[district];
        known.orders.push(order);
        known.next_order += 1;
        let row = district * CUSTOMERS as usize + customer as usize - 1;
        self.data.customers[row].last_order = number;
        true
    }

    /// The warehouse that supplies a line: another one for 1 % of them.
    fn supplier(&self, home: u32, rng: &mut Rng) -> u32 {
        let warehouses = self.data.warehouses.len() as u64;
        if warehouses > 1 && rng.below(100) == 0 {
            other(home, warehouses, rng)
        } else {
            home
        }
    }

    fn insert_order(
        &mut self,
        district: usize,
        number: u32,
        order: &TpccOrder,
        thread: usize,
        out: &mut Vec<Op>,
    ) {
        let Tables {
            heaps,
            by_order,
            by_new_order,
            by_buyer,
            ..
        } = &mut self.tables;
        let heap = &mut heaps[thread];
        let rank = u64::from(number) - 1;
        self.tx.insert(order.address, row::ORDER, out);
        by_order.append(district, rank, || heap.take(NODE), out);
        self.tx.insert(order.open, row::NEW_ORDER, out);
        by_new_order.append(district, open_rank(number), || heap.take(NODE), out);
        // The order's place in the index by customer lies in the middle of a leaf; every fifteenth one needs a
        // fresh leaf.
        let buyer = customer_row(district, order.customer);
        by_buyer.walk(buyer, out);
        if number.is_multiple_of(CAPACITY as u32) {
            node::split(by_buyer.leaf(buyer), heap.take(NODE), out);
        }
        node::place(by_buyer.leaf(buyer), CAPACITY / 2, CAPACITY - 3, out);
    }

    /// Looks the item and its stock up, and appends the line to the district's.
    fn order_line(
        &mut self,
        district: usize,
        order: &TpccOrder,
        line: u8,
        wanted: OrderLine,
        out: &mut Vec<Op>,
    ) {
        self.tables.by_item.walk(u64::from(wanted.item) - 1, out);
        self.tx.read(
            self.tables.items.at(u64::from(wanted.item) - 1),
            row::ITEM,
            out,
        );
        let stock = TpccDatabase::stock_row(wanted.supply, wanted.item);
        self.tables.by_stock.walk(stock, out);
        let address = self.tables.stock.at(stock);
        self.tx.read(address, row::STOCK, out);
        // Quantity, year to date and two counts.
        self.tx.write(address, 16);
        let amount = self.data.price(wanted.item) * u32::from(wanted.quantity);
        let lines = &mut self.data.districts[district].lines;
        debug_assert_eq!(
            lines.len() as u64 + LINES,
            u64::from(order.first_line) + u64::from(line)
        );
        lines.push(OrderLine { amount, ..wanted });
    }

    fn insert_line(
        &mut self,
        district: usize,
        order: &TpccOrder,
        line: u8,
        thread: usize,
        out: &mut Vec<Op>,
    ) {
        let Tables { heaps, by_line, .. } = &mut self.tables;
        let address = order.lines + u64::from(line) * record(row::LINE);
        self.tx.insert(address, row::LINE, out);
        let rank = u64::from(order.first_line) + u64::from(line);
        by_line.append(district, rank, || heaps[thread].take(NODE), out);
    }

    fn payment(&mut self, warehouse: u32, worker: &mut Worker, out: &mut Vec<Op>) -> bool {
        let rng = &mut worker.rng;
        let district = some_district(warehouse, rng);
        let warehouses = self.data.warehouses.len() as u64;
        // 15 % of the customers are at home elsewhere.
        let theirs = if warehouses > 1 && rng.below(100) < 15 {
            some_district(other(warehouse, warehouses, rng), rng)
        } else {
            district
        };
        // 1.00 to 5000.00.
        let amount = rng.between(100, 500_000) as i64;
        self.read_warehouse(warehouse, out);
        self.tx
            .write(self.tables.warehouses.at(u64::from(warehouse)), 8);
        self.read_district(district, out);
        self.tx.write(self.tables.districts.at(district as u64), 8);
        let customer = self.some_customer(theirs, &mut worker.rng, out);
        let buyer = customer_row(theirs, customer);
        // Balance, payments and their count; a tenth of the customers have bad credit, and 500 bytes of data about it
        // (clause 2.5.2.2).
        let bytes = if buyer.is_multiple_of(10) {
            24 + 500
        } else {
            24
        };
        self.tx.write(self.tables.customers.at(buyer), bytes);
        let history = self.tables.heaps[worker.thread].take(record(row::HISTORY));
        self.tx.insert(history, row::HISTORY, out);

        self.data.warehouses[warehouse as usize] += amount;
        let district = &mut self.data.districts[district];
        district.ytd += amount;
        district.history += amount;
        let customer = &mut self.data.customers[buyer as usize];
        customer.balance -= amount;
        customer.paid += amount;
        customer.payments = customer.payments.wrapping_add(1);
        true
    }

    fn order_status(&mut self, warehouse: u32, worker: &mut Worker, out: &mut Vec<Op>) -> bool {
        let district = some_district(warehouse, &mut worker.rng);
        let customer = self.some_customer(district, &mut worker.rng, out);
        let number = self.data.last_order(district, customer);
        self.tables
            .by_buyer
            .walk(customer_row(district, customer), out);
        let order = self.read_order(district, number, out);
        self.read_lines(district, &order, |_, _| {}, out);
        true
    }

    fn delivery(&mut self, warehouse: u32, _: &mut Worker, out: &mut Vec<Op>) -> bool {
        for number in 0..DISTRICTS {
            let district = (u64::from(warehouse) * DISTRICTS + number) as usize;
            let oldest = self.data.districts[district].oldest_open;
            if oldest < self.data.districts[district].next_order {
                self.deliver(district, oldest, out);
            }
        }
        true
    }

    fn deliver(&mut self, district: usize, number: u32, out: &mut Vec<Op>) {
        let rank = open_rank(number);
        self.tables.by_new_order.walk(district, rank, out);
        let open = self.order(district, number).open;
        self.tx.read(open, row::NEW_ORDER, out);
        // Deleted: the record is marked absent at commit, its key leaves the index.
        self.tx.write(open, 8);
        self.tables.by_new_order.remove(district, rank, out);
        let order = self.read_order(district, number, out);
        // The carrier.
        self.tx.write(order.address, 4);
        let mut addresses = [0u64; 16];
        self.read_lines(
            district,
            &order,
            |line, address| addresses[line] = address,
            out,
        );
        let mut total = 0;
        for line in 0..order.count {
            // The delivery date.
            self.tx.write(addresses[line as usize], 8);
            total += i64::from(self.data.line(district, number, &order, line).amount);
        }
        self.read_customer(district, order.customer, out);
        let buyer = customer_row(district, order.customer);
        self.tx.write(self.tables.customers.at(buyer), 12);
        let customer = &mut self.data.customers[buyer as usize];
        customer.balance += total;
        customer.deliveries = customer.deliveries.wrapping_add(1);
        self.data.districts[district].oldest_open = number + 1;
    }

    fn stock_level(&mut self, warehouse: u32, worker: &mut Worker, out: &mut Vec<Op>) -> bool {
        let district = some_district(warehouse, &mut worker.rng);
        let threshold = worker.rng.between(10, 20) as u8;
        self.read_district(district, out);
        let next = self.data.districts[district].next_order;
        self.seen.clear();
        for number in next - 20..next {
            let order = self.order(district, number);
            self.read_lines(district, &order, |_, _| {}, out);
            for line in 0..order.count {
                self.seen
                    .push(self.data.line(district, number, &order, line).item);
            }
        }
        self.seen.sort_unstable();
        self.seen.dedup();
        let mut low = 0;
        for at in 0..self.seen.len() {
            let stock = TpccDatabase::stock_row(warehouse, self.seen[at]);
            self.tables.by_stock.walk(stock, out);
            self.tx.read(self.tables.stock.at(stock), row::STOCK, out);
            low += u32::from(self.data.quantity(stock) < threshold);
        }
        // The answer goes to the terminal; nothing else depends on it.
        std::hint::black_box(low);
        true
    }
}

/// A district of `warehouse`, as its number among all districts.
fn some_district(warehouse: u32, rng: &mut Rng) -> usize {
    (u64::from(warehouse) * DISTRICTS + rng.below(DISTRICTS)) as usize
}

/// A warehouse that is not `home`.
fn other(home: u32, warehouses: u64, rng: &mut Rng) -> u32 {
    let drawn = rng.below(warehouses - 1) as u32;
    drawn + u32::from(drawn >= home)
}
