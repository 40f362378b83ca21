//! `varve serve`: a memcached server above a managed program.

use super::durable;
use super::shards::Regions;
use crate::args::{Evict, ServeArgs};
use crate::ui::{self, Done, Failure, failed, wrong};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use varve_durable::layout::Addresses;
use varve_runtime::{Config, Error as EngineError};
use varve_serve::{
    Cache, Error, Host, Kind, Limits, MOST_SHARDS, Managed, Passwords, Server, Settings, Socket,
    StoreError,
};
use varve_spec::Bytes;

/// Largest value that the protocol's numbers and a Java array allow, with room to spare.
const LARGEST_VALUE: u64 = 1 << 30;

/// Where it listens if nothing is said.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 11211);

/// Files of the server besides its connections, with some to spare, and of each shard.
const FILES: usize = 32;
const FILES_OF_A_SHARD: usize = 8;

pub fn serve(a: &ServeArgs) -> Done {
    let stop = ui::stop_flag();
    let regions = match &a.durable.durable {
        Some(file) => Some(Regions::find(file, a.shards)?),
        None => None,
    };
    let shards = regions.as_ref().map_or(a.shards.unwrap_or(1), |r| r.shards);
    if !(1..=MOST_SHARDS).contains(&shards) {
        return Err(wrong(format!(
            "--shards {shards}: from 1 to {MOST_SHARDS} are possible"
        )));
    }
    let limits = limits(a, shards)?;
    let configs = configs(a, shards, regions.as_ref())?;
    let server = Server::bind(settings(a, shards)?).map_err(wrong)?;
    if let Some(regions) = &regions {
        regions.note(false)?;
    }
    files(a.connections, FILES + FILES_OF_A_SHARD * shards);
    note_region(a, &limits, &configs);
    let mut places: Vec<String> = server
        .address()
        .map(|a| a.to_string())
        .into_iter()
        .collect();
    places.extend(a.socket.as_ref().map(|s| s.display().to_string()));
    let program = Program {
        a,
        limits,
        configs,
        regions,
        place: places.join(" and "),
    };
    server.run(&program, &stop).map_err(|e| match e {
        Error::Listen { .. } => wrong(e),
        Error::Open {
            error: StoreError::Failed(e),
            ..
        } => store_failed(a, &e),
        e => failed(e),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The managed programs of a server.
struct Program<'a> {
    a: &'a ServeArgs,
    limits: Limits,
    /// By shard.
    configs: Vec<Config>,
    regions: Option<Regions>,
    place: String,
}

impl Host for Program<'_> {
    type Store = Managed;

    fn open(&self, shard: usize) -> Result<Cache<Managed>, StoreError> {
        let config = &self.configs[shard];
        let store = Managed::new(self.a.store, config.clone())?.grouped()?;
        let cache = Cache::new(store, self.limits, varve_serve::seconds())?;
        // The size that `cache_memlimit` requests must fit the existing heap.
        let cache = cache
            .up_to(config.heap_max.max(self.limits.memory))
            .one_of(self.configs.len());
        Ok(match self.a.evict {
            Evict::Off => cache,
            Evict::Lru => cache.evict(),
        })
    }

    fn ready(&self) {
        if let Some(regions) = &self.regions
            && let Err(Failure::Line { line, .. }) = regions.note(true)
        {
            crate::ui::message!("warning: {line}");
        }
        let shards = match self.configs.len() {
            1 => String::new(),
            n => format!(" in {n} shards"),
        };
        // The parent process may wait for this line, and may close the pipe after it.
        let _ = writeln!(
            std::io::stdout(),
            "varve serve: {}{shards} on {}, Ctrl-C ends it",
            self.a.store,
            self.place
        );
    }

    fn failed(&self, shard: usize, error: &StoreError) {
        let with = match self.regions {
            Some(_) => "with what its region has",
            None => "with no values",
        };
        crate::ui::message!("varve serve: shard {shard}: {error}; it begins again {with}");
    }
}

fn settings(a: &ServeArgs, shards: usize) -> Result<Settings, Failure> {
    let listen = match (a.listen, &a.socket) {
        (None, Some(_)) => None,
        (listen, _) => Some(listen.unwrap_or(LISTEN)),
    };
    let passwords = a.auth_file.as_deref().map(passwords).transpose()?;
    if let Some(address) = listen.filter(|l| !l.ip().is_loopback() && passwords.is_none()) {
        crate::ui::message!(
            "warning: --listen {address}: any client that reaches it may read and write all values; --auth-file requires passwords"
        );
    }
    let time = |seconds: f64| (seconds > 0.0).then(|| Duration::from_secs_f64(seconds));
    Ok(Settings {
        listen,
        socket: a.socket.as_ref().map(|path| Socket {
            path: path.clone(),
            mode: a.socket_mode,
        }),
        shards,
        connections: a.connections,
        buffers: a.buffers.0,
        idle: time(a.idle_timeout),
        stall: time(a.stall_timeout),
        passwords,
    })
}

fn passwords(file: &Path) -> Result<Arc<Passwords>, Failure> {
    let passwords = Passwords::read(file).map_err(|e| wrong(format!("--auth-file {e}")))?;
    if std::fs::metadata(file).is_ok_and(|m| m.mode() & 0o077 != 0) {
        let shown = file.display();
        crate::ui::message!(
            "warning: --auth-file {shown}: users other than its owner may access it: chmod 600 {shown}"
        );
    }
    Ok(Arc::new(passwords))
}

/// The settings of each shard's engine.
fn configs(
    a: &ServeArgs,
    shards: usize,
    regions: Option<&Regions>,
) -> Result<Vec<Config>, Failure> {
    let files = regions.map(Regions::files).unwrap_or_default();
    let config = |shard| {
        let mut config = varve_serve::served(Config::default());
        let (mut region, medium) = a.durable.of_run();
        region.durable = files.get(shard).cloned();
        match a.store {
            // Its file is no region.
            Kind::Outside => durable::configure_file(&region, &medium, &mut config)?,
            _ => durable::configure(&region, &medium, &mut config)?,
        }
        config.heap_max = heap(a, &config, shards)?;
        Ok(config)
    };
    (0..shards).map(config).collect()
}

/// Says so if the memory limit is more than the regions can have: values are refused before it is reached.
fn note_region(a: &ServeArgs, limits: &Limits, configs: &[Config]) {
    let most = configs
        .iter()
        .filter(|config| config.durable.is_some() && a.store != Kind::Outside)
        .map(|config| Addresses(config.object_align).max_file())
        .min();
    if let Some(most) = most.filter(|&most| limits.memory > most) {
        let shards = configs.len() as u64;
        crate::ui::message!(
            "note: --memory-limit {} is more than the {} that the region may have: --region-max",
            a.memory_limit,
            Bytes(most * shards)
        );
    }
}

/// Says so if the system allows fewer open files than connections need: those beyond it wait to be accepted.
fn files(connections: usize, besides: usize) {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"));
    let most = line.and_then(|l| l.split_whitespace().next()?.parse::<usize>().ok());
    if let Some(most) = most.filter(|&most| most < connections + besides) {
        crate::ui::message!(
            "note: {most} files may be open here, so about {} of {connections} connections: ulimit -n {}",
            most.saturating_sub(besides),
            connections + besides
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

fn limits(a: &ServeArgs, shards: usize) -> Result<Limits, Failure> {
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
    let memory = memory / shards as u64;
    if value > memory {
        return Err(wrong(format!(
            "--max-item-size {}: a shard has {memory} bytes of --memory-limit {}, so that no such value would find room",
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
fn heap(a: &ServeArgs, config: &Config, shards: usize) -> Result<u64, Failure> {
    let memory = a.memory_limit.0;
    let usual = memory + memory / 2 + (128 << 20);
    let most = match config.durable {
        // A heap has twice its size in addresses, and some for its nursery.
        Some(_) => config.object_align.durable_start() / 2 - 8 * config.nursery_max,
        None => u64::MAX,
    };
    let shards = shards as u64;
    match a.heap_max {
        Some(heap) if heap.0 / shards > most => Err(wrong(format!(
            "--heap-max {heap} leaves no addresses to durable objects: {} is the most with this --region-max",
            Bytes(most * shards)
        ))),
        Some(heap) => Ok(heap.0 / shards),
        None => Ok((usual / shards).min(most)),
    }
}
