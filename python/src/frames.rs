//! The objects that a page policy in Python gets: the frames of the scaled machine, and the first touch of a page.

use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use std::sync::Mutex;
use varve_pages::{NodeFrames, Topology};

/// The frames that a policy works on. They are there while one of its methods runs, and no longer: in between the run has them.
#[pyclass(frozen, module = "varve")]
pub struct Frames {
    /// The run's frames, lent for a call.
    lent: Mutex<Option<varve_pages::Frames>>,
    page_bytes: u64,
    nodes: Vec<NodeFrames>,
}

impl Frames {
    pub fn new(topology: &Topology) -> Frames {
        Frames {
            lent: Mutex::new(None),
            page_bytes: topology.page_bytes,
            nodes: topology.nodes.clone(),
        }
    }

    /// Lends `frames` to Python for a call.
    pub fn during<T>(&self, frames: &mut varve_pages::Frames, call: impl FnOnce() -> T) -> T {
        let nothing = Topology {
            page_bytes: self.page_bytes,
            nodes: Vec::new(),
        };
        let own = std::mem::replace(frames, varve_pages::Frames::in_order(&nothing));
        self.put(Some(own));
        let done = call();
        if let Some(back) = self.put(None) {
            *frames = back;
        }
        done
    }

    fn put(&self, what: Option<varve_pages::Frames>) -> Option<varve_pages::Frames> {
        let mut lent = self.lent.lock().unwrap_or_else(|e| e.into_inner());
        std::mem::replace(&mut *lent, what)
    }

    fn with<T>(&self, use_them: impl FnOnce(&mut varve_pages::Frames) -> T) -> PyResult<T> {
        let mut lent = self.lent.lock().unwrap_or_else(|e| e.into_inner());
        lent.as_mut().map(use_them).ok_or_else(|| {
            PyRuntimeError::new_err("frames can be used only while a method of the policy runs")
        })
    }

    fn known(&self, node: usize) -> PyResult<usize> {
        match node < self.nodes.len() {
            true => Ok(node),
            false => Err(PyIndexError::new_err(format!(
                "there is no node {node}: there are {}",
                self.nodes.len()
            ))),
        }
    }
}

#[pymethods]
impl Frames {
    /// Bytes of a page on the scaled machine.
    #[getter]
    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// How many nodes there are.
    #[getter]
    fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn __len__(&self) -> usize {
        self.nodes.iter().map(|n| n.frames as usize).sum()
    }

    /// Frames of a node.
    fn size(&self, node: usize) -> PyResult<u32> {
        Ok(self.nodes[self.known(node)?].frames)
    }

    /// The first frame of a node.
    fn first(&self, node: usize) -> PyResult<u32> {
        let node = self.known(node)?;
        Ok(self.nodes[..node].iter().map(|n| n.frames).sum())
    }

    /// Is a node fast memory?
    fn is_fast_node(&self, node: usize) -> PyResult<bool> {
        Ok(self.nodes[self.known(node)?].fast)
    }

    /// The socket that a node belongs to.
    fn socket(&self, node: usize) -> PyResult<u32> {
        Ok(self.nodes[self.known(node)?].socket)
    }

    /// Free frames of a node.
    fn free(&self, node: usize) -> PyResult<u32> {
        let node = self.known(node)?;
        self.with(|frames| frames.free(node))
    }

    /// The node of a frame; `None` if there is no such frame.
    fn node_of(&self, frame: u32) -> PyResult<Option<usize>> {
        self.with(|frames| frames.node_of(frame))
    }

    /// Is a frame in fast memory?
    fn is_fast(&self, frame: u32) -> PyResult<bool> {
        self.with(|frames| frames.is_fast(frame))
    }

    /// Is a frame taken?
    fn is_used(&self, frame: u32) -> PyResult<bool> {
        self.with(|frames| frames.is_used(frame))
    }

    /// Takes any frame of a node; `None` if it has none left.
    fn take_from(&self, node: usize) -> PyResult<Option<u32>> {
        let node = self.known(node)?;
        self.with(|frames| frames.take_from(node))
    }

    /// Takes this frame; `False` if it is taken.
    fn take(&self, frame: u32) -> PyResult<bool> {
        self.with(|frames| frames.take(frame))
    }
}

/// The first touch of a page.
#[pyclass(frozen, get_all, module = "varve")]
pub struct Fault {
    /// The page: its address divided by the bytes of a page.
    page: u64,
    /// The thread that touched it.
    thread: u32,
    /// The socket that this thread runs on.
    socket: u32,
    /// Was it a store?
    write: bool,
    /// The thread's time, ns on the scaled machine.
    now: u64,
}

impl Fault {
    pub fn of(fault: &varve_access::Fault) -> Fault {
        Fault {
            page: fault.vpn,
            thread: fault.thread,
            socket: fault.socket,
            write: fault.write,
            now: fault.now,
        }
    }
}
