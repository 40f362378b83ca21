//! Copies what is reachable in a region into a new one: without garbage, or for a program whose types changed.
//!
//! The new region is written beside the old one, in a file that is mapped, and takes its name once all of it is in the medium: a crash leaves
//! one of both.

use crate::class_data::{Held, Late};
use crate::domain::{Domain, Fence};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::inspect::Inspection;
use crate::layout::*;
use crate::space::Space;
use crate::types::{Field, Kind, Storage, Tables};
use crate::walk::{Place, header_of, place, size_of_object};
use std::collections::HashMap;
use std::io;
use varve_heap::layout::*;
use varve_heap::{Header, Ref};

/// The region is written as a whole, once it is done.
struct Later;

impl Domain for Later {
    fn name(&self) -> &'static str {
        "file"
    }

    fn write_back(&mut self, _: *const u8, _: u64) {}

    fn fence(&mut self, _: Fence) -> io::Result<()> {
        Ok(())
    }
}

/// How objects of a type become objects of another program's type of the same name.
struct TypeMap {
    to: u32,
    /// For structs: where in the old object, where in the new one, bytes, whether it is a reference.
    fields: Vec<(u32, u32, u32, bool)>,
}

/// The bytes of a region with the same objects, for a program with these tables.
///
/// # Errors
/// If objects do not fit the program's types.
pub fn rewritten(old: &Inspection, tables: &Tables) -> Result<Vec<u8>> {
    let capacity = 2 * old.image.len() + 2 * MOST_GROWTH;
    Ok(rewrite(old, tables, Image::memory(&[], capacity))?.to_vec())
}

/// The same, written into an image without bytes; closed in order.
pub(crate) fn rewrite(old: &Inspection, tables: &Tables, image: Image) -> Result<Image> {
    rewrite_without(old, tables, image, &|_| false)
}

/// The same without some objects: what referred to them is null.
pub(crate) fn rewrite_without(
    old: &Inspection,
    tables: &Tables,
    image: Image,
    lost: &dyn Fn(u64) -> bool,
) -> Result<Image> {
    let changed = |what: String| Error::OtherProgram {
        path: old.path().into(),
        what,
    };
    let mut used: Vec<bool> = old.walk.by_type.iter().map(|c| c.0 > 0).collect();
    old.late.iter().for_each(|l| used[l.ty as usize] = true);
    let by_name = names(tables);
    let old_names = numbered(&old.tables);
    let mut maps: HashMap<u32, TypeMap> = HashMap::new();
    for ty in (0..used.len() as u32).filter(|&ty| used[ty as usize]) {
        let same = old.tables.types.get(ty as usize) == tables.types.get(ty as usize);
        let to = match by_name.get(&old_names[ty as usize]) {
            Some(&to) => to,
            None if same => ty,
            None => {
                return Err(changed(format!(
                    "there are objects of type {}, which it does not have",
                    old.tables.name(ty)
                )));
            }
        };
        let fields = map_fields(old, ty, tables, to).map_err(&changed)?;
        maps.insert(ty, TypeMap { to, fields });
    }
    let constants = map_constants(old, tables);
    let infos = tables.infos();
    let mut new = Space::create(old.path(), image, Box::new(Later), tables.clone())?;
    // Places first, then contents: references lead anywhere.
    let mut places = vec![0; old.walk.objects.len()];
    for (&at, place) in old.walk.objects.iter().zip(&mut places) {
        if lost(at) {
            continue;
        }
        let ty = Header(old.image.u64(at)).type_index();
        let to = maps[&ty].to;
        let info = &infos[to as usize];
        let bytes = match info.element {
            0 => u64::from(info.size),
            _ => size_of_object(&old.image, at, &old.infos[ty as usize]),
        };
        *place = new.allocate(bytes)?;
        new.image.write(*place, &header_of(to).to_le_bytes());
    }
    let moved = |r: Ref| -> Result<Ref> {
        match place(r) {
            _ if !r.is_object() => Ok(r),
            Place::File(at) => Ok(match old.walk.index(at).map(|i| places[i]) {
                None | Some(0) => Ref::NULL,
                Some(to) => Space::reference(to),
            }),
            Place::Constant(offset) => match constants.get(&(offset as u32)) {
                Some(&to) => Ok(Ref(((CONSTANTS_START + u64::from(to)) >> REF_SHIFT) as u32)),
                None => Err(changed(format!(
                    "it needs {}, which it does not have",
                    constant_name(old, offset)
                ))),
            },
            Place::Outside => Ok(r),
        }
    };
    for (&at, &to) in old.walk.objects.iter().zip(&places) {
        if to == 0 {
            continue;
        }
        let ty = Header(old.image.u64(at)).type_index();
        let info = &old.infos[ty as usize];
        if info.element == 0 {
            for &(from, at_new, bytes, is_ref) in &maps[&ty].fields {
                match is_ref {
                    true => {
                        let r = moved(Ref(old.image.u32(at + u64::from(from))))?;
                        new.image.write(to + u64::from(at_new), &r.0.to_le_bytes());
                    }
                    false => {
                        let mut held = [0; 8];
                        let held = &mut held[..bytes as usize];
                        old.image.read(at + u64::from(from), held);
                        new.image.write(to + u64::from(at_new), held);
                    }
                }
            }
            continue;
        }
        let bytes = size_of_object(&old.image, at, info);
        let held = old.image.bytes(at + 8, bytes - 8);
        new.image.write(to + 8, &held);
        if !info.refs.is_empty() {
            let length = u64::from(old.image.u32(at + ARRAY_LENGTH as u64));
            for i in 0..length {
                let slot = u64::from(info.size) + 4 * i;
                let r = moved(Ref(old.image.u32(at + slot)))?;
                new.image.write(to + slot, &r.0.to_le_bytes());
            }
        }
    }
    for late in &old.late {
        new.add_late(map_late(old, late, &maps, &constants, tables).map_err(&changed)?)?;
    }
    for &r in &old.named {
        let to = moved(r)?;
        if !to.is_null() {
            new.new_named.push(Space::offset_of(to.offset()));
        }
    }
    new.add_named()?;
    for root in &old.roots {
        new.set_root(&root.name, moved(root.object)?)?;
    }
    if let Some(damage) = new.check().damages.first() {
        return Err(changed(damage.to_string()));
    }
    new.into_image()
}

