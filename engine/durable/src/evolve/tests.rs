use super::*;
use crate::types::{Field, Renamed, Type};
use proptest::prelude::*;
use varve_heap::ObjectAlign;

/// A class: its name, its superclass by number, and its own fields.
type Class<'a> = (&'a str, Option<u32>, &'a [(&'a str, Storage)]);

fn reference(to: u32) -> Storage {
    Storage::Ref(Target {
        nullable: true,
        to: Heap::Type(to),
    })
}

/// Tables of classes, laid out as an engine does.
fn tables(classes: &[Class<'_>]) -> Tables {
    let mut types: Vec<Type> = Vec::new();
    for (name, supertype, own) in classes {
        let (mut at, mut fields) = (8, Vec::new());
        if let Some(s) = supertype
            && let Kind::Struct { size, fields: of } = &types[*s as usize].kind
        {
            (at, fields) = (*size, of.clone());
        }
        for (name, storage) in *own {
            at = at.next_multiple_of(storage.bytes());
            fields.push(Field {
                name: name.to_string(),
                offset: at,
                storage: storage.clone(),
            });
            at += storage.bytes();
        }
        types.push(Type {
            name: name.to_string(),
            supertype: *supertype,
            kind: Kind::Struct { size: at, fields },
            refused: None,
            named_by: None,
        });
    }
    Tables {
        types,
        from_source: true,
        ..Tables::default()
    }
}

fn all_live(tables: &Tables) -> Live {
    Live {
        types: vec![true; tables.types.len()],
        ..Live::default()
    }
}

fn plan(old: &Tables, new: &Tables) -> Result<Plan, String> {
    assert_eq!((old.broken(), new.broken()), (None, None));
    Plan::new(old, &[], &all_live(old), new, ObjectAlign::LEAST)
}

/// Names of fields and of those that they become, of the last type.
fn pairs(old: &Tables, new: &Tables) -> Vec<(String, String)> {
    let ty = old.types.len() as u32 - 1;
    let plan = plan(old, new).unwrap();
    let to = plan.of_type(ty).unwrap();
    let name = |tables: &Tables, ty, at| {
        let field = fields::of(tables, ty).iter().find(|f| f.offset == at);
        field.expect("a step is of a field").name.clone()
    };
    let pair = |s: &FieldConversion| (name(old, ty, s.from), name(new, to.to, s.to));
    to.steps.iter().map(pair).collect()
}

fn both(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names
        .iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect()
}

fn renamed(class: &str, field: Option<&str>, was: &str) -> Renamed {
    Renamed {
        class: class.into(),
        field: field.map(str::to_string),
        was: was.into(),
    }
}

#[test]
fn numbers_that_a_compiler_added_mean_nothing() {
    let mut old = tables(&[(
        "A",
        None,
        &[("version_0", Storage::I32), ("size", Storage::I32)],
    )]);
    let mut new = tables(&[(
        "A",
        None,
        &[("size_3", Storage::I32), ("version", Storage::I32)],
    )]);
    old.from_source = false;
    let expected = both(&[("version_0", "version"), ("size", "size_3")]);
    assert_eq!(pairs(&old, &new), expected);
    new.from_source = false;
    assert_eq!(pairs(&old, &new), expected);
}

#[test]
fn a_field_whose_source_name_ends_in_a_number_is_itself() {
    let int = Storage::I32;
    let old = tables(&[("A", None, &[("a", int.clone()), ("a_0", int.clone())])]);
    let new = tables(&[("A", None, &[("a_0", int.clone()), ("a", int.clone())])]);
    assert_eq!(pairs(&old, &new), both(&[("a", "a"), ("a_0", "a_0")]));
    // From names that a compiler made: equal names stay equal.
    let mut made = tables(&[("A", None, &[("a_1", int.clone()), ("a_0", int.clone())])]);
    made.from_source = false;
    assert_eq!(pairs(&made, &new), both(&[("a_1", "a"), ("a_0", "a_0")]));
    // With names of the source, another number is another field.
    let other = tables(&[("A", None, &[("a", int.clone()), ("a_1", int)])]);
    let error = plan(&old, &other).unwrap_err();
    assert!(
        error.contains("field a_0 of A is not there any more, and field a_1 is new"),
        "{error}"
    );
}

#[test]
fn fields_of_one_name_are_told_apart_by_their_classes() {
    let int = Storage::I32;
    let old = tables(&[
        ("Top", None, &[("next", int.clone())]),
        ("Sub", Some(0), &[("Sub.next", int.clone())]),
    ]);
    let new = tables(&[
        (
            "Top",
            None,
            &[("added", int.clone()), ("next", int.clone())],
        ),
        ("Sub", Some(0), &[("Sub.next", int)]),
    ]);
    assert_eq!(
        pairs(&old, &new),
        both(&[("next", "next"), ("Sub.next", "Sub.next")])
    );
}

#[test]
fn a_superclass_may_come_in_between_and_take_fields_along() {
    let (int, long) = (Storage::I32, Storage::I64);
    let old = tables(&[
        ("Top", None, &[]),
        (
            "Sub",
            Some(0),
            &[("name", int.clone()), ("size", long.clone())],
        ),
    ]);
    let new = tables(&[
        ("Top", None, &[]),
        ("Mid", Some(0), &[("size", long), ("more", Storage::F64)]),
        ("Sub", Some(1), &[("name", int)]),
    ]);
    assert_eq!(
        pairs(&old, &new),
        both(&[("name", "name"), ("size", "size")])
    );
}

/// A program declares a field's old name in its new class, wherever the field was.
#[test]
fn a_field_may_be_renamed_and_move_to_another_class_at_once() {
    let int = Storage::I32;
    let old = tables(&[
        ("Top", None, &[]),
        ("Sub", Some(0), &[("a", int.clone()), ("b", int.clone())]),
    ]);
    let mut new = tables(&[
        ("Top", None, &[]),
        ("Mid", Some(0), &[("c", int.clone())]),
        ("Sub", Some(1), &[("b", int)]),
    ]);
    new.renamed = vec![renamed("Mid", Some("c"), "a")];
    assert_eq!(pairs(&old, &new), both(&[("a", "c"), ("b", "b")]));
}

#[test]
fn renamed_classes_and_fields_are_found_by_their_old_names() {
    let int = Storage::I32;
    let old = tables(&[
        ("a.Old", None, &[("x", int.clone())]),
        ("a.Old$In", None, &[("y_0", reference(0))]),
    ]);
    let mut new = tables(&[
        ("b.New$In", None, &[("z", reference(1))]),
        ("b.New", None, &[("x", int.clone())]),
    ]);
    let error = plan(&old, &new).unwrap_err();
    assert!(
        error.contains("objects of type a.Old, which it does not have")
            && error.contains("@Renamed(\"a.Old\")"),
        "{error}"
    );
    new.renamed = vec![renamed("b.New", None, "a.Old")];
    let error = plan(&old, &new).unwrap_err();
    assert!(
        error.contains("field y_0 of a.Old$In") && error.contains("@Renamed(\"y_0\")"),
        "{error}"
    );
    new.renamed.push(renamed("b.New$In", Some("z"), "y_0"));
    assert_eq!(pairs(&old, &new), both(&[("y_0", "z")]));
    assert_eq!(plan(&old, &new).unwrap().of_type(0).unwrap().to, 1);
    // Once it has the new names, others may have the old ones.
    let mut later = tables(&[
        (
            "b.New$In",
            None,
            &[("z", reference(1)), ("y_0", reference(2))],
        ),
        ("b.New", None, &[("x", int)]),
        ("a.Old", None, &[]),
    ]);
    later.renamed = new.renamed.clone();
    let again = plan(&later, &later).unwrap();
    assert!((0..3).all(|ty| again.of_type(ty).unwrap().to == ty));
    assert_eq!(
        again.of_type(0).unwrap().steps[1].to,
        again.of_type(0).unwrap().steps[1].from
    );
}

/// The tables that a region has after a program with these tables opened it.
fn of_region(program: &Tables) -> Tables {
    Tables {
        renamed: Vec::new(),
        ..program.recorded()
    }
}

#[test]
fn names_that_are_exchanged_are_exchanged_once() {
    let int = Storage::I32;
    let all = [("a", int.clone()), ("b", int.clone()), ("c", int.clone())];
    let before = tables(&[("A", None, &all[..2])]);
    let mut swapped = before.clone();
    swapped.renamed = vec![renamed("A", Some("a"), "b"), renamed("A", Some("b"), "a")];
    assert_ne!(
        of_region(&before),
        swapped.recorded(),
        "it is to be rewritten"
    );
    let crossed = both(&[("a", "b"), ("b", "a")]);
    assert_eq!(pairs(&of_region(&before), &swapped), crossed);
    // Once it is done, it is done, whatever else changes.
    let done = of_region(&swapped);
    assert_eq!(done, swapped.recorded());
    let straight = both(&[("a", "a"), ("b", "b")]);
    let mut more = tables(&[("A", None, &all)]);
    more.renamed = swapped.renamed.clone();
    assert_eq!(pairs(&done, &more), straight);
    // So it is where the class has another name by then, and where the region was made by the program that says so.
    let mut moved = tables(&[("B", None, &all)]);
    moved.renamed = vec![
        renamed("B", None, "A"),
        renamed("B", Some("a"), "b"),
        renamed("B", Some("b"), "a"),
    ];
    assert_eq!(pairs(&done, &moved), straight);
    // A version without the annotations makes room for the same exchange again.
    let undone = of_region(&before);
    assert_ne!(done, undone);
    assert_eq!(pairs(&undone, &swapped), crossed);
    // A region that keeps no such record cannot tell.
    let error = plan(&before, &swapped).unwrap_err();
    assert!(
        error.contains("of A") && error.contains("third name"),
        "{error}"
    );
}

#[test]
fn a_name_that_is_given_up_and_taken_at_once_goes_on() {
    let int = Storage::I32;
    let before = tables(&[("A", None, &[("a", int.clone()), ("b", int.clone())])]);
    let mut chain = tables(&[("A", None, &[("c", int.clone()), ("b", int.clone())])]);
    chain.renamed = vec![renamed("A", Some("b"), "a"), renamed("A", Some("c"), "b")];
    let expected = both(&[("a", "b"), ("b", "c")]);
    assert_eq!(pairs(&of_region(&before), &chain), expected);
    let by_name = both(&[("c", "c"), ("b", "b")]);
    assert_eq!(pairs(&of_region(&chain), &chain), by_name);
    assert!(plan(&before, &chain).unwrap_err().contains("third name"));
    // A new field of a name that was given up before is new.
    let mut first = tables(&[("A", None, &[("b", int.clone())])]);
    first.renamed = vec![renamed("A", Some("b"), "a")];
    let mut later = tables(&[("A", None, &[("b", int.clone()), ("a", int)])]);
    later.renamed = first.renamed.clone();
    let kept = both(&[("b", "b")]);
    assert_eq!(pairs(&of_region(&first), &later), kept);
}

#[test]
fn classes_exchange_their_names_once() {
    let (x, y) = ([("x", Storage::I32)], [("y", Storage::I64)]);
    let before = tables(&[("A", None, &x), ("B", None, &y)]);
    let mut swapped = tables(&[("A", None, &y), ("B", None, &x)]);
    swapped.renamed = vec![renamed("A", None, "B"), renamed("B", None, "A")];
    let to = |old: &Tables| {
        let plan = plan(old, &swapped).unwrap();
        [0, 1].map(|ty| plan.of_type(ty).unwrap().to)
    };
    assert_eq!(to(&of_region(&before)), [1, 0]);
    assert_eq!(to(&of_region(&swapped)), [0, 1]);
    let error = plan(&before, &swapped).unwrap_err();
    assert!(
        error.contains("class A") && error.contains("third name"),
        "{error}"
    );
}

/// The root of enumerations, an enumeration, and a constant's own class.
fn enumerations(with_own: bool) -> Tables {
    let mut all = tables(&[
        (
            "Enum",
            None,
            &[("name", reference(0)), ("number", Storage::I32)],
        ),
        ("S", Some(0), &[]),
        ("S.DONE", Some(1), &[]),
    ]);
    all.types.iter_mut().for_each(|t| t.named_by = Some(8));
    if !with_own {
        all.types.pop();
    }
    all
}

#[test]
fn an_enumeration_stays_one_and_a_class_stays_one() {
    let enumeration = enumerations(false);
    let mut class = enumeration.clone();
    class.types[1].named_by = None;
    let error = plan(&enumeration, &class).unwrap_err();
    assert!(error.starts_with("S was an enumeration"), "{error}");
    let error = plan(&class, &enumeration).unwrap_err();
    assert!(error.starts_with("S was no enumeration"), "{error}");
}

#[test]
fn a_constant_that_gets_code_of_its_own_or_loses_it_is_named() {
    let (plain, own) = (enumerations(false), enumerations(true));
    assert_eq!(
        (own.enumeration_of(2), own.enumeration_of(1)),
        (Some(1), Some(1))
    );
    assert_eq!(own.enumeration_of(0), None);
    let error = plan(&own, &plain).unwrap_err();
    assert!(
        error.starts_with("constant DONE of the enumeration S had code of its own"),
        "{error}"
    );
    let grown = plan(&plain, &own).unwrap();
    let check = |constant: &str, ty| grown.check_constant(&plain, &own, 1, ty, constant);
    assert_eq!(check("OPEN", 1), Ok(()));
    assert_eq!(check("DONE", 2), Ok(()));
    assert!(
        check("DONE", 1)
            .unwrap_err()
            .contains("had no code of its own")
    );
    // By its name now.
    let mut renamed_too = own.clone();
    renamed_too.renamed = vec![renamed("S", Some("DONE"), "OVER")];
    let check = |constant| grown.check_constant(&plain, &renamed_too, 1, 1, constant);
    assert!(check("OVER").unwrap_err().contains("constant OVER"));
    renamed_too.renamed.push(renamed("S", Some("OVER"), "DONE"));
    let check = |constant| grown.check_constant(&plain, &renamed_too, 1, 1, constant);
    assert!(check("OVER").unwrap_err().contains("third name"));
}

#[test]
fn a_class_of_the_library_is_not_to_be_renamed() {
    let old = tables(&[("java.time.LocalDate", None, &[]), ("A", None, &[])]);
    let new = tables(&[("A", None, &[])]);
    let error = plan(&old, &new).unwrap_err();
    assert!(
        error.contains("--region FILE") && !error.contains("@Renamed"),
        "{error}"
    );
    let error = plan(&new, &tables(&[])).unwrap_err();
    assert!(
        error.contains("--region FILE") && error.contains("@Renamed(\"A\")"),
        "{error}"
    );
    assert_eq!(class_in("Array<a.B>@vt"), "a.B");
    assert_eq!(class_in("a.B@class"), "a.B");
    assert_eq!(class_in("a.B"), "a.B");
}

#[test]
fn what_is_within_a_renamed_class_goes_with_it() {
    let to = |class: &str| (class == "a.Old").then_some("b.New");
    for (was, now) in [
        ("a.Old", "b.New"),
        ("a.Old.DONE", "b.New.DONE"),
        (
            "Array<Array<a.Old$In$1>>$Data",
            "Array<Array<b.New$In$1>>$Data",
        ),
        ("a.Old#2", "b.New#2"),
        ("a.Older", "a.Older"),
        ("x.a.Old", "x.a.Old"),
        ("", ""),
    ] {
        assert_eq!(each_class(was, to), now);
    }
}

#[test]
fn constants_follow_the_names_of_their_classes() {
    let constant = |name: &str, offset| crate::Constant {
        name: name.into(),
        offset,
        ty: 0,
    };
    let mut old = tables(&[("a.Old", None, &[])]);
    old.constants = vec![
        constant("a.Old@vt", 0),
        constant("Array<a.Old$In>@class", 8),
        constant("gone", 16),
    ];
    let mut new = tables(&[("b.New", None, &[])]);
    new.constants = vec![
        constant("Array<b.New$In>@class", 0),
        constant("b.New@vt", 16),
    ];
    new.renamed = vec![renamed("b.New", None, "a.Old")];
    let mut live = all_live(&old);
    live.constants.extend([0, 8]);
    let plan = Plan::new(&old, &[], &live, &new, ObjectAlign::LEAST).unwrap();
    assert_eq!((plan.constants[&0], plan.constants[&8]), (16, 0));
    live.constants.insert(16);
    let error = Plan::new(&old, &[], &live, &new, ObjectAlign::LEAST).unwrap_err();
    assert!(error.contains("it needs gone"), "{error}");
}

#[test]
fn class_data_that_nothing_needs_are_forgotten() {
    let mut old = tables(&[
        (
            "Info",
            None,
            &[("of", reference(0)), ("bits", Storage::I32)],
        ),
        ("Gone", None, &[]),
    ]);
    old.constants = vec![crate::Constant {
        name: "a@class".into(),
        offset: 0,
        ty: 0,
    }];
    let late = |offset, ty, of| Late {
        offset,
        ty,
        link: Some((of, 8)),
        held: vec![Held::Class(of), Held::Bits(7)],
        name: format!("late {offset}"),
    };
    let all = [late(16, 0, 0), late(32, 0, 16), late(48, 1, 0)];
    let mut new = tables(&[(
        "Info",
        None,
        &[("bits", Storage::I32), ("of", reference(0))],
    )]);
    new.constants = vec![crate::Constant {
        name: "a@class".into(),
        offset: 8,
        ty: 0,
    }];
    let mut live = Live {
        types: vec![false, false],
        ..Live::default()
    };
    assert_eq!(
        Plan::new(&old, &all, &live, &new, ObjectAlign::LEAST)
            .unwrap()
            .late,
        []
    );
    live.constants.insert(32);
    let planned = Plan::new(&old, &all, &live, &new, ObjectAlign::LEAST)
        .unwrap()
        .late;
    let expected = |offset, of, was| Late {
        offset,
        ty: 0,
        link: Some((of, 12)),
        held: vec![Held::Bits(7), Held::Class(of)],
        name: format!("late {was}"),
    };
    assert_eq!(planned, [expected(24, 8, 16), expected(40, 24, 32)]);
    live.constants.insert(48);
    assert!(
        Plan::new(&old, &all, &live, &new, ObjectAlign::LEAST)
            .unwrap_err()
            .contains("class data of type Gone")
    );
}

#[test]
fn a_field_of_another_class_is_looked_at_where_something_may_not_fit() {
    let classes = |field: u32| -> Tables {
        tables(&[
            ("Top", None, &[]),
            ("Sub", Some(0), &[]),
            ("Other", None, &[]),
            ("Box", None, &[("it", reference(field))]),
        ])
    };
    let (top, sub) = (classes(0), classes(1));
    let narrowed =
        |old: &Tables, new: &Tables| plan(old, new).unwrap().of_type(3).unwrap().narrowed.clone();
    assert_eq!(narrowed(&sub, &top), []);
    assert_eq!(narrowed(&top, &top), []);
    let field = &narrowed(&top, &sub)[0];
    let plan = plan(&top, &sub).unwrap();
    assert_eq!(plan.fits(&top, &sub, 3, field, 1), Ok(()));
    let error = plan.fits(&top, &sub, 3, field, 0).unwrap_err();
    assert_eq!(
        error,
        "field it of Box holds a Top, and is to hold a Sub now"
    );
}

#[test]
fn a_removed_class_is_missed_only_if_it_has_objects() {
    let old = tables(&[("Gone", None, &[]), ("Kept", None, &[("n", Storage::I32)])]);
    let new = tables(&[("Kept", None, &[("n", Storage::I32)])]);
    let mut live = all_live(&old);
    assert!(
        Plan::new(&old, &[], &live, &new, ObjectAlign::LEAST)
            .unwrap_err()
            .contains("type Gone")
    );
    live.types[0] = false;
    let plan = Plan::new(&old, &[], &live, &new, ObjectAlign::LEAST).unwrap();
    assert_eq!(plan.of_type(1).unwrap().to, 0);
    assert!(plan.of_type(0).is_none());
}

#[test]
fn a_removed_field_is_left_out_unless_a_new_one_could_be_it() {
    let old = tables(&[("A", None, &[("gone", Storage::I64), ("n", Storage::I32)])]);
    let without = tables(&[("A", None, &[("n", Storage::I32)])]);
    assert_eq!(pairs(&old, &without), both(&[("n", "n")]));
    let another = tables(&[("A", None, &[("n", Storage::I32), ("text", reference(0))])]);
    assert_eq!(pairs(&old, &another), both(&[("n", "n")]));
    let unclear = tables(&[("A", None, &[("n", Storage::I32), ("come", Storage::I64)])]);
    let error = plan(&old, &unclear).unwrap_err();
    assert!(
        error.contains("field gone of A") && error.contains("field come is new"),
        "{error}"
    );
    let mut nameless = without;
    nameless.from_source = false;
    assert!(
        plan(&old, &nameless)
            .unwrap_err()
            .contains("field gone of A is not there any more")
    );
}

/// A class came between, and took the field; the class below has one of the same name now, of another kind.
#[test]
fn a_field_that_moves_is_not_the_one_that_hides_it_from_then_on() {
    let old = tables(&[("A", None, &[("n", Storage::I8)]), ("B", Some(0), &[])]);
    let new = |hiding: Storage| {
        tables(&[
            ("Between", None, &[("n", Storage::I8)]),
            ("A", Some(0), &[]),
            ("B", Some(1), &[("n", hiding)]),
        ])
    };
    let of_reference = plan(&old, &new(reference(0))).unwrap();
    let steps = &of_reference.of_type(1).unwrap().steps;
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].from, steps[0].to), (8, 8));
    // It could be either.
    let error = plan(&old, &new(Storage::I32)).unwrap_err();
    assert!(
        error.contains("field n of B is not there any more"),
        "{error}"
    );
}

