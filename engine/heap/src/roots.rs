//! The interface that a collection needs from the runtime.

use crate::reference::Ref;

/// The references from outside of the heap: stacks, globals, tables, handles.
pub trait Roots {
    /// Calls `f` with every reference that keeps an object alive. A reference whose object moved is changed.
    fn visit(&mut self, f: &mut dyn FnMut(&mut Ref));

    /// Called after tracing, for references that do not keep objects alive: `f` gives an object's place now, or
    /// `None` if it died. Null and integers stay as they are.
    fn visit_weak(&mut self, f: &mut dyn FnMut(Ref) -> Option<Ref>) {
        let _ = f;
    }

    /// The host object that held `handle` died.
    fn host_died(&mut self, handle: u64) {
        let _ = handle;
    }
}

/// A list of references is the simplest set of roots.
impl Roots for Vec<Ref> {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Ref)) {
        self.iter_mut().for_each(f);
    }
}
