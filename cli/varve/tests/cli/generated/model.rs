//! Classes of a generated program, in the version that it has, and the objects that it must have.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers, from narrow to wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Num {
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
}

impl Num {
    pub const ALL: [Num; 7] = [
        Num::Byte,
        Num::Short,
        Num::Char,
        Num::Int,
        Num::Long,
        Num::Float,
        Num::Double,
    ];

    /// The types that it converts to without loss.
    fn wider(self) -> &'static [Num] {
        use Num::*;
        match self {
            Byte => &[Short, Int, Long, Float, Double],
            Short => &[Int, Long, Float, Double],
            Char => &[Int, Long, Float, Double],
            Int => &[Long, Double],
            Float => &[Double],
            Long | Double => &[],
        }
    }

    /// A number of this type, in quarters for those that have fractions.
    fn any(self, rng: &mut SmallRng) -> i64 {
        match self {
            Num::Byte => rng.random::<i8>().into(),
            Num::Short => rng.random::<i16>().into(),
            Num::Char => rng.random::<u16>().into(),
            Num::Int => rng.random::<i32>().into(),
            Num::Long => rng.random(),
            Num::Float | Num::Double => rng.random_range(-4000..4000),
        }
    }

    pub fn has_fractions(self) -> bool {
        matches!(self, Num::Float | Num::Double)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Bool,
    Num(Num),
    Text,
    Boxed,
    /// A constant of an enumeration.
    Constant(usize),
    /// An object of a class, or of one below it.
    Object(usize),
    /// An object of any generated class, by the interface that all have.
    Node,
    /// The same as an `Object`.
    Any,
    List,
    Map,
    Set(usize),
    EnumMap(usize),
    Ints,
    Record,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub id: usize,
    pub name: String,
    pub old_name: Option<String>,
    pub ty: Type,
    /// The initial value in new objects, as a number.
    pub initial: i64,
    /// A superclass has a field of that name too.
    pub hides: bool,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub name: String,
    pub old_name: Option<String>,
    pub parent: Option<usize>,
    pub is_abstract: bool,
    pub fields: Vec<Field>,
    pub weight: i64,
    /// Not in the program any more.
    pub gone: bool,
    /// The program can make objects of it.
    pub made: bool,
}

#[derive(Clone, Debug)]
pub struct Constant {
    pub id: usize,
    pub name: String,
    pub old_name: Option<String>,
    pub has_body: bool,
}

#[derive(Clone, Debug)]
pub struct Enum {
    pub name: String,
    pub old_name: Option<String>,
    pub constants: Vec<Constant>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    /// A number; of types with fractions in quarters.
    Num(i64),
    Text(String),
    Boxed(i64),
    Constant(usize),
    Object(usize),
    List(Vec<usize>),
    Map(BTreeMap<String, usize>),
    Set(BTreeSet<usize>),
    EnumMap(BTreeMap<usize, i64>),
    Ints(Vec<i64>),
    Record(i64, String, usize),
}

#[derive(Clone, Debug)]
pub struct Object {
    pub class: usize,
    /// By the fields' ids.
    pub values: BTreeMap<usize, Value>,
}

/// A program's classes, and its objects.
#[derive(Clone, Debug)]
pub struct Model {
    pub package: String,
    pub classes: Vec<Class>,
    pub enums: Vec<Enum>,
    /// All that were made.
    pub objects: Vec<Object>,
    /// Those that the program has by their numbers.
    pub listed: Vec<bool>,
    /// How often records were counted.
    pub counts: BTreeMap<(i64, String, usize), i64>,
    /// Names of fields that moved to another class in this version, or were hidden by another field: of one that does both, which one
    /// it was is not clear.
    moved_or_hidden: BTreeSet<String>,
    next: usize,
}

impl Model {
    pub fn new(package: String, rng: &mut SmallRng) -> Model {
        let mut model = Model {
            package,
            classes: vec![],
            enums: vec![],
            objects: vec![],
            listed: vec![],
            counts: BTreeMap::new(),
            moved_or_hidden: BTreeSet::new(),
            next: 0,
        };
        for _ in 0..rng.random_range(1..3) {
            let name = model.name("E");
            let constants = (0..rng.random_range(2..5))
                .map(|_| model.constant(rng))
                .collect();
            model.enums.push(Enum {
                name,
                old_name: None,
                constants,
            });
        }
        for _ in 0..rng.random_range(2..6) {
            model.add_class(rng);
        }
        for class in 0..model.classes.len() {
            for _ in 0..rng.random_range(1..5) {
                model.add_field(class, rng);
            }
        }
        // Something can be made.
        let last = model.classes.len() - 1;
        model.classes[last].is_abstract = false;
        model
    }

