//! Values of the host that objects of the heap stand for.

use std::any::Any;

/// The values by their handles. Handles of objects that died are given out again, the latest first.
#[derive(Default)]
pub(crate) struct HostValues {
    values: Vec<Option<Box<dyn Any + Send>>>,
    free: Vec<usize>,
}

impl HostValues {
    /// Keeps a value: its handle.
    pub fn add(&mut self, value: Box<dyn Any + Send>) -> usize {
        match self.free.pop() {
            Some(handle) => {
                self.values[handle] = Some(value);
                handle
            }
            None => {
                self.values.push(Some(value));
                self.values.len() - 1
            }
        }
    }

    /// The value of a handle that has one.
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut (dyn Any + Send)> {
        self.values[handle].as_deref_mut()
    }

    /// Nothing stands for the value any more: it is dropped.
    pub fn remove(&mut self, handle: usize) {
        if self.values[handle].take().is_some() {
            self.free.push(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_given_out_again_once_their_values_are_gone() {
        let mut values = HostValues::default();
        let handles: Vec<usize> = (0..3).map(|n| values.add(Box::new(n))).collect();
        assert_eq!(handles, [0, 1, 2]);
        values.remove(1);
        values.remove(1);
        assert!(values.get_mut(1).is_none());
        assert_eq!(values.add(Box::new("again")), 1);
        assert_eq!(values.add(Box::new(3)), 3);
        let text = values.get_mut(1).and_then(|v| v.downcast_mut::<&str>());
        assert_eq!(text.copied(), Some("again"));
        let second = values.get_mut(2).and_then(|v| v.downcast_mut::<i32>());
        assert_eq!(second.copied(), Some(2));
    }
}
