//! A page policy that is written in Python, against the same trait as those in Rust.
//!
//! Each call takes Python's lock for itself. An exception, or an impossible answer, ends the run: the exception is kept for
//! the caller.

use crate::errors::wrong;
use crate::frames::{Fault, Frames};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{Arc, Mutex};
use varve_access::{Daemons, Source};
use varve_pages::{Frames as Real, Policy, Remap, Topology};

/// The exception of a policy in Python, if there was one.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Methods that Python calls are made of, and which of them the object has of its own.
const METHODS: [&str; 6] = ["freed", "sample", "traffic", TICK, "moved", "cancelled"];
const TICK: &str = "tick";

/// See the module.
pub struct Scripted {
    object: Py<PyAny>,
    frames: Py<Frames>,
    daemons: Daemons,
    /// Which of [`METHODS`] the object's class has: the others are not called at all.
    has: [bool; METHODS.len()],
    /// Frames that hold a page.
    holds: Vec<bool>,
    raised: Raised,
}

impl Scripted {
    /// The policy of `object` for the scaled machine. Its periods are those at full size.
    pub fn new(
        py: Python<'_>,
        object: &Py<PyAny>,
        topology: &Topology,
        scale: u32,
        raised: &Raised,
    ) -> PyResult<Scripted> {
        let bound = object.bind(py);
        let daemons = daemons(bound, scale)?;
        let base = py.import("varve._policy")?.getattr("Policy")?;
        let mut has = [false; METHODS.len()];
        for (has, name) in has.iter_mut().zip(METHODS) {
            // What the base class has does nothing.
            let own = bound.get_type().getattr(name);
            *has = own.is_ok_and(|own| base.getattr(name).is_ok_and(|b| !own.is(&b)));
        }
        let frames = Py::new(py, Frames::new(topology))?;
        bound.call_method1("begin", (&frames,))?;
        Ok(Scripted {
            object: object.clone_ref(py),
            frames,
            daemons,
            has,
            holds: vec![false; topology.frames() as usize],
            raised: raised.clone(),
        })
    }

    /// Calls a method with the frames and some numbers.
    fn call<T>(
        &mut self,
        frames: &mut Real,
        name: &str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
        read: impl FnOnce(&mut Scripted, Python<'_>, &Real, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        Python::attach(|py| {
            let lent = self.frames.clone_ref(py);
            let said = lent.get().during(frames, || {
                let mut all = vec![lent.clone_ref(py).into_any()];
                all.extend(arguments(py)?);
                let said = self
                    .object
                    .bind(py)
                    .call_method1(name, PyTuple::new(py, all)?)?;
                // A generator runs while it is read, and uses the frames.
                match name == TICK && !said.is_none() {
                    true => py.get_type::<PyList>().call1((said,)),
                    false => Ok(said),
                }
            });
            let read = said.and_then(|said| read(self, py, frames, &said));
            read.map_err(|e| self.raise(e)).ok()
        })
    }

    fn tell(&mut self, frames: &mut Real, method: usize, numbers: &[u32]) {
        if self.has[method] {
            let numbers = numbers.to_vec();
            let object = |py: Python<'_>, n: u32| Ok(n.into_pyobject(py)?.into_any().unbind());
            let arguments = |py: Python<'_>| numbers.iter().map(|&n| object(py, n)).collect();
            self.call(frames, METHODS[method], arguments, |_, _, _, _| Ok(()));
        }
    }

    fn is_over(&self) -> bool {
        let raised = self.raised.lock().unwrap_or_else(|e| e.into_inner());
        raised.is_some()
    }

    fn raise(&self, e: PyErr) {
        let mut raised = self.raised.lock().unwrap_or_else(|e| e.into_inner());
        raised.get_or_insert(e);
    }

    fn holds(&self, frame: u32) -> bool {
        self.holds.get(frame as usize).copied().unwrap_or(false)
    }

    /// Pages to move, if they can be: each from a frame that holds one, to one that was taken for it or that a page leaves before.
    fn remaps(&self, py: Python<'_>, frames: &Real, pairs: &[(u32, u32)]) -> PyResult<Vec<Remap>> {
        let mut all: Vec<Remap> = Vec::new();
        for &(from, to) in pairs {
            let left = all.iter().any(|r| r.from == to);
            let why = match () {
                () if !self.holds(from) => "no page is in the first",
                () if all.iter().any(|r| r.from == from) => "the first is moved twice",
                () if all.iter().any(|r| r.to == to) => "the second gets two pages",
                () if from == to => "they are the same",
                () if self.holds(to) && !left => {
                    "the second holds a page that does not leave before"
                }
                () if !frames.is_used(to) => "the second was not taken before",
                () => {
                    all.push(Remap { from, to });
                    continue;
                }
            };
            return Err(wrong(py, format!("tick: frames {from} -> {to}: {why}")));
        }
        Ok(all)
    }
}

