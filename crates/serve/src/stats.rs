//! Numbers about the server, as `stats` gives them.

use crate::answer::{Stats, VERSION};
use crate::cache::Cache;
use crate::store::{Result, Store};
use std::fmt::Display;
use std::time::Instant;

/// What the server knows of its connections.
#[derive(Debug)]
pub struct Traffic {
    /// When it began.
    pub since: Instant,
    /// Connections now.
    pub connections: u64,
    /// Connections so far.
    pub total_connections: u64,
    /// Connections that found no place.
    pub rejected: u64,
    /// Connections that were closed since too much waited to be sent to all of them.
    pub overrun: u64,
    /// Bytes received.
    pub read: u64,
    /// Bytes sent.
    pub written: u64,
    /// Bytes of requests and answers that wait.
    pub buffered: u64,
    /// Most connections.
    pub most_connections: u64,
    /// Most bytes that may wait.
    pub most_buffered: u64,
}

fn stat(out: &mut Vec<u8>, name: &str, value: impl Display) {
    out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
}

/// Appends what was asked for.
///
/// # Errors
/// What the store says.
pub fn put<S: Store>(
    which: Stats,
    traffic: &Traffic,
    cache: &mut Cache<S>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let limits = cache.limits();
    match which {
        Stats::General => {
            stat(out, "pid", std::process::id());
            stat(out, "uptime", traffic.since.elapsed().as_secs());
            stat(out, "time", cache.now());
            stat(out, "version", VERSION);
            stat(out, "pointer_size", usize::BITS);
            stat(out, "threads", 1);
            stat(out, "curr_connections", traffic.connections);
            stat(out, "total_connections", traffic.total_connections);
            stat(out, "rejected_connections", traffic.rejected);
            stat(out, "overrun_connections", traffic.overrun);
            stat(out, "max_connections", traffic.most_connections);
            for (name, count) in cache.counters.list() {
                stat(out, name, count);
            }
            stat(out, "bytes_read", traffic.read);
            stat(out, "bytes_written", traffic.written);
            stat(out, "buffered_bytes", traffic.buffered);
            stat(out, "limit_maxbytes", limits.memory);
            stat(out, "bytes", cache.bytes());
            stat(out, "curr_items", cache.count()?);
            for (name, value) in cache.store().describe() {
                stat(out, name, value);
            }
        }
        Stats::Settings => {
            stat(out, "maxbytes", limits.memory);
            stat(out, "maxconns", traffic.most_connections);
            stat(out, "item_size_max", limits.value);
            stat(out, "num_threads", 1);
            stat(out, "evictions", if cache.evicts() { "on" } else { "off" });
            stat(out, "cas_enabled", "yes");
            stat(out, "flush_enabled", "yes");
            stat(out, "binding_protocol", "ascii");
            stat(out, "buffered_bytes_max", traffic.most_buffered);
        }
    }
    out.extend_from_slice(b"END\r\n");
    Ok(())
}
