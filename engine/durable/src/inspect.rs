//! Inspects a region without changing it: writes that recover it stay in this process.

use crate::class_data::Late;
use crate::error::{COPIED, Error, Result};
use crate::evolve;
use crate::header::{self, Commit, Header};
use crate::image::Image;
use crate::journal;
use crate::layout::*;
use crate::log;
use crate::name::Owned;
use crate::pages;
use crate::records::{Named, Records};
use crate::roots::{self, Root};
use crate::source::{Source, io_error, look_at};
use crate::space::unreadable;
use crate::types::{Info, Tables};
use crate::walk::{Damage, Walk, Walker};
use std::path::Path;
use varve_heap::layout::ARRAY_LENGTH;
use varve_heap::{Header as ObjectHeader, ObjectAlign, Ref};

/// A region as it would be after opening it.
pub struct Inspection {
    /// Its bytes.
    pub image: Image,
    /// The version of its format.
    pub version: u32,
    /// The commit record that counts.
    pub commit: Commit,
    /// Types and constants.
    pub tables: Tables,
    /// Class data that programs made while they ran.
    pub late: Vec<Late>,
    /// Objects that the program makes anew in each run and means the same ones.
    pub named: Vec<Named>,
    /// Roots that stand for something.
    pub roots: Vec<Root>,
    /// Cache lines of a region that was not over, which opening rolls back.
    pub taken_back: u64,
    /// The reachable objects, and all damage found.
    pub walk: Walk,
    /// Pages whose checksums are wrong.
    pub pages: Vec<u64>,
    /// The alignment of objects.
    pub align: ObjectAlign,
    pub(crate) infos: Vec<Info>,
    /// The offset of the first object.
    first: u64,
    path: String,
    /// Keeps others from opening it meanwhile.
    _source: Option<Source>,
}

impl Inspection {
    /// Inspects a file. If another process has it open, inspects a copy that this process provides.
    ///
    /// # Errors
    /// If it cannot be read, or its header is damaged so that nothing can be known of the rest.
    pub fn of_file(path: &Path) -> Result<Inspection> {
        let (image, source) = look_at(path)?;
        let mut region = Inspection::of(image, &path.display().to_string())?;
        if source.is_copy(&region.commit) {
            let copied = Damage::of_file(COPIED.into());
            region.walk.damages.insert(0, copied);
        }
        region._source = Some(source);
        Ok(region)
    }

    /// Inspects a file that this process owns.
    pub(crate) fn of_owned(owned: &Owned, path: &str) -> Result<Inspection> {
        let image = Image::private(&owned.file);
        let image = image.map_err(io_error(path, "the region file cannot be read"))?;
        Inspection::of(image, path)
    }

    /// Inspects the bytes of an image.
    ///
    /// # Errors
    /// As [`Inspection::of_file`].
    pub fn of(mut image: Image, path: &str) -> Result<Inspection> {
        let torn = journal::recover_image(&mut image);
        let header = header::read(&image).map_err(|e| unreadable(path, e))?;
        let version = header.version;
        let records = Records::read(&image);
        let mut wrong: Vec<String> = records.damage(header.commit.records).into_iter().collect();
        wrong.extend(torn.map(String::from));
        if header.half_tables {
            wrong.push("one of the two copies of the tables is damaged".into());
        }
        if log::finished(&image, version).is_none() {
            wrong.push("the number of the last failure-atomic region is damaged".into());
        }
        let taken_back = log::take_back(&mut image, version).len() as u64;
        let infos = header.tables.infos(header.align);
        let addresses = Addresses(header.align);
        wrong.extend(records.wrong_named(&image, &infos, addresses, header.first));
        let pages = match version {
            2 => Vec::new(),
            _ => {
                wrong.extend(pages::tables(&image).err());
                pages::damaged(&image, header.first)
            }
        };
        wrong.extend(pages.iter().map(|&page| pages::wrong_sum(page)));
        Inspection::walked(image, header, records, path, &[], taken_back).map(|mut region| {
            let all = wrong.into_iter().map(Damage::of_file);
            region.walk.damages.splice(0..0, all);
            region.pages = pages;
            region
        })
    }

