//! Named roots: a table of entries of [`ROOT_BYTES`], each a reference and a name.

use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::layout::*;
use crate::space::Space;
use varve_heap::Ref;

/// A root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// What it stands for; null while the name is free.
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

impl Space {
    /// All roots that stand for something.
    pub fn roots(&self) -> Vec<Root> {
        let mut roots = all(&self.image);
        roots.retain(|root| !root.object.is_null());
        roots
    }

    /// What a name stands for.
    pub fn root(&self, name: &str) -> Option<Ref> {
        let roots = self.roots();
        roots.into_iter().find(|r| r.name == name).map(|r| r.object)
    }

    /// Has a name stand for a durable object, or for nothing: then its place is free for another name.
    ///
    /// # Errors
    /// If the name is too long, there are too many, or the medium fails.
    pub fn set_root(&mut self, name: &str, object: Ref) -> Result<()> {
        if name.is_empty() || name.len() > MAX_ROOT_NAME {
            return Err(Error::Usage(format!(
                "the name of a durable root has {} bytes: 1 to {MAX_ROOT_NAME} are possible",
                name.len()
            )));
        }
        let known = all(&self.image).into_iter().find(|r| r.name == name);
        let place = match known {
            Some(root) if object.is_null() => {
                self.prepare(root.place, 8)?;
                self.image.set_u64(root.place, 0);
                return self.after_store(root.place, 8);
            }
            None if object.is_null() => return Ok(()),
            Some(root) => root.place,
            None => self.name_root(name)?,
        };
        self.write(place, &object.0.to_le_bytes())
    }

    fn name_root(&mut self, name: &str) -> Result<u64> {
        let place = free(&self.image).ok_or_else(|| {
            Error::Usage(format!(
                "{}: a region has room for {MAX_ROOTS} roots",
                self.path
            ))
        })?;
        // In a region the place may be free because of it: all is logged, and a root is there again if the region is taken back.
        self.prepare(place, ROOT_BYTES)?;
        self.image.write(place + 8, name.as_bytes());
        self.flush(place + 8, name.len() as u64);
        self.fence(Fence::Named)?;
        self.image.set_u64(place, (name.len() as u64) << 32);
        self.flush(place, 8);
        self.fence(Fence::Named)?;
        Ok(place)
    }
}
