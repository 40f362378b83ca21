//! GUPS: random updates of 8-byte items, most of them to a hot part of a large array.
//!
//! Stands for the microbenchmark of HeMem (SOSP 2021) that Johnny Cache (OSDI 2023, section 5.2) runs too. An array is
//! zeroed by one thread; then every thread updates random items for ever, 90 % of them in the hot set and 10 %
//! anywhere. Where the hot set is:
//!
//! - `shares` (the original): each thread has an equal contiguous share of the array and works in that alone; the
//!   hot items are the first ones of the share.
//! - `one`: all threads work on the whole array; the hot items are contiguous, from an offset that the seed chooses.
//! - `scattered`: all threads work on the whole array; the hot items are single 8-byte items anywhere in it.
//!
//! With `serial=yes` (the original) a thread has one update in flight: the program reads the time stamp counter right
//! before and right after each, by RDTSCP, which waits until all earlier loads have their data. Stores may still wait
//! for their lines. Intel's manual lets instructions behind RDTSCP begin early; here none does, as behind LFENCE.
//! With `serial=no` the window of the core is full of updates.
//!
//! The kernel zeroes the array, so that no sampling of the program sees that: most versions of the original map it with
//! `MAP_POPULATE`. Under HeMem another thread zeroes it, at addresses that belong to no page that is counted.
//!
//! With `shift=T` the hot set moves to another place every T of virtual time.
//!
//! An update is `item ^= number`, so the final array does not depend on the order of updates. With `values` the array is
//! really held and updated (up to 4 GiB) and `answers` gives its checksum; without, only the addresses are
//! computed, which is all that the model needs and the only way at full size.

use varve_access::{Kind, Op};

use crate::entry::WorkloadEntry;
use crate::init::chunk;
use crate::layout::{Array, Layout};
use crate::limit::{Limit, TIME};
use crate::steady::{Steady, SteadyKernel};
use varve_access::random::{Permutation, Rng, mix};
use varve_spec::{Error, Param, Values, Want};

/// Bytes of an item.
const ITEM: u64 = 8;

/// Instructions per update, as the core's window counts them. The original's loop draws two numbers from a shift
/// register (6 each), takes two remainders (one by a constant, 5; one by a variable), chooses hot or cold (3),
/// loads, changes and stores the item (3), counts the update in a shared array (3) and loops (2): 28, and the 64-bit
/// division by a variable, which is 36 micro-operations on Skylake (Agner Fog, instruction tables).
const INSTRUCTIONS: u32 = 64;

/// Instructions of the two RDTSCP round an update: 22 micro-operations each on Skylake (Agner Fog, instruction tables).
const TIME_STAMPS: u32 = 2 * 22;

/// Largest array whose values are held in the host's memory, in bytes.
const VALUES_LIMIT: u64 = 4 << 30;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[WorkloadEntry {
    name: "gups",
    about: "random 8-byte updates, most of them to a hot part of a large array (HeMem's GUPS)",
    params: &[
        Param::scaled("bytes", Want::Bytes, "96GiB", "size of the array"),
        Param::new("hot", Want::Part, "10%", "share of the items that are hot"),
        Param::new(
            "to_hot",
            Want::Part,
            "90%",
            "share of the updates that go to hot items",
        ),
        Param::new(
            "place",
            Want::Word(&["shares", "one", "scattered"]),
            "shares",
            "hot items: at the start of each thread's share, in one piece, or single items anywhere",
        ),
        Param::new(
            "group",
            Want::COUNT,
            "1",
            "scattered hot items come in groups of this many neighbours; 8 fill a cache line",
        ),
        Param::new(
            "serial",
            Want::Flag,
            "yes",
            "one update in flight per thread, as time stamps round each make it; no: as many as the core holds",
        ),
        Param::new(
            "updates",
            Want::COUNT,
            "1M",
            "updates per thread; 0: no such limit",
        ),
        TIME,
        Param::new(
            "shift",
            Want::Time,
            "0",
            "move the hot set every so often; 0: never",
        ),
        Param::new(
            "values",
            Want::Flag,
            "false",
            "hold and update a real array (up to 4 GiB)",
        ),
    ],
    build: |values| Ok(Box::new(Gups::new(values)?)),
}];

