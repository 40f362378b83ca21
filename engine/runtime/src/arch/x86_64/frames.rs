//! Frames of compiled code. It keeps frame pointers: at each lies the caller's, and above that the return address.

/// The frame pointer of a frame's caller, and where that goes on.
///
/// # Safety
/// `fp` is the frame pointer of a frame of compiled code that is on a stack.
pub(crate) unsafe fn caller(fp: usize) -> (usize, usize) {
    let frame = fp as *const usize;
    // SAFETY: as this function.
    unsafe { (*frame, *frame.add(1)) }
}

/// Where the return address of a frame of compiled code lies.
pub(crate) fn return_slot(fp: usize) -> usize {
    fp + std::mem::size_of::<usize>()
}

/// Where code goes on that has called out.
///
/// # Safety
/// `sp` is the stack pointer that an exit recorded, and the call has not returned.
pub(crate) unsafe fn return_address(sp: usize) -> usize {
    // SAFETY: the call pushed it, and the exit did not move the stack pointer.
    unsafe { *(sp as *const usize) }
}