    fn id(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// A name that no other thing has ever had.
    fn name(&mut self, begin: &str) -> String {
        format!("{begin}{}", self.id())
    }

    fn constant(&mut self, rng: &mut SmallRng) -> Constant {
        Constant {
            id: self.id(),
            name: self.name("K"),
            old_name: None,
            has_body: rng.random_range(0..3) == 0,
        }
    }

    fn living(&self) -> Vec<usize> {
        (0..self.classes.len())
            .filter(|&c| !self.classes[c].gone)
            .collect()
    }

    fn add_class(&mut self, rng: &mut SmallRng) {
        let parent = match rng.random_range(0..3) {
            0 => None,
            _ => self.living().choose(rng).copied(),
        };
        let name = self.name("C");
        self.classes.push(Class {
            name,
            old_name: None,
            parent,
            is_abstract: rng.random_range(0..5) == 0,
            fields: vec![],
            weight: rng.random_range(1..1000),
            gone: false,
            made: true,
        });
    }

    fn any_type(&self, rng: &mut SmallRng) -> Type {
        let one_enum = rng.random_range(0..self.enums.len());
        match rng.random_range(0..20) {
            0 => Type::Bool,
            1..7 => Type::Num(Num::ALL[rng.random_range(0..7)]),
            7 => Type::Text,
            8 => Type::Boxed,
            9 => Type::Constant(one_enum),
            10 | 11 => Type::Object(*self.living().choose(rng).expect("a class")),
            12 => Type::Node,
            13 => Type::Any,
            14 => Type::List,
            15 => Type::Map,
            16 => Type::Set(one_enum),
            17 => Type::EnumMap(one_enum),
            18 => Type::Ints,
            _ => Type::Record,
        }
    }

    fn add_field(&mut self, class: usize, rng: &mut SmallRng) -> usize {
        let id = self.id();
        let ty = self.any_type(rng);
        // Now and then a field that hides another one, of whatever type.
        let above: Vec<String> = match self.classes[class].parent {
            Some(parent) => self.fields(parent).map(|(_, f)| f.name.clone()).collect(),
            None => vec![],
        };
        let hidden = above
            .choose(rng)
            .filter(|_| rng.random_range(0..8) == 0)
            .filter(|name| !self.moved_or_hidden.contains(*name))
            .filter(|name| self.classes[class].fields.iter().all(|f| f.name != **name))
            .cloned();
        let hides = hidden.is_some();
        self.moved_or_hidden.extend(hidden.clone());
        let name = hidden.unwrap_or_else(|| self.name("f"));
        let initial = match ty {
            Type::Num(n) if rng.random_range(0..2) == 0 => n.any(rng),
            _ => 0,
        };
        self.classes[class].fields.push(Field {
            id,
            name,
            old_name: None,
            ty,
            initial,
            hides,
        });
        id
    }

    /// The classes of an object, the own one first.
    pub fn chain(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(class), |&c| self.classes[c].parent)
    }

    /// The fields of a class with those above it, each with the class that declares it.
    pub fn fields(&self, class: usize) -> impl Iterator<Item = (usize, &Field)> {
        self.chain(class)
            .flat_map(|c| self.classes[c].fields.iter().map(move |f| (c, f)))
    }

    pub fn is_below(&self, class: usize, above: usize) -> bool {
        self.chain(class).any(|c| c == above)
    }

