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

impl Machine {
    /// JVMTI; none if the machine has none.
    pub fn jvmti(self) -> Option<Jvmti> {
        let mut table: *mut c_void = null_mut();
        // GetEnv
        let error = call!(self.0, 6, (*mut *mut c_void, c_int) -> c_int, (&mut table, JVMTI_1_2));
        (error == 0 && !table.is_null()).then_some(Jvmti(table.cast_const().cast()))
    }
}

/// Events by their numbers.
pub const VM_INIT: c_int = 50;
pub const VM_DEATH: c_int = 51;
pub const COLLECTION_START: c_int = 81;
pub const COLLECTION_FINISH: c_int = 82;
/// The table of callbacks begins with that of this event.
const FIRST_EVENT: c_int = 50;
/// As many as the table had in JDK 9.
const EVENTS: usize = 37;

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

impl Jvmti {
    /// Asks for the events of collections. `false` if the machine has none.
    pub fn ask_for_collections(self) -> bool {
        // Capabilities are 128 bits; number 31 is can_generate_garbage_collection_events.
        let capabilities: [u64; 2] = [1 << 31, 0];
        // AddCapabilities
        call!(self.0, 141, (*const u64) -> c_int, (capabilities.as_ptr())) == 0
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
        asked.all(|(number, _)| {
            let event = FIRST_EVENT + number as c_int;
            const ENABLE: c_int = 1;
            // SetEventNotificationMode, which is variadic
            // SAFETY: types of the specification; null is for all threads.
            unsafe {
                type Mode = unsafe extern "C" fn(Table, c_int, c_int, Handle, ...) -> c_int;
                function::<Mode>(self.0, 1)(self.0, ENABLE, event, null_mut()) == 0
            }
        })
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

    /// Waits until somebody notifies, or for so many ms; the thread is in the monitor.
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
        if error != 0 || value.is_null() {
            return None;
        }
        // SAFETY: the machine gives a string that ends in a zero byte, which is ours until it is given back.
        let text = unsafe { CStr::from_ptr(value) }
            .to_string_lossy()
            .into_owned();
        // Deallocate
        call!(self.0, 46, (*mut c_char) -> c_int, (value));
        Some(text)
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
        // SAFETY: a string that ends in a zero byte, until it is given back.
        let text = unsafe { CStr::from_ptr(chars) }
            .to_string_lossy()
            .into_owned();
        // ReleaseStringUTFChars
        call!(self.0, 170, (Handle, *const c_char) -> (), (string, chars));
        Some(text)
    }

    /// Gives back a reference of this call.
    pub fn forget(self, object: Handle) {
        // DeleteLocalRef
        call!(self.0, 23, (Handle) -> (), (object));
    }
}