/// Where the hot items of a specification are at the start: ranges of virtual addresses, base and bytes, for a policy
/// that knows them (`oracle`). Empty when they are scattered over every page.
///
/// # Errors
/// A parameter that is unknown, repeated or unreadable, or that does not fit the others.
pub fn hot_ranges(line: &str) -> Result<Vec<(u64, u64)>, Error> {
    let given = line.split_once(':').map_or("", |(_, given)| given);
    let values = ENTRIES[0].values(given)?;
    let gups = Gups::new(&values)?.kernel;
    let threads = match gups.place {
        Place::Shares => &gups.threads[..],
        Place::One => &gups.threads[..1],
        Place::Scattered => &[],
    };
    let mut ranges = Vec::new();
    for t in threads {
        let HotSet::Run { start, count } = t.hot else {
            continue;
        };
        let before_end = count.min(t.len - start);
        ranges.push((gups.array.at(t.low + start), before_end * ITEM));
        if count > before_end {
            ranges.push((gups.array.at(t.low), (count - before_end) * ITEM));
        }
    }
    Ok(ranges)
}

/// The running benchmark.
pub struct Gups {
    array: Array,
    place: Place,
    hot: f64,
    /// `to_hot` as a threshold on 32 random bits.
    to_hot: u64,
    shift: u64,
    group: u64,
    /// One update in flight per thread.
    serial: bool,
    seed: u64,
    threads: Vec<Thread>,
    values: Option<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Shares,
    One,
    Scattered,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    rng: Rng,
    /// First item of the part that the thread works in, and its length.
    low: u64,
    len: u64,
    hot: HotSet,
    epoch: u64,
}

/// The hot items of `low..low + len` as an indexed set.
#[derive(Clone, Copy, Debug)]
enum HotSet {
    /// `count` items from `start` on, wrapping round at the end of the part.
    Run { start: u64, count: u64 },
    /// The images of `0..groups`, each `group` neighbours.
    Scattered {
        groups: Permutation,
        group: u64,
        count: u64,
    },
}

impl Gups {
    /// Reads the parameters of [`ENTRIES`].
    ///
    /// # Errors
    /// An array with less than one item per thread, or too large to hold when `values` is asked for; no limit.
    pub fn new(values: &Values) -> Result<Steady<Gups>, Error> {
        let threads = values.count("threads") as usize;
        let bytes = values.count_in("bytes", ITEM * threads as u64, 1 << 46)?;
        let held = values.flag("values");
        if held && bytes > VALUES_LIMIT {
            let want =
                "values are held up to 4GiB; raise `scale`, lower `bytes`, or leave `values`";
            return Err(values.refuse("bytes", want));
        }
        let place = match values.word("place") {
            "shares" => Place::Shares,
            "one" => Place::One,
            _ => Place::Scattered,
        };
        let items = bytes / ITEM;
        let mut layout = Layout::new();
        let array = layout.array("array", items, ITEM);
        let mut gups = Gups {
            array,
            place,
            hot: values.part("hot"),
            to_hot: (values.part("to_hot") * (1u64 << 32) as f64) as u64,
            shift: values.count("shift"),
            group: values.count_in("group", 1, items)?,
            serial: values.flag("serial"),
            seed: values.count("seed"),
            threads: Vec::new(),
            values: held.then(|| vec![0; items as usize]),
        };
        for thread in 0..threads {
            let (low, high) = match place {
                Place::Shares => chunk(items, thread, threads),
                _ => (0, items),
            };
            let rng = Rng::new(gups.seed, thread as u64);
            let len = high - low;
            let hot = gups.hot_set(thread, len, 0);
            gups.threads.push(Thread {
                rng,
                low,
                len,
                hot,
                epoch: 0,
            });
        }
        Steady::new(values, layout, &[array], gups)
    }

