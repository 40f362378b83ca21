//! Helpers that compiled code calls.
//!
//! Each helper is an `extern "C"` function whose first parameter is the store's [`Vm`]. It does its work in a function that
//! returns a `Result`, and leaves compiled code for good when that is an error: nothing is left to drop on its own frame then.

mod arrays;
mod bulk;
mod calls;
mod durable;
pub(crate) mod traps;

use crate::arch;
use crate::code::memory::CodeMemory;
use crate::error::Result;
use crate::store::Vm;
use cranelift_codegen::ir::{Type, types};

macro_rules! helpers {
    ($($name:ident = $function:path, [$($param:ident),*] $(-> $result:ident)?;)*) => {
        /// The helpers by number.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub(crate) enum Helper {
            $($name,)*
        }

        impl Helper {
            /// Types of the parameters after the first, and of the result.
            pub fn signature(self) -> (&'static [Type], Option<Type>) {
                match self {
                    $(Helper::$name => (&[$(types::$param),*], helpers!(@result $($result)?)),)*
                }
            }
        }

        const ADDRESSES: &[fn() -> *const u8] = &[$(|| $function as *const u8,)*];
    };
    (@result) => { None };
    (@result $result:ident) => { Some(types::$result) };
}

helpers! {
    AllocStruct = arrays::alloc_struct, [I32, I32] -> I32;
    AllocArray = arrays::alloc_array, [I32, I32, I32] -> I32;
    IsSubtype = arrays::is_subtype, [I32, I32] -> I32;
    ArrayFill = arrays::fill, [I32, I32, I64, I32];
    ArrayFillVector = arrays::fill_vector, [I32, I32, I64, I64, I32];
    ArrayCopy = arrays::copy, [I32, I32, I32, I32, I32];
    ArrayNewData = arrays::new_data, [I64, I32, I32, I32, I32] -> I32;
    ArrayNewElem = arrays::new_elem, [I64, I32, I32, I32, I32] -> I32;
    ArrayInitData = arrays::init_data, [I32, I32, I32, I32, I32, I32];
    ArrayInitElem = arrays::init_elem, [I32, I32, I32, I32, I32, I32];
    MemoryGrow = bulk::memory_grow, [I32, I64] -> I64;
    MemoryFill = bulk::memory_fill, [I32, I64, I32, I64];
    MemoryCopy = bulk::memory_copy, [I32, I32, I64, I64, I64];
    MemoryInit = bulk::memory_init, [I32, I32, I32, I64, I32, I32];
    DataDrop = bulk::data_drop, [I32, I32];
    TableGrow = bulk::table_grow, [I32, I32, I64] -> I64;
    TableFill = bulk::table_fill, [I32, I64, I32, I64];
    TableCopy = bulk::table_copy, [I32, I32, I64, I64, I64];
    TableInit = bulk::table_init, [I32, I32, I32, I64, I32, I32];
    ElemDrop = bulk::elem_drop, [I32, I32];
    Throw = calls::throw, [I32];
    ThrowNew = calls::throw_new, [I32, I32, I32, I32];
    HostCall = calls::host_call, [I32, I64];
    Hot = calls::hot, [I32];
    Resume = calls::resume, [I32, I32, I32] -> I64;
    Tell = calls::tell, [];
    Mark = arrays::mark, [I32];
    Log = arrays::log, [I32];
    LogElement = arrays::log_element, [I32, I64];
    StoreDurable = durable::store, [I32, I64, I64, I32];
    ConstantMade = durable::constant_made, [I32];
    CanonicalSet = durable::canonical_set, [I32];
    AllocClassData = durable::alloc_class_data, [I32] -> I32;
}

impl Helper {
    /// Whether objects may have moved when it returns.
    pub fn may_collect(self) -> bool {
        use Helper::*;
        !matches!(
            self,
            IsSubtype
                | ArrayFill
                | ArrayFillVector
                | ArrayCopy
                | Hot
                | Resume
                | Tell
                | Mark
                | Log
                | LogElement
                | StoreDurable
                | ConstantMade
                | CanonicalSet
                | AllocClassData
        )
    }

    /// Whether it may throw an exception that its caller catches, as allocating helpers do when the heap is full: it is called as functions of the
    /// program are then, with no more than six parameters.
    pub fn may_throw(self) -> bool {
        use Helper::*;
        matches!(self, AllocStruct | AllocArray | ArrayNewData | ArrayNewElem)
    }

    /// Whether the result is a reference.
    pub fn gives_reference(self) -> bool {
        use Helper::*;
        matches!(
            self,
            AllocStruct | AllocArray | ArrayNewData | ArrayNewElem | AllocClassData
        )
    }

    /// Whether elements of arrays are others when it returns.
    pub fn stores_elements(self) -> bool {
        use Helper::*;
        matches!(
            self,
            ArrayFill | ArrayFillVector | ArrayCopy | ArrayInitData | ArrayInitElem
        )
    }
}

/// Ways out of compiled code to all helpers, by their numbers.
pub(crate) fn exits(memory: &mut CodeMemory) -> Result<Vec<*const u8>> {
    ADDRESSES
        .iter()
        .map(|address| arch::exit(memory, address()))
        .collect()
}

/// The function that compiles on the first call.
pub(crate) fn compile_address() -> *const u8 {
    calls::compile as *const u8
}

/// Runs a helper's work; leaves compiled code if it fails.
///
/// # Safety
/// `vm` is the store whose compiled code called the helper, and no other code uses it during `work`.
unsafe fn run<R>(vm: *mut Vm, work: impl FnOnce(&mut Vm) -> Result<R>) -> R {
    // SAFETY: as this function.
    let result = work(unsafe { &mut *vm });
    match result {
        Ok(r) => r,
        // SAFETY: compiled code has called out, so that there is an activation to leave; the error has been moved.
        Err(e) => unsafe { traps::raise(vm, e) },
    }
}
