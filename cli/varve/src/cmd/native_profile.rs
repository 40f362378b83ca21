//! `varve profile -o service.sites -- ./service`: what each allocation site of a native program is worth, on a modelled machine.

use super::native::of_replay;
use super::native_replay::{shown, trace};
use super::runs::{self, Outcomes};
use super::{columns, files, profiles};
use crate::args::run::job::RunSubject;
use crate::args::run::model::in_time;
use crate::args::{ProfileArgs, ProfileFrom};
use crate::ui::{self, Done, Failure, wrong};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varve_report::fmt;
use varve_run::Error;
use varve_run::request::options::Plans;
use varve_run::request::{NATIVE_MACHINE, NativeRequest};
use varve_sites::Counts;
use varve_sites::native::cached::cached;
use varve_sites::native::names::name;
use varve_sites::native::{Profile, Site};
use varve_symbols::import::{AddressMap, damon, heaptrack, perf_script};
use varve_trace::TraceReader;
use varve_trace::host::{Extent, RecorderOptions};

pub fn profile(work: &RunSubject, a: &ProfileArgs) -> Done {
    let machine =
        varve_tier::machine(a.machine.as_deref().unwrap_or(NATIVE_MACHINE)).map_err(wrong)?;
    if varve_run::has_one_memory(&machine) || machine.dram_cache.is_some() {
        return Err(wrong(Error::NoSlowNode(machine.name)));
    }
    let before = profiles::before(a)?;
    let extent = match a.sample {
        Some(share) => Extent::Sample(share),
        None if a.whole => Extent::Whole,
        None => in_time(),
    };
    let options = RecorderOptions {
        extent,
        ..RecorderOptions::default()
    };
    let recorded = trace(work, options)?;
    let trace = &recorded.path;
    let reader = TraceReader::open(trace).map_err(|e| files::of_trace(&e))?;
    let request = NativeRequest {
        plans: Plans {
            plan: Some("dram,slow".into()),
            ..Plans::default()
        },
        whole: a.whole,
        ..NativeRequest::new(machine)
    };
    let mut runs = request.runs(trace).map_err(|e| files::of_input(&e))?;
    let answers = runs::all(&mut runs, 0, recorded.accesses).map_err(|e| of_replay(&e))?;
    let came = Outcomes::of(&runs, answers, |_, e| of_replay(e))?;
    let machine = &request.machine;
    let dram = came.shown()[0];
    if let Some(line) = columns::sampled(&dram.run) {
        crate::ui::message!("varve: {line}");
    }
    let (most, cache) = (dram.most_bytes, machine.llc.bytes.0);
    if most <= cache {
        crate::ui::message!(
            "varve: note: the {} that the program takes fit into the last cache of {}, {}: there are few misses to go by; profile a \
             larger input",
            fmt::bytes(most as f64),
            machine.name,
            fmt::bytes(cache as f64)
        );
    }
    let (groups, counted) = runs.sites();
    let counted = groups.keys.iter().cloned().zip(counted.iter().cloned());
    let made = |counts: &Counts| counts.objects > 0 || counts.peak_bytes > 0;
    let counted = counted.filter(|(_, counts)| made(counts));
    let command = reader.header().command.clone();
    let first = command.first().map_or("", String::as_str);
    let profile = Profile {
        program: Path::new(first)
            .file_name()
            .map_or_else(|| first.into(), |n| n.to_string_lossy().into_owned()),
        command,
        machine: machine.name.clone(),
        modules: runs.modules().to_vec(),
        sampled: None,
        sites: counted.map(|(key, counts)| Site { key, counts }).collect(),
    };
    if let Some(hot) = cached(&profile, cache) {
        crate::ui::message!(
            "varve: note: {:.0} % of the accesses to objects are to {} of sites such as {}, which fit into the last cache of {}, {}: \
             with a larger input they would miss far more; profile one with which they do not fit",
            100.0 * hot.share,
            fmt::bytes(hot.bytes as f64),
            name(&hot.site),
            machine.name,
            fmt::bytes(cache as f64)
        );
    }
    if let Some(steady) = runs.steady() {
        crate::ui::message!(
            "varve: the misses and costs are of the steady state, {:.0} % of the accesses; the start-up before it, {:.0} %, is left out",
            100.0 * steady.share,
            100.0 * steady.before
        );
    }
    let profile = profiles::keep(a, before, profile)?;
    say(a, work, &profile);
    Ok(ExitCode::SUCCESS)
}

