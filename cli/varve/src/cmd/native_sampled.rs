//! `varve profile --live -o service.sites -- ./service`: what each allocation site is worth, from samples of what the program
//! does with its memory on this machine.

use super::profiles::{self, SampledTarget};
use crate::args::ProfileArgs;
use crate::ui::{self, Done, failed, stop_flag, wrong};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use varve_live::sampled::{self, AccessSampling, SampledMemory, SeenRange, SeenSite, Source};
use varve_report::fmt;
use varve_run::objects::{Groups, LiveBytes};
use varve_sites::Counts;
use varve_sites::native::{self, Frame, Key, Module, Profile, Site};
use varve_symbols::{Binary, statics};

/// Looks per second where no rate is given.
const RATE: f64 = 20.0;

/// How the source of a profile begins that counts accesses; others count pages that are used.
pub const ACCESSES: &str = "accesses";

/// How it is seen what is used, and what is not seen that way.
fn words(source: Source) -> (String, &'static str) {
    match source {
        Source::Bits => (
            "pages used within 2 ms (accessed bits of clear_refs and smaps)".into(),
            "what caches serve, how often a page is used within that time, and which of its objects",
        ),
        Source::Damon => (
            "pages used within each of ten times 5 ms (the kernel's DAMON)".into(),
            "what caches serve, how often a page is used within that time, and which of its objects",
        ),
        Source::Hardware(mechanism) => (
            format!("{ACCESSES} that no cache serves (the processor's {mechanism})"),
            "what the processor fetches ahead of its use",
        ),
    }
}

pub fn profile(a: &ProfileArgs) -> Done {
    if let Some(program) = &a.program {
        return Err(wrong(format!(
            "{program}: --live samples a command or a process: write `varve profile --live -o FILE.sites -- {program}`, or --pid NUMBER"
        )));
    }
    let before = profiles::before(a)?;
    let stop = stop_flag();
    let rate = a.live.rate.unwrap_or(RATE);
    let events = sampled::hardware();
    let sampling = AccessSampling {
        rate,
        time: a.live.time,
        stop: &stop,
        events: events.as_deref().unwrap_or_default(),
    };
    let say_how = || {
        let (source, unseen) = words(sampled::source(sampling.events));
        crate::ui::message!(
            "varve: sampling {source}, up to {rate} scans a second; not observed: {unseen}"
        );
        if let Err(why) = &events
            && sampled::has_hardware()
        {
            crate::ui::message!("varve: note: this processor samples misses by itself, but: {why}");
        }
    };
    let seen = match profiles::sampled(a, "varve profile --live")? {
        SampledTarget::Process(process) => {
            sampled::can_attach(process).map_err(wrong)?;
            say_how();
            sampled::attach(process, &sampling).map_err(wrong)?
        }
        SampledTarget::Command(command) => {
            sampled::can_run(command).map_err(wrong)?;
            say_how();
            sampled::command(command, &sampling).map_err(wrong)?
        }
    };
    if seen.looks == 0 {
        return Err(failed(
            "the program ended before the first scan, so there is no profile; give it a larger input",
        ));
    }
    let blind = blind(&seen, a.live.pid.is_some());
    for line in &blind {
        crate::ui::message!("varve: note: {line}");
    }
    let profile = profile_of(&seen, blind);
    let profile = profiles::keep(a, before, profile)?;
    say(a, &seen, &profile);
    profiles::ended(a, seen.status, &stop)
}

/// Blind spots, a sentence each.
fn blind(seen: &SampledMemory, attached: bool) -> Vec<String> {
    let mut lines = seen.notes.clone();
    if !seen.has_objects {
        let how = match attached {
            true => {
                "the process does not run under Varve's allocator, so allocation sites are not known: start it with `varve run --live \
                 --sites ...`, or sample it from its start with `varve profile --live -- COMMAND`"
            }
            false => {
                "the program did not load Varve's allocator, so allocation sites are not known: it has to use the C library's malloc"
            }
        };
        lines.push(how.into());
    } else if !seen.has_writes {
        lines.push(
            "reads and writes are not distinguished, and count as reads: that needs Linux 6.7 and userfaultfd".into(),
        );
    }
    lines
}

