//! Recovers the intact objects of a damaged region into a new one.
//!
//! A page whose checksum is wrong by one bit is repaired: the checksum says which bit. Objects in other damaged pages are left out, and so are those
//! with an invalid reference. References to them become null; an object whose type allows no null there is left out too.

use crate::error::{COPIED, Result};
use crate::file::{Copy, is_another, write_into_new};
use crate::header;
use crate::image::Image;
use crate::inspect::Inspection;
use crate::journal;
use crate::layout::*;
use crate::log;
use crate::pages::{self, Mark};
use crate::records::Records;
use crate::rewrite::rewrite_without;
use crate::source::look_at;
use crate::space::unreadable;
use crate::types::Target;
use std::collections::HashSet;
use std::path::Path;
use varve_heap::layout::*;
use varve_heap::{Header, Ref};

/// The result of salvaging.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The new region.
    pub copy: Copy,
    /// The repairs, a line each.
    pub repaired: Vec<String>,
    /// The losses and unknowns, a line each: the first thousand.
    pub lost: Vec<String>,
    /// Roots that stand for nothing any more.
    pub roots: Vec<String>,
}

/// Writes the intact objects of a region into the file `to`, which must not be there yet, or be a region. The damaged file stays as it is.
///
/// # Errors
/// If its header or tables are damaged so that nothing can be read, or the new file cannot be written.
pub fn salvage(path: &Path, to: &Path) -> Result<Salvaged> {
    let name = path.display().to_string();
    is_another(to, path)?;
    let (mut image, source) = look_at(path)?;
    let mut lost: Vec<String> = Vec::new();
    lost.extend(journal::recover_image(&mut image).map(String::from));
    let header = header::read(&image).map_err(|e| unreadable(&name, e))?;
    if source.is_copy(&header.commit) {
        lost.push(COPIED.into());
    }
    let mut repaired = Vec::new();
    let mut damaged = Vec::new();
    if header.half_tables {
        repaired.push("one of the two copies of the tables was damaged".into());
    }
    if log::finished(&image, header.version).is_none() {
        lost.push("the number of the last failure-atomic region is damaged: if one was open, its stores are there".into());
    }
    let taken_back = log::take_back(&mut image, header.version).len() as u64;
    if header.version != 2 {
        if let Err(what) = pages::tables(&image) {
            lost.push(format!("{what}: the pages of that group cannot be checked"));
        }
        for page in pages::damaged(&image, header.first) {
            match repair(&mut image, page) {
                Some(what) => repaired.push(what),
                None => damaged.push(page),
            }
        }
    }
    let records = Records::read(&image);
    lost.extend(records.damage(header.commit.records));
    let roots_at = ROOTS / PAGE..LOG / PAGE;
    if damaged.iter().any(|page| roots_at.contains(page)) {
        lost.push("the page of the roots is damaged: they are taken as they are".into());
        damaged.retain(|page| !roots_at.contains(page));
    }
    let region = Inspection::walked(image, header, records, &name, &damaged, taken_back)?;
    lost.extend(damaged.iter().map(|&page| pages::wrong_sum(page)));
    lost.extend(region.walk.damages.iter().map(|d| d.to_string()));
    let without = left_out(&region);
    lost.extend(without.iter().map(|&at| {
        let ty = region
            .tables
            .name(Header(region.image.u64(at)).type_index());
        format!("{ty} at {at:#x}: it needs an object that is lost")
    }));
    lost.truncate(1000);
    let addresses = Addresses(region.align);
    let kept = |r: Ref| match addresses.place(r) {
        Place::File(at) => region.walk.index(at).is_some() && !without.contains(&at),
        _ => true,
    };
    let roots = region.roots.iter().filter(|root| !kept(root.object));
    let roots = roots.map(|root| root.name.clone()).collect();
    let bytes = write_into_new(to, |image| {
        rewrite_without(&region, &region.tables, region.align, image, &|at| {
            without.contains(&at)
        })
    })?;
    Ok(Salvaged {
        copy: Copy {
            before: region.image.len(),
            bytes,
            objects: (region.walk.objects.len() - without.len()) as u64,
        },
        repaired,
        lost,
        roots,
    })
}

/// Objects that are whole and need some that are not: by references that cannot be null.
fn left_out(region: &Inspection) -> HashSet<u64> {
    let mut out = HashSet::new();
    loop {
        let before = out.len();
        for &at in &region.walk.objects {
            if !out.contains(&at) && needs_lost(region, at, &out) {
                out.insert(at);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

fn needs_lost(region: &Inspection, at: u64, out: &HashSet<u64>) -> bool {
    let ty = Header(region.image.u64(at)).type_index();
    let info = &region.infos[ty as usize];
    let is_lost = |slot: u64, target: &Target| {
        let r = Ref(region.image.u32(slot));
        match Addresses(region.align).place(r) {
            _ if target.nullable => false,
            _ if !r.is_object() => r.is_null(),
            Place::File(to) => region.walk.index(to).is_none() || out.contains(&to),
            _ => false,
        }
    };
    match (info.element, info.refs.first()) {
        (0, _) => info
            .refs
            .iter()
            .any(|(offset, target)| is_lost(at + u64::from(*offset), target)),
        (_, Some((_, target))) if !target.nullable => {
            let length = u64::from(region.image.u32(at + ARRAY_LENGTH as u64));
            (0..length).any(|i| is_lost(at + u64::from(info.size) + 4 * i, target))
        }
        _ => false,
    }
}

/// Turns the one bit back that makes a page's checksum wrong, if it is one.
fn repair(image: &mut Image, page: u64) -> Option<String> {
    let Mark::Sealed { lines, sum } = pages::mark(image, page) else {
        return None;
    };
    let mut bytes = image.bytes(page * PAGE, PAGE);
    let bit = pages::wrong_bit(&bytes, lines, sum)?;
    let Some(bit) = bit else {
        return Some(format!(
            "the mark of the page at {:#x} had a wrong bit",
            page * PAGE
        ));
    };
    bytes[bit / 8] ^= 1 << (bit % 8);
    let at = page * PAGE + bit as u64 / 8;
    image.write(at, &bytes[bit / 8..bit / 8 + 1]);
    Some(format!("bit {} of the byte at {at:#x} was wrong", bit % 8))
}
