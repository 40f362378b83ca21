//! The same program under several policies.

use crate::{Error, InStep, Keep, Spec};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use varve_machine::Machine;
use varve_machine::model::Progress;
use varve_pages::policies;
use varve_pages::{Topology, policies as all_policies};

/// The policies that a list names, separated by commas: names and specifications, or `all` for every one that goes with the
/// machine and needs no knowledge of the program.
///
/// # Errors
/// A policy that is unknown, or none that goes with the machine.
pub fn policies_for(list: &str, machine: &Machine, page_bytes: u64) -> Result<Vec<String>, Error> {
    let topology = Topology::of(machine, page_bytes).map_err(varve_pages::Error::from)?;
    let able = all_policies().iter().filter(|p| p.is_for(&topology));
    let able: Vec<&str> = able.map(|p| p.name).collect();
    let named = varve_spec::expand(list, &able);
    for spec in &named {
        policies::parse(spec)?;
    }
    match named.is_empty() {
        true => Err(Error::NoPolicy(list.into())),
        false => Ok(named),
    }
}

/// Checks whether the policies of a list exist, with the given parameters, and go with the machine: all checks that are
/// possible before the machine's scale is known.
///
/// # Errors
/// A policy that is unknown or does not go with the machine, a parameter that it does not take or that cannot be.
pub fn check_policies(list: &str, machine: &Machine) -> Result<(), Error> {
    let mut named = policy_list(list);
    if named.is_empty() {
        return Err(Error::NoPolicy(list.into()));
    }
    named.retain(|spec| spec != varve_spec::ALL);
    // A name that is wrong is said first.
    let parsed = named.iter().map(|spec| policies::parse(spec));
    let entries = parsed.collect::<Result<Vec<_>, _>>()?;
    let topology = Topology::of(machine, LARGE_PAGE).map_err(varve_pages::Error::from)?;
    for (entry, _) in entries {
        entry.needs.check(entry.name, &topology)?;
    }
    Ok(())
}

/// Pages so large that a machine has few of them, bytes.
const LARGE_PAGE: u64 = 2 << 20;

/// The policies that a list names; they need not exist.
pub fn policy_list(list: &str) -> Vec<String> {
    varve_spec::list(list)
}

/// Makes all runs of a list on `workers` host threads, kept results first, and returns their results in order.
///
/// `watch` gets each run's progress with its number in the list (`None` when it has ended), and ends everything by
/// returning `false`. `done` gets each run when it has ended, in whatever order they end; kept ones have left nothing.
pub fn compare<S: Spec>(
    specs: &[S],
    workers: usize,
    keep: &Keep,
    watch: Watch,
    done: Ended<S>,
) -> Vec<Result<S::Result, Error>> {
    let in_step = InStep::of(specs.iter().map(Spec::trace), workers);
    let open = in_step.open(specs.len(), workers);
    side_by_side(specs.len(), open, watch, |i, go_on| {
        let spec = &specs[i];
        let mut left = None;
        let mut make = || {
            let (result, end) = spec.run(&in_step, go_on)?;
            left = Some(end);
            Ok::<_, Error>(result)
        };
        // A result that is not kept needs no key, for which files are read.
        let key = keep.is_on().then(|| spec.identity()).flatten();
        let result = match key {
            Some(key) => keep.kept_or_made(&key, &|| spec.what(), make),
            None => make(),
        }?;
        done(i, &result, left.as_ref());
        Ok(result)
    })
}

/// Gets a run's progress with its number (`None` when it has ended), and ends everything by returning `false`.
pub type Watch<'a> = &'a (dyn Fn(usize, Option<&Progress>) -> bool + Sync);

/// Gets the progress of one piece of work, and ends it by returning `false`.
pub type GoOn<'a> = &'a mut (dyn FnMut(&Progress) -> bool + Send);

/// Gets the number and result of a run that has ended, and its other data if it was made now.
pub type Ended<'a, S> = &'a (dyn Fn(usize, &<S as Spec>::Result, Option<&<S as Spec>::End>) + Sync);

/// Does `count` pieces of work on `workers` host threads; returns the results, in order. Once `watch` has ended it, no
/// other begins.
///
/// # Panics
/// If a piece of work does.
pub fn side_by_side<T: Send, E: Send + From<Error>>(
    count: usize,
    workers: usize,
    watch: Watch,
    work: impl Fn(usize, GoOn) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<T, E>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..workers.clamp(1, count.max(1)) {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(place) = results.get(i) else { return };
                    let tell = |p: Option<&Progress>| {
                        if !watch(i, p) {
                            stopped.store(true, Ordering::Relaxed);
                        }
                        !stopped.load(Ordering::Relaxed)
                    };
                    let result = work(i, &mut |p| tell(Some(p)));
                    tell(None);
                    *place.lock().expect("no holder panics") = Some(result);
                }
            });
        }
    });
    let made = results
        .into_iter()
        .map(|r| r.into_inner().expect("no holder panics"));
    made.map(|r| r.unwrap_or_else(|| Err(Error::interrupted().into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{policies_for, side_by_side};
    use crate::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn nothing_begins_after_the_end() {
        let begun = AtomicUsize::new(0);
        let results = side_by_side(5, 1, &|i, done| done.is_some() || i < 1, |i, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Error>(i)
        });
        assert_eq!(begun.into_inner(), 2, "the second one's end was the end");
        assert!(matches!(results[..2], [Ok(0), Ok(1)]));
        assert!(
            results[2..]
                .iter()
                .all(|r| r.as_ref().is_err_and(Error::is_interrupt))
        );
    }

    #[test]
    fn all_is_what_the_machine_can_have_wherever_it_stands_in_a_list() {
        let named = |list: &str, machine: &str| {
            let machine = varve_machine::Machine::load(machine).unwrap();
            policies_for(list, &machine, 2 << 20).map_err(|e| e.to_string())
        };
        let (cached, flat) = ("optane-6230-memory-mode", "optane-6230n");
        assert_eq!(
            named("all", cached).unwrap(),
            ["first-touch", "interleave", "random", "static", "dynamic"]
        );
        assert_eq!(
            named("dynamic:period=5ms,threads=1,all;static", cached).unwrap(),
            [
                "dynamic:period=5ms,threads=1",
                "first-touch",
                "interleave",
                "random",
                "static",
                "dynamic"
            ]
        );
        let all = named("all", flat).unwrap();
        assert!(all.contains(&"hotset".into()) && !all.contains(&"static".into()));
        let error = named("static,statc", cached).unwrap_err();
        assert!(error.ends_with("(did you mean `static`?)"), "{error}");
        assert!(named(" ;, ", cached).is_err());
    }
}
