//! The state of a store besides the host's data.

use super::durable::Durable;
use super::func::{FuncData, FuncKind, HostFunction, Inline};
use super::heap::{self, Heap, Watched};
use super::host_values::HostValues;
use super::instance::InstanceData;
use super::interrupt::Limit;
use super::intervals::Reports;
use super::linear::{LinearMemory, TableData};
use super::observe::Recording;
use super::region::*;
use super::root::Roots;
use super::sampler::Sampling;
use super::sites::Sites;
use super::stack::Stack;
use super::tier::Tiers;
use crate::arch::{self, varve_enter};
use crate::code::map::CodeMap;
use crate::code::memory::CodeMemory;
use crate::code::{signals, walk};
use crate::compile::isa::Level;
use crate::compile::{Scratch, glue};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::helpers;
use crate::module::GlobalType;
use crate::types::{FuncType, HOST_TYPE, Kind, TypeIndex, ValType};
use cranelift_codegen::isa::OwnedTargetIsa;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use varve_heap::{ObjectAlign, Sampler, layout};

pub(crate) struct GlobalData {
    pub place: Place,
    pub ty: GlobalType,
}

/// Code, and the compiler's state between functions.
pub(crate) struct Code {
    pub memory: CodeMemory,
    pub map: CodeMap,
    /// The baseline's code generator, which makes glue too.
    pub isa: OwnedTargetIsa,
    pub scratch: Scratch,
    pub helpers: Vec<*const u8>,
    lazy: *const u8,
    pub trampolines: HashMap<TypeIndex, *const u8>,
    pub tiers: Tiers,
}

/// Memories and tables come before the heap, in whose reservation their records lie: they are dropped first.
pub struct Vm {
    pub(crate) engine: Engine,
    pub(crate) id: u64,
    pub(crate) memories: Vec<LinearMemory>,
    pub(crate) tables: Vec<TableData>,
    pub(crate) context: *mut Context,
    pub(crate) region: Region,
    /// Where others stop the program; before the heap, as the context is in its reservation.
    pub(crate) limit: Limit,
    /// The sampler, if the heap's plan uses one. Before the heap: it reads the region.
    pub(crate) sampling: Option<Sampling>,
    /// The durable region; before the heap, in whose reservation it is mapped.
    pub(crate) durable: Option<Box<Durable>>,
    /// The end of the nursery, while allocation is stopped for a step of a durable collection.
    pub(crate) stopped: Option<u64>,
    /// Counts of persistence checks in optimized code, if they are counted.
    pub(crate) check_counters: Option<Place>,
    /// Taken while it collects, when the rest of the store is its roots.
    pub(crate) heap: Option<Box<Heap>>,
    pub(crate) heap_base: usize,
    /// The alignment of the heap's objects.
    pub(crate) align: ObjectAlign,
    /// The recording of accesses of the program and its collector.
    pub(crate) recording: Option<Arc<Recording>>,
    /// How far from an object its counters are, if accesses are counted.
    pub(crate) counters: Option<i64>,
    pub(crate) stack: Stack,
    pub(crate) code: Code,
    pub(crate) funcs: Vec<FuncData>,
    pub(crate) globals: Vec<GlobalData>,
    /// Function types of the tags.
    pub(crate) tags: Vec<TypeIndex>,
    pub(crate) instances: Vec<InstanceData>,
    pub(crate) roots: Roots,
    /// How often objects may have moved.
    pub(crate) collected: u64,
    pub(crate) sites: Sites,
    pub(crate) intervals: Reports,
    /// Values of the host by the handles in their objects.
    pub(crate) host_values: HostValues,
    /// Why compiled code is being left.
    pub(crate) pending: Option<Error>,
    /// A function of the program makes an exception because there is no room.
    pub(crate) throwing: bool,
    /// A panic of a host function on its way to the host.
    pub(crate) panic: Option<Box<dyn Any + Send>>,
    /// The source lines of instructions: see [`Store::source_lines`](super::Store::source_lines).
    pub(crate) lines: Option<Box<Lines>>,
    /// Types whose rows are written.
    known_types: usize,
}

/// File and line of the source, by the offset in the module.
pub(crate) type Lines = dyn Fn(u64) -> Option<String> + Send;

// SAFETY: the pointers in a store point into memory that the store owns; host functions and values are Send.
unsafe impl Send for Vm {}

