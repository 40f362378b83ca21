//! Numbers about the server, as `stats` gives them.

use crate::answer::{Stats, VERSION};
use crate::settings::Settings;
use crate::stream::Stream;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// The counts of a server's, or a shard's, connections.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Connections so far.
    pub total_connections: u64,
    /// Connections that found no place.
    pub rejected: u64,
    /// Connections that were closed since too much waited to be sent to all of them.
    pub overrun: u64,
    /// Connections that were closed since they were idle.
    pub idle: u64,
    /// Connections that were closed in the middle of a request that did not go on.
    pub stalled: u64,
    /// Times that the system had no descriptor for a connection.
    pub unaccepted: u64,
    /// Time in which it had none, us.
    pub unaccepted_us: u64,
    /// Bytes received.
    pub read: u64,
    /// Bytes sent.
    pub written: u64,
    /// Commits of the store.
    pub commits: u64,
    /// Requests that another shard executed.
    pub handed_over: u64,
    /// Times that the store's program failed and began again.
    pub restarts: u64,
}

impl Traffic {
    /// Adds another shard's counts.
    pub fn add(&mut self, other: &Traffic) {
        self.total_connections += other.total_connections;
        self.rejected += other.rejected;
        self.overrun += other.overrun;
        self.idle += other.idle;
        self.stalled += other.stalled;
        self.unaccepted += other.unaccepted;
        self.unaccepted_us += other.unaccepted_us;
        self.read += other.read;
        self.written += other.written;
        self.commits += other.commits;
        self.handed_over += other.handed_over;
        self.restarts += other.restarts;
    }
}

/// A shard's numbers, which those of others are added to.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// The cache's counters, with names.
    pub counts: Vec<(&'static str, u64)>,
    pub traffic: Traffic,
    /// Bytes of all values, their number, and the most bytes.
    pub bytes: u64,
    pub items: u64,
    pub memory: u64,
    /// Whether values make room for new ones.
    pub evicts: bool,
    /// The store's own statistics.
    pub store: Vec<(&'static str, String)>,
    /// Lines about connections.
    pub connections: Vec<u8>,
}

impl Sums {
    pub fn add(&mut self, other: Sums) {
        for (sum, (_, more)) in self.counts.iter_mut().zip(other.counts) {
            sum.1 += more;
        }
        self.traffic.add(&other.traffic);
        self.bytes += other.bytes;
        self.items += other.items;
        self.memory += other.memory;
        for ((name, value), (_, more)) in self.store.iter_mut().zip(other.store) {
            if let (Ok(a), Ok(b)) = (value.parse::<u64>(), more.parse::<u64>()) {
                let longest = name.contains("longest");
                *value = if longest { a.max(b) } else { a + b }.to_string();
            }
        }
        self.connections.extend(other.connections);
    }
}

/// The state of the server that all shards know.
pub(crate) struct World<'a> {
    pub settings: &'a Settings,
    pub since: Instant,
    /// Seconds since 1970.
    pub now: i64,
    pub connections: u64,
    pub buffered: u64,
    pub accepting: bool,
    pub most_value: usize,
    pub places: &'a [Option<String>; 2],
}

/// Appends a client's part of `stats conns`.
pub(crate) fn put_client(
    number: usize,
    stream: &Stream,
    state: &str,
    idle: u64,
    [network, socket]: &[Option<String>; 2],
    out: &mut Vec<u8>,
) {
    let (peer, place) = match stream {
        Stream::Tcp(stream) => (stream.peer_addr().map(|a| format!("tcp:{a}")), network),
        Stream::Unix(_) => (Ok("unix:client".into()), socket),
    };
    let mut put = |name: &str, value: &dyn Display| {
        stat(out, &format!("{number}:{name}"), value);
    };
    put("addr", &peer.unwrap_or_else(|_| "tcp:gone".into()));
    put("listen_addr", &place.as_deref().unwrap_or(""));
    put("state", &state);
    put("secs_since_last_cmd", &idle);
}

fn stat(out: &mut Vec<u8>, name: &str, value: impl Display) {
    out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
}

/// Appends the requested numbers.
pub(crate) fn put(which: Stats, sums: &Sums, world: &World<'_>, out: &mut Vec<u8>) {
    let (traffic, settings) = (&sums.traffic, world.settings);
    match which {
        Stats::General => {
            stat(out, "pid", std::process::id());
            stat(out, "uptime", world.since.elapsed().as_secs());
            stat(out, "time", world.now);
            stat(out, "version", VERSION);
            stat(out, "pointer_size", usize::BITS);
            stat(out, "threads", settings.shards);
            stat(out, "curr_connections", world.connections);
            stat(out, "total_connections", traffic.total_connections);
            stat(out, "rejected_connections", traffic.rejected);
            stat(out, "overrun_connections", traffic.overrun);
            stat(out, "stalled_connections", traffic.stalled);
            stat(out, "idle_kicks", traffic.idle);
            stat(out, "max_connections", settings.connections);
            stat(out, "accepting_conns", u8::from(world.accepting));
            stat(out, "listen_disabled_num", traffic.unaccepted);
            stat(out, "time_in_listen_disabled_us", traffic.unaccepted_us);
            if let Some(passwords) = &settings.passwords {
                let (asked, refused) = passwords.counts();
                stat(out, "auth_cmds", asked);
                stat(out, "auth_errors", refused);
            }
            for (name, count) in &sums.counts {
                stat(out, name, count);
            }
            stat(out, "bytes_read", traffic.read);
            stat(out, "bytes_written", traffic.written);
            stat(out, "buffered_bytes", world.buffered);
            stat(out, "commits", traffic.commits);
            stat(out, "requests_handed_over", traffic.handed_over);
            stat(out, "store_restarts", traffic.restarts);
            stat(out, "limit_maxbytes", sums.memory);
            stat(out, "bytes", sums.bytes);
            stat(out, "curr_items", sums.items);
            for (name, value) in &sums.store {
                stat(out, name, value);
            }
        }
        Stats::Settings => {
            stat(out, "maxbytes", sums.memory);
            stat(out, "maxconns", settings.connections);
            stat(out, "item_size_max", world.most_value);
            stat(out, "num_threads", settings.shards);
            stat(out, "evictions", if sums.evicts { "on" } else { "off" });
            stat(out, "cas_enabled", "yes");
            stat(out, "flush_enabled", "yes");
            stat(out, "binding_protocol", "ascii");
            let yes = |b| if b { "yes" } else { "no" };
            stat(out, "auth_enabled_ascii", yes(settings.passwords.is_some()));
            let seconds = |d: Option<Duration>| d.map_or(0, |d| d.as_secs());
            stat(out, "idle_timeout", seconds(settings.idle));
            stat(out, "stall_timeout", seconds(settings.stall));
            stat(out, "buffered_bytes_max", settings.buffers);
        }
        Stats::Connections => {
            for (number, place) in world.places.iter().enumerate() {
                if let Some(place) = place {
                    stat(out, &format!("{number}:addr"), place);
                    stat(out, &format!("{number}:state"), "conn_listening");
                }
            }
            out.extend_from_slice(&sums.connections);
        }
    }
    out.extend_from_slice(b"END\r\n");
}
