//! How a region of one program becomes a region of another: which type of the old tables is which of the new ones, field by field.
//!
//! A [`Plan`] depends on the old tables, the live types of the region, and the new tables alone. The code that copies objects follows it without
//! further checks; an incompatible change is an error here, before anything is modified.
//!
//! | in the program | in the region |
//! |---|---|
//! | a field was added | zero or null |
//! | a field was removed | left out, if no new field could be the same one under another name |
//! | a field or a class was renamed | found by the old name, which the program says ([`Tables::renamed`]) |
//! | a number became wider | converted, if no value is lost: `byte`, `short`, `int`, `long`; `float`, `double`; integers to wider floats |
//! | a field has another class | copied; the copier checks that each object fits |
//! | a field moved to a superclass, a class has another superclass | found by its name |
//! | a class was removed | forgotten, if none of its objects is alive |

mod fields;
mod names;

use crate::class_data::{Held, Late};
use crate::types::{Heap, Kind, Storage, Tables, Target};
use fields::map_fields;
use names::Names;
pub use names::{each_class, without_number};
use std::collections::{HashMap, HashSet};
use varve_heap::ObjectAlign;

/// The parts of a region that must be mapped.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// By type: whether there are objects of it.
    pub types: Vec<bool>,
    /// Offsets of the constants that objects and roots refer to.
    pub constants: HashSet<u32>,
    /// The names of objects that the program makes in each run: see [`Named::of`](crate::Named::of).
    pub named: Vec<String>,
}

/// How a region's objects become those of another program.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// By the old number of a type; none where nothing of it is alive.
    pub types: Vec<Option<TypePlan>>,
    /// By the old offset of a constant: its new one. Those that live all have one.
    pub constants: HashMap<u32, u32>,
    /// Class data that the program makes while it runs and that live, for the new program.
    pub late: Vec<Late>,
    /// The new names of objects that the program makes in each run.
    pub named: HashMap<String, String>,
}

/// How objects of a type become objects of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePlan {
    /// The new type, by its number.
    pub to: u32,
    /// For structs: the source of each field. Fields that no step writes are zero or null.
    pub steps: Vec<FieldConversion>,
    /// For arrays: the conversion of each element.
    pub element: Option<Convert>,
    /// Those steps whose references may lead to an object that does not fit any more. The copier calls [`Plan::fits`] first.
    pub narrowed: Vec<Narrowed>,
}

/// A field that has another class than it had, which not all objects are that may be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The field's offset in the old object.
    pub from: u32,
    /// Its name.
    pub field: String,
    /// The target that the field may have now.
    pub target: Target,
}

/// One field: from an offset in the old object to one in the new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FieldConversion {
    pub from: u32,
    pub to: u32,
    pub convert: Convert,
}

/// The conversion of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convert {
    /// Copies this number of bytes unchanged.
    Same(u32),
    /// A reference to where the object is now.
    Reference,
    /// A wider number.
    Wider(Number, Number),
}

/// Numbers as objects hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Number {
    I8,
    I16,
    U16,
    I32,
    I64,
    F32,
    F64,
}

impl Number {
    fn of(storage: &Storage) -> Option<Number> {
        Some(match storage {
            Storage::I8 => Number::I8,
            Storage::I16 => Number::I16,
            Storage::U16 => Number::U16,
            Storage::I32 => Number::I32,
            Storage::I64 => Number::I64,
            Storage::F32 => Number::F32,
            Storage::F64 => Number::F64,
            Storage::Ref(_) | Storage::Func => return None,
        })
    }

    /// Bytes that it takes.
    pub fn bytes(self) -> u32 {
        match self {
            Number::I8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::F32 => 4,
            Number::I64 | Number::F64 => 8,
        }
    }

    /// Bits of a number without loss, and whether it is a float, and whether it has a sign.
    fn range(self) -> (u32, bool, bool) {
        match self {
            Number::I8 => (7, false, true),
            Number::I16 => (15, false, true),
            Number::U16 => (16, false, false),
            Number::I32 => (31, false, true),
            Number::I64 => (63, false, true),
            Number::F32 => (24, true, true),
            Number::F64 => (53, true, true),
        }
    }

