//! The parts of the interfaces of Java virtual machines that the agent uses: JVMTI 1.2 and JNI.
//!
//! Both are tables of functions behind a pointer. Their order is part of their specifications ("JVM Tool Interface", where
//! function number n is at index n - 1, and "Java Native Interface", whose first four entries are reserved), so that
//! nothing but the indices is needed here.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use std::ffi::CString;

/// A reference to a Java object, or a class, a method, a monitor.
pub type Handle = *mut c_void;

/// A table of functions behind a pointer, as both interfaces have it.
pub type Table = *const *const *const c_void;

/// A virtual machine.
#[derive(Clone, Copy)]
pub struct Machine(pub Table);

/// JVMTI, of one agent.
#[derive(Clone, Copy)]
pub struct Jvmti(pub Table);

/// JNI, of one thread.
#[derive(Clone, Copy)]
pub struct Jni(pub Table);

/// The function at an index of a table.
///
/// # Safety
/// The table is one of the virtual machine's, and `F` the type of the function there.
unsafe fn function<F: Copy>(table: Table, index: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: promised by the caller.
    unsafe { core::mem::transmute_copy::<*const c_void, F>(&*(*table).add(index)) }
}

/// Calls a function of a table by its index, with the types of its arguments after the table's own.
macro_rules! call {
    ($table:expr, $index:expr, ($($type:ty),*) -> $result:ty, ($($argument:expr),*)) => {
        // SAFETY: index and types are those of the specification, see the function that calls.
        unsafe {
            let table = $table;
            function::<extern "C" fn(Table $(, $type)*) -> $result>(table, $index)(table $(, $argument)*)
        }
    };
}

const JVMTI_1_2: c_int = 0x3001_0200;
const JNI_1_6: c_int = 0x0001_0006;

impl Machine {
    /// JVMTI; none if the machine has none.
    pub fn jvmti(self) -> Option<Jvmti> {
        self.interface(JVMTI_1_2).map(Jvmti)
    }

    /// JNI of the thread that asks; none if the machine does not know the thread.
    pub fn jni(self) -> Option<Jni> {
        self.interface(JNI_1_6).map(Jni)
    }

    fn interface(self, version: c_int) -> Option<Table> {
        let mut table: *mut c_void = null_mut();
        // GetEnv
        let error = call!(self.0, 6, (*mut *mut c_void, c_int) -> c_int, (&mut table, version));
        (error == 0 && !table.is_null()).then_some(table.cast_const().cast())
    }
}

/// Events by their numbers.
pub const VM_INIT: c_int = 50;
pub const VM_DEATH: c_int = 51;
pub const COLLECTION_START: c_int = 81;
pub const COLLECTION_FINISH: c_int = 82;
pub const ALLOCATION_SAMPLE: c_int = 86;
/// The table of callbacks begins with that of this event.
const FIRST_EVENT: c_int = 50;
/// Entries of the table in JDK 11: the sample of an allocation is the last one.
const EVENTS: usize = 37;

/// Capabilities, by their numbers among 128 bits.
pub const SOURCE_FILES: u32 = 11;
pub const LINE_NUMBERS: u32 = 12;
pub const COLLECTIONS: u32 = 31;
pub const ALLOCATION_SAMPLES: u32 = 43;
/// Since JDK 21.
pub const VIRTUAL_THREADS: u32 = 44;

/// A frame of a stack: a method, and where in its bytecode the thread is (-1 in native code).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    pub method: Handle,
    pub location: i64,
}

/// An entry of a method's table of lines: where in its bytecode the line begins.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Line {
    pub from: i64,
    pub number: c_int,
}

/// A table of callbacks.
pub struct Callbacks([*const c_void; EVENTS]);

impl Callbacks {
    pub const fn none() -> Callbacks {
        Callbacks([core::ptr::null(); EVENTS])
    }

    pub fn set(&mut self, event: c_int, callback: *const c_void) {
        self.0[(event - FIRST_EVENT) as usize] = callback;
    }
}

