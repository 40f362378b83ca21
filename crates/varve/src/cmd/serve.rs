//! `varve serve`: a memcached server above a managed program.

use super::durable;
use crate::args::{Evict, ServeArgs};
use crate::ui::{self, Done, Failure, failed, wrong};
use std::io::Write;
use std::process::ExitCode;
use varve_machine::Bytes;
use varve_runtime::{Config, Error as EngineError};
use varve_serve::{Cache, Error, Limits, Managed, Server, Settings};

/// Largest value that the protocol's numbers and a Java array allow, with room to spare.
const LARGEST_VALUE: u64 = 1 << 30;

/// Files of the server besides its connections, with some to spare.
const FILES: usize = 32;

pub fn serve(a: &ServeArgs) -> Done {
    let stop = ui::stop_flag();
    let limits = limits(a)?;
    let mut server = Server::bind(Settings {
        listen: a.listen,
        connections: a.connections,
        buffers: a.buffers.0,
    })
    .map_err(wrong)?;
    let mut config = Config::default();
    durable::configure(&(&a.durable).into(), &mut config)?;
    config.heap_max = heap(a, &config)?;
    let heap_max = config.heap_max;
    let store = Managed::new(a.store, config).map_err(|e| store_failed(a, &e))?;
    let cache = Cache::new(store, limits, varve_serve::seconds()).map_err(failed)?;
    // What `cache_memlimit` asks for must find room in the heap that there is.
    let mut cache = cache.up_to(heap_max.max(limits.memory));
    if a.evict == Evict::Lru {
        cache = cache.evict();
    }
    files(a.connections);
    // Whoever started this may wait for the line, and may not read on.
    let _ = writeln!(
        std::io::stdout(),
        "varve serve: {} on {}, Ctrl-C ends it",
        a.store,
        server.address()
    );
    server.run(&mut cache, &stop).map_err(|e| match e {
        Error::Listen { .. } => wrong(e),
        e => failed(e),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Says so if the system allows fewer open files than connections need: those beyond it wait to be accepted.
fn files(connections: usize) {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"));
    let most = line.and_then(|l| l.split_whitespace().next()?.parse::<usize>().ok());
    if let Some(most) = most.filter(|&most| most < connections + FILES) {
        eprintln!(
            "note: {most} files may be open here, so about {} of {connections} connections: ulimit -n {}",
            most.saturating_sub(FILES),
            connections + FILES
        );
    }
}

/// A region file that does not fit has its own words and exit code.
fn store_failed(a: &ServeArgs, e: &EngineError) -> Failure {
    match e {
        EngineError::Durable(e) => durable::failure(e),
        // A file with the values of another store has its own line.
        EngineError::Usage(_) => wrong(e),
        e => failed(format!("{}: {e}", a.store)),
    }
}

fn limits(a: &ServeArgs) -> Result<Limits, Failure> {
    let (value, memory) = (a.max_item_size.0, a.memory_limit.0);
    if value == 0 || value > LARGEST_VALUE {
        return Err(wrong(format!(
            "--max-item-size {}: between 1 byte and 1GiB is possible",
            a.max_item_size
        )));
    }
    if value > memory {
        return Err(wrong(format!(
            "--max-item-size {} is more than --memory-limit {}: no such value would find room",
            a.max_item_size, a.memory_limit
        )));
    }
    Ok(Limits {
        value: value as usize,
        memory,
    })
}

/// Most memory of the program's objects: what was asked for, or what values of --memory-limit need with room for the collector. Values that survive are
/// not in it, and the addresses that it may use are fewer.
fn heap(a: &ServeArgs, config: &Config) -> Result<u64, Failure> {
    let memory = a.memory_limit.0;
    let usual = memory + memory / 2 + (128 << 20);
    let most = match config.durable {
        // A heap has twice its size in addresses, and some for its nursery.
        Some(_) => config.object_align.durable_start() / 2 - 8 * config.nursery_max,
        None => u64::MAX,
    };
    match a.heap_max {
        Some(heap) if heap.0 > most => Err(wrong(format!(
            "--heap-max {heap} leaves no addresses to durable objects: {} is the most with this --region-max",
            Bytes(most)
        ))),
        Some(heap) => Ok(heap.0),
        None => Ok(usual.min(most)),
    }
}