impl Vm {
    pub(crate) fn new(engine: &Engine, watched: Watched) -> Result<Vm> {
        let isa = engine.isa(Level::Baseline)?;
        let recording = watched.recording().cloned();
        let mut heap = heap::new(engine.config(), watched)?;
        let heap_base = heap.base_address() as usize;
        let align = engine.config().object_align;
        if let Some(recording) = &recording {
            recording.set_heap(heap_base as u64, align);
        }
        let counters = heap.profiled().map(|heap| {
            let recorder = heap.observer();
            recorder.counter_distance(heap.base_address())
        });
        // SAFETY: the heap reserved REGION bytes before its base, for this.
        let mut region = unsafe { Region::new((heap_base - REGION) as *mut u8) }?;
        let durable = match &engine.config().durable {
            // SAFETY: the heap leaves that range to its owner, and outlives what is mapped there: see the order of fields.
            Some(file) => Some(Box::new(unsafe {
                Durable::open(file, heap_base, align, recording.as_ref())
            }?)),
            None => None,
        };
        let counted = engine.config().count_checks && engine.checks().is_some();
        let check_counters = match counted {
            true => Some(region.allocate(super::durable::CHECK_COUNTERS)?),
            false => None,
        };
        let stack = Stack::new(engine.config().stack)?;
        let mut memory = CodeMemory::new(engine.config().perf_map.is_some())?;
        let helpers = helpers::exits(&mut memory)?;
        let lazy = arch::lazy(&mut memory, helpers::compile_address())?;
        static IDS: AtomicU64 = AtomicU64::new(1);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let context = region.context();
        // SAFETY: the region maps the context's page; no other code has its address.
        unsafe {
            context.write(Context {
                vm: std::ptr::null_mut(),
                stack_limit: stack.limit(),
                entry: 0,
                exit_fp: 0,
                exit_sp: 0,
                fault_pc: 0,
                fault_fp: 0,
                fault_address: 0,
                heap_base,
                durable: 0,
                mutator: heap.attach(),
                looked: 0,
                padding: [0; 6],
                running: 0,
            });
        }
        if let Some(failure) = heap.failure() {
            return Err(Error::System(failure));
        }
        signals::install();
        let code = Code {
            memory,
            map: CodeMap::default(),
            isa,
            scratch: Scratch::default(),
            helpers,
            lazy,
            trampolines: HashMap::new(),
            tiers: Tiers::default(),
        };
        let warmth = heap.plan().sampler().and_then(Sampler::stacks).cloned();
        // SAFETY: the context is in the heap's reservation, and the store drops what samples before the heap.
        let sampling =
            warmth.map(|warmth| unsafe { Sampling::new(warmth, context, recording.as_ref()) });
        let mut vm = Vm {
            sampling,
            engine: engine.clone(),
            id,
            memories: vec![],
            tables: vec![],
            context,
            region,
            // SAFETY: the context is in the heap's reservation, which is dropped after this.
            limit: unsafe { Limit::new(context) },
            durable,
            check_counters,
            stopped: None,
            heap: Some(heap),
            recording,
            counters,
            heap_base,
            align,
            stack,
            code,
            funcs: vec![],
            globals: vec![],
            tags: vec![],
            instances: vec![],
            roots: Roots::new(id),
            collected: 0,
            sites: Sites::default(),
            intervals: Reports::default(),
            host_values: HostValues::default(),
            pending: None,
            throwing: false,
            panic: None,
            lines: None,
            known_types: 0,
        };
        vm.learn_types()?;
        Ok(vm)
    }

    /// Tells compiled code where the store is.
    pub(crate) fn set_address(&mut self, address: *mut Vm) {
        // SAFETY: the context lives as long as the store.
        unsafe { (*self.context).vm = address };
    }

    /// Writes rows of the types that the engine has got since, and registers them with the heap.
    pub(crate) fn learn_types(&mut self) -> Result<()> {
        let types = self.engine.types();
        if types.len() > MAX_TYPES {
            return Err(Error::usage(format!(
                "more than {MAX_TYPES} types in one engine"
            )));
        }
        for index in self.known_types..types.len() {
            let t = types.get(index as TypeIndex);
            let kind = match t.ty.kind() {
                _ if t.opaque => row_kind::OPAQUE,
                Kind::Func => row_kind::FUNC,
                Kind::Struct => row_kind::STRUCT,
                Kind::Array => row_kind::ARRAY,
            };
            self.region.write_type_row(index, kind, &t.display);
            let heap = self.heap.as_deref_mut().expect("no collection adds types");
            heap::add_type(heap, index as TypeIndex, t)?;
        }
        self.known_types = types.len();
        Ok(())
    }