/// `varve profile --from heaptrack heaptrack.raw -o service.sites`: what another tool has written.
pub fn import(tool: ProfileFrom, a: &ProfileArgs) -> Done {
    let (Some(file), []) = (&a.program, &a.command[..]) else {
        return Err(wrong(
            "--from reads a file of another tool: name it, as in `varve profile --from heaptrack FILE -o FILE.sites`",
        ));
    };
    let before = profiles::before(a)?;
    files::exists(
        Path::new(file),
        "no such file",
        "write it with the other tool first",
    )?;
    let input = File::open(file).map_err(|e| wrong(format!("{file}: {e}")))?;
    let input = BufReader::new(input);
    let map = match tool {
        ProfileFrom::Heaptrack if a.maps.is_some() => {
            return Err(wrong(
                "--maps is for files that know addresses alone (perf, damon), and heaptrack's have sites: leave it out",
            ));
        }
        ProfileFrom::Heaptrack => None,
        ProfileFrom::Perf | ProfileFrom::Damon => address_map(file, a.maps.as_deref())?,
    };
    let (map, map_file) = map.unzip();
    let at = |address| map.as_ref().and_then(|map| map.at(address));
    let imported = match tool {
        ProfileFrom::Heaptrack => heaptrack(file, input),
        ProfileFrom::Perf => perf_script(file, input, at),
        ProfileFrom::Damon => damon(file, input, map.as_ref()),
    };
    let imported = imported.map_err(wrong)?;
    if let Some(file) = map_file {
        crate::ui::message!("varve: address map from {file}");
    }
    for missing in &imported.missing {
        crate::ui::message!("varve: note: {missing}");
    }
    let profile = profiles::keep(a, before, imported.profile)?;
    crate::ui::message!(
        "varve: {}: {} allocation sites; `varve sites {}` shows them",
        a.output.display(),
        profile.sites.len(),
        ui::quoted(&a.output.display().to_string())
    );
    Ok(ExitCode::SUCCESS)
}

/// The address map of a file's process: from `--maps`, or from the file beside it that `damo record` or the user has made.
fn address_map(file: &str, given: Option<&Path>) -> Result<Option<(AddressMap, String)>, Failure> {
    let beside = ["vmas", "maps"].map(|end| PathBuf::from(format!("{file}.{end}")));
    let path = match given {
        Some(path) => path,
        None => match beside.iter().find(|path| path.exists()) {
            Some(path) => path,
            None => return Ok(None),
        },
    };
    let shown = path.display().to_string();
    let input = File::open(path).map_err(|e| wrong(format!("{shown}: {e}")))?;
    let map = AddressMap::read(&shown, BufReader::new(input)).map_err(wrong)?;
    Ok(Some((map, shown)))
}

/// Prints the counts, and the next commands.
fn say(a: &ProfileArgs, work: &RunSubject, profile: &Profile) {
    let sum = |of: fn(&Counts) -> u64| {
        let all = profile.sites.iter().map(|s| of(&s.counts));
        all.fold(0u64, u64::saturating_add) as f64
    };
    let file = a.output.display().to_string();
    crate::ui::message!(
        "varve: {file}: {} allocation sites; {} objects, {} at their peaks, {} misses",
        profile.sites.len(),
        fmt::integer(sum(|c| c.objects)),
        fmt::bytes(sum(|c| c.peak_bytes)),
        fmt::integer(sum(|c| c.misses + c.write_misses)),
    );
    let file = ui::quoted(&file);
    let again = match work {
        RunSubject::Named(path) => ui::quoted(path),
        RunSubject::Command(words) => format!("-- {}", shown(words)),
    };
    crate::ui::message!(
        "varve: `varve sites {file} --fast 25%` shows them, `varve run --sites {file} --fast 25% {again}` uses them"
    );
}