#[test]
fn what_must_not_be_durable_any_more_is_refused() {
    let old = tables(&[("A", None, &[])]);
    let mut new = old.clone();
    new.types[0].refused = Some("it has no name".into());
    let error = plan(&old, &new).unwrap_err();
    assert!(
        error.contains("type A") && error.contains("it has no name"),
        "{error}"
    );
}

#[test]
fn arrays_of_numbers_are_found_by_what_they_hold() {
    let array = |s| Type {
        name: String::new(),
        supertype: None,
        kind: Kind::Array(s),
        refused: None,
        named_by: None,
    };
    let mut old = tables(&[]);
    old.types = vec![array(Storage::I32), array(Storage::I64)];
    let mut new = old.clone();
    new.types.reverse();
    let plan = plan(&old, &new).unwrap();
    assert_eq!(
        (plan.of_type(0).unwrap().to, plan.of_type(1).unwrap().to),
        (1, 0)
    );
}

const NUMBERS: [Storage; 7] = [
    Storage::I8,
    Storage::I16,
    Storage::U16,
    Storage::I32,
    Storage::I64,
    Storage::F32,
    Storage::F64,
];

#[test]
fn numbers_widen_as_languages_say() {
    let wider = |a: &Storage, b: &Storage| {
        matches!(
            Convert::between(a, b),
            Some(Convert::Wider(..) | Convert::Same(_))
        )
    };
    use Storage::*;
    let allowed = [
        (I8, vec![I8, I16, I32, I64, F32, F64]),
        (I16, vec![I16, U16, I32, I64, F32, F64]),
        (U16, vec![I16, U16, I32, I64, F32, F64]),
        (I32, vec![I32, I64, F64]),
        (I64, vec![I64]),
        (F32, vec![F32, F64]),
        (F64, vec![F64]),
    ];
    for (from, to) in allowed {
        for other in &NUMBERS {
            assert_eq!(
                wider(&from, other),
                to.contains(other),
                "{from:?} to {other:?}"
            );
        }
        assert_eq!(Convert::between(&from, &reference(0)), None);
    }
}

