//! Named roots: a table of entries of [`ROOT_BYTES`], each a reference and a name.

use crate::image::Image;
use crate::layout::*;
use varve_heap::Ref;

/// A root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// The object that the name stands for; null while the name is free.
    pub object: Ref,
    /// Its entry's offset in the file.
    pub(crate) place: u64,
}

/// All roots whose names are there.
pub(crate) fn all(image: &Image) -> Vec<Root> {
    let place = |i| ROOTS + i * ROOT_BYTES;
    let read = |place: u64| {
        let bytes = image.u32(place + 4) as usize;
        if bytes == 0 || bytes > MAX_ROOT_NAME {
            return None;
        }
        let name = String::from_utf8(image.bytes(place + 8, bytes as u64)).ok()?;
        let object = Ref(image.u32(place));
        Some(Root {
            name,
            object,
            place,
        })
    };
    (0..MAX_ROOTS).map(place).filter_map(read).collect()
}

/// A place for a new root: one that stands for nothing.
pub(crate) fn free(image: &Image) -> Option<u64> {
    (0..MAX_ROOTS)
        .map(|i| ROOTS + i * ROOT_BYTES)
        .find(|&place| image.u32(place) == 0)
}
