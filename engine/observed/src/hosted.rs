//! A managed program that the host drives, such as a store that is given requests, on the modelled machine.

use super::pages::{TierPager, Tiers};
use super::{region, stream};
use std::sync::Arc;
use varve_machine::Machine;
use varve_machine::model::{self, Options, Progress};
use varve_pages::Topology;
use varve_run::Error;
use varve_run::Numa;
use varve_runtime::Sink;

/// Runs a driver, whose store passes its accesses to the given sink, on a machine with persistent memory. `watch` is called now and then and
/// ends the run by returning `false`.
///
/// # Errors
/// A machine without persistent memory of its own; errors of the model, and of the driver.
pub fn run_hosted<T: Send>(
    machine: &Machine,
    page_bytes: u64,
    seed: u64,
    driver: impl FnOnce(Box<dyn Sink>) -> Result<T, String> + Send,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<T, Error> {
    let topology = Topology::of(machine, page_bytes).map_err(varve_pages::Error::from)?;
    region::check(machine, topology.has_tiers())?;
    let tiers = Arc::new(Tiers::new(page_bytes));
    let mut pager = TierPager::new(&topology, Arc::clone(&tiers), Numa::Local, 1);
    let options = Options {
        seed,
        sockets: vec![0],
        ..Options::default()
    };
    std::thread::scope(|scope| {
        let (sink, mut stream) = stream::pair(0, tiers);
        let thread = scope.spawn(move || driver(Box::new(sink)));
        let outcome = model::run(machine, &mut pager, &mut [&mut stream], &options, watch);
        // If the model has stopped early, the driver gets the error when its store passes the next accesses.
        drop(stream);
        let done = thread.join();
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome?;
        done.map_err(Error::Hosted)
    })
}
