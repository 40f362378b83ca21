//! Programs that touch their memory and then do one kind of step again and again, each thread for itself, until a limit.

use varve_access::{Op, Program, Region};

use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::limit::Limit;
use varve_spec::{Error, Values};

/// The steps of such a program.
pub trait SteadyKernel: Send {
    /// Name of the program.
    const NAME: &'static str;

    /// The parameter that limits the steps of a thread, and the name of the steps in answers.
    const STEPS: &'static str;

    /// Threads that touch the memory at first.
    const TOUCHED: By = By::First;

    /// Does the kernel touch it then, as it zeroes a mapping for the program?
    const BY_KERNEL: bool = false;

    /// Ops that a step takes at most.
    fn ops(&self) -> u64 {
        1
    }

    /// Does some steps of `thread`, which has worked for `elapsed` nanoseconds, and appends their ops.
    fn advance(&mut self, thread: usize, elapsed: u64, steps: u64, out: &mut Vec<Op>);

    /// Results, with the steps that were done.
    fn answers(&self, limit: &Limit) -> Vec<(String, String)> {
        vec![(Self::STEPS.into(), limit.total().to_string())]
    }
}

/// The running program.
pub struct Steady<K> {
    /// Its steps.
    pub kernel: K,
    layout: Layout,
    init: FirstTouch,
    limit: Limit,
}

impl<K: SteadyKernel> Steady<K> {
    /// A program whose memory is `layout`, of which `arrays` are touched at first.
    ///
    /// # Errors
    /// No limit.
    pub fn new(
        values: &Values,
        layout: Layout,
        arrays: &[Array],
        kernel: K,
    ) -> Result<Steady<K>, Error> {
        let threads = values.count("threads") as usize;
        let touched = FirstTouch::ranges(arrays);
        let init = FirstTouch::new(touched, values.count("touch"), K::TOUCHED, threads);
        Ok(Steady {
            kernel,
            layout,
            init: match K::BY_KERNEL {
                true => init.by_kernel(),
                false => init,
            },
            limit: Limit::new(values, K::STEPS, threads)?,
        })
    }
}

impl<K: SteadyKernel> Program for Steady<K> {
    fn name(&self) -> String {
        K::NAME.into()
    }

    fn threads(&self) -> usize {
        self.limit.threads()
    }

    fn regions(&self) -> Vec<Region> {
        self.layout.regions().to_vec()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        if self.init.fill(thread, out) {
            return true;
        }
        let room = (out.capacity() - out.len()) as u64 / self.kernel.ops();
        let steps = self.limit.allow(thread, now, room.max(1));
        let elapsed = self.limit.elapsed(thread, now);
        self.kernel.advance(thread, elapsed, steps, out);
        steps > 0
    }

    fn answers(&self) -> Vec<(String, String)> {
        self.kernel.answers(&self.limit)
    }
}
