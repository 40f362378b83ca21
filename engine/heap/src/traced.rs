//! The results of a collection, for its observers: which objects died, which survived, and where they are now.

use crate::header::Header;
use crate::mature::Tables;
use crate::reference::Ref;
use crate::shape::Shapes;
use crate::stats::Kind;

/// A heap right after tracing, before anything that died is overwritten.
pub struct Traced<'a> {
    kind: Kind,
    tables: &'a Tables,
    shapes: &'a Shapes,
    /// The first byte of the nursery and the first one that is not in use.
    born: (u64, u64),
    resolve: &'a dyn Fn(Ref) -> Option<Ref>,
}

impl<'a> Traced<'a> {
    pub(crate) fn new(
        kind: Kind,
        tables: &'a Tables,
        shapes: &'a Shapes,
        born: (u64, u64),
        resolve: &'a dyn Fn(Ref) -> Option<Ref>,
    ) -> Traced<'a> {
        Traced {
            kind,
            tables,
            shapes,
            born,
            resolve,
        }
    }

    /// The kind of collection.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where an object is that was at `r` before; `None` if it died. A minor collection takes old objects for alive.
    /// Panics outside of the heap.
    pub fn place(&self, r: Ref) -> Option<Ref> {
        (self.resolve)(r)
    }

    /// The header of an object that is, or died, at `r`: of one that moved, at its new place. Panics outside of the heap.
    pub fn header(&self, r: Ref) -> Header {
        self.tables.memory.checked_header(r)
    }

    /// Calls `f` with every object that was in the nursery: where it was, its header, its bytes, and where it is now
    /// if it survived.
    pub fn each_born(&self, mut f: impl FnMut(Ref, Header, u64, Option<Ref>)) {
        let (mut at, end) = self.born;
        while at < end {
            let r = self.tables.memory.reference(at);
            let now = self.place(r);
            let whole = now.unwrap_or(r);
            let header = self.header(whole);
            let length = match self.shapes.info(header.type_index()).is_array() {
                true => self.tables.memory.checked_array_length(whole),
                false => 0,
            };
            let bytes = self.shapes.object_size(header.type_index(), length);
            f(r, header, bytes, now);
            at += bytes;
        }
    }
}
