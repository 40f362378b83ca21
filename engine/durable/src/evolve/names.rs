//! Which type of one program is which of another, by their names.

use crate::types::{Kind, Renamed, Storage, Tables};
use std::collections::HashMap;

/// The names of two programs, side by side.
pub(super) struct Names {
    /// By old type: the new one.
    types: Vec<Option<u32>>,
    /// Old names of classes and their new ones.
    renamed: HashMap<String, String>,
    /// Old names of fields, by class as it is called now.
    fields: HashMap<(String, String), String>,
    /// Whether both have the names of their sources.
    pub exact: bool,
    /// Whether the region records which names were changed.
    recorded: bool,
}

impl Names {
    /// # Errors
    /// If classes change their names among themselves, and the region cannot say whether they have done so.
    pub fn new(old: &Tables, new: &Tables) -> Result<Names, String> {
        let mut names = Names {
            types: Vec::new(),
            renamed: HashMap::new(),
            fields: HashMap::new(),
            exact: old.from_source && new.from_source,
            recorded: old.applied.is_some(),
        };
        let applied = old.applied();
        let of_classes = || {
            let all = new.renamed.iter().filter(|r| r.field.is_none());
            all.filter(|r| !applied.contains(r))
        };
        let has = |name: &str| old.types.iter().any(|t| t.name == name);
        for Renamed { class, was, .. } in of_classes() {
            // Where the region has the new name already, it was opened with it before, and another class may have the old one by now: unless
            // the class that has the new name gives it up at the same time.
            if has(class) {
                if !has(was) || !of_classes().any(|r| r.was == *class) {
                    continue;
                }
                if !names.recorded {
                    return Err(unrecorded(&format!("class {class}"), was));
                }
            }
            names.renamed.insert(was.clone(), class.clone());
        }
        for r in new.renamed.iter() {
            let Some(field) = &r.field else { continue };
            let done = |a: &Renamed| {
                a.field == r.field && a.was == r.was && names.new_name(&a.class) == r.class
            };
            if !applied.iter().any(done) {
                let key = (r.class.clone(), r.was.clone());
                names.fields.insert(key, field.clone());
            }
        }
        let by_name: HashMap<String, u32> = numbered(new)
            .into_iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
            .map(|(i, name)| (name, i as u32))
            .collect();
        // A type without a name is the same one where nothing has changed.
        let same = |i: usize| old.types.get(i) == new.types.get(i);
        let types = numbered(old).into_iter().enumerate().map(|(i, name)| {
            let exact = by_name.get(&name).copied();
            let renamed = || by_name.get(&names.new_name(&name)).copied();
            let found = match name.is_empty() {
                true => None,
                // If the name is the former one of another class, it does not mean the class that has it now.
                false => match names.renamed.contains_key(&name) {
                    true => renamed(),
                    false => exact.or_else(renamed),
                },
            };
            found.or_else(|| (name.is_empty() && same(i)).then_some(i as u32))
        });
        names.types = types.collect();
        Ok(names)
    }

    /// Checks that a class or field was not renamed before, if its new name is one that another class gives up at the same time.
    ///
    /// # Errors
    /// If the region cannot say.
    pub fn not_before(&self, class: &str, field: &str, was: &str) -> Result<(), String> {
        match self.recorded {
            true => Ok(()),
            false => Err(unrecorded(&format!("field {field} of {class}"), was)),
        }
    }

    /// The new type that an old one is.
    pub fn new_type(&self, ty: u32) -> Option<u32> {
        self.types.get(ty as usize).copied().flatten()
    }

    /// The new name of a field, if the program says that it had an old one.
    pub fn new_field(&self, class: &str, field: &str) -> Option<&str> {
        let key = (class.to_string(), field.to_string());
        self.fields.get(&key).map(String::as_str)
    }

    /// The new name of a static field, `Class#field`, whatever follows it. Other names stay.
    pub fn new_static(&self, name: &str) -> String {
        let Some((class, field)) = name.split_once('#') else {
            return name.to_string();
        };
        let class = self.new_name(class);
        let end = field.find('[').unwrap_or(field.len());
        let now = self.new_field(&class, &field[..end]);
        format!("{class}#{}{}", now.unwrap_or(&field[..end]), &field[end..])
    }

    /// The new name for a name of the old program: a class, a class within one, or one of the compiler's names with classes in it, such as
    /// `Array<a.B>@vt`.
    pub fn new_name(&self, name: &str) -> String {
        match self.renamed.is_empty() {
            true => name.to_string(),
            false => each_class(name, |class| self.renamed.get(class).map(String::as_str)),
        }
    }
}

fn unrecorded(what: &str, was: &str) -> String {
    format!(
        "{what} is @Renamed(\"{was}\"), and has a name that another one had: this region, of an older format, cannot say whether that has been done; rename through a third name, in two versions of the program, and open the region with each"
    )
}

/// A name with each class in it replaced by another: names of compilers have classes in them, such as `Array<a.B>@vt`. A class within a class
/// goes with it.
pub fn each_class<'a>(name: &str, to: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut now = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(['<', '>', '@']).unwrap_or(rest.len());
        now += &one_class(&rest[..end], &to);
        // Those are single bytes.
        let next = (end + 1).min(rest.len());
        now += &rest[end..next];
        rest = &rest[next..];
    }
    now
}

fn one_class<'a>(class: &str, to: impl Fn(&str) -> Option<&'a str>) -> String {
    // The longest part that has another name: of a class within a class, or one that is a constant's own, it may be the one around.
    let mut end = class.len();
    loop {
        if let Some(now) = to(&class[..end]) {
            return format!("{now}{}", &class[end..]);
        }
        match class[..end].rfind(['$', '#', '.']) {
            Some(shorter) => end = shorter,
            None => return class.to_string(),
        }
    }
}

/// Names of all types; of those with one name, the first is called `name`, the next `name#1`. Arrays of numbers that the program does not name
/// are named by their contents, as all with equal contents are the same.
fn numbered(tables: &Tables) -> Vec<String> {
    let mut before: HashMap<String, u32> = HashMap::new();
    let mut all = Vec::new();
    for t in &tables.types {
        let name = match &t.kind {
            _ if !t.name.is_empty() => t.name.clone(),
            Kind::Array(s) if !matches!(s, Storage::Ref(_) | Storage::Func) => {
                // A space is in no class's name.
                format!("array {s:?}")
            }
            _ => String::new(),
        };
        if name.is_empty() {
            all.push(name);
            continue;
        }
        let nth = before.entry(name.clone()).or_default();
        all.push(match *nth {
            0 => name,
            n => format!("{name}#{n}"),
        });
        *nth += 1;
    }
    all
}

/// A field's name without the number that a compiler adds to tell equal names apart: `version_0` is `version`.
pub fn without_number(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((base, number))
            if !base.is_empty()
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit())
                && (number == "0" || !number.starts_with('0')) =>
        {
            base
        }
        _ => name,
    }
}