/// The daemons beside the program, at the scale of the machine.
fn daemons(object: &Bound<'_, PyAny>, scale: u32) -> PyResult<Daemons> {
    let of = |name: &str| object.getattr(name)?.extract::<u64>();
    let scaled = |n: u64| match n {
        0 => 0,
        n => (n / u64::from(scale)).max(1),
    };
    Ok(Daemons {
        threads: of("threads")?.min(u64::from(u32::MAX)) as u32,
        period: scaled(of("period_ns")?),
        sample_period: scaled(of("sample_period")?),
    })
}

impl Policy for Scripted {
    fn place(&mut self, frames: &mut Real, fault: &varve_access::Fault) -> Option<u32> {
        let fault = Fault::of(fault);
        let arguments = |py: Python<'_>| Ok(vec![Py::new(py, fault)?.into_any()]);
        self.call(frames, "place", arguments, |this, py, frames, said| {
            let Some(frame) = said.extract::<Option<u32>>()? else {
                return Ok(None);
            };
            if !frames.is_used(frame) || this.holds(frame) {
                let line = format!(
                    "place: frame {frame} was not taken for this page: return what frames.take_from(node) gives, or None"
                );
                return Err(wrong(py, line));
            }
            this.holds[frame as usize] = true;
            Ok(Some(frame))
        })
        .flatten()
    }

    fn freed(&mut self, frames: &mut Real, frame: u32) {
        self.tell(frames, 0, &[frame]);
        if let Some(holds) = self.holds.get_mut(frame as usize) {
            *holds = false;
        }
    }

    fn daemons(&self) -> Daemons {
        self.daemons
    }

    fn sample(&mut self, frames: &mut Real, frame: u32, source: Source) {
        if !self.has[1] {
            return;
        }
        let source = match source {
            Source::Fast => "fast",
            Source::Slow => "slow",
            Source::Store => "store",
        };
        let arguments = |py: Python<'_>| {
            let frame = frame.into_pyobject(py)?.into_any().unbind();
            Ok(vec![frame, source.into_pyobject(py)?.into_any().unbind()])
        };
        self.call(frames, METHODS[1], arguments, |_, _, _, _| Ok(()));
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        if !self.has[2] || self.is_over() {
            return;
        }
        Python::attach(|py| {
            let said = self.object.bind(py).call_method1(METHODS[2], (now, bytes));
            said.map(drop).map_err(|e| self.raise(e)).ok();
        });
    }

    fn tick(&mut self, frames: &mut Real, remaps: &mut Vec<Remap>) {
        if !self.has[3] {
            return;
        }
        let nothing = |_: Python<'_>| Ok(Vec::new());
        let wanted = self.call(frames, METHODS[3], nothing, |this, py, frames, said| {
            if said.is_none() {
                return Ok(Vec::new());
            }
            let pairs: Vec<(u32, u32)> = said
                .try_iter()?
                .map(|p| p?.extract())
                .collect::<PyResult<_>>()?;
            this.remaps(py, frames, &pairs)
        });
        remaps.extend(wanted.unwrap_or_default());
    }

    fn moved(&mut self, frames: &mut Real, done: Remap) {
        self.holds[done.from as usize] = false;
        self.holds[done.to as usize] = true;
        self.tell(frames, 4, &[done.from, done.to]);
    }

    fn cancelled(&mut self, frames: &mut Real, remap: Remap) {
        self.tell(frames, 5, &[remap.from, remap.to]);
    }
}
