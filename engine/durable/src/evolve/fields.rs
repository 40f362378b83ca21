//! Which field of one class is which of another version of it.
//!
//! A struct has the fields of its superclasses first, each class's after those of the class that it extends. A field is known by the class
//! that declares it and by its name there: classes may declare fields that their superclasses have too.

use super::names::{Names, without_number};
use super::{Convert, FieldConversion};
use crate::types::{Field, Kind, Storage, Tables};

/// A field, with the class that declares it.
struct Declared<'a> {
    class: String,
    field: &'a Field,
    /// Its name in its class.
    name: &'a str,
    /// The field of the other version that it is.
    found: Option<usize>,
}

/// The fields of a struct; none of other types.
pub(super) fn of(tables: &Tables, ty: u32) -> &[Field] {
    match tables.types.get(ty as usize).map(|t| &t.kind) {
        Some(Kind::Struct { fields, .. }) => fields,
        _ => &[],
    }
}

/// The fields of a struct with the classes that declare them.
fn declared(tables: &Tables, ty: u32) -> Vec<Declared<'_>> {
    let mut chain = vec![ty];
    while let Some(next) = tables.types[*chain.last().expect("begins with one") as usize].supertype
    {
        // Supertypes have lower numbers, whatever a file says.
        if next >= *chain.last().expect("begins with one") {
            break;
        }
        chain.push(next);
    }
    let fields = of(tables, ty);
    let mut all: Vec<Declared<'_>> = Vec::new();
    for &class in chain.iter().rev() {
        let end = of(tables, class).len().min(fields.len());
        let name = &tables.types[class as usize].name;
        for field in fields.get(all.len()..end).unwrap_or_default() {
            let own = field
                .name
                .strip_prefix(name.as_str())
                .and_then(|n| n.strip_prefix('.'));
            all.push(Declared {
                class: name.clone(),
                field,
                name: own.unwrap_or(&field.name),
                found: None,
            });
        }
    }
    all
}

/// Which old field is which new one: pairs are recorded in both.
fn pair(old: &mut [Declared<'_>], new: &mut [Declared<'_>], names: &Names) {
    let class = |o: &Declared<'_>| names.new_name(&o.class);
    type Same<'s> = &'s dyn Fn(&Declared<'_>, &Declared<'_>) -> bool;
    // Where the region has the new name already, it was opened with it before: unless the field that has it gives it up at the same time.
    let there: Vec<(String, String)> = old.iter().map(|o| (class(o), o.name.to_string())).collect();
    let known = |n: &Declared<'_>| {
        names.new_field(&n.class, n.name).is_none()
            && there.iter().any(|t| t.0 == n.class && t.1 == n.name)
    };
    let renamed = |o: &Declared<'_>, n: &Declared<'_>| {
        let of = |name: &str| names.new_field(&n.class, name) == Some(n.name);
        !known(n) && (of(o.name) || (!names.exact && of(without_number(o.name))))
    };
    let named = |o: &Declared<'_>, n: &Declared<'_>| !o.name.is_empty() && o.name == n.name;
    let numbered = |o: &Declared<'_>, n: &Declared<'_>| {
        !names.exact && !o.name.is_empty() && without_number(o.name) == without_number(n.name)
    };
    let of_one_class = |o: &Declared<'_>, n: &Declared<'_>| class(o) == n.class;
    let can_be = |o: &Declared<'_>, n: &Declared<'_>| {
        Convert::between(&o.field.storage, &n.field.storage).is_some()
    };
    // Renames that the program declares come first, then fields of the same class, then fields that moved to another class.
    let rules: [(Same<'_>, bool); 6] = [
        (&|o, n| of_one_class(o, n) && renamed(o, n), false),
        (&|o, n| of_one_class(o, n) && named(o, n), false),
        (&|o, n| of_one_class(o, n) && numbered(o, n), false),
        (&|o, n| renamed(o, n), true),
        (&|o, n| named(o, n), true),
        (&|o, n| numbered(o, n), true),
    ];
    for (same, alone) in rules {
        for i in 0..old.len() {
            if old[i].found.is_some() {
                continue;
            }
            let fits = |k: &usize| new[*k].found.is_none() && same(&old[i], &new[*k]);
            let mut all: Vec<usize> = (0..new.len()).filter(fits).collect();
            // A name in another class means the same field only if nothing else could: of several, those that cannot hold the value
            // are other fields.
            if alone && all.len() > 1 {
                all.retain(|k| can_be(&old[i], &new[*k]));
            }
            let others = |k: usize| {
                (0..old.len()).any(|j| {
                    let free = j != i && old[j].found.is_none();
                    free && same(&old[j], &new[k]) && can_be(&old[j], &new[k])
                })
            };
            if let Some(&k) = all.first()
                && !(alone && (all.len() > 1 || others(k)))
            {
                old[i].found = Some(k);
                new[k].found = Some(i);
            }
        }
    }
    // Fields without names are known by where they stand.
    for i in 0..old.len().min(new.len()) {
        if old[i].name.is_empty() && new[i].name.is_empty() && old[i].found.is_none() {
            old[i].found = Some(i);
            new[i].found = Some(i);
        }
    }
}