    /// The hot set of `thread`, whose part has `len` items, after `epoch` shifts.
    fn hot_set(&self, thread: usize, len: u64, epoch: u64) -> HotSet {
        let count = ((len as f64 * self.hot) as u64).clamp(1, len);
        let key = mix(self.seed ^ mix(epoch + 1));
        match self.place {
            Place::Shares if epoch == 0 => HotSet::Run { start: 0, count },
            Place::Shares => HotSet::Run {
                start: Rng::new(key, thread as u64).below(len),
                count,
            },
            Place::One => HotSet::Run {
                start: Rng::new(key, 0).below(len),
                count,
            },
            Place::Scattered => HotSet::Scattered {
                groups: Permutation::new(len / self.group, key),
                group: self.group,
                count: (count / self.group).max(1),
            },
        }
    }

    fn follow_shift(&mut self, thread: usize, elapsed: u64) {
        let epoch = elapsed / self.shift;
        let state = self.threads[thread];
        if epoch != state.epoch {
            self.threads[thread].hot = self.hot_set(thread, state.len, epoch);
            self.threads[thread].epoch = epoch;
        }
    }
}

impl Thread {
    /// The next item to update, and the change.
    #[inline(always)]
    fn draw(&mut self, to_hot: u64) -> (u64, u64) {
        let number = self.rng.bits();
        let hot = number >> 32 < to_hot;
        let item = match &self.hot {
            HotSet::Run { start, count } => {
                // One draw for hot and cold alike: no branch that the host would guess wrongly.
                let (first, span) = if hot { (*start, *count) } else { (0, self.len) };
                let item = first + self.rng.below(span);
                if item < self.len {
                    item
                } else {
                    item - self.len
                }
            }
            HotSet::Scattered {
                groups,
                group,
                count,
            } if hot => groups.at(self.rng.below(*count)) * group + self.rng.below(*group),
            HotSet::Scattered { .. } => self.rng.below(self.len),
        };
        (self.low + item, number)
    }
}

impl SteadyKernel for Gups {
    const NAME: &'static str = "gups";
    const STEPS: &'static str = "updates";
    const BY_KERNEL: bool = true;

    fn ops(&self) -> u64 {
        1 + u64::from(self.serial)
    }

    fn advance(&mut self, thread: usize, elapsed: u64, count: u64, out: &mut Vec<Op>) {
        if self.shift > 0 {
            self.follow_shift(thread, elapsed);
        }
        let (array, to_hot, serial) = (self.array, self.to_hot, self.serial);
        let instructions = INSTRUCTIONS + if serial { TIME_STAMPS } else { 0 };
        let mut state = self.threads[thread];
        let mut values = self.values.as_deref_mut();
        for _ in 0..count {
            let (item, number) = state.draw(to_hot);
            if let Some(values) = &mut values {
                values[item as usize] ^= number;
            }
            let update = Op::new(Kind::Update, array.at(item), ITEM as u16, instructions);
            out.push(update);
            if serial {
                // The instructions of the next update come after its wait: they count there.
                out.push(Op::mark(Kind::Fence, Op::LOADS));
            }
        }
        self.threads[thread] = state;
    }

    fn answers(&self, limit: &Limit) -> Vec<(String, String)> {
        let mut answers = vec![("updates".into(), limit.total().to_string())];
        if let Some(values) = &self.values {
            answers.push(("checksum".into(), format!("{:016x}", checksum(values))));
        }
        answers
    }
}

/// A number that changes with any item's value or place.
fn checksum(values: &[u64]) -> u64 {
    let mixed = values
        .iter()
        .enumerate()
        .map(|(index, &value)| mix(value ^ mix(index as u64)));
    mixed.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests;
