//! The tables: how many rows, how large, and where they lie.

use super::data::{CUSTOMERS, DISTRICTS, ITEMS, LINES, NEW_ORDERS, ORDERS};
use super::index::{Growing, Index};
use super::tx::HEADER;
use crate::init::chunk;
use crate::layout::{Array, Layout};
use crate::node::NODE;

/// Bytes of each row (TPC-C, clause 4.2.2).
pub mod row {
    /// Warehouse.
    pub const WAREHOUSE: u64 = 89;
    /// District.
    pub const DISTRICT: u64 = 95;
    /// Customer.
    pub const CUSTOMER: u64 = 655;
    /// History.
    pub const HISTORY: u64 = 46;
    /// Order.
    pub const ORDER: u64 = 24;
    /// New-order.
    pub const NEW_ORDER: u64 = 8;
    /// Order line.
    pub const LINE: u64 = 54;
    /// Item.
    pub const ITEM: u64 = 82;
    /// Stock.
    pub const STOCK: u64 = 306;
    /// Entry of the index by last name: the customer's number and first name.
    pub const NAME: u64 = 18;
}

/// Bytes that a row takes with its header, in the allocator's steps of 16.
pub const fn record(row: u64) -> u64 {
    (HEADER + row).next_multiple_of(16)
}

/// Records and indexes of the initial database.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Warehouses, by number.
    pub warehouses: Array,
    /// Districts: ten for each warehouse.
    pub districts: Array,
    /// Customers: 3000 for each district.
    pub customers: Array,
    /// Customers by last name, for each district.
    pub names: Array,
    /// Items.
    pub items: Array,
    /// Stock: all items for each warehouse.
    pub stock: Array,
    /// Orders of each district.
    pub orders: Array,
    /// Open orders of each district.
    pub new_orders: Array,
    /// Lines of each district's orders.
    pub lines: Array,
    /// One entry for each customer.
    pub history: Array,
    /// Index of warehouses.
    pub by_warehouse: Index,
    /// Index of districts.
    pub by_district: Index,
    /// Index of customers.
    pub by_customer: Index,
    /// Index of customers by last name.
    pub by_name: Index,
    /// Index of items.
    pub by_item: Index,
    /// Index of stock.
    pub by_stock: Index,
    /// Index of orders.
    pub by_order: Growing,
    /// Index of orders by customer.
    pub by_buyer: Index,
    /// Index of open orders.
    pub by_new_order: Growing,
    /// Index of order lines.
    pub by_line: Growing,
    /// Memory that each thread allocates during the run.
    pub heaps: Vec<Heap>,
}

/// Memory for one thread's new records and nodes.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    next: u64,
    end: u64,
    /// Bytes that were asked for and not there.
    pub lacking: u64,
}

impl Heap {
    /// The next `bytes` bytes. When there are none left the last ones are given again, and
    /// [`lacking`](Heap::lacking) says so: the run is to end with an error.
    pub fn take(&mut self, bytes: u64) -> u64 {
        if self.next + bytes > self.end {
            self.lacking += bytes;
            return self.end - bytes;
        }
        self.next += bytes;
        self.next - bytes
    }
}

/// Bytes of new records and nodes per transaction of the mix, at most: less than half are new orders, each with an
/// order, an open order and on average ten lines, their shares of leaves of indexes, and payments' history.
const GROWTH: u64 =
    (record(row::ORDER) + record(row::NEW_ORDER) + 11 * record(row::LINE) + 2 * NODE) / 2
        + record(row::HISTORY) / 2;

impl Tables {
    /// Tables for `warehouses` warehouses in the order in which they are loaded, and room for `transactions` of each
    /// of `threads` threads.
    pub fn new(layout: &mut Layout, warehouses: u64, threads: usize, transactions: u64) -> Tables {
        let districts = warehouses * DISTRICTS;
        let customers = districts * CUSTOMERS;
        let table = |layout: &mut Layout, name: &str, rows: u64, row: u64| {
            layout.array(name, rows, record(row))
        };
        let each = GROWTH * transactions + (1 << 16);
        Tables {
            warehouses: table(layout, "warehouse", warehouses, row::WAREHOUSE),
            by_warehouse: Index::new(layout, "warehouse index", warehouses),
            districts: table(layout, "district", districts, row::DISTRICT),
            by_district: Index::new(layout, "district index", districts),
            customers: table(layout, "customer", customers, row::CUSTOMER),
            by_customer: Index::new(layout, "customer index", customers),
            names: table(layout, "customer names", customers, row::NAME),
            by_name: Index::new(layout, "customer name index", customers),
            items: table(layout, "item", ITEMS, row::ITEM),
            by_item: Index::new(layout, "item index", ITEMS),
            stock: table(layout, "stock", warehouses * ITEMS, row::STOCK),
            by_stock: Index::new(layout, "stock index", warehouses * ITEMS),
            orders: table(layout, "order", districts * ORDERS, row::ORDER),
            by_order: Growing::new(layout, "order index", districts, ORDERS),
            by_buyer: Index::new(layout, "order by customer index", customers),
            new_orders: table(layout, "new-order", districts * NEW_ORDERS, row::NEW_ORDER),
            by_new_order: Growing::new(layout, "new-order index", districts, NEW_ORDERS),
            lines: table(layout, "order-line", districts * LINES, row::LINE),
            by_line: Growing::new(layout, "order-line index", districts, LINES),
            history: table(layout, "history", customers, row::HISTORY),
            heaps: heaps(layout, threads, each),
        }
    }

    /// Memory of the initial database, in the order of loading.
    pub fn loaded(&self) -> Vec<Array> {
        vec![
            self.warehouses,
            self.by_warehouse.array(),
            self.districts,
            self.by_district.array(),
            self.customers,
            self.by_customer.array(),
            self.names,
            self.by_name.array(),
            self.items,
            self.by_item.array(),
            self.stock,
            self.by_stock.array(),
            self.orders,
            self.by_order.array(),
            self.by_buyer.array(),
            self.new_orders,
            self.by_new_order.array(),
            self.lines,
            self.by_line.array(),
            self.history,
        ]
    }
}

fn heaps(layout: &mut Layout, threads: usize, each: u64) -> Vec<Heap> {
    // Whole pages each, so that no two threads share one.
    let each = each.next_multiple_of(4096);
    let base = layout.region("new records", each * threads as u64);
    let heap = |thread| {
        let (low, high) = chunk(each * threads as u64, thread, threads);
        Heap {
            next: base + low,
            end: base + high,
            lacking: 0,
        }
    };
    (0..threads).map(heap).collect()
}