/// Offsets of the fields that have one name in both, whatever they hold.
pub(super) fn same_names(
    old: &Tables,
    ty: u32,
    new: &Tables,
    to: u32,
    names: &Names,
) -> Vec<(u32, u32)> {
    let (mut before, mut now) = (declared(old, ty), declared(new, to));
    pair(&mut before, &mut now, names);
    let pairs = before
        .iter()
        .filter_map(|o| Some((o.field.offset, now[o.found?].field.offset)));
    pairs.collect()
}

/// Maps each new field to the old one that it is copied from.
pub(super) fn map_fields(
    old: &Tables,
    ty: u32,
    new: &Tables,
    to: u32,
    names: &Names,
) -> Result<Vec<FieldConversion>, String> {
    let (mut before, mut now) = (declared(old, ty), declared(new, to));
    pair(&mut before, &mut now, names);
    let name = old.name(ty);
    let mut steps = Vec::new();
    for (o, n) in before.iter().filter_map(|o| Some((o, &now[o.found?]))) {
        let given_up = before
            .iter()
            .any(|b| b.name == n.name && names.new_name(&b.class) == n.class);
        if o.name != n.name && given_up {
            names.not_before(&name, n.name, o.name)?;
        }
    }
    for o in &before {
        let Some(k) = o.found else {
            removed(o, &now, &name, new.from_source)?;
            continue;
        };
        let n = &now[k];
        let Some(convert) = Convert::between(&o.field.storage, &n.field.storage) else {
            return Err(format!(
                "field {} of {name} has another type: it was {}, and cannot become {}",
                o.name,
                kind(&o.field.storage),
                kind(&n.field.storage)
            ));
        };
        steps.push(FieldConversion {
            from: o.field.offset,
            to: n.field.offset,
            convert,
        });
    }
    for n in now.iter().filter(|n| n.found.is_none()) {
        if matches!(n.field.storage, Storage::Ref(t) if !t.nullable) {
            return Err(format!(
                "field {} of {name} is new and has no default",
                n.name
            ));
        }
    }
    Ok(steps)
}

/// Whether a field may be left out: its data are lost with it.
fn removed(
    o: &Declared<'_>,
    now: &[Declared<'_>],
    name: &str,
    from_source: bool,
) -> Result<(), String> {
    let field = o.name;
    if !from_source {
        // It may be there and only out of use: compilers leave such fields out.
        return Err(format!("field {field} of {name} is not there any more"));
    }
    let could_be = |n: &&Declared<'_>| {
        n.found.is_none() && Convert::between(&o.field.storage, &n.field.storage).is_some()
    };
    match now.iter().find(could_be) {
        None => Ok(()),
        Some(n) => Err(format!(
            "field {field} of {name} is not there any more, and field {} is new: if they are the same, write @Renamed(\"{field}\") before the new one; if not, remove the one and add the other in two versions of the program, and open the region with each",
            n.name
        )),
    }
}

/// The name of a field's type in source programs.
fn kind(storage: &Storage) -> &'static str {
    match storage {
        Storage::I8 => "a byte",
        Storage::I16 => "a short",
        Storage::U16 => "a char",
        Storage::I32 => "an int",
        Storage::I64 => "a long",
        Storage::F32 => "a float",
        Storage::F64 => "a double",
        Storage::Ref(_) => "a reference",
        Storage::Func => "a function",
    }
}