fn profile_of(seen: &SampledMemory, blind: Vec<String>) -> Profile {
    let mut binaries = Binaries::default();
    let mut stacks: BTreeMap<Key, Counts> = BTreeMap::new();
    for site in &seen.sites {
        let stack: Vec<Frame> = site
            .stack
            .iter()
            .map(|place| binaries.frame(&place.path, place.offset))
            .collect();
        let key = match (stack.is_empty(), site.mapped) {
            (true, _) => Key::Rest,
            (false, true) => Key::Mapping(stack),
            (false, false) => Key::Heap(stack),
        };
        add(&mut stacks, key, &counts_of(site));
    }
    let (keys, counts): (Vec<Key>, Vec<Counts>) = stacks.into_iter().unzip();
    let groups = Groups::by_heat(&keys, &counts);
    let sums = groups.sum(&counts, &LiveBytes::default());
    let mut all: BTreeMap<Key, Counts> = BTreeMap::new();
    for (key, counts) in groups.keys.into_iter().zip(sums) {
        add(&mut all, key, &counts);
    }
    for range in &seen.ranges {
        for (key, counts) in binaries.split(range) {
            add(&mut all, key, &counts);
        }
    }
    all.retain(|_, counts| counts.peak_bytes > 0);
    let modules = seen.files.iter().map(|path| Module {
        name: name(path),
        path: path.clone(),
        build_id: binaries.build_id(path),
    });
    Profile {
        program: name(&seen.program.to_string_lossy()),
        command: seen.command.clone(),
        machine: String::new(),
        modules: modules.collect(),
        sampled: Some(native::Sampling {
            source: words(seen.source).0,
            looks: seen.looks,
            milliseconds: (seen.seconds * 1000.0) as u64,
            blind,
        }),
        sites: all
            .into_iter()
            .map(|(key, counts)| Site { key, counts })
            .collect(),
    }
}

/// Adds what is at the same time: peaks add up.
fn add(to: &mut BTreeMap<Key, Counts>, key: Key, more: &Counts) {
    let sum = to.entry(key).or_default();
    let peak = sum.peak_bytes.saturating_add(more.peak_bytes);
    sum.add(more);
    sum.peak_bytes = peak;
}

fn counts_of(site: &SeenSite) -> Counts {
    let round = |x: f64| x.round() as u64;
    let written = round(site.written_pages);
    let used = round(site.used_pages).max(u64::from(site.uses > 0));
    let objects = round(site.objects).max(site.samples);
    Counts {
        objects,
        bytes: round(site.bytes),
        freed: round(site.freed).min(objects),
        lifetime_bytes: round(site.lifetime_bytes),
        peak_bytes: round(site.peak_bytes),
        reads: used.saturating_sub(written),
        writes: written,
        misses: used.saturating_sub(written),
        write_misses: written,
        samples: site.samples,
        uses: site.uses,
        ..Counts::default()
    }
}

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).into()
}

/// Files of the program, each read once; those that cannot be read have no names.
#[derive(Default)]
struct Binaries {
    files: HashMap<String, Option<Binary>>,
    /// The offset to add to the addresses of a file, by its last mapping.
    bases: HashMap<String, u64>,
}

impl Binaries {
    fn get(&mut self, path: &str) -> Option<&Binary> {
        let read = || Binary::read(Path::new(path)).ok();
        self.files.entry(path.into()).or_insert_with(read).as_ref()
    }

    fn build_id(&mut self, path: &str) -> String {
        self.get(path)
            .map_or(String::new(), |file| file.build_id().into())
    }

