//! Which functions code is of that ran.

use super::templates::Place;
use std::collections::HashMap;

/// Numbers of functions, by the places that were asked for.
pub(super) struct Functions {
    known: HashMap<Place, u32>,
    /// Addresses are the low half of return addresses.
    compiled: bool,
}

impl Functions {
    /// Of programs that are `compiled` with a probe, or run under QEMU.
    pub fn new(compiled: bool) -> Functions {
        Functions {
            known: HashMap::new(),
            compiled,
        }
    }

    /// The function of a place; `None` if the place has no address. `find` is asked once for each place, for the number
    /// of the function at an address of a process, of which only the low half may be known.
    pub fn of(&mut self, place: Place, find: impl FnOnce((u32, u64, bool)) -> u32) -> Option<u32> {
        let Place { process, address } = place;
        if address == 0 {
            return None;
        }
        let compiled = self.compiled;
        // a return address may already be in the next function
        let address = address - u64::from(compiled);
        let find = || find((process, address, compiled));
        Some(*self.known.entry(place).or_insert_with(find))
    }

    /// A process is another program from here on.
    pub fn forget(&mut self, process: u32) {
        self.known.retain(|place, _| place.process != process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_looked_up_once_until_its_process_is_another_program() {
        let mut asked = Vec::new();
        let mut functions = Functions::new(true);
        let place = |process, address| Place { process, address };
        let mut of = |functions: &mut Functions, at| {
            functions.of(at, |question| {
                asked.push(question);
                asked.len() as u32
            })
        };
        assert_eq!(of(&mut functions, place(1, 0x2000)), Some(1));
        assert_eq!(of(&mut functions, place(1, 0x2000)), Some(1));
        assert_eq!(of(&mut functions, place(1, 0)), None);
        assert_eq!(of(&mut functions, place(2, 0x2000)), Some(2));
        functions.forget(1);
        assert_eq!(of(&mut functions, place(2, 0x2000)), Some(2));
        assert_eq!(of(&mut functions, place(1, 0x2000)), Some(3));
        assert_eq!(asked[0], (1, 0x1fff, true));
    }
}
