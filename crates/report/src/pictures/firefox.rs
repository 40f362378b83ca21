//! Timelines and stacks as a file for the Firefox profiler. A run is a process. Its lanes are threads with markers. The thread of
//! stacks has a sample for each, weighed by the time that threads waited.

use super::flame::{By, Flame};
use super::timeline::{Counter, Meaning, Span, Timeline, TimelineRun};
use fx::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, Timestamp, WeightType,
};
use fxprof_processed_profile as fx;

/// A span as a marker.
struct Marked {
    name: StringHandle,
    category: CategoryHandle,
    count: u64,
}

impl StaticSchemaMarker for Marked {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "span";
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "count",
        label: "Count",
        format: MarkerFieldFormat::Integer,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        unreachable!("there is one field, and it is a number")
    }

    fn number_field_value(&self, _: u32) -> f64 {
        self.count as f64
    }
}

/// Processes' numbers, and those of threads, of which the first of a process must be the process's.
const THREADS: u32 = 1000;

/// Runs, and stacks; nothing if there is nothing to see.
pub fn write<'a>(
    timeline: &Timeline,
    mut flames: impl Iterator<Item = &'a Flame> + Clone,
) -> Option<String> {
    if timeline.is_empty() && flames.clone().next().is_none() {
        return None;
    }
    let mut profile = Profile::new(
        &timeline.title,
        ReferenceTimestamp::from_millis_since_unix_epoch(0.0),
        // Stacks stand a microsecond apart; nobody sampled.
        SamplingInterval::from_nanos(1000),
    );
    profile.set_os_name("varve");
    let spans = profile.add_category("What happened", CategoryColor::Blue);
    for (number, run) in timeline.runs.iter().enumerate() {
        let pid = THREADS * (number as u32 + 1);
        let process = profile.add_process(&run.name, pid, at(0));
        profile.set_process_end_time(process, at(run.end_ns));
        add_run(&mut profile, process, pid, run, spans);
    }
    if let Some(first) = flames.next() {
        add_stacks(&mut profile, first, flames);
    }
    serde_json::to_string(&profile).ok().map(|text| text + "\n")
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

fn add_run(
    profile: &mut Profile,
    process: ProcessHandle,
    pid: u32,
    run: &TimelineRun,
    category: CategoryHandle,
) {
    // Counters and markers need a main thread to stand at.
    let main = profile.add_thread(process, pid, at(0), true);
    profile.set_thread_name(main, &run.name);
    for (number, lane) in run.lanes.iter().enumerate() {
        let thread = profile.add_thread(process, pid + 1 + number as u32, at(0), false);
        profile.set_thread_name(thread, &lane.name);
        profile.set_thread_show_markers_in_timeline(thread, true);
        for Span {
            name,
            begin_ns,
            end_ns,
            count,
        } in &lane.spans
        {
            let marked = Marked {
                name: profile.intern_string(name),
                category,
                count: *count,
            };
            profile.add_marker(
                thread,
                MarkerTiming::Interval(at(*begin_ns), at(*end_ns)),
                marked,
            );
        }
    }
    for counter in &run.counters {
        add_counter(profile, process, counter);
    }
}

/// The viewer divides what it is told by the time between two samples where it knows the kind.
fn add_counter(profile: &mut Profile, process: ProcessHandle, counter: &Counter) {
    // Of energy it wants picowatt-hours.
    const PWH: f64 = 1e12 / 3600.0;
    let (category, per_second) = match counter.meaning {
        Meaning::Bandwidth => ("Bandwidth", 1.0),
        Meaning::Power => ("power", PWH),
        // It knows no such kind, and would add them up.
        Meaning::Share | Meaning::Rate => return,
    };
    let handle = profile.add_counter(process, &counter.name, category, &counter.name);
    let mut before = 0;
    // The first one that it has says only when it begins.
    profile.add_counter_sample(handle, at(0), 0.0, 0);
    for &(end, value) in &counter.points {
        let seconds = (end - before) as f64 / 1e9;
        profile.add_counter_sample(handle, at(end), (value * per_second * seconds).round(), 0);
        before = end;
    }
}

/// Stacks as the threads of a process, one for each flame graph.
fn add_stacks<'a>(
    profile: &mut Profile,
    first: &'a Flame,
    others: impl Iterator<Item = &'a Flame> + Clone,
) {
    let pid = 1;
    let process = profile.add_process(&format!("Waiting for memory {}", first.slow), pid, at(0));
    let category = profile.add_category("Waiting for memory", CategoryColor::Orange);
    let flames = || [first].into_iter().chain(others.clone());
    for (number, flame) in flames().enumerate() {
        let thread = profile.add_thread(process, pid + number as u32, at(0), number == 0);
        profile.set_thread_name(
            thread,
            match flame.by {
                By::Memory => "by allocation site",
                By::Function => "by function",
            },
        );
        profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
        profile.add_initial_visible_thread(thread);
        if number == 0 {
            profile.add_initial_selected_thread(thread);
        }
        add_samples(profile, thread, category, flame);
    }
    let most = flames().map(|flame| flame.folded().len()).max();
    profile.set_process_end_time(process, at(1000 * most.unwrap_or(0) as u64));
}

fn add_samples(
    profile: &mut Profile,
    thread: fx::ThreadHandle,
    category: CategoryHandle,
    flame: &Flame,
) {
    for (number, stack) in flame.folded().iter().enumerate() {
        let mut frames = Vec::new();
        for name in &stack.frames {
            let name = profile.intern_string(name);
            frames.push(FrameInfo {
                frame: Frame::Label(name),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            });
        }
        let stack_handle = profile.intern_stack_frames(thread, frames.into_iter());
        // Weights are whole: microseconds, which the viewer calls milliseconds.
        let weight = i32::try_from(stack.slow_ns / 1000).unwrap_or(i32::MAX);
        profile.add_sample(
            thread,
            at(1000 * number as u64),
            stack_handle,
            CpuDelta::ZERO,
            weight,
        );
    }
}
