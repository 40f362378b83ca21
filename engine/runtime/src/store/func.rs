//! A store's data about its functions.

use super::Vm;
use super::region::Place;
use crate::error::Result;
use crate::types::{FuncType, TypeIndex, ValType};
use std::sync::Arc;

/// A function of the host: gets its arguments in an array, where it puts its results.
pub type HostFunction = Arc<dyn Fn(*mut Vm, &mut [u64]) -> Result<()> + Send + Sync>;

pub(crate) enum FuncKind {
    /// Function `index` of an instance.
    Wasm { instance: u32, index: u32 },
    /// A function of the host; some are as good as an instruction.
    Host(HostFunction, Option<Inline>),
}

pub(crate) struct FuncData {
    pub place: Place,
    pub ty: TypeIndex,
    pub kind: FuncKind,
}

/// A function of the host that computes a number from numbers and does nothing else, so that compiled code has it inline or
/// calls it as it is.
#[derive(Clone, Copy, Debug)]
pub enum Leaf {
    /// The square root of an `f64`.
    Sqrt,
    /// The absolute value of an `f64`.
    Abs,
    /// An `f64` rounded down.
    Floor,
    /// An `f64` rounded up.
    Ceil,
    /// A function of one `f64`.
    Unary(extern "C" fn(f64) -> f64),
    /// A function of two.
    Binary(extern "C" fn(f64, f64) -> f64),
}

/// A function of the host that compiled code need not call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inline {
    Leaf(Leaf),
    /// The programmer's mark at an allocation site: see `compile/hints.rs`.
    Mark,
}

impl Leaf {
    pub(crate) fn ty(self) -> FuncType {
        let params = if let Leaf::Binary(_) = self { 2 } else { 1 };
        FuncType::new(vec![ValType::F64; params], [ValType::F64])
    }

    /// The same for callers that are not compiled code of the same store.
    pub(crate) fn host(self) -> HostFunction {
        Arc::new(move |_, values| {
            let x = f64::from_bits(values[0]);
            let result = match self {
                Leaf::Sqrt => x.sqrt(),
                Leaf::Abs => x.abs(),
                Leaf::Floor => x.floor(),
                Leaf::Ceil => x.ceil(),
                Leaf::Unary(f) => f(x),
                Leaf::Binary(f) => f(x, f64::from_bits(values[1])),
            };
            values[0] = result.to_bits();
            Ok(())
        })
    }
}