    /// Whether each value of this kind is one of the other kind too.
    fn widens_to(self, other: Number) -> bool {
        let ((bits, float, sign), (room, to_float, to_sign)) = (self.range(), other.range());
        bits <= room && (!float || to_float) && (!sign || to_sign)
    }
}

impl Convert {
    /// The conversion from a field of one kind to another, if it is lossless.
    pub fn between(old: &Storage, new: &Storage) -> Option<Convert> {
        if let (Storage::Ref(_), Storage::Ref(_)) = (old, new) {
            return Some(Convert::Reference);
        }
        let (from, to) = (Number::of(old)?, Number::of(new)?);
        // Older regions do not tell characters from short numbers.
        let same = from == to
            || [from, to]
                .iter()
                .all(|n| matches!(n, Number::I16 | Number::U16));
        match same {
            true => Some(Convert::Same(from.bytes())),
            false => from.widens_to(to).then_some(Convert::Wider(from, to)),
        }
    }

    /// Bytes of the value that is written.
    pub fn bytes(self) -> u32 {
        match self {
            Convert::Same(bytes) => bytes,
            Convert::Reference => 4,
            Convert::Wider(_, to) => to.bytes(),
        }
    }

    /// Bytes of the value that is read.
    pub fn reads(self) -> u32 {
        match self {
            Convert::Wider(from, _) => from.bytes(),
            other => other.bytes(),
        }
    }

    /// The bits of a number as they become; the old ones are in the low bytes. References are the copier's matter.
    pub fn apply(self, bits: u64) -> u64 {
        let Convert::Wider(from, to) = self else {
            return bits;
        };
        let float = match from {
            Number::F32 => Some(f64::from(f32::from_bits(bits as u32))),
            Number::F64 => Some(f64::from_bits(bits)),
            _ => None,
        };
        let integer = match from {
            Number::I8 => i64::from(bits as i8),
            Number::I16 => i64::from(bits as i16),
            Number::U16 => i64::from(bits as u16),
            Number::I32 => i64::from(bits as i32),
            _ => bits as i64,
        };
        match to {
            Number::F64 => float.unwrap_or(integer as f64).to_bits(),
            Number::F32 => u64::from(float.map_or(integer as f32, |f| f as f32).to_bits()),
            _ => integer as u64 & (u64::MAX >> (64 - 8 * to.bytes())),
        }
    }
}

impl Plan {
    /// Plans the way from one program's tables to another's.
    ///
    /// # Errors
    /// One line with the class and field that cannot be mapped, and the remedy.
    pub fn new(
        old: &Tables,
        late: &[Late],
        live: &Live,
        new: &Tables,
        align: ObjectAlign,
    ) -> Result<Plan, String> {
        let mut planner = Planner {
            names: Names::new(old, new)?,
            refused: new.infos(align).into_iter().map(|i| i.refused).collect(),
            old,
            new,
            align,
            plan: Plan {
                types: vec![None; old.types.len()],
                ..Plan::default()
            },
        };
        for ty in 0..old.types.len() as u32 {
            if live.types.get(ty as usize) == Some(&true) {
                planner.add_type(ty)?;
            }
        }
        planner.add_narrowed();
        planner.add_constants(late, live)?;
        for of in &live.named {
            let now = planner.names.new_static(of);
            planner.plan.named.insert(of.clone(), now);
        }
        Ok(planner.plan)
    }

    /// Whether an object of an old type may be where a field of the old type `holder` refers to it, after it was copied.
    ///
    /// # Errors
    /// With class and field.
    pub fn fits(
        &self,
        old: &Tables,
        new: &Tables,
        holder: u32,
        field: &Narrowed,
        ty: u32,
    ) -> Result<(), String> {
        match self.of_type(ty) {
            Some(planned) if new.fits(planned.to, field.target.to) => Ok(()),
            _ => {
                let wanted = match field.target.to {
                    Heap::Type(to) => new.name(to),
                    other => format!("{other:?}"),
                };
                Err(format!(
                    "field {} of {} holds a {}, and is to hold a {wanted} now",
                    field.field,
                    old.name(holder),
                    old.name(ty)
                ))
            }
        }
    }

