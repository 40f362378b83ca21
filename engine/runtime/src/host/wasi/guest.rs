//! The program's memory as the functions of WASI see it: every access is checked.

use super::errno::{Errno, Outcome};
use crate::store::observe::Moved;
use std::io::IoSlice;
use std::ops::Range;

/// Most buffers of one call, as everywhere.
const MOST_BUFFERS: u32 = 1024;

pub(crate) struct Guest<'a> {
    memory: &'a mut [u8],
    /// The copies from and to files, if the program is observed.
    pub moved: Option<Vec<Moved>>,
}

impl<'a> Guest<'a> {
    pub fn new(memory: &'a mut [u8], observed: bool) -> Guest<'a> {
        Guest {
            memory,
            moved: observed.then(Vec::new),
        }
    }

    fn range(&self, at: u32, size: u32) -> Outcome<Range<usize>> {
        let (start, end) = (at as usize, at as usize + size as usize);
        if end <= self.memory.len() {
            Ok(start..end)
        } else {
            Err(Errno::FAULT)
        }
    }

    /// An error if the bytes are not all there: to be known before something is done that cannot be undone.
    pub fn check(&self, at: u32, size: u32) -> Outcome {
        self.range(at, size).map(drop)
    }

    pub fn bytes(&self, at: u32, size: u32) -> Outcome<&[u8]> {
        Ok(&self.memory[self.range(at, size)?])
    }

    pub fn bytes_mut(&mut self, at: u32, size: u32) -> Outcome<&mut [u8]> {
        let range = self.range(at, size)?;
        Ok(&mut self.memory[range])
    }

    pub fn put(&mut self, at: u32, bytes: &[u8]) -> Outcome {
        let size = u32::try_from(bytes.len()).map_err(|_| Errno::OVERFLOW)?;
        self.bytes_mut(at, size)?.copy_from_slice(bytes);
        Ok(())
    }

    pub fn put_u32(&mut self, at: u32, value: u32) -> Outcome {
        self.put(at, &value.to_le_bytes())
    }

    pub fn put_u64(&mut self, at: u32, value: u64) -> Outcome {
        self.put(at, &value.to_le_bytes())
    }

    /// The places and sizes of the buffers of a list, all of them within the memory.
    pub fn buffers(&self, list: u32, count: u32) -> Outcome<Vec<(u32, u32)>> {
        if count > MOST_BUFFERS {
            return Err(Errno::INVAL);
        }
        let list = self.bytes(list, 8 * count)?;
        let buffers: Vec<(u32, u32)> = list
            .chunks_exact(8)
            .map(|b| (u32_at(b, 0), u32_at(b, 4)))
            .collect();
        let mut total = 0u32;
        for &(at, size) in &buffers {
            self.check(at, size)?;
            total = total.checked_add(size).ok_or(Errno::INVAL)?;
        }
        Ok(buffers)
    }

    /// The contents of buffers.
    pub fn slices(&self, buffers: &[(u32, u32)]) -> Outcome<Vec<IoSlice<'_>>> {
        buffers
            .iter()
            .map(|&(at, size)| self.bytes(at, size).map(IoSlice::new))
            .collect()
    }

    /// Writes texts, each with a zero at its end, and a list of their places.
    pub fn put_texts(&mut self, list: u32, at: u32, texts: &[Vec<u8>]) -> Outcome {
        let (mut places, mut bytes) = (Vec::new(), Vec::new());
        for text in texts {
            places.extend_from_slice(&at.wrapping_add(bytes.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text);
            bytes.push(0);
        }
        self.put(at, &bytes)?;
        self.put(list, &places)
    }

    /// The number of texts and their bytes, with the zeros.
    pub fn put_sizes(&mut self, count: u32, bytes: u32, texts: &[Vec<u8>]) -> Outcome {
        self.put_u32(count, texts.len() as u32)?;
        self.put_u32(bytes, texts.iter().map(|t| t.len() as u32 + 1).sum())
    }
}

/// A number within a structure that has room for it.
pub(crate) fn u32_at(structure: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| structure[offset + i]))
}

/// A number within a structure that has room for it.
pub(crate) fn u64_at(structure: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| structure[offset + i]))
}
