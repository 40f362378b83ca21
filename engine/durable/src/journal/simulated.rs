//! A disk whose every possible content after a crash can be inspected.

use super::{Disk, SECTOR, Sync};
use std::io;

const BYTES: usize = SECTOR as usize;

/// An operation whose effect is not in the medium for certain.
#[derive(Clone)]
enum Pending {
    Sector(u64, Box<[u8; BYTES]>),
    Len(u64),
}

/// A moment at which the power may fail.
pub struct DiskCrash<'a> {
    medium: &'a [u8],
    pending: &'a [Pending],
    /// The sync that is waited for, or none: something was just written.
    pub at: Option<Sync>,
}

impl DiskCrash<'_> {
    /// Sectors and lengths that may be in the medium or not, each by itself.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The file if those reached the medium for which `reached` holds, by their number. Each order of them has the same result as some choice of
    /// them: of one sector the last that is chosen counts.
    pub fn file(&self, mut reached: impl FnMut(usize) -> bool) -> Vec<u8> {
        let mut file = self.medium.to_vec();
        for (i, change) in self.pending.iter().enumerate() {
            if reached(i) {
                apply(&mut file, change);
            }
        }
        file
    }
}

fn apply(file: &mut Vec<u8>, change: &Pending) {
    match change {
        Pending::Len(len) => file.resize(*len as usize, 0),
        Pending::Sector(at, bytes) => {
            let at = *at as usize;
            // Without the length that it was written behind, it is nowhere.
            if let Some(sector) = file.get_mut(at..at + BYTES) {
                sector.copy_from_slice(&bytes[..]);
            }
        }
    }
}

/// The observer of each possible crash.
type Look = Box<dyn FnMut(&DiskCrash<'_>) + Send>;

/// A disk in memory: writes are there for certain after a sync; before it, any of their sectors may be.
pub struct SimulatedDisk {
    medium: Vec<u8>,
    pending: Vec<Pending>,
    /// The bytes that a read returns.
    now: Vec<u8>,
    look: Look,
    /// A kind of sync that does nothing: the mistake that tests must find.
    left_out: Option<Sync>,
    /// Bytes that there is room for.
    room: u64,
}

impl SimulatedDisk {
    /// With a file of these bytes. `look` is called before each write, change of the length, and sync.
    pub fn new(bytes: Vec<u8>, look: impl FnMut(&DiskCrash<'_>) + Send + 'static) -> SimulatedDisk {
        SimulatedDisk {
            medium: bytes.clone(),
            pending: Vec::new(),
            now: bytes,
            look: Box::new(look),
            left_out: None,
            room: u64::MAX,
        }
    }

    /// The same without a kind of sync.
    pub fn without(mut self, sync: Sync) -> SimulatedDisk {
        self.left_out = Some(sync);
        self
    }

    /// The same with room for `bytes` bytes.
    pub fn with_room(mut self, bytes: u64) -> SimulatedDisk {
        self.room = bytes;
        self
    }

    fn show(&mut self, at: Option<Sync>) {
        let crash = DiskCrash {
            medium: &self.medium,
            pending: &self.pending,
            at,
        };
        (self.look)(&crash);
    }

    fn change(&mut self, change: Pending) {
        apply(&mut self.now, &change);
        self.pending.push(change);
    }
}

impl Disk for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.now.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.now.get(offset as usize..offset as usize + into.len());
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        assert!(end <= self.now.len() as u64, "there is no room reserved");
        self.show(None);
        for at in (offset / SECTOR * SECTOR..end).step_by(BYTES) {
            let held = &self.now[at as usize..];
            let mut sector: [u8; BYTES] = std::array::from_fn(|i| held.get(i).map_or(0, |b| *b));
            let from = at.max(offset);
            let to = (at + SECTOR).min(end);
            sector[(from - at) as usize..(to - at) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            // A sector's current contents cannot be lost.
            if held[..BYTES.min(held.len())] != sector[..BYTES.min(held.len())] {
                self.change(Pending::Sector(at, Box::new(sector)));
            }
        }
        Ok(())
    }

    fn sync(&mut self, why: Sync) -> io::Result<()> {
        self.show(Some(why));
        if self.left_out != Some(why) {
            self.medium.clone_from(&self.now);
            self.pending.clear();
        }
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if bytes > self.now.len() as u64 {
            self.show(None);
            self.change(Pending::Len(bytes));
        }
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        if bytes < self.now.len() as u64 {
            self.show(None);
            self.change(Pending::Len(bytes));
        }
        Ok(())
    }
}
