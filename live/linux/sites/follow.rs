//! The fate of samples: which collections they survive, whether they reach the old generation, and how long they live.
//!
//! A sample is checked after collections. Alive, it has survived all that could have found it dead since the last check: each one
//! while it was young; of old objects none but full ones. Dead, it died in one of them.
//!
//! Where there were several since the last check, neither the living nor the dead are counted for these: to count the living alone,
//! of whom it is known that they survived each, would make survivors of too many.

/// Collections that are told apart; HotSpot promotes an object at the sixteenth at the latest.
pub const AGES: usize = 16;
/// Classes of lifetimes per doubling.
pub const PER_DOUBLING: usize = 8;
/// The shortest lifetimes that are told apart, bytes, as a power of two; and how many classes there are.
const SHORTEST: f64 = 10.0;
const CLASSES: usize = 36 * PER_DOUBLING;

/// Objects, and their bytes: estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub objects: f64,
    pub bytes: f64,
}

impl Sum {
    fn add(&mut self, objects: f64, bytes: f64) {
        self.objects += objects;
        self.bytes += objects * bytes;
    }
}

/// Counts of the objects of a site.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Objects that were samples.
    pub samples: u64,
    /// All that were born.
    pub born: Sum,
    /// Those that were seen to survive their first, second, ... collection while they were young.
    pub survived: [Sum; AGES],
    /// Those that were seen to die in it.
    pub died: [Sum; AGES],
    /// Those that reached the old generation.
    pub old: Sum,
    /// Of these, those that were found dead.
    pub old_freed: Sum,
    /// All that were found dead.
    pub freed: Sum,
    /// Lifetimes of these, in bytes that the program allocated, summed over objects.
    pub lifetime: f64,
    /// Those that were alive at the end.
    pub live: Sum,
    /// Looks at pages of old objects, and how many of them found the page used.
    pub looks: [u64; 2],
    /// Bytes that the objects stand for, summed over these looks.
    pub looked: [f64; 2],
}

/// Collections so far, and what the program had allocated at the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Now {
    /// Collections of the young generation.
    pub young: u64,
    /// Collections of everything.
    pub full: u64,
    /// Bytes allocated when the last collection ended.
    pub clock: u64,
    /// Collections that a young object survives without being promoted; `None` if the machine does not tell.
    pub tenuring: Option<u64>,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is dead.
    Dead,
    /// In the young generation.
    Young,
    /// In the old generation.
    Old,
    /// Somewhere: by its age it is young or old.
    Alive,
}

/// A sampled object. `H` refers to it without keeping it alive.
#[derive(Clone, Copy, Debug)]
pub struct Sample<H> {
    pub handle: H,
    pub site: u32,
    pub bytes: u64,
    /// Objects that it stands for.
    pub weight: f64,
    /// Bytes allocated before it.
    pub born: u64,
    /// Collections before it, or at the last check.
    pub young: u64,
    pub full: u64,
    /// Collections that it has survived while it was young.
    pub age: u32,
    /// Those of them, as bits, after which it was checked before the next one.
    pub seen: u32,
    /// It is in the old generation.
    pub old: bool,
    /// Bytes allocated when a collection last found it alive; `born` if none has.
    pub alive: u64,
}

/// All samples and what became of them.
pub struct Followed<H> {
    /// By the number of the site.
    pub sites: Vec<Counts>,
    live: Vec<Sample<H>>,
    /// Samples that may be alive at once.
    most: usize,
    /// One in 2^`thinned` new samples is followed.
    pub thinned: u32,
    random: u64,
    /// Whether the machine counts its collections, so that objects have ages.
    ages: bool,
    /// Bytes by lifetime: class `n` ends at [`class_end`].
    pub lifetimes: Vec<f64>,
    /// Bytes that were old and alive at the end: they lived for longer than is known.
    pub kept: f64,
    /// Bytes that were young and alive at the end.
    pub undecided: f64,
    /// Samples of which it is not known in which of several collections they died.
    pub late: u64,
}

/// Where a class of lifetimes ends, bytes.
pub fn class_end(class: usize) -> f64 {
    (SHORTEST + class as f64 / PER_DOUBLING as f64).exp2()
}

fn class_of(bytes: f64) -> usize {
    let class = (bytes.max(1.0).log2() - SHORTEST) * PER_DOUBLING as f64;
    (class.ceil().max(0.0) as usize).min(CLASSES - 1)
}

impl<H: Copy> Followed<H> {
    /// Nothing yet. At most `most` samples are followed at once. `ages`: the machine counts its collections.
    pub fn new(most: usize, ages: bool) -> Followed<H> {
        Followed {
            sites: Vec::new(),
            live: Vec::new(),
            most: most.max(2),
            thinned: 0,
            random: 0x2545_f491_4f6c_dd1d,
            ages,
            lifetimes: vec![0.0; CLASSES],
            kept: 0.0,
            undecided: 0.0,
            late: 0,
        }
    }

