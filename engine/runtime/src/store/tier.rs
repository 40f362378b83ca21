//! When functions are compiled, and how far.
//!
//! A function is compiled by the baseline when it is first called. Its counters make it *hot*: from then on calls go to
//! optimized code, and activations that run in a loop go on there. Optimized code trusts the counters; where a guard
//! shows that they mislead, the activation goes on in baseline code, and when that happens often the function is counted, and
//! then compiled, anew. A store may begin with the code of an earlier run: see `kept`.

mod ahead;
mod depends;
mod kept;
mod left_out;

use super::Vm;
use super::func::FuncKind;
use super::sampler::Sampling;
use crate::code::jitdump::Line;
use crate::code::map::CodeInfo;
use crate::compile::env::Assumptions;
use crate::compile::env::Env;
use crate::compile::feedback::{Feedback, FeedbackTable, HEAT_OF_CALL};
use crate::compile::glue;
use crate::compile::isa::Level;
use crate::compile::resume::{Points, What, Why};
use crate::compile::translate::{Job, Start};
use crate::compile::worker::{Done, Work};
use crate::compile::{self, Generated, Unit};
use crate::engine::{Checks, Tier};
use crate::error::Result;
use crate::types::TypeIndex;
use ahead::Ahead;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use kept::Keeping;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Failed guards after which optimized code is given up.
const MOST_FAILURES: u32 = 16;
/// Times that a function's optimized code is given up before it is compiled without guards that leave it.
const MOST_ATTEMPTS: u32 = 3;

/// Times that baseline code asks for optimized code in as much as made it hot.
const ASKS: u32 = 16;

/// Code of a function.
#[derive(Default)]
struct Versions {
    baseline: Option<*const u8>,
    optimized: Option<*const u8>,
    /// Whether continuations at its loops are to be optimized.
    hot: bool,
    /// Guards of the optimized code that failed.
    failures: u32,
    /// Optimized codes that were given up.
    given_up: u32,
}

/// Statistics of the compilers of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompilerStats {
    /// Functions, and rests of functions, that were compiled quickly.
    pub baseline: u64,
    /// Those of them whose code was asked for before they were called: see [`Config::background`](crate::Config::background).
    pub ahead: u64,
    /// Functions, and rests of functions, whose optimized code is or was in use.
    pub optimized: u64,
    /// Activations that went on in optimized code while they ran in a loop.
    pub hot_loops: u64,
    /// Activations that went on in baseline code because a guard failed.
    pub failed_guards: u64,
    /// Throws that code had left out.
    pub throws: u64,
    /// Functions whose optimized code was given up after many of those.
    pub given_up: u64,
    /// Pieces of code of an earlier run that were taken into use: see [`Config::code_cache`](crate::Config::code_cache).
    pub kept: u64,
}

/// A store's state of its functions' code.
#[derive(Default)]
pub(crate) struct Tiers {
    pub feedback: FeedbackTable,
    points: Points,
    keeping: Keeping,
    versions: HashMap<u32, Versions>,
    continuations: HashMap<(u32, Level), *const u8>,
    /// Optimized code that is being generated, by the tickets under which it was asked for.
    pending: HashMap<What, u64>,
    asked: HashMap<u64, What>,
    ahead: Ahead,
    /// Code of throws that are left out, by where they are.
    throws: HashMap<usize, *const u8>,
    results: Results,
    pub stats: CompilerStats,
}

/// Where code comes from that another thread has generated.
struct Results {
    sender: Sender<Done>,
    receiver: Receiver<Done>,
}

impl Default for Results {
    fn default() -> Results {
        let (sender, receiver) = channel();
        Results { sender, receiver }
    }
}

impl Tiers {
    /// Forgets code that was asked for, of all that `unwanted` says.
    fn forget_pending(&mut self, unwanted: impl Fn(What, &Points) -> bool) {
        let points = &self.points;
        let forgotten = self.pending.extract_if(|&what, _| unwanted(what, points));
        for (_, ticket) in forgotten {
            self.asked.remove(&ticket);
        }
    }

    /// Whether optimized code of a function, or of a rest of it, is being generated.
    fn is_pending(&self, func: u32) -> bool {
        self.pending.keys().any(|&what| match what {
            What::Function(f) => f == func,
            What::Continuation(number) => self.points.get(number).func == func,
        })
    }