proptest! {
    /// A number that became wider is the same number.
    #[test]
    fn no_value_is_lost(bits in any::<u64>(), from in 0..NUMBERS.len(), to in 0..NUMBERS.len()) {
        let (from, to) = (&NUMBERS[from], &NUMBERS[to]);
        let Some(convert @ Convert::Wider(..)) = Convert::between(from, to) else {
            return Ok(());
        };
        let bits = bits & (u64::MAX >> (64 - 8 * from.bytes()));
        let value = |storage: &Storage, bits: u64| match storage {
            Storage::I8 => f64::from(bits as i8),
            Storage::I16 => f64::from(bits as i16),
            Storage::U16 => f64::from(bits as u16),
            Storage::I32 => f64::from(bits as i32),
            Storage::I64 => (bits as i64) as f64,
            Storage::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        let (before, after) = (value(from, bits), value(to, convert.apply(bits)));
        prop_assert!(before == after || (before.is_nan() && after.is_nan()), "{before} {after}");
        prop_assert_eq!((convert.reads(), convert.bytes()), (from.bytes(), to.bytes()));
    }

    /// Whatever order fields and classes have in two programs: each is found, and no two become one.
    #[test]
    fn order_means_nothing(order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(), classes in Just(vec![0u32, 1, 2]).prop_shuffle(), added in 0..5usize) {
        let name = |i: usize| format!("field{i}");
        let names: Vec<String> = (0..12).map(name).collect();
        let storage = |i: usize| NUMBERS[i % NUMBERS.len()].clone();
        let fields: Vec<(&str, Storage)> = (0..12).map(|i| (names[i].as_str(), storage(i))).collect();
        let mut shuffled: Vec<(&str, Storage)> = order.iter().map(|&i| fields[i].clone()).collect();
        for i in 0..added {
            shuffled.insert(2 * i, (["a", "b", "c", "d", "e"][i], Storage::I64));
        }
        let class = ["A", "B", "C"];
        let old = tables(&[(class[0], None, &fields), (class[1], None, &fields), (class[2], None, &fields)]);
        let of = |i: usize| -> Class<'_> { (class[classes[i] as usize], None, &shuffled) };
        let new = tables(&[of(0), of(1), of(2)]);
        let plan = plan(&old, &new).unwrap();
        for ty in 0..3 {
            let planned = plan.of_type(ty).unwrap();
            prop_assert_eq!(&new.types[planned.to as usize].name, &old.types[ty as usize].name);
            let mut written: Vec<u32> = planned.steps.iter().map(|s| s.to).collect();
            written.sort();
            written.dedup();
            prop_assert_eq!(written.len(), 12);
            for step in &planned.steps {
                let name = |t: &Tables, ty, at| fields::of(t, ty).iter().find(|f| f.offset == at).map(|f| f.name.clone());
                prop_assert_eq!(name(&old, ty, step.from), name(&new, planned.to, step.to));
            }
        }
    }

    /// Whatever two programs are: a plan writes each place once, within the object.
    #[test]
    fn a_plan_writes_within_its_objects(a in shapes(), b in shapes(), exact in any::<bool>()) {
        let classes = |shape: &'_ [Vec<(usize, usize)>]| -> Tables {
            let names = ["x", "x_0", "x_1", "y", "y_0", ""];
            let own: Vec<Vec<(&str, Storage)>> = shape.iter().map(|c| c.iter().map(|&(n, s)| (names[n], NUMBERS[s].clone())).collect()).collect();
            let all: Vec<Class<'_>> = own.iter().enumerate().map(|(i, f)| (["P", "Q", "R"][i], i.checked_sub(1).map(|s| s as u32), f.as_slice())).collect();
            tables(&all)
        };
        let (old, mut new) = (classes(&a), classes(&b));
        new.from_source = exact;
        if let Ok(plan) = plan(&old, &new) {
            for ty in 0..old.types.len() as u32 {
                let planned = plan.of_type(ty).unwrap();
                let Kind::Struct { size, .. } = new.types[planned.to as usize].kind else { unreachable!() };
                let mut spans: Vec<(u32, u32)> = planned.steps.iter().map(|s| (s.to, s.to + s.convert.bytes())).collect();
                spans.sort();
                prop_assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0));
                prop_assert!(spans.iter().all(|s| s.0 >= 8 && s.1 <= size));
            }
        }
    }
}