    /// Objects that the program can reach.
    fn reachable(&self) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut next: Vec<usize> = (0..self.objects.len())
            .filter(|&o| self.listed[o])
            .collect();
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            for value in self.objects[at].values.values() {
                match value {
                    Value::Object(o) => next.push(*o),
                    Value::List(all) => next.extend(all),
                    Value::Map(all) => next.extend(all.values()),
                    _ => {}
                }
            }
        }
        seen
    }

    /// The next version of the classes: how many things changed.
    pub fn evolve(&mut self, rng: &mut SmallRng) -> usize {
        let mut changed = 0;
        self.drop_old_names(rng);
        self.moved_or_hidden.clear();
        // A field that went and one that came could be one under another name: a version has one kind only.
        let adds = rng.random_range(0..2) == 0;
        for class in self.living() {
            for _ in 0..rng.random_range(0..3) {
                changed += usize::from(self.change_class(class, adds, rng));
            }
        }
        if adds {
            self.add_class(rng);
            let last = self.classes.len() - 1;
            for _ in 0..rng.random_range(0..3) {
                self.add_field(last, rng);
            }
            changed += 1;
        } else {
            changed += usize::from(self.remove_class(rng));
        }
        for at in 0..self.enums.len() {
            changed += self.change_enum(at, rng);
        }
        for class in self.living() {
            // What objects do may change too.
            self.classes[class].weight = rng.random_range(1..1000);
            self.classes[class].made = rng.random_range(0..4) != 0;
            self.classes[class].fields.shuffle(rng);
        }
        changed
    }

    /// Annotations may go when all regions have been opened with the new names.
    fn drop_old_names(&mut self, rng: &mut SmallRng) {
        let mut maybe = |name: &mut Option<String>| {
            if rng.random_range(0..2) == 0 {
                *name = None;
            }
        };
        for class in &mut self.classes {
            maybe(&mut class.old_name);
            class.fields.iter_mut().for_each(|f| maybe(&mut f.old_name));
        }
        for one in &mut self.enums {
            maybe(&mut one.old_name);
            one.constants
                .iter_mut()
                .for_each(|c| maybe(&mut c.old_name));
        }
    }

    fn change_class(&mut self, class: usize, adds: bool, rng: &mut SmallRng) -> bool {
        let count = self.classes[class].fields.len();
        let field = rng.random_range(0..count.max(1));
        match rng.random_range(0..8) {
            0 | 1 if adds => {
                self.add_field(class, rng);
            }
            0 | 1 if count > 0 => {
                // A field that another one hides stays.
                let gone = self.classes[class].fields[field].clone();
                let hidden = self.living().iter().any(|&c| {
                    c != class
                        && self.is_below(c, class)
                        && self.classes[c].fields.iter().any(|f| f.name == gone.name)
                });
                if hidden || gone.hides {
                    return false;
                }
                self.classes[class].fields.remove(field);
                for object in &mut self.objects {
                    object.values.remove(&gone.id);
                }
            }
            2 if count > 0 => {
                let name = self.name("f");
                let hidden = self.living().iter().any(|&c| {
                    let other = &self.classes[class].fields[field].name;
                    c != class && self.classes[c].fields.iter().any(|f| f.name == *other)
                });
                let field = &mut self.classes[class].fields[field];
                if hidden || field.hides || field.old_name.is_some() {
                    return false;
                }
                field.old_name = Some(std::mem::replace(&mut field.name, name));
            }
            3 | 4 if count > 0 => return self.widen(class, field, rng),
            5 => {
                let name = self.name("C");
                let class = &mut self.classes[class];
                if class.old_name.is_some() {
                    return false;
                }
                class.old_name = Some(std::mem::replace(&mut class.name, name));
            }
            6 => {
                // A class comes between, and takes fields along.
                self.add_class(rng);
                let between = self.classes.len() - 1;
                self.classes[between].parent = self.classes[class].parent;
                self.classes[between].is_abstract = true;
                self.classes[class].parent = Some(between);
                let fields = std::mem::take(&mut self.classes[class].fields);
                for field in fields {
                    let clear = !self.moved_or_hidden.contains(&field.name);
                    let up = !field.hides && rng.random_range(0..2) == 0 && clear;
                    if up {
                        self.moved_or_hidden.insert(field.name.clone());
                    }
                    let to = if up { between } else { class };
                    self.classes[to].fields.push(field);
                }
            }
            7 if count > 0 => {
                // A field goes down to the only class below, if no object is without it then.
                let below: Vec<usize> = self
                    .living()
                    .into_iter()
                    .filter(|&c| self.classes[c].parent == Some(class))
                    .collect();
                let hides = self.classes[class].fields[field].hides;
                let own = self.classes[class].is_abstract;
                let [only] = below[..] else { return false };
                let name = &self.classes[class].fields[field].name;
                let there = self.classes[only].fields.iter().any(|f| f.name == *name);
                if hides || !own || there || self.moved_or_hidden.contains(name) {
                    return false;
                }
                self.moved_or_hidden.insert(name.clone());
                let field = self.classes[class].fields.remove(field);
                self.classes[only].fields.push(field);
            }
            _ => return false,
        }
        true
    }

    fn widen(&mut self, class: usize, field: usize, rng: &mut SmallRng) -> bool {
        let old = self.classes[class].fields[field].ty;
        let new = match old {
            Type::Num(n) => match n.wider().choose(rng) {
                Some(&wider) => Type::Num(wider),
                None => return false,
            },
            Type::Object(c) => match self.classes[c].parent {
                Some(parent) if rng.random_range(0..2) == 0 => Type::Object(parent),
                _ => Type::Node,
            },
            Type::Node => Type::Any,
            _ => return false,
        };
        let quarters = matches!((old, new), (Type::Num(a), Type::Num(b)) if !a.has_fractions() && b.has_fractions());
        let field = &mut self.classes[class].fields[field];
        field.ty = new;
        if quarters {
            field.initial *= 4;
            for object in &mut self.objects {
                if let Some(Value::Num(n)) = object.values.get_mut(&field.id) {
                    *n *= 4;
                }
            }
        }
        true
    }

    /// Removes a class of which nothing is left.
    fn remove_class(&mut self, rng: &mut SmallRng) -> bool {
        let living = self.living();
        let reachable = self.reachable();
        let used = |class: usize| {
            let has_object = reachable.iter().any(|&o| self.objects[o].class == class);
            let is_named = living.iter().any(|&c| {
                let other = &self.classes[c];
                other.parent == Some(class)
                    || other.fields.iter().any(|f| f.ty == Type::Object(class))
            });
            has_object || is_named
        };
        let free: Vec<usize> = living.iter().copied().filter(|&c| !used(c)).collect();
        match free.choose(rng) {
            Some(&class) if self.makeable().iter().any(|&c| c != class) => {
                self.classes[class].gone = true;
                // The program cannot name what it had of it.
                true
            }
            _ => false,
        }
    }

    fn change_enum(&mut self, at: usize, rng: &mut SmallRng) -> usize {
        let mut changed = 0;
        if rng.random_range(0..3) == 0 {
            let constant = self.constant(rng);
            self.enums[at].constants.push(constant);
            changed += 1;
        }
        if rng.random_range(0..3) == 0 {
            let name = self.name("K");
            let index = rng.random_range(0..self.enums[at].constants.len());
            let constant = &mut self.enums[at].constants[index];
            if constant.old_name.is_none() {
                constant.old_name = Some(std::mem::replace(&mut constant.name, name));
                changed += 1;
            }
        }
        if rng.random_range(0..4) == 0 && self.enums[at].old_name.is_none() {
            let name = self.name("E");
            let one = &mut self.enums[at];
            one.old_name = Some(std::mem::replace(&mut one.name, name));
            changed += 1;
        }
        if rng.random_range(0..2) == 0 {
            self.enums[at].constants.shuffle(rng);
            changed += 1;
        }
        changed
    }

    /// Classes of which the program can make objects.
    pub fn makeable(&self) -> Vec<usize> {
        let living = self.living().into_iter();
        living
            .filter(|&c| !self.classes[c].is_abstract && self.classes[c].made)
            .collect()
    }

    fn constant_name(&self, id: usize) -> &str {
        let all = self.enums.iter().flat_map(|e| &e.constants);
        &all.into_iter()
            .find(|c| c.id == id)
            .expect("constants stay")
            .name
    }

    fn any_constant(&self, of: usize, rng: &mut SmallRng) -> &Constant {
        self.enums[of].constants.choose(rng).expect("a constant")
    }

    /// Does something with the objects: the word that has the program do it.
    pub fn operate(&mut self, rng: &mut SmallRng) -> String {
        let listed: Vec<usize> = (0..self.objects.len())
            .filter(|&o| self.listed[o])
            .collect();
        let makeable = self.makeable();
        let choice = rng.random_range(0..20);
        if (listed.len() < 3 || choice < 4) && !makeable.is_empty() {
            let class = *makeable.choose(rng).expect("some");
            let values = self.fields(class).map(|(_, f)| (f.id, initial(f)));
            let values = values.collect();
            self.objects.push(Object { class, values });
            self.listed.push(true);
            return format!("n:{}", self.classes[class].name);
        }
        if choice == 4 || listed.is_empty() {
            let (n, text, id) = self.any_record(rng);
            let word = format!("c:{n},{text},{}", self.constant_name(id));
            *self.counts.entry((n, text, id)).or_default() += 1;
            return word;
        }
        let object = *listed.choose(rng).expect("some");
        if choice == 5 && listed.len() > 3 {
            self.listed[object] = false;
            return format!("d:{object}");
        }
        let all: Vec<(usize, Field)> = self
            .fields(self.objects[object].class)
            .map(|(c, f)| (c, f.clone()))
            .collect();
        let Some((class, field)) = all.choose(rng) else {
            return "p:".into();
        };
        let old = self.objects[object].values.get(&field.id).cloned();
        let (value, word) = self.any_value(field.ty, old.unwrap_or(Value::Null), &listed, rng);
        self.objects[object].values.insert(field.id, value);
        format!(
            "s:{object}:{}.{}:{word}",
            self.classes[*class].name, field.name
        )
    }

    fn any_record(&self, rng: &mut SmallRng) -> (i64, String, usize) {
        let constant = self.any_constant(0, rng).id;
        (
            rng.random_range(0..3),
            format!("t{}", rng.random_range(0..3)),
            constant,
        )
    }

    /// Another value for a field, and how the program is told.
    fn any_value(
        &self,
        ty: Type,
        old: Value,
        listed: &[usize],
        rng: &mut SmallRng,
    ) -> (Value, String) {
        let null = (Value::Null, "-".to_string());
        let object = |of: Option<usize>, rng: &mut SmallRng| {
            let fits: Vec<usize> = listed
                .iter()
                .copied()
                .filter(|&o| of.is_none_or(|c| self.is_below(self.objects[o].class, c)))
                .collect();
            fits.choose(rng).copied()
        };
        match ty {
            Type::Bool => {
                let b = rng.random();
                (Value::Bool(b), b.to_string())
            }
            Type::Num(n) => {
                let value = n.any(rng);
                (Value::Num(value), value.to_string())
            }
            Type::Text if rng.random_range(0..5) == 0 => null,
            Type::Text => {
                let text = ["", "ada", "grün", "𝄞", "a b"][rng.random_range(0..5)];
                let text = format!("{text}{}", rng.random_range(0..100));
                (Value::Text(text.clone()), format!("={text}"))
            }
            Type::Boxed => {
                let n = rng.random_range(-300..300);
                (Value::Boxed(n), n.to_string())
            }
            Type::Constant(of) => {
                let constant = self.any_constant(of, rng);
                (Value::Constant(constant.id), constant.name.clone())
            }
            Type::Object(_) | Type::Node | Type::Any => {
                let of = match ty {
                    Type::Object(c) => Some(c),
                    _ => None,
                };
                match object(of, rng) {
                    Some(o) if rng.random_range(0..6) != 0 => (Value::Object(o), o.to_string()),
                    _ => null,
                }
            }
            Type::List => {
                let mut list = match old {
                    Value::List(list) => list,
                    _ => vec![],
                };
                let word = match (rng.random_range(0..6), object(None, rng)) {
                    (0, _) if !list.is_empty() => {
                        let at = rng.random_range(0..list.len());
                        list.remove(at);
                        format!("r{at}")
                    }
                    (1, Some(o)) => {
                        list.insert(0, o);
                        format!("b{o}")
                    }
                    (_, Some(o)) => {
                        list.push(o);
                        format!("+{o}")
                    }
                    _ => {
                        list.clear();
                        "x".into()
                    }
                };
                (Value::List(list), word)
            }
            Type::Map => {
                let mut map = match old {
                    Value::Map(map) => map,
                    _ => BTreeMap::new(),
                };
                let key = format!("k{}", rng.random_range(0..30));
                match object(None, rng) {
                    Some(o) if rng.random_range(0..4) != 0 => {
                        map.insert(key.clone(), o);
                        (Value::Map(map), format!("{key}={o}"))
                    }
                    _ => {
                        map.remove(&key);
                        (Value::Map(map), key)
                    }
                }
            }
            Type::Set(of) => {
                let mut set = match old {
                    Value::Set(set) => set,
                    _ => BTreeSet::new(),
                };
                let constant = self.any_constant(of, rng);
                match rng.random_range(0..3) {
                    0 => {
                        set.remove(&constant.id);
                        (Value::Set(set), format!("-{}", constant.name))
                    }
                    _ => {
                        set.insert(constant.id);
                        (Value::Set(set), format!("+{}", constant.name))
                    }
                }
            }
            Type::EnumMap(of) => {
                let mut map = match old {
                    Value::EnumMap(map) => map,
                    _ => BTreeMap::new(),
                };
                let constant = self.any_constant(of, rng);
                let n = rng.random_range(0..1000);
                map.insert(constant.id, n);
                (Value::EnumMap(map), format!("{}={n}", constant.name))
            }
            Type::Ints => match old {
                Value::Ints(mut ints) if !ints.is_empty() && rng.random_range(0..3) != 0 => {
                    let (at, n) = (rng.random_range(0..ints.len()), rng.random_range(0..100));
                    ints[at] = n;
                    (Value::Ints(ints), format!("{at}={n}"))
                }
                _ => {
                    let length = rng.random_range(0..40);
                    let ints = (0..length).map(|i| i * 3 + length).collect();
                    (Value::Ints(ints), length.to_string())
                }
            },
            Type::Record => {
                let (n, text, id) = self.any_record(rng);
                let word = format!("{n},{text},{}", self.constant_name(id));
                (Value::Record(n, text, id), word)
            }
        }
    }

    /// The expected output of the program.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for (number, object) in self.objects.iter().enumerate() {
            if !self.listed[number] {
                continue;
            }
            let class = &self.classes[object.class];
            let weight: i64 = self
                .chain(object.class)
                .map(|c| self.classes[c].weight)
                .sum();
            out += &format!("{number} {} {weight}", class.name);
            for c in self.chain(object.class) {
                let mut fields: Vec<&Field> = self.classes[c].fields.iter().collect();
                fields.sort_by(|a, b| a.name.cmp(&b.name));
                for field in fields {
                    let value = object.values.get(&field.id).unwrap_or(&Value::Null);
                    out += &format!(" {}={}", field.name, self.show(field.ty, value));
                }
            }
            out.push('\n');
        }
        let mut counts: Vec<String> = self
            .counts
            .iter()
            .map(|((n, text, id), count)| {
                format!("({n} {text} {})={count}", self.constant_name(*id))
            })
            .collect();
        counts.sort();
        out += &format!("counts {}\n", counts.join(" "));
        out
    }

    fn show(&self, ty: Type, value: &Value) -> String {
        let name = |id: &usize| self.constant_name(*id).to_string();
        let sorted = |mut all: Vec<String>| {
            all.sort();
            format!("[{}]", all.join(","))
        };
        match (value, ty) {
            // What the class has not had before.
            (Value::Null, Type::Bool) => "false".into(),
            (Value::Null, Type::Num(_)) => "0".into(),
            (Value::Null, _) => "null".into(),
            (Value::Bool(b), _) => b.to_string(),
            (Value::Num(n) | Value::Boxed(n), _) => n.to_string(),
            (Value::Text(text), _) => text.clone(),
            (Value::Constant(id), _) => name(id),
            (Value::Object(o), _) => format!("#{o}"),
            (Value::List(all), _) => {
                let all: Vec<String> = all.iter().map(|o| format!("#{o}")).collect();
                format!("[{}]", all.join(","))
            }
            (Value::Map(all), _) => sorted(all.iter().map(|(k, o)| format!("{k}=#{o}")).collect()),
            (Value::Set(all), _) => sorted(all.iter().map(name).collect()),
            (Value::EnumMap(all), _) => sorted(
                all.iter()
                    .map(|(id, n)| format!("{}={n}", name(id)))
                    .collect(),
            ),
            (Value::Ints(all), _) => {
                let all: Vec<String> = all.iter().map(i64::to_string).collect();
                format!("[{}]", all.join(","))
            }
            (Value::Record(n, text, id), _) => format!("({n} {text} {})", name(id)),
        }
    }
}

/// The initial value of a field.
fn initial(field: &Field) -> Value {
    match field.ty {
        Type::Bool => Value::Bool(false),
        Type::Num(_) => Value::Num(field.initial),
        Type::List => Value::List(vec![]),
        Type::Map => Value::Map(BTreeMap::new()),
        _ => Value::Null,
    }
}