    /// All code in use.
    fn in_use(&self) -> impl Iterator<Item = (What, Level, *const u8)> {
        let functions = self.versions.iter().flat_map(|(&func, versions)| {
            let levels = [
                (Level::Baseline, versions.baseline),
                (Level::Optimizing, versions.optimized),
            ];
            levels
                .into_iter()
                .filter_map(move |(level, code)| Some((What::Function(func), level, code?)))
        });
        let rests = self.continuations.iter();
        functions
            .chain(rests.map(|(&(number, level), &code)| (What::Continuation(number), level, code)))
    }

    fn of(&mut self, func: u32) -> &mut Versions {
        self.versions.entry(func).or_default()
    }
}

/// The parts of `Main.java:12`.
fn source_and_line(source: &str) -> Option<(&str, u32)> {
    let (file, line) = source.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

impl Vm {
    fn translate(&mut self, job: Job) -> Result<(Unit, OwnedTargetIsa)> {
        let isa = match job.level {
            Level::Baseline => self.code.isa.clone(),
            Level::Optimizing => self.engine.isa(Level::Optimizing)?,
        };
        let mut assumed = Assumptions {
            nothing_durable: self.engine.checks() == Some(Checks::Quick) && !self.has_durable(),
            changing: HashSet::default(),
        };
        // Each time less is assumed.
        let unit = loop {
            match self.try_to_translate(&*isa, &job, &assumed)? {
                Ok(unit) => break unit,
                Err(less) => assumed = less,
            }
        };
        self.learn_touches(job.func_id, unit.inlined_functions());
        Ok((unit, isa))
    }

    fn try_to_translate(
        &mut self,
        isa: &dyn TargetIsa,
        job: &Job,
        assumed: &Assumptions,
    ) -> Result<Result<Unit, Assumptions>> {
        let FuncKind::Wasm {
            instance: instance_id,
            ..
        } = self.funcs[job.func_id as usize].kind
        else {
            unreachable!("host functions have code from the start")
        };
        let c = &mut self.code;
        let instance = &self.instances[instance_id as usize];
        let types = self.engine.types();
        let env = Env {
            module: &instance.module,
            instance,
            instance_id,
            types: &types,
            funcs: &self.funcs,
            tables: &self.tables,
            memories: &self.memories,
            sites: &mut self.sites,
            region: &mut self.region,
            feedback: &mut c.tiers.feedback,
            points: &mut c.tiers.points,
            recording: self.recording.as_deref(),
            counters: self.counters,
            checks: self.engine.checks(),
            assumed,
            check_counters: self.check_counters,
            durable: self.durable.as_deref(),
            heap: self.heap.as_deref().expect("no collection compiles"),
            align: self.align,
            interruptible: self.engine.config().interruptible,
            samples: self.sampling.as_ref().is_some_and(Sampling::reads_word),
        };
        compile::translate(isa, &mut c.scratch, env, job)
    }

    fn add_code(&mut self, code: Generated, level: Level) -> Result<*const u8> {
        let c = &mut self.code;
        match level {
            Level::Baseline => c.tiers.stats.baseline += 1,
            Level::Optimizing => c.tiers.stats.optimized += 1,
        }
        let info = code.place(&mut c.memory, &c.helpers)?;
        c.tiers.keeping.grew();
        self.tell_perf(&info, level);
        let code = info.start as *const u8;
        self.code.map.add(info);
        Ok(code)
    }

    /// Writes code that was just added, for profilers of this process.
    fn tell_perf(&self, info: &CodeInfo, level: Level) {
        let config = self.engine.config();
        if config.perf_map.is_none() && config.jit_dump.is_none() {
            return;
        }
        let name = info
            .func
            .map_or_else(|| "glue".into(), |func| self.func_name(func));
        let level = match level {
            Level::Baseline => "baseline",
            Level::Optimizing => "optimized",
        };
        let name = format!("{name} [{level}]");
        if let Some(names) = &config.perf_map {
            names.add(info.start, info.len, &name);
        }
        if let Some(dump) = &config.jit_dump {
            let sources = self.sources_of(info);
            let lines: Vec<_> = sources
                .iter()
                .map(|(address, source)| (*address, source_and_line(source)))
                .filter_map(|(address, at)| {
                    let (file, line) = at?;
                    Some(Line {
                        address,
                        file,
                        line,
                    })
                })
                .collect();
            dump.add(
                info.start,
                self.code.memory.bytes(info.start, info.len),
                &name,
                &lines,
            );
        }
    }

    /// Where a piece of code comes from, such as `Main.java:12`, from which address on, if that is known.
    fn sources_of(&self, info: &CodeInfo) -> Vec<(usize, String)> {
        let Some(lines) = &self.lines else {
            return Vec::new();
        };
        let mut sources: Vec<(usize, String)> = Vec::new();
        for &(at, _) in &info.offsets {
            let address = info.start + at as usize;
            // The innermost of functions that were inlined.
            let Some(&(_, offset)) = info.places(address).first() else {
                continue;
            };
            if let Some(source) = lines(offset.into())
                && sources.last().is_none_or(|(_, last)| *last != source)
            {
                sources.push((address, source));
            }
        }
        sources
    }

    /// Fresh code of a function, or of the rest of it.
    fn generate(&mut self, job: Job) -> Result<*const u8> {
        let level = job.level;
        let (unit, isa) = self.translate(job)?;
        let code = unit.generate(&*isa, &mut self.code.scratch)?;
        self.add_code(code, level)
    }

    /// Has optimized code generated: now if that is how the engine is set up, else on another thread, if it was not asked for before.
    fn optimize_what(&mut self, what: What) -> Result<()> {
        let background = self.engine.config().background;
        if background && self.code.tiers.pending.contains_key(&what) {
            return Ok(());
        }
        if let Some(code) = self.take_kept(what, Level::Optimizing)? {
            self.take_into_use(what, code);
            return Ok(());
        }
        let job = match what {
            What::Function(func) => self.job(func, Level::Optimizing),
            What::Continuation(number) => self.job_from(number, Level::Optimizing),
        };
        if !background {
            let code = self.generate(job)?;
            self.take_into_use(what, code);
            return Ok(());
        }
        let (unit, isa) = self.translate(job)?;
        let ticket = self.engine.worker().ticket();
        let tiers = &mut self.code.tiers;
        tiers.pending.insert(what, ticket);
        tiers.asked.insert(ticket, what);
        let done = tiers.results.sender.clone();
        self.engine.worker().generate(Work {
            unit,
            isa,
            ticket,
            done,
        });
        Ok(())
    }

    /// Takes all code into use that another thread has generated by now.
    fn take_generated(&mut self) -> Result<()> {
        while let Ok(done) = self.code.tiers.results.receiver.try_recv() {
            self.take(done)?;
        }
        Ok(())
    }

    /// Takes a result of the other thread; unwanted jobs were removed.
    fn take(&mut self, done: Done) -> Result<()> {
        let c = &mut self.code;
        c.scratch.recycle(done.function);
        if let Some(what) = c.tiers.asked.remove(&done.ticket) {
            c.tiers.pending.remove(&what);
            let code = self.add_code(done.code?, Level::Optimizing)?;
            self.take_into_use(what, code);
        } else {
            c.tiers.ahead.keep(done.ticket, done.code);
        }
        Ok(())
    }

    /// Lets calls of a function, or activations at a point, go to optimized code.
    fn take_into_use(&mut self, what: What, code: *const u8) {
        match what {
            What::Function(func) => {
                let versions = self.code.tiers.of(func);
                versions.optimized = Some(code);
                versions.hot = true;
                self.install(func, code);
            }
            What::Continuation(number) => {
                let key = (number, Level::Optimizing);
                self.code.tiers.continuations.insert(key, code);
            }
        }
    }

    fn job(&mut self, func: u32, level: Level) -> Job {
        let FuncKind::Wasm { index, .. } = self.funcs[func as usize].kind else {
            unreachable!("host functions have code from the start")
        };
        let auto = self.engine.config().tier == Tier::Auto;
        Job {
            func_id: func,
            index,
            level,
            start: Start::Function,
            tiers_up: auto,
            speculates: auto && self.code.tiers.of(func).given_up < MOST_ATTEMPTS,
        }
    }

    /// Lets calls of a function go to this code.
    fn install(&mut self, func: u32, code: *const u8) {
        let f = &self.funcs[func as usize];
        let (place, ty) = (f.place, f.ty);
        self.write_record(place, code, ty, func);
    }

    /// Baseline code of a function.
    fn baseline(&mut self, func: u32) -> Result<*const u8> {
        if let Some(code) = self.code.tiers.of(func).baseline {
            return Ok(code);
        }
        self.prepare_feedback(func)?;
        let code = match self.take_kept(What::Function(func), Level::Baseline)? {
            Some(code) => code,
            None => self.generate_and_look_ahead(func)?,
        };
        let tiers = &mut self.code.tiers;
        tiers.of(func).baseline = Some(code);
        if tiers.keeping.loops(func)
            && let Some(feedback) = tiers.feedback.get(&func)
        {
            // Its loops go on in code that is there already, in their first iteration after this call.
            feedback.reheat(&self.region, HEAT_OF_CALL as u32);
        }
        Ok(code)
    }

    fn prepare_feedback(&mut self, func: u32) -> Result<()> {
        if !self.code.tiers.feedback.contains_key(&func) {
            let feedback = Feedback::new(&mut self.region, self.engine.config().hot)?;
            self.code.tiers.feedback.insert(func, feedback);
        }
        Ok(())
    }

    /// Compiles a function on its first call, and lets calls go to the code.
    pub(crate) fn compile(&mut self, func: u32) -> Result<*const u8> {
        self.begin_kept()?;
        self.take_generated()?;
        self.keep_code_in_time();
        let what = What::Function(func);
        if let Some(code) = self.take_kept(what, Level::Optimizing)? {
            self.take_into_use(what, code);
            return Ok(code);
        }
        let code = match self.engine.config().tier {
            Tier::Optimizing => {
                let job = self.job(func, Level::Optimizing);
                self.generate(job)?
            }
            _ => self.baseline(func)?,
        };
        self.install(func, code);
        Ok(code)
    }

    /// Has a function optimized that has become hot. Once its code is there, calls go to it.
    pub(crate) fn optimize(&mut self, func: u32) -> Result<()> {
        self.take_generated()?;
        if self.code.tiers.of(func).optimized.is_none() {
            self.optimize_what(What::Function(func))?;
            self.ask_again(func);
        }
        Ok(())
    }

    /// Has a function's baseline code ask for better code in a while.
    fn ask_again(&mut self, func: u32) {
        let hot = self.engine.config().hot;
        if let Some(feedback) = self.code.tiers.feedback.get(&func) {
            feedback.reheat(&self.region, hot / ASKS);
        }
    }

    /// The code in which an activation goes on at a point; null if it had better stay where it is. `root` is the
    /// function whose code it leaves.
    pub(crate) fn continuation(&mut self, number: u32, why: Why, root: u32) -> Result<*const u8> {
        self.take_generated()?;
        self.keep_code_in_time();
        let func = self.code.tiers.points.get(number).func;
        let hot = match why {
            Why::HotLoop => true,
            Why::Guard => {
                self.guard_failed(root)?;
                false
            }
            Why::EndOfCode => self.code.tiers.of(func).hot,
        };
        if hot {
            self.code.tiers.of(func).hot = true;
            if why == Why::HotLoop && !self.is_optimized_from(number) && self.enters_often(func) {
                self.optimize(func)?;
                return Ok(std::ptr::null());
            }
            if why == Why::HotLoop && self.waits(number, func) {
                self.ask_again(func);
                return Ok(std::ptr::null());
            }
            if let Some(code) = self.optimized_rest(number)? {
                self.code.tiers.stats.hot_loops += u64::from(why == Why::HotLoop);
                return Ok(code);
            }
            self.ask_again(func);
        }
        match why {
            Why::HotLoop => Ok(std::ptr::null()),
            Why::Guard | Why::EndOfCode => self.baseline_rest(number),
        }
    }

    /// Optimized code from a point on, if there is any yet.
    fn optimized_rest(&mut self, number: u32) -> Result<Option<*const u8>> {
        let key = (number, Level::Optimizing);
        if let Some(&code) = self.code.tiers.continuations.get(&key) {
            return Ok(Some(code));
        }
        self.optimize_what(What::Continuation(number))?;
        Ok(self.code.tiers.continuations.get(&key).copied())
    }

    /// Whether there is optimized code from a point on.
    fn is_optimized_from(&self, number: u32) -> bool {
        let key = (number, Level::Optimizing);
        let tiers = &self.code.tiers;
        tiers.continuations.contains_key(&key)
            || tiers
                .keeping
                .has(What::Continuation(number), Level::Optimizing)
    }

    /// Whether an activation had better wait for code of its function that is being generated, rather than have this point's code generated
    /// too: each of several loops would otherwise have nearly the same code generated at the same time.
    fn waits(&self, number: u32, func: u32) -> bool {
        !self.is_optimized_from(number) && self.code.tiers.is_pending(func)
    }

    /// Whether a function whose loops are hot is called so often that a quarter of its heat is from calls: then an activation makes few
    /// iterations, and the function's next calls are what optimized code is for, as long as there is none.
    fn enters_often(&mut self, func: u32) -> bool {
        let tiers = &mut self.code.tiers;
        let calls = tiers.feedback.get(&func);
        let calls = calls.map_or(0, |f| f.entries(&self.region));
        let from_calls = u64::from(calls) * HEAT_OF_CALL as u64;
        4 * from_calls > self.engine.config().hot.into() && tiers.of(func).optimized.is_none()
    }

    /// Baseline code from a point on.
    fn baseline_rest(&mut self, number: u32) -> Result<*const u8> {
        let key = (number, Level::Baseline);
        if let Some(&code) = self.code.tiers.continuations.get(&key) {
            return Ok(code);
        }
        let func = self.code.tiers.points.get(number).func;
        self.prepare_feedback(func)?;
        let code = match self.take_kept(What::Continuation(number), Level::Baseline)? {
            Some(code) => code,
            None => {
                let job = self.job_from(number, Level::Baseline);
                self.generate(job)?
            }
        };
        self.code.tiers.continuations.insert(key, code);
        Ok(code)
    }

    fn job_from(&mut self, number: u32, level: Level) -> Job {
        let point = self.code.tiers.points.get(number);
        Job {
            start: Start::Rest(Rc::clone(&point)),
            ..self.job(point.func, level)
        }
    }

    /// Counts a failure; after many, the function's optimized code is given up.
    fn guard_failed(&mut self, func: u32) -> Result<()> {
        let hot = self.engine.config().hot;
        let tiers = &mut self.code.tiers;
        let versions = tiers.versions.entry(func).or_default();
        versions.failures += 1;
        tiers.stats.failed_guards += 1;
        // The rest of the activation runs in baseline code for a while.
        if let Some(feedback) = tiers.feedback.get(&func) {
            feedback.reheat(&self.region, hot);
        }
        if versions.failures < MOST_FAILURES {
            return Ok(());
        }
        versions.failures = 0;
        versions.given_up += 1;
        tiers.stats.given_up += 1;
        versions.optimized = None;
        versions.hot = false;
        let points = &tiers.points;
        tiers.continuations.retain(|&(number, level), _| {
            level == Level::Baseline || points.get(number).func != func
        });
        let is_of = |what, points: &Points| match what {
            What::Function(f) => f == func,
            What::Continuation(number) => points.get(number).func == func,
        };
        tiers.forget_pending(is_of);
        let points = &tiers.points;
        tiers.keeping.forget(|what| is_of(what, points));
        let code = self.baseline(func)?;
        self.install(func, code);
        Ok(())
    }

    /// Gives up all optimized code, which relies on nothing being durable.
    pub(crate) fn give_up_unchecked(&mut self) -> Result<()> {
        let hot = self.engine.config().hot;
        let tiers = &mut self.code.tiers;
        tiers
            .continuations
            .retain(|&(_, level), _| level == Level::Baseline);
        tiers.forget_pending(|_, _| true);
        let mut optimized = Vec::new();
        for (&func, versions) in &mut tiers.versions {
            versions.hot = false;
            if versions.optimized.take().is_some() {
                optimized.push(func);
            }
        }
        for func in optimized {
            // It is optimized again once its checks have been counted for a while.
            if let Some(feedback) = self.code.tiers.feedback.get(&func) {
                feedback.reheat(&self.region, hot);
            }
            let code = self.baseline(func)?;
            self.install(func, code);
        }
        Ok(())
    }

    /// The way from the host into functions of a type.
    pub(crate) fn trampoline(&mut self, ty: TypeIndex) -> Result<*const u8> {
        if let Some(&t) = self.code.trampolines.get(&ty) {
            return Ok(t);
        }
        let func_type = self.engine.types().func(ty).clone();
        let c = &mut self.code;
        let info = glue::trampoline(&*c.isa, &mut c.scratch, &mut c.memory, &func_type)?;
        let code = info.start as *const u8;
        c.map.add(info);
        c.trampolines.insert(ty, code);
        Ok(code)
    }
}