    // ---- functions --------------------------------------------------------------------------------------------------------------

    pub(crate) fn write_record(&mut self, place: Place, code: *const u8, ty: TypeIndex, id: u32) {
        // SAFETY: `place` was allocated for a record.
        unsafe {
            self.region
                .address::<FuncRecord>(place)
                .write(FuncRecord { code, ty, id })
        };
    }

    /// The records of an instance's functions; they compile on their first calls.
    pub(crate) fn add_functions(
        &mut self,
        instance: u32,
        first: u32,
        types: &[TypeIndex],
    ) -> Result<Vec<Place>> {
        let base = self
            .region
            .allocate(std::mem::size_of::<FuncRecord>() * types.len())?;
        let ids = self.funcs.len() as u32..(self.funcs.len() + types.len()) as u32;
        let entries = arch::lazy_entries(&mut self.code.memory, self.code.lazy, ids.clone())?;
        let mut places = Vec::with_capacity(types.len());
        for (i, id) in ids.enumerate() {
            let place = base + (i * std::mem::size_of::<FuncRecord>()) as Place;
            let ty = types[i];
            self.write_record(place, entries[i], ty, id);
            self.funcs.push(FuncData {
                place,
                ty,
                kind: FuncKind::Wasm {
                    instance,
                    index: first + i as u32,
                },
            });
            places.push(place);
        }
        Ok(places)
    }

    /// A function of the host.
    pub(crate) fn add_host_function(
        &mut self,
        ty: TypeIndex,
        call: HostFunction,
        inline: Option<Inline>,
    ) -> Result<u32> {
        let id = self.funcs.len() as u32;
        let func_type = self.engine.types().func(ty).clone();
        let c = &mut self.code;
        let info = glue::host_function(
            &*c.isa,
            &mut c.scratch,
            &mut c.memory,
            &c.helpers,
            &func_type,
            id,
        )?;
        let code = info.start as *const u8;
        c.map.add(info);
        let place = self.region.allocate(std::mem::size_of::<FuncRecord>())?;
        self.write_record(place, code, ty, id);
        self.funcs.push(FuncData {
            place,
            ty,
            kind: FuncKind::Host(call, inline),
        });
        self.learn_types()?;
        Ok(id)
    }

    /// The function whose record is at `place`.
    pub(crate) fn func_at(&self, place: Place) -> u32 {
        // SAFETY: function references are places of records.
        unsafe { (*self.region.address::<FuncRecord>(place)).id }
    }

    pub(crate) fn func_type(&self, func: u32) -> FuncType {
        self.with_func_type(func, FuncType::clone)
    }

    /// Reads a function's type.
    pub(crate) fn with_func_type<R>(&self, func: u32, look: impl FnOnce(&FuncType) -> R) -> R {
        look(self.engine.types().func(self.funcs[func as usize].ty))
    }

    /// A host function, and the number of words that its values take.
    pub(crate) fn host_function(&self, func: u32) -> (HostFunction, usize) {
        let f = &self.funcs[func as usize];
        let FuncKind::Host(call, _) = &f.kind else {
            unreachable!("glue code names its own function")
        };
        let types = self.engine.types();
        let ty = types.func(f.ty);
        (call.clone(), ty.words())
    }

    pub(crate) fn func_name(&self, func: u32) -> String {
        match &self.funcs[func as usize].kind {
            FuncKind::Wasm { instance, index } => {
                self.instances[*instance as usize].module.func_name(*index)
            }
            FuncKind::Host(..) => "of the host".into(),
        }
    }