    fn frame(&mut self, path: &str, offset: u64) -> Frame {
        match self.get(path) {
            Some(file) => file.frame(offset),
            None => Frame {
                module: name(path),
                offset,
                ..Frame::default()
            },
        }
    }

    /// A range's counts by what is in it: static variables, a stack, or the rest. How much of a variable was used is known apart
    /// from what is around it where the processor samples.
    fn split(&mut self, range: &SeenRange) -> Vec<(Key, Counts)> {
        let bytes = (range.end - range.start).max(1);
        // Where accesses were is known of those that the processor sampled.
        let accesses = |of: std::ops::Range<u64>| -> Option<u64> {
            let some = !range.lines.is_empty();
            some.then(|| range.lines.range(of).map(|(_, count)| count).sum())
        };
        let part = |part: u64, accesses: Option<u64>| {
            let share = part as f64 / bytes as f64;
            let by_size = (range.used_pages as f64 * share).round() as u64;
            let used = accesses.unwrap_or(by_size);
            Counts {
                reads: used,
                misses: used,
                peak_bytes: (range.peak_bytes as f64 * share) as u64,
                samples: 1,
                uses: used,
                ..Counts::default()
            }
        };
        if range.path == "[stack]" {
            return vec![(Key::Stacks, part(bytes, None))];
        }
        let file = match range.path.is_empty() {
            true => range.follows.clone(),
            false => range.path.clone(),
        };
        let (mut found, mut left) = (Vec::new(), bytes);
        if let Some(base) = self.base(&file, range) {
            let build_id = self.build_id(&file);
            for variable in statics(&PathBuf::from(&file)).unwrap_or_default() {
                let start = base.wrapping_add(variable.address);
                let in_it = (start + variable.bytes)
                    .min(range.end)
                    .saturating_sub(start.max(range.start));
                if in_it > 0 {
                    left = left.saturating_sub(in_it);
                    let accesses = accesses(start..start + variable.bytes);
                    let key = Key::Static {
                        module: name(&file),
                        build_id: build_id.clone(),
                        symbol: variable.symbol,
                    };
                    found.push((key, part(in_it, accesses)));
                }
            }
        }
        let known: u64 = found.iter().map(|(_, counts)| counts.misses).sum();
        let others = (!range.lines.is_empty()).then(|| range.used_pages.saturating_sub(known));
        found.push((Key::Rest, part(left, others)));
        found
    }

    fn base(&mut self, path: &str, range: &SeenRange) -> Option<u64> {
        let mapped = range.path.starts_with('/');
        let address = self.get(path).filter(|_| mapped).and_then(|file| {
            // A mapping begins with its page, which may be before its segment.
            let from = |at: u64| Some(file.address(range.offset + at)? - at);
            from(0).or_else(|| from(0xfff))
        });
        if let Some(address) = address {
            self.bases
                .insert(path.into(), range.start.wrapping_sub(address));
        }
        self.bases.get(path).copied()
    }
}

fn say(a: &ProfileArgs, seen: &SampledMemory, profile: &Profile) {
    let sum =
        |of: fn(&Counts) -> u64| profile.sites.iter().map(|s| of(&s.counts)).sum::<u64>() as f64;
    let file = a.output.display().to_string();
    crate::ui::message!(
        "varve: {file}: {} sites from {} samples of objects and {} looks in {:.1} s; {} at their peaks",
        profile.sites.len(),
        fmt::integer(seen.sites.iter().map(|s| s.samples).sum::<u64>() as f64),
        fmt::integer(seen.looks as f64),
        seen.seconds,
        fmt::bytes(sum(|c| c.peak_bytes)),
    );
    let file = ui::quoted(&file);
    crate::ui::message!(
        "varve: `varve sites {file} --fast 25%` shows them and which are in doubt, `varve run --live --sites {file} --fast 8GiB -- \
         COMMAND` uses them"
    );
}
