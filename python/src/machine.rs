//! Machines as Python objects.

use crate::errors::wrong;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use varve_machine::{NodeKind, load};

/// A modelled machine: a name from `varve machine list`, a file, or `here`.
#[pyclass(frozen, module = "varve")]
pub struct Machine {
    pub machine: varve_machine::Machine,
}

/// A number or a text as a machine's file has it.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.str()?.to_string())
}

/// A memory node.
#[pyclass(frozen, get_all, module = "varve")]
pub struct Node {
    kind: &'static str,
    bytes: u64,
    socket: u32,
    cached: bool,
}

impl Node {
    fn of(n: varve_machine::NumaNode) -> Node {
        let kind = match n.kind {
            NodeKind::Dram => "dram",
            NodeKind::Pm => "pm",
            NodeKind::Cxl => "cxl",
        };
        Node {
            kind,
            bytes: n.bytes.0,
            socket: n.socket,
            cached: n.cached,
        }
    }
}

#[pymethods]
impl Node {
    fn __repr__(&self) -> String {
        let (kind, bytes, socket) = (self.kind, self.bytes, self.socket);
        format!("<varve.Node {kind}: {bytes} bytes, socket {socket}>")
    }
}

/// `key=value` for each entry, in the order of a machine's name with changes.
fn changes(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let entries = set.iter().flat_map(|set| set.iter());
    entries
        .map(|(key, value)| Ok(format!("{}={}", shown(&key)?, shown(&value)?)))
        .collect()
}

#[pymethods]
impl Machine {
    #[new]
    #[pyo3(signature = (name, set=None))]
    fn new(py: Python<'_>, name: &str, set: Option<&Bound<'_, PyDict>>) -> PyResult<Machine> {
        let name = load::changed(name, &changes(set)?);
        let machine = py.detach(|| varve_tier::machine(&name));
        let machine = machine.map_err(|e| wrong(py, e))?;
        Ok(Machine { machine })
    }

    /// A machine from the text of its file.
    #[staticmethod]
    #[pyo3(signature = (text, name="machine.toml"))]
    fn from_toml(py: Python<'_>, text: &str, name: &str) -> PyResult<Machine> {
        let machine = varve_machine::Machine::parse(text, name).map_err(|e| wrong(py, e))?;
        Ok(Machine { machine })
    }

    /// The same with other values for some of its keys.
    fn with_set(&self, py: Python<'_>, set: &Bound<'_, PyDict>) -> PyResult<Machine> {
        let changes = changes(Some(set))?;
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let machine = self
            .machine
            .clone()
            .with(&changes)
            .map_err(|e| wrong(py, e))?;
        Ok(Machine { machine })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.machine.name
    }

    #[getter]
    fn about(&self) -> String {
        self.machine.about.clone()
    }

    #[getter]
    fn threads(&self) -> u32 {
        self.machine.hardware_threads()
    }

    /// DRAM of all sockets, whether programs see it or it is a cache.
    #[getter]
    fn dram_bytes(&self) -> u64 {
        self.machine.dram_bytes() * u64::from(self.machine.sockets)
    }

    /// Slow memory of all sockets.
    #[getter]
    fn slow_bytes(&self) -> u64 {
        self.machine.slow_bytes() * u64::from(self.machine.sockets)
    }

    /// Its memory nodes, in order.
    #[getter]
    fn nodes(&self) -> Vec<Node> {
        self.machine.nodes().into_iter().map(Node::of).collect()
    }

    /// Latency of a read from idle memory of a kind, ns; `None` where the machine has none of it.
    fn idle_read_ns(&self, py: Python<'_>, kind: &str) -> PyResult<Option<f64>> {
        let kind = match kind {
            "dram" => NodeKind::Dram,
            "pm" => NodeKind::Pm,
            "cxl" => NodeKind::Cxl,
            other => {
                return Err(wrong(
                    py,
                    format!("`{other}` is no kind of memory: dram, pm or cxl"),
                ));
            }
        };
        let there = self.machine.nodes().iter().any(|n| n.kind == kind);
        Ok(there.then(|| self.machine.idle_read_ns(kind)))
    }

    /// The text of its file.
    fn to_toml(&self) -> String {
        self.machine.to_toml()
    }

    fn __repr__(&self) -> String {
        format!("<varve.Machine {}>", self.machine.name)
    }
}

/// The machines that there are by name.
#[pyfunction]
pub fn machines() -> Vec<String> {
    load::names(&[])
}