    /// Whether a constant of an enumeration, by its name in the region, can be one of the new program's: `ty` is the type that it would have.
    pub(crate) fn check_constant(
        &self,
        old: &Tables,
        new: &Tables,
        enumeration: u32,
        ty: u32,
        constant: &str,
    ) -> Result<(), String> {
        let class = new.name(enumeration);
        let of_class = || {
            let all = new.renamed.iter().filter(|r| r.class == class);
            all.filter(|r| r.field.is_some())
        };
        let renamed = of_class().find(|r| r.was == constant);
        if let Some(to) = renamed
            && of_class().any(|r| r.field.as_deref() == Some(constant))
            && !old.applied().contains(to)
        {
            return Err(format!(
                "constant {constant} of the enumeration {class} gives its name to another one: rename it through a third name, in two versions of the program, and open the region with each"
            ));
        }
        let now = renamed.and_then(|r| r.field.as_deref()).unwrap_or(constant);
        let own = format!("{class}.{now}");
        let is_own = |&(i, t): &(usize, &crate::types::Type)| {
            t.name == own && new.enumeration_of(i as u32) == Some(enumeration)
        };
        match new.types.iter().enumerate().find(is_own) {
            Some((i, _)) if i as u32 != ty => {
                Err(code_of_its_own(&class, constant, "had no", "has some now"))
            }
            _ => Ok(()),
        }
    }

    /// How objects of a type are copied, if any of it are alive.
    pub fn of_type(&self, ty: u32) -> Option<&TypePlan> {
        self.types.get(ty as usize)?.as_ref()
    }
}

/// Types and fields that a new program lacks, by type of the old one.
pub(crate) struct Gone {
    /// Whether its objects are constants of an enumeration that is none any more, or is not there.
    pub constants: Vec<bool>,
    /// Whether the class is not there.
    pub classes: Vec<bool>,
}

/// Types and fields that a new program lacks.
///
/// # Errors
/// As [`Plan::new`].
pub(crate) fn gone(old: &Tables, new: &Tables) -> Result<Gone, String> {
    let names = Names::new(old, new)?;
    let is_named = |ty: u32| new.types[ty as usize].named_by.is_some();
    let types = || (0u32..).zip(&old.types);
    let is_gone = |(ty, t): (u32, &crate::types::Type)| {
        t.named_by.is_some() && !names.new_type(ty).is_some_and(is_named)
    };
    Ok(Gone {
        constants: types().map(is_gone).collect(),
        classes: types()
            .map(|(ty, _)| names.new_type(ty).is_none())
            .collect(),
    })
}

/// The remedy if a class of the region is not in the program.
fn missing(class: &str) -> String {
    let keep =
        "build it with `varve build --region FILE`, which keeps the classes that the region has";
    let library = ["java.", "javax.", "jdk.", "org.teavm."];
    match library.iter().any(|l| class.starts_with(l)) {
        true => format!("use the class somewhere in this version of the program, or {keep}"),
        false => format!(
            "if the class has another name now, write @Renamed(\"{class}\") before it; if it is in the source as before, the compiler left it out: use it somewhere in this version of the program, or {keep}"
        ),
    }
}

/// The class in a name that the compiler made of it, such as `Array<a.B>@vt`.
fn class_in(name: &str) -> &str {
    let end = name.find(['@', '>']).unwrap_or(name.len());
    let begin = name[..end].rfind('<').map_or(0, |at| at + 1);
    &name[begin..end]
}

/// The message for a constant that has another class now.
pub(crate) fn code_of_its_own(class: &str, constant: &str, before: &str, now: &str) -> String {
    format!(
        "constant {constant} of the enumeration {class} {before} code of its own (`{constant} {{ ... }}`) and {now}: it would be an object of another class; let it be as it was, or have a new constant of another name and keep this one until nothing durable refers to it"
    )
}

struct Planner<'a> {
    old: &'a Tables,
    new: &'a Tables,
    names: Names,
    /// The alignment of objects of the new region, class data too.
    align: ObjectAlign,
    /// Why the new program's types must not be in a region.
    refused: Vec<Option<String>>,
    plan: Plan,
}

