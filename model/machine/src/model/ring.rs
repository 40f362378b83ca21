//! A ring buffer whose places are found by masking.

/// A ring of a power of two of places. Any number is a place: places repeat after `len`.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    places: Box<[T]>,
    /// The number of places less 1.
    mask: usize,
}

impl<T: Copy + Default> Ring<T> {
    /// A ring of at least `places` places, each with the default value.
    pub fn new(places: usize) -> Ring<T> {
        let places = places.max(1).next_power_of_two();
        Ring {
            places: vec![T::default(); places].into(),
            mask: places - 1,
        }
    }

    /// The place, below the number of places, that a number means.
    #[inline(always)]
    pub fn place(&self, place: usize) -> usize {
        place & self.mask
    }

    /// The entry at a place.
    #[inline(always)]
    pub fn get(&self, place: usize) -> T {
        // SAFETY: the mask is the length less 1, a power of two less 1, so that the masked place lies below it.
        unsafe { *self.places.get_unchecked(place & self.mask) }
    }

    /// The entry at a place, to change.
    #[inline(always)]
    pub fn at(&mut self, place: usize) -> &mut T {
        // SAFETY: as above.
        unsafe { self.places.get_unchecked_mut(place & self.mask) }
    }

    /// All places.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.places.iter()
    }

    /// Puts something at a place.
    #[inline(always)]
    pub fn set(&mut self, place: usize, value: T) {
        *self.at(place) = value;
    }
}