/// A set of capabilities.
fn set(numbers: &[u32]) -> [u64; 2] {
    let mut set = [0; 2];
    for number in numbers {
        set[(number / 64) as usize] |= 1 << (number % 64);
    }
    set
}

impl Jvmti {
    /// Asks for capabilities. `false` if the machine does not give all of them; then it gives none.
    pub fn ask_for(self, wanted: &[u32]) -> bool {
        let capabilities = set(wanted);
        // AddCapabilities
        call!(self.0, 141, (*const u64) -> c_int, (capabilities.as_ptr())) == 0
    }

    /// Relinquishes capabilities, so that others may have them.
    pub fn give_up(self, given: &[u32]) {
        let capabilities = set(given);
        // RelinquishCapabilities
        call!(self.0, 142, (*const u64) -> c_int, (capabilities.as_ptr()));
    }

    /// Sets callbacks, and asks for their events.
    pub fn listen(self, callbacks: &Callbacks) -> bool {
        let bytes = size_of_val(&callbacks.0) as c_int;
        // SetEventCallbacks
        if call!(self.0, 121, (*const Callbacks, c_int) -> c_int, (callbacks, bytes)) != 0 {
            return false;
        }
        let asked = callbacks.0.iter().enumerate();
        let mut asked = asked.filter(|(_, callback)| !callback.is_null());
        asked.all(|(number, _)| self.notify_of(FIRST_EVENT + number as c_int, true))
    }

    /// Enables an event on all threads, or disables it. `false` if the machine refuses.
    pub fn notify_of(self, event: c_int, told: bool) -> bool {
        // SetEventNotificationMode, which is variadic
        // SAFETY: types of the specification; null is for all threads.
        unsafe {
            type Mode = unsafe extern "C" fn(Table, c_int, c_int, Handle, ...) -> c_int;
            function::<Mode>(self.0, 1)(self.0, c_int::from(told), event, null_mut()) == 0
        }
    }

    /// How many bytes a thread allocates between two samples, on average; 0: each object is one.
    pub fn sample_every(self, bytes: c_int) -> bool {
        // SetHeapSamplingInterval
        call!(self.0, 155, (c_int) -> c_int, (bytes)) == 0
    }

    /// The frames of the current thread, innermost first, at most `room.len()`. Returns their number.
    pub fn stack(self, room: &mut [Frame]) -> usize {
        let mut count: c_int = 0;
        // GetStackTrace: null is the current thread
        let error = call!(self.0, 103, (Handle, c_int, c_int, *mut Frame, *mut c_int) -> c_int,
            (null_mut(), 0, room.len() as c_int, room.as_mut_ptr(), &mut count));
        match error {
            0 => (count.max(0) as usize).min(room.len()),
            _ => 0,
        }
    }

    /// A class's name as a signature: `Ljava/lang/String;`, `[B`.
    pub fn signature(self, class: Handle) -> Option<String> {
        let mut text: *mut c_char = null_mut();
        // GetClassSignature
        let error = call!(self.0, 47, (Handle, *mut *mut c_char, *mut *mut c_char) -> c_int,
            (class, &mut text, null_mut()));
        self.taken(error, text)
    }

    /// The file that a class was compiled from, without its folder.
    pub fn source_file(self, class: Handle) -> Option<String> {
        let mut text: *mut c_char = null_mut();
        // GetSourceFileName
        let error = call!(self.0, 49, (Handle, *mut *mut c_char) -> c_int, (class, &mut text));
        self.taken(error, text)
    }

    /// A method's name.
    pub fn method_name(self, method: Handle) -> Option<String> {
        let mut text: *mut c_char = null_mut();
        // GetMethodName
        let error = call!(self.0, 63,
            (Handle, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char) -> c_int,
            (method, &mut text, null_mut(), null_mut()));
        self.taken(error, text)
    }