    /// Calls a function with arguments in `values`, where the results go; it has room for both.
    ///
    /// # Safety
    /// `vm` is a store at its final address, and no code uses it during the call but through the pointers that the call passes on.
    pub(crate) unsafe fn call(vm: *mut Vm, func: u32, values: &mut [u64]) -> Result<()> {
        // SAFETY: as this function: borrows end before compiled code runs, and begin anew after.
        let (context, trampoline, code, stack, running, mark) = unsafe {
            let vm = &mut *vm;
            let f = &vm.funcs[func as usize];
            let (place, ty) = (f.place, f.ty);
            let trampoline = vm.trampoline(ty)?;
            let code = (*vm.region.address::<FuncRecord>(place)).code;
            let stack = if (*vm.context).entry == 0 {
                vm.stack.top()
            } else {
                0
            };
            let running = signals::Running {
                context: vm.context,
                code: vm.code.memory.range(),
                limit: match vm.throwing {
                    true => vm.stack.last_limit(),
                    false => vm.stack.limit(),
                },
                overflow_stack: vm.stack.overflow_start(vm.throwing),
                guard: vm.stack.guard(),
            };
            (
                vm.context,
                trampoline,
                code,
                stack,
                running,
                vm.roots.mark(),
            )
        };
        let guard = signals::running(&running);
        // SAFETY: the code and trampoline are of the function's type; the values were made by it.
        let status = unsafe { varve_enter(context, trampoline, code, values.as_mut_ptr(), stack) };
        drop(guard);
        if status == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        let vm = unsafe { &mut *vm };
        if let Some(panic) = vm.panic.take() {
            vm.pending = None;
            std::panic::resume_unwind(panic);
        }
        let error = vm
            .pending
            .take()
            .unwrap_or_else(|| Error::Internal("compiled code was left without reason".into()));
        if stack != 0 {
            // If that fails, the medium has failed, and what ended the call says so.
            let _ = vm.take_back_left_open();
        }
        match error {
            Error::Exception { tag, exception } => {
                // Its handle was made in scopes that are over: make one in the caller's.
                let raw = vm.roots.resolve(&exception)?;
                vm.roots.release(mark);
                Err(Error::Exception {
                    tag,
                    exception: vm.roots.push(raw),
                })
            }
            mut e => {
                vm.roots.release(mark);
                if let Error::Trap(trap) = &mut e {
                    vm.add_lines(&mut trap.frames);
                }
                Err(e)
            }
        }
    }

    /// Adds lines of the source to calls, where they are known.
    pub(crate) fn add_lines(&self, frames: &mut [crate::FrameInfo]) {
        let Some(lines) = &self.lines else { return };
        for frame in frames.iter_mut().filter(|f| f.line.is_none()) {
            frame.line = lines(frame.offset.into());
        }
    }

    /// The error for an uncaught exception.
    pub(crate) fn exception_error(&mut self, raw: u32) -> Error {
        let (tag, _) = self.field(raw, 0);
        Error::Exception {
            tag: tag as u32,
            exception: self.roots.push(raw),
        }
    }

    /// The instance whose code called the host function that runs.
    pub(crate) fn calling_instance(&self) -> Option<u32> {
        let mut found = None;
        // SAFETY: asked by host functions, while compiled code waits.
        unsafe {
            walk::innermost(self, &mut |frame| {
                if let Some(FuncKind::Wasm { instance, .. }) =
                    frame.info.func.map(|f| &self.funcs[f as usize].kind)
                {
                    found = Some(*instance);
                }
                found.is_none()
            })
        };
        found
    }

    // ---- objects ----------------------------------------------------------------------------------------------------------------

    /// An object that stands for a value of the host.
    pub(crate) fn new_host_object(&mut self, value: Box<dyn Any + Send>) -> Result<u32> {
        let handle = self.host_values.add(value);
        self.alloc_host(handle as u64)
    }

    /// The host's value that an object stands for.
    pub(crate) fn host_value(&mut self, raw: u32) -> Option<&mut (dyn Any + Send)> {
        if raw == 0 || raw & layout::I31_TAG != 0 || self.type_of(raw) != HOST_TYPE {
            return None;
        }
        // SAFETY: host objects hold their handle there.
        let handle = unsafe {
            self.object(raw)
                .add(layout::HOST_HANDLE as usize)
                .cast::<u64>()
                .read()
        };
        self.host_values.get_mut(handle as usize)
    }

    // ---- globals ----------------------------------------------------------------------------------------------------------------

    pub(crate) fn global_bits(&self, place: Place) -> u64 {
        // SAFETY: places of globals hold 8 bytes.
        unsafe { self.region.address::<u64>(place).read() }
    }

    /// The value of a global with a vector.
    pub(crate) fn global_vector(&self, place: Place) -> u128 {
        // SAFETY: places of such globals hold 16 bytes.
        unsafe { self.region.address::<u128>(place).read_unaligned() }
    }

    pub(crate) fn set_global_bits(&mut self, place: Place, ty: ValType, bits: u128) {
        // SAFETY: as above.
        unsafe {
            match ty {
                ValType::V128 => self.region.address::<u128>(place).write_unaligned(bits),
                _ => self.region.address::<u64>(place).write(bits as u64),
            }
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.leave_ahead();
        self.keep_code();
        // SAFETY: the context holds a mutator from the beginning; its place is still mapped, and not used any more.
        unsafe { std::ptr::drop_in_place(&raw mut (*self.context).mutator) };
    }
}
