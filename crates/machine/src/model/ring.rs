//! A ring buffer whose places are found by masking.

/// A ring of a power of two of places. Any number is a place: places repeat after `len`.
#[derive(Clone, Debug)]
pub struct Ring<T>(Box<[T]>);

impl<T: Copy + Default> Ring<T> {
    /// A ring of at least `places` places, each with the default value.
    pub fn new(places: usize) -> Ring<T> {
        Ring(vec![T::default(); places.max(1).next_power_of_two()].into())
    }

    /// What stands at a place.
    #[inline(always)]
    pub fn get(&self, place: usize) -> T {
        // SAFETY: the length is a power of two, so that the masked place lies below it.
        unsafe { *self.0.get_unchecked(place & (self.0.len() - 1)) }
    }

    /// What stands at a place, to change.
    #[inline(always)]
    pub fn at(&mut self, place: usize) -> &mut T {
        let mask = self.0.len() - 1;
        // SAFETY: as above.
        unsafe { self.0.get_unchecked_mut(place & mask) }
    }

    /// All places.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Puts something at a place.
    #[inline(always)]
    pub fn set(&mut self, place: usize, value: T) {
        let mask = self.0.len() - 1;
        // SAFETY: as above.
        unsafe { *self.0.get_unchecked_mut(place & mask) = value };
    }
}