    /// The class that a method is declared in: a reference of this call.
    pub fn class_of(self, method: Handle) -> Option<Handle> {
        let mut class = null_mut();
        // GetMethodDeclaringClass
        let error = call!(self.0, 64, (Handle, *mut Handle) -> c_int, (method, &mut class));
        (error == 0 && !class.is_null()).then_some(class)
    }

    /// A method's table of lines; empty if it has none.
    pub fn lines(self, method: Handle) -> Vec<Line> {
        let (mut count, mut table): (c_int, *mut Line) = (0, null_mut());
        // GetLineNumberTable
        let error = call!(self.0, 69, (Handle, *mut c_int, *mut *mut Line) -> c_int,
            (method, &mut count, &mut table));
        if error != 0 || table.is_null() {
            return Vec::new();
        }
        // SAFETY: as many entries as stated, ours until they are freed.
        let lines = unsafe { core::slice::from_raw_parts(table, count.max(0) as usize) }.to_vec();
        self.give_back(table.cast());
        lines
    }

    /// A text that the machine gave, if it gave one.
    fn taken(self, error: c_int, text: *mut c_char) -> Option<String> {
        if error != 0 || text.is_null() {
            return None;
        }
        // SAFETY: the machine gives a string that ends in a zero byte, which is ours until it is freed.
        let owned = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        self.give_back(text.cast());
        Some(owned)
    }

    fn give_back(self, memory: *mut c_void) {
        // Deallocate
        call!(self.0, 46, (*mut c_void) -> c_int, (memory));
    }

    /// A monitor.
    pub fn monitor(self, name: &CStr) -> Option<Handle> {
        let mut monitor = null_mut();
        // CreateRawMonitor
        let error =
            call!(self.0, 30, (*const c_char, *mut Handle) -> c_int, (name.as_ptr(), &mut monitor));
        (error == 0).then_some(monitor)
    }

    pub fn enter(self, monitor: Handle) {
        // RawMonitorEnter
        call!(self.0, 32, (Handle) -> c_int, (monitor));
    }

    pub fn exit(self, monitor: Handle) {
        // RawMonitorExit
        call!(self.0, 33, (Handle) -> c_int, (monitor));
    }

    /// Waits for a notification, or for `ms` ms; the thread is in the monitor.
    pub fn wait(self, monitor: Handle, ms: i64) {
        // RawMonitorWait
        call!(self.0, 34, (Handle, i64) -> c_int, (monitor, ms));
    }

    pub fn notify(self, monitor: Handle) {
        // RawMonitorNotify
        call!(self.0, 35, (Handle) -> c_int, (monitor));
    }

    /// Starts a thread of the agent; `thread` is a new `java.lang.Thread`.
    pub fn run(self, thread: Handle, work: extern "C" fn(Table, Table, *mut c_void)) -> bool {
        type Work = extern "C" fn(Table, Table, *mut c_void);
        const NORMAL: c_int = 5;
        // RunAgentThread
        call!(self.0, 11, (Handle, Work, *mut c_void, c_int) -> c_int, (thread, work, null_mut(), NORMAL))
            == 0
    }

    /// A property of the virtual machine, such as `java.vm.specification.version`.
    pub fn property(self, name: &CStr) -> Option<String> {
        let mut value: *mut c_char = null_mut();
        // GetSystemProperty
        let error = call!(self.0, 130, (*const c_char, *mut *mut c_char) -> c_int, (name.as_ptr(), &mut value));
        self.taken(error, value)
    }
}

impl Jni {
    /// A handle, if the call before did not throw.
    fn unless_thrown(self, handle: Handle) -> Option<Handle> {
        // ExceptionCheck
        if call!(self.0, 228, () -> u8, ()) != 0 {
            // ExceptionClear
            call!(self.0, 17, () -> (), ());
            return None;
        }
        (!handle.is_null()).then_some(handle)
    }

