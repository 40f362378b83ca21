//! Takes this library, which comes last in `LD_PRELOAD`, out of the environment: programs that this one starts get it
//! from the recorder if they are recorded, and not at all if they are not.

use core::ffi::{c_char, c_int};

/// Length of a string without its zero byte.
fn length(text: *const u8) -> usize {
    // SAFETY: strings of the program end in a zero byte.
    (0..)
        .find(|&at| unsafe { text.add(at).read_volatile() } == 0)
        .unwrap_or(0)
}

fn starts_with(text: *const u8, start: &[u8]) -> bool {
    // SAFETY: the comparison stops at the first difference, so not behind the zero byte.
    start
        .iter()
        .enumerate()
        .all(|(at, &byte)| unsafe { text.add(at).read_volatile() } == byte)
}

/// Runs before the program.
pub extern "C" fn on_load(_: c_int, _: *mut *mut c_char, environment: *mut *mut u8) {
    let mut place = environment;
    // SAFETY: the environment is a list of strings that ends with a null pointer; no other thread runs yet.
    unsafe {
        while !place.is_null() && !(*place).is_null() {
            let text = *place;
            if !starts_with(text, b"LD_PRELOAD=") {
                place = place.add(1);
                continue;
            }
            match (0..length(text))
                .rev()
                .find(|&at| text.add(at).read() == b':')
            {
                Some(colon) => {
                    text.add(colon).write(0);
                    place = place.add(1);
                }
                None => remove(place),
            }
        }
    }
}

/// Closes the gap at `place` in a list of pointers that ends with null.
///
/// # Safety
/// `place` is inside such a list, which no other thread uses.
unsafe fn remove(mut place: *mut *mut u8) {
    // SAFETY: the loop ends at the null pointer.
    unsafe {
        while !(*place).is_null() {
            *place = *place.add(1);
            place = place.add(1);
        }
    }
}