impl Planner<'_> {
    fn add_type(&mut self, ty: u32) -> Result<(), String> {
        if self.plan.types[ty as usize].is_some() {
            return Ok(());
        }
        let (name, described) = (self.old.name(ty), self.old.described(ty));
        let Some(to) = self.names.new_type(ty) else {
            return Err(match self.old.enumeration_of(ty) {
                Some(e) if e != ty => {
                    let class = self.old.name(e);
                    let constant = name.strip_prefix(class.as_str());
                    let constant = constant.and_then(|n| n.strip_prefix('.')).unwrap_or(&name);
                    code_of_its_own(
                        &class,
                        constant,
                        "had",
                        "has none in this version, or is not there",
                    )
                }
                _ => format!(
                    "there are objects of {described}, which it does not have; {}",
                    missing(&name)
                ),
            });
        };
        let is_named = |tables: &Tables, ty: u32| tables.types[ty as usize].named_by.is_some();
        match (is_named(self.old, ty), is_named(self.new, to)) {
            (true, false) => {
                return Err(format!(
                    "{name} was an enumeration and is none now, and the region has its constants: give what it is now another name, and keep the enumeration until nothing durable refers to its constants"
                ));
            }
            (false, true) => {
                return Err(format!(
                    "{name} was no enumeration and is one now, and the region has objects of it, which are none of its constants: give the enumeration another name, and keep the class until nothing durable refers to its objects"
                ));
            }
            _ => {}
        }
        if let Some(why) = &self.refused[to as usize] {
            return Err(format!(
                "there are objects of {described}, which must not be durable: {why}"
            ));
        }
        let planned = match (
            &self.old.types[ty as usize].kind,
            &self.new.types[to as usize].kind,
        ) {
            (Kind::Array(a), Kind::Array(b)) => match Convert::between(a, b) {
                // Arrays keep their kind: their class is another one otherwise.
                Some(same @ (Convert::Same(_) | Convert::Reference)) => TypePlan {
                    to,
                    steps: Vec::new(),
                    element: Some(same),
                    narrowed: Vec::new(),
                },
                _ => return Err(format!("{name} is something else")),
            },
            (Kind::Struct { .. }, Kind::Struct { .. }) => TypePlan {
                to,
                steps: map_fields(self.old, ty, self.new, to, &self.names)?,
                element: None,
                narrowed: Vec::new(),
            },
            _ => return Err(format!("{name} is something else")),
        };
        self.plan.types[ty as usize] = Some(planned);
        Ok(())
    }

    /// Finds the fields whose objects may not fit any more.
    fn add_narrowed(&mut self) {
        let live: Vec<(u32, u32)> = (0u32..)
            .zip(&self.plan.types)
            .filter_map(|(ty, planned)| Some((ty, planned.as_ref()?.to)))
            .collect();
        let (old, new) = (self.old, self.new);
        for &(ty, to) in &live {
            let target = |tables: &Tables, ty, offset| {
                let field = fields::of(tables, ty).iter().find(|f| f.offset == offset)?;
                match field.storage {
                    Storage::Ref(target) => Some((field.name.clone(), target)),
                    _ => None,
                }
            };
            let planned = self.plan.types[ty as usize].as_mut().expect("just listed");
            for step in &planned.steps {
                let (Some((field, was)), Some((_, target))) =
                    (target(old, ty, step.from), target(new, to, step.to))
                else {
                    continue;
                };
                let fails =
                    |&(l, now): &(u32, u32)| old.fits(l, was.to) && !new.fits(now, target.to);
                if live.iter().any(fails) {
                    planned.narrowed.push(Narrowed {
                        from: step.from,
                        field,
                        target,
                    });
                }
            }
        }
    }

    /// Constants by name; after them class data that the program makes while it runs, as far as something needs them.
    fn add_constants(&mut self, late: &[Late], live: &Live) -> Result<(), String> {
        let new: HashMap<&str, u32> = self
            .new
            .constants
            .iter()
            .map(|c| (c.name.as_str(), c.offset))
            .collect();
        for c in &self.old.constants {
            if let Some(&to) = new.get(self.names.new_name(&c.name).as_str()) {
                self.plan.constants.insert(c.offset, to);
            }
        }
        let needed = needed(late, live);
        let size = |ty: u32| match self.new.types.get(ty as usize).map(|t| &t.kind) {
            Some(Kind::Struct { size, .. }) => self.align.object_size(u64::from(*size)) as u32,
            _ => self.align.bytes() as u32,
        };
        let mut next = self
            .new
            .constants
            .last()
            .map_or(0, |c| c.offset + size(c.ty));
        let mut needed: Vec<&Late> = late.iter().filter(|l| needed.contains(&l.offset)).collect();
        // Class data that an older version made on demand may be made at startup by another. A program that does both means two.
        let before: HashSet<&str> = self.old.constants.iter().map(|c| c.name.as_str()).collect();
        needed.retain(|l| match new.get(self.names.new_name(&l.name).as_str()) {
            Some(&to) if !before.contains(l.name.as_str()) => {
                self.plan.constants.insert(l.offset, to);
                false
            }
            _ => true,
        });
        for l in &needed {
            let Some(to) = self.names.new_type(l.ty) else {
                let name = self.old.name(l.ty);
                return Err(format!(
                    "it needs class data of type {name}, which it does not have; {}",
                    missing(class_in(&name))
                ));
            };
            self.plan.constants.insert(l.offset, next);
            next += size(to);
        }
        for &offset in &live.constants {
            self.constant(offset)?;
        }
        for l in needed {
            let mapped = self.late(l, late)?;
            self.plan.late.push(mapped);
        }
        Ok(())
    }

    /// The new offset of a constant.
    fn constant(&self, offset: u32) -> Result<u32, String> {
        let found = self.plan.constants.get(&offset).copied();
        found.ok_or_else(|| {
            let named = self.old.constants.iter().find(|c| c.offset == offset);
            let name =
                named.map_or_else(|| format!("class data at {offset:#x}"), |c| c.name.clone());
            format!(
                "it needs {name}, which it does not have; {}",
                missing(class_in(&name))
            )
        })
    }

    /// Class data of the old program as the new one makes them.
    fn late(&self, late: &Late, all: &[Late]) -> Result<Late, String> {
        let to = self
            .names
            .new_type(late.ty)
            .expect("looked up before its place was given");
        // Tables of methods lose and gain entries with each version: the program fills in the new ones.
        let steps = fields::same_names(self.old, late.ty, self.new, to, &self.names);
        let (before, now) = (fields::of(self.old, late.ty), fields::of(self.new, to));
        let mut held = vec![Held::Null; now.len()];
        for (field, value) in before.iter().zip(&late.held) {
            let at = steps.iter().find(|s| s.0 == field.offset).map(|s| s.1);
            let Some(i) = now.iter().position(|n| Some(n.offset) == at) else {
                continue;
            };
            held[i] = match value {
                Held::Class(at) => Held::Class(self.constant(*at)?),
                other => other.clone(),
            };
        }
        let link = match late.link {
            None => None,
            Some((base, offset)) => {
                let of = self
                    .old
                    .constants
                    .iter()
                    .find(|c| c.offset == base)
                    .map(|c| c.ty);
                let of = of.or_else(|| all.iter().find(|l| l.offset == base).map(|l| l.ty));
                let at = of.and_then(|ty| {
                    let to = self.names.new_type(ty)?;
                    let steps = fields::same_names(self.old, ty, self.new, to, &self.names);
                    steps.iter().find(|s| s.0 == offset).map(|s| s.1)
                });
                let at = at.ok_or_else(|| {
                    format!(
                        "its class data are kept otherwise than those of {}",
                        self.old.name(late.ty)
                    )
                })?;
                Some((self.constant(base)?, at))
            }
        };
        Ok(Late {
            offset: self.constant(late.offset)?,
            ty: to,
            link,
            held,
            name: self.names.new_name(&late.name),
        })
    }
}

/// Class data that something alive refers to, or other class data that something alive refers to.
fn needed(late: &[Late], live: &Live) -> HashSet<u32> {
    let mut needed = HashSet::new();
    let mut pending: Vec<u32> = live.constants.iter().copied().collect();
    while let Some(offset) = pending.pop() {
        let Some(l) = late.iter().find(|l| l.offset == offset) else {
            continue;
        };
        if needed.insert(offset) {
            pending.extend(l.link.map(|(base, _)| base));
            pending.extend(l.held.iter().filter_map(|h| match h {
                Held::Class(at) => Some(*at),
                _ => None,
            }));
        }
    }
    needed
}

#[cfg(test)]
mod tests;
