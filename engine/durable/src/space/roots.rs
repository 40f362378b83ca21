//! Reads and sets roots.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::{MAX_ROOT_NAME, MAX_ROOTS, ROOT_BYTES};
use crate::roots::{Root, all, free};
use varve_heap::Ref;

impl Space {
    /// All roots that stand for something.
    pub fn roots(&self) -> Vec<Root> {
        let mut roots = all(&self.image);
        roots.retain(|root| !root.object.is_null());
        roots
    }

    /// The object that a name stands for.
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
        // In a region the place may be free because of it: all is logged, and a root is there again if the region is rolled back.
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