/// Types by name; of those with one name, the first is called `name`, the next `name#1`.
fn names(tables: &Tables) -> HashMap<String, u32> {
    let numbered = numbered(tables).into_iter().enumerate();
    numbered
        .filter(|(_, name)| !name.is_empty())
        .map(|(i, name)| (name, i as u32))
        .collect()
}

fn numbered(tables: &Tables) -> Vec<String> {
    let mut before: HashMap<&str, u32> = HashMap::new();
    let name = |t: &'_ crate::types::Type, nth: u32| match nth {
        _ if t.name.is_empty() => String::new(),
        0 => t.name.clone(),
        n => format!("{}#{n}", t.name),
    };
    let mut all = Vec::new();
    for t in &tables.types {
        let nth = before.entry(&t.name).or_default();
        all.push(name(t, *nth));
        *nth += 1;
    }
    all
}

fn map_fields(
    old: &Inspection,
    ty: u32,
    tables: &Tables,
    to: u32,
) -> std::result::Result<Vec<(u32, u32, u32, bool)>, String> {
    let name = old.tables.name(ty);
    let same = |a: &Storage, b: &Storage| match (a, b) {
        (Storage::Ref(_), Storage::Ref(_)) => true,
        (a, b) => a == b,
    };
    match (
        &old.tables.types[ty as usize].kind,
        &tables.types[to as usize].kind,
    ) {
        (Kind::Array(a), Kind::Array(b)) if same(a, b) => Ok(Vec::new()),
        (Kind::Struct { fields: a, .. }, Kind::Struct { fields: b, .. }) => {
            let find = |f: &Field, i: usize| match f.name.is_empty() {
                true => b.get(i).filter(|n| n.name.is_empty()),
                false => b.iter().find(|n| n.name == f.name),
            };
            let mut map = Vec::new();
            for (i, f) in a.iter().enumerate() {
                let Some(n) = find(f, i) else {
                    return Err(format!("field {} of {name} is not there any more", f.name));
                };
                if !same(&f.storage, &n.storage) {
                    return Err(format!("field {} of {name} has another type", f.name));
                }
                let is_ref = matches!(f.storage, Storage::Ref(_));
                map.push((f.offset, n.offset, f.storage.bytes(), is_ref));
            }
            let kept = |n: &Field| map.iter().any(|m| m.1 == n.offset);
            for n in b.iter().filter(|n| !kept(n)) {
                if matches!(n.storage, Storage::Ref(t) if !t.nullable) {
                    return Err(format!(
                        "field {} of {name} is new and has no default",
                        n.name
                    ));
                }
            }
            Ok(map)
        }
        _ => Err(format!("{name} is something else")),
    }
}

