//! A key-value store under YCSB: a B+-tree of cache-line conscious nodes over items of 128 bytes.
//!
//! Stands for Masstree (EuroSys 2012) as Johnny Cache runs it (OSDI 2023, section 5.4): a thousand million items of 128
//! bytes, inserted in random order, so that hot and cold items and hot and cold nodes lie side by side; 16 threads, requests
//! by a Zipf distribution. Keys here are 8 bytes, so Masstree's trie has one layer and is a B+-tree; nodes have 15 keys as
//! Masstree's do, but take 256 bytes, since nothing is kept for longer keys.
//!
//! There are two trees with the same accesses. The real one ([`btree`]) holds every key (up to 64 million items) and
//! one word per item in place of its value; each result is checked. The implicit one ([`implicit`]) computes the path
//! of a key in a tree of any size. A test holds one to the other: depth, nodes, ops per request.

use crate::entry::WorkloadEntry;

pub mod btree;
pub mod implicit;
pub mod load;
pub mod store;
pub mod tree;
pub mod ycsb;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[ycsb::ENTRY];