    /// Follows references, but not to objects in these pages.
    pub(crate) fn walked(
        image: Image,
        header: Header,
        records: Records,
        path: &str,
        without: &[u64],
        taken_back: u64,
    ) -> Result<Inspection> {
        let mut roots = roots::all(&image);
        roots.retain(|r| !r.object.is_null());
        let infos = header.tables.infos(header.align);
        let mut region = Inspection {
            image,
            version: header.version,
            commit: header.commit,
            tables: header.tables,
            late: records.late,
            named: records.named,
            roots,
            taken_back,
            walk: Walk::default(),
            first: header.first,
            pages: Vec::new(),
            align: header.align,
            infos,
            path: path.into(),
            _source: None,
        };
        let named: Vec<Ref> = region.named.iter().map(|n| n.object).collect();
        region.walk = region.follow(&named, without);
        Ok(region)
    }

    /// The objects reachable from the roots and these objects.
    fn follow(&self, named: &[Ref], without: &[u64]) -> Walk {
        Walker::new(
            &self.image,
            &self.tables,
            &self.infos,
            &self.late,
            self.first,
            self.align,
        )
        .without(without)
        .run(&self.roots, named)
    }

    /// Forgets objects that the program makes in each run, but a program with these tables does not, such as constants of an enumeration that it
    /// does not have, unless something durable refers to them: nothing would ever find these.
    pub(crate) fn forget_named(&mut self, tables: &Tables) -> std::result::Result<(), String> {
        let gone = evolve::gone(&self.tables, tables)?;
        let addresses = Addresses(self.align);
        let is_gone = |n: &Named| match addresses.place(n.object) {
            Place::File(at) => {
                let ty = ObjectHeader(self.image.u64(at)).type_index() as usize;
                match n.of {
                    None => gone.constants[ty],
                    Some(_) => gone.classes[ty],
                }
            }
            _ => false,
        };
        if !self.named.iter().any(is_gone) {
            return Ok(());
        }
        let kept = self.named.iter().filter(|n| !is_gone(n));
        let kept: Vec<Ref> = kept.map(|n| n.object).collect();
        self.walk = self.follow(&kept, &[]);
        self.named.retain(|n| match addresses.place(n.object) {
            Place::File(at) => self.walk.index(at).is_some(),
            _ => true,
        });
        Ok(())
    }

    /// The text that an object leads to, through at most `depth` references: a string's characters, in any language's representation.
    pub(crate) fn text(&self, r: Ref, depth: u32) -> String {
        let Place::File(at) = Addresses(self.align).place(r) else {
            return String::new();
        };
        if !r.is_object() || depth == 0 || self.walk.index(at).is_none() {
            return String::new();
        }
        let info = &self.infos[ObjectHeader(self.image.u64(at)).type_index() as usize];
        if info.element == 0 {
            let held = info.refs.iter();
            return held
                .map(|&(offset, _)| {
                    self.text(Ref(self.image.u32(at + u64::from(offset))), depth - 1)
                })
                .collect();
        }
        let (element, refs) = (u64::from(info.element), info.refs.is_empty());
        let length = u64::from(self.image.u32(at + ARRAY_LENGTH as u64));
        let bytes = self
            .image
            .bytes(at + u64::from(info.size), element * length);
        match (refs, element) {
            (true, 1) => String::from_utf8_lossy(&bytes).into_owned(),
            (true, 2) => {
                let units = bytes.chunks_exact(2);
                let units: Vec<u16> = units.map(|u| u16::from_le_bytes([u[0], u[1]])).collect();
                String::from_utf16_lossy(&units)
            }
            _ => String::new(),
        }
    }

    /// The same, if nothing is wrong.
    ///
    /// # Errors
    /// With the first damage.
    pub fn whole(self) -> Result<Inspection> {
        match self.walk.damages.first() {
            None => Ok(self),
            Some(damage) => Err(Error::Damaged {
                path: self.path.clone(),
                what: damage.to_string(),
            }),
        }
    }

    /// The file's name.
    pub fn path(&self) -> &str {
        &self.path
    }
}