/// Offsets of constants in the old and the new program, those that are made later too.
fn map_constants(old: &Inspection, tables: &Tables) -> HashMap<u32, u32> {
    let new: HashMap<&str, u32> = tables
        .constants
        .iter()
        .map(|c| (c.name.as_str(), c.offset))
        .collect();
    let named = old.tables.constants.iter();
    let mut map: HashMap<u32, u32> = named
        .filter_map(|c| Some((c.offset, *new.get(c.name.as_str())?)))
        .collect();
    let size = |ty: u32, tables: &Tables| match tables.types.get(ty as usize).map(|t| &t.kind) {
        Some(Kind::Struct { size, .. }) => *size,
        _ => 8,
    };
    let by_name = names(tables);
    let mut next = tables
        .constants
        .last()
        .map_or(0, |c| c.offset + size(c.ty, tables));
    for late in &old.late {
        map.insert(late.offset, next);
        let ty = by_name
            .get(&old.tables.name(late.ty))
            .copied()
            .unwrap_or(late.ty);
        next += size(ty, tables);
    }
    map
}

fn map_late(
    old: &Inspection,
    late: &Late,
    maps: &HashMap<u32, TypeMap>,
    constants: &HashMap<u32, u32>,
    tables: &Tables,
) -> std::result::Result<Late, String> {
    let map = &maps[&late.ty];
    let fields = |tables: &Tables, ty: u32| match &tables.types[ty as usize].kind {
        Kind::Struct { fields, .. } => fields.clone(),
        _ => Vec::new(),
    };
    let moved = |at: u32| {
        let to = constants.get(&at).copied();
        to.ok_or_else(|| {
            format!(
                "it needs {}, which it does not have",
                constant_name(old, u64::from(at))
            )
        })
    };
    let (before, now) = (fields(&old.tables, late.ty), fields(tables, map.to));
    let mut held = vec![Held::Null; now.len()];
    for (field, value) in before.iter().zip(&late.held) {
        let to = map.fields.iter().find(|m| m.0 == field.offset).map(|m| m.1);
        let Some(i) = now.iter().position(|n| Some(n.offset) == to) else {
            continue;
        };
        held[i] = match value {
            Held::Class(at) => Held::Class(moved(*at)?),
            other => other.clone(),
        };
    }
    let link = match late.link {
        None => None,
        Some((base, offset)) => {
            let of = old
                .tables
                .constants
                .iter()
                .find(|c| c.offset == base)
                .map(|c| c.ty);
            let of = of.or_else(|| old.late.iter().find(|l| l.offset == base).map(|l| l.ty));
            let field = of.and_then(|ty| {
                fields(&old.tables, ty)
                    .into_iter()
                    .find(|f| f.offset == offset)
            });
            let ty = tables
                .constants
                .iter()
                .find(|c| Some(&c.offset) == constants.get(&base))
                .map(|c| c.ty);
            let ty = ty.or_else(|| of.and_then(|ty| maps.get(&ty)).map(|m| m.to));
            let now = match (field, ty) {
                (Some(f), Some(ty)) => fields(tables, ty).into_iter().find(|n| n.name == f.name),
                _ => None,
            };
            Some((moved(base)?, now.map_or(offset, |n| n.offset)))
        }
    };
    Ok(Late {
        offset: moved(late.offset)?,
        ty: map.to,
        link,
        held,
    })
}

fn constant_name(old: &Inspection, offset: u64) -> String {
    let named = old
        .tables
        .constants
        .iter()
        .find(|c| u64::from(c.offset) == offset);
    named.map_or_else(|| format!("class data at {offset:#x}"), |c| c.name.clone())
}