    pub fn class(self, name: &CStr) -> Option<Handle> {
        // FindClass
        let class = call!(self.0, 6, (*const c_char) -> Handle, (name.as_ptr()));
        self.unless_thrown(class)
    }

    /// A method of objects; its class is initialized.
    pub fn method(self, class: Handle, name: &CStr, signature: &CStr) -> Option<Handle> {
        // GetMethodID
        let method = call!(self.0, 33, (Handle, *const c_char, *const c_char) -> Handle,
            (class, name.as_ptr(), signature.as_ptr()));
        self.unless_thrown(method)
    }

    /// An object without its constructor having run.
    pub fn allocate(self, class: Handle) -> Option<Handle> {
        // AllocObject
        let object = call!(self.0, 27, (Handle) -> Handle, (class));
        self.unless_thrown(object)
    }

    /// An object by a constructor.
    pub fn make(self, class: Handle, constructor: Handle, arguments: &[Handle]) -> Option<Handle> {
        // NewObjectA: arguments are unions of 8 bytes
        let object = call!(self.0, 30, (Handle, Handle, *const Handle) -> Handle,
            (class, constructor, arguments.as_ptr()));
        self.unless_thrown(object)
    }

    /// A new `java.lang.Thread` with a name, not started.
    pub fn thread(self, name: &str) -> Option<Handle> {
        let class = self.class(c"java/lang/Thread")?;
        let make = self.method(class, c"<init>", c"(Ljava/lang/String;)V")?;
        let name = self.string(name)?;
        self.make(class, make, &[name])
    }

    /// Calls a method that returns an object.
    pub fn call(self, object: Handle, method: Handle, arguments: &[Handle]) -> Option<Handle> {
        // CallObjectMethodA
        let result = call!(self.0, 36, (Handle, Handle, *const Handle) -> Handle,
            (object, method, arguments.as_ptr()));
        self.unless_thrown(result)
    }

    /// A reference that lives on.
    pub fn keep(self, object: Handle) -> Option<Handle> {
        // NewGlobalRef
        let kept = call!(self.0, 21, (Handle) -> Handle, (object));
        self.unless_thrown(kept)
    }

    /// A reference that does not keep its object: cleared by the collection that finds it dead.
    pub fn weak(self, object: Handle) -> Option<Handle> {
        // NewWeakGlobalRef
        let weak = call!(self.0, 226, (Handle) -> Handle, (object));
        self.unless_thrown(weak)
    }

    /// Deletes a weak reference.
    pub fn forget_weak(self, weak: Handle) {
        // DeleteWeakGlobalRef
        call!(self.0, 227, (Handle) -> (), (weak));
    }

    /// Whether a weak reference is cleared. Asked so, a collector that runs beside the program does not take the object for
    /// one that is in use.
    pub fn is_cleared(self, weak: Handle) -> bool {
        // IsSameObject
        call!(self.0, 24, (Handle, Handle) -> u8, (weak, null_mut())) != 0
    }

    pub fn string(self, text: &str) -> Option<Handle> {
        let text = CString::new(text).ok()?;
        // NewStringUTF
        let string = call!(self.0, 167, (*const c_char) -> Handle, (text.as_ptr()));
        self.unless_thrown(string)
    }

    /// The text of a string.
    pub fn text(self, string: Handle) -> Option<String> {
        // GetStringUTFChars
        let chars = call!(self.0, 169, (Handle, *mut u8) -> *const c_char, (string, null_mut()));
        if chars.is_null() {
            return None;
        }
        // SAFETY: a string that ends in a zero byte, until it is freed.
        let text = unsafe { CStr::from_ptr(chars) }
            .to_string_lossy()
            .into_owned();
        // ReleaseStringUTFChars
        call!(self.0, 170, (Handle, *const c_char) -> (), (string, chars));
        Some(text)
    }

    /// Deletes a reference of this call.
    pub fn forget(self, object: Handle) {
        // DeleteLocalRef
        call!(self.0, 23, (Handle) -> (), (object));
    }
}
