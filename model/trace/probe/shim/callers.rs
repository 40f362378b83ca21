//! Callers of the allocator: the words that the plugin needs to walk the stack as it was when the program called.

/// Where a function of the allocator was called from. Two words, as its arguments are passed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Callers {
    /// Where the return address is: the stack pointer of the call.
    pub place: *const usize,
    /// rbp at that time.
    pub frame: usize,
}

impl Callers {
    /// Return address, where it is, and rbp.
    pub fn words(self) -> [usize; 3] {
        // SAFETY: the stack pointer of the call points to its return address.
        let back = unsafe { self.place.read() };
        [back, self.place as usize, self.frame]
    }
}