    fn next(&mut self) -> u64 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Counts a new sample. `drop` gets the handles that are not needed (any longer).
    ///
    /// When there are too many, half of them, drawn at random, are dropped, and the others stand for twice as much; so do all
    /// that come later, of which as small a part is followed. What is said of survivors stays without bias, and gets coarser.
    pub fn add(&mut self, mut sample: Sample<H>, mut drop: impl FnMut(H)) {
        let site = sample.site as usize;
        if self.sites.len() <= site {
            self.sites.resize(site + 1, Counts::default());
        }
        let counts = &mut self.sites[site];
        counts.samples += 1;
        counts.born.add(sample.weight, sample.bytes as f64);
        // The upper bits are the better ones of this generator.
        if self.thinned > 0 && self.next() >> (64 - self.thinned.min(63)) != 0 {
            return drop(sample.handle);
        }
        sample.weight *= f64::from(self.thinned).exp2();
        self.live.push(sample);
        if self.live.len() < self.most {
            return;
        }
        self.thinned += 1;
        for mut sample in std::mem::take(&mut self.live) {
            if self.next() >> 63 == 0 {
                drop(sample.handle);
            } else {
                sample.weight *= 2.0;
                self.live.push(sample);
            }
        }
    }

    /// Checks all samples. `place` returns where one is, `drop` gets the handles of the dead.
    pub fn look(
        &mut self,
        now: Now,
        mut place: impl FnMut(&Sample<H>) -> Place,
        mut drop: impl FnMut(H),
    ) {
        let mut at = 0;
        while at < self.live.len() {
            let mut sample = self.live[at];
            let full = now.full.saturating_sub(sample.full);
            let passed = full + now.young.saturating_sub(sample.young);
            match place(&sample) {
                Place::Dead => {
                    let late = !sample.old && passed > 1;
                    self.late += u64::from(late);
                    self.end(&sample, Some((now.clock, late)));
                    drop(sample.handle);
                    self.live.swap_remove(at);
                    continue;
                }
                found => {
                    (sample.young, sample.full) = (now.young, now.full);
                    if full > 0 || (passed > 0 && !sample.old) {
                        sample.alive = sample.alive.max(now.clock);
                    }
                    if !sample.old {
                        if passed == 1 && sample.age < AGES as u32 {
                            sample.seen |= 1 << sample.age;
                        }
                        sample.age += passed as u32;
                        sample.old = match found {
                            Place::Old => true,
                            Place::Alive if self.ages => {
                                let ripe = now.tenuring.is_some_and(|t| u64::from(sample.age) > t);
                                full > 0 || ripe
                            }
                            _ => false,
                        };
                    }
                    self.live[at] = sample;
                }
            }
            at += 1;
        }
    }

    /// Samples that are old, and alive as far as is known.
    pub fn old(&self) -> impl Iterator<Item = &Sample<H>> {
        self.live.iter().filter(|sample| sample.old)
    }

    /// Counts a look at a page of an old object of a site. The object stands for `bytes`.
    pub fn looked(&mut self, site: u32, bytes: f64, used: bool) {
        let Some(counts) = self.sites.get_mut(site as usize) else {
            return;
        };
        for which in 0..=usize::from(used) {
            counts.looks[which] += 1;
            counts.looked[which] += bytes;
        }
    }

    /// The program has ended: what is alive is counted so. `drop` gets the handles.
    pub fn finish(&mut self, mut drop: impl FnMut(H)) {
        for sample in std::mem::take(&mut self.live) {
            self.end(&sample, None);
            drop(sample.handle);
        }
    }

    /// Samples that are followed now.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Counts what is known of a sample in the end. `found`: bytes allocated when it was found dead, and whether it is not known in
    /// which collection it died.
    fn end(&mut self, sample: &Sample<H>, found: Option<(u64, bool)>) {
        let (weight, size) = (sample.weight, sample.bytes as f64);
        let counts = &mut self.sites[sample.site as usize];
        let age = sample.age as usize;
        for (at, survived) in counts.survived.iter_mut().enumerate() {
            if sample.seen & 1 << at != 0 {
                survived.add(weight, size);
            }
        }
        if sample.old {
            counts.old.add(weight, size);
        }
        let Some((found, late)) = found else {
            counts.live.add(weight, size);
            match sample.old {
                true => self.kept += weight * size,
                false => self.undecided += weight * size,
            }
            return;
        };
        counts.freed.add(weight, size);
        match sample.old {
            true => counts.old_freed.add(weight, size),
            false if self.ages && !late && age < AGES => counts.died[age].add(weight, size),
            false => {}
        }
        // It lived until somewhere between the two collections.
        let least = sample.alive.saturating_sub(sample.born) as f64;
        let most = (found.saturating_sub(sample.born) as f64).max(least);
        counts.lifetime += weight * (least + most) / 2.0;
        const PARTS: usize = 8;
        for part in 0..PARTS {
            let lived = least + (most - least) * (part as f64 + 0.5) / PARTS as f64;
            self.lifetimes[class_of(lived)] += weight * size / PARTS as f64;
        }
    }
}