/// Up to three classes, each below the one before, with fields by name and kind.
fn shapes() -> impl Strategy<Value = Vec<Vec<(usize, usize)>>> {
    let field = (0..6usize, 0..NUMBERS.len());
    prop::collection::vec(prop::collection::vec(field, 0..5), 1..4)
}

/// A program may begin with class data of a name and make others of that name later: they are two, and objects refer to each.
#[test]
fn class_data_of_one_name_that_are_two_stay_two() {
    let mut old = tables(&[("Info", None, &[("bits", Storage::I32)])]);
    let constant = |offset| crate::Constant {
        name: "a@class".into(),
        offset,
        ty: 0,
    };
    let late = Late {
        offset: 32,
        ty: 0,
        link: None,
        held: vec![Held::Bits(7)],
        name: "a@class".into(),
    };
    let live = Live {
        types: vec![false],
        constants: [32].into(),
        ..Live::default()
    };
    // Made on demand before, and at the beginning now.
    let mut new = old.clone();
    new.constants = vec![constant(8)];
    let all = [late];
    let plan = Plan::new(&old, &all, &live, &new, ObjectAlign::LEAST).unwrap();
    assert_eq!((plan.constants[&32], plan.late.len()), (8, 0));
    // Both, then and now.
    old.constants = vec![constant(0)];
    let plan = Plan::new(&old, &all, &live, &new, ObjectAlign::LEAST).unwrap();
    assert_eq!((plan.constants[&0], plan.late.len()), (8, 1));
    assert_eq!(plan.constants[&32], plan.late[0].offset);
    assert_ne!(plan.late[0].offset, 8);
}
