//! Which classes a region's objects are of, for a compiler that would leave out what the program does not use.

use crate::inspect::Inspection;
use std::collections::BTreeSet;

impl Inspection {
    /// Names of classes of the region's objects, and of those that it holds as class data, as the program's language writes them. Classes without
    /// a name, which no source can name, are not among them.
    pub fn classes(&self) -> BTreeSet<String> {
        let types = self.tables.types.iter().zip(&self.walk.by_type);
        let live = types.filter(|(_, count)| count.0 > 0);
        let live = live.map(|(ty, _)| ty.name.as_str());
        let late = self.late.iter().map(|late| late.name.as_str());
        live.chain(late).flat_map(classes_in).collect()
    }
}

/// Classes in a compiler's name, such as `Array<a.B>@class`.
fn classes_in(name: &str) -> impl Iterator<Item = String> + '_ {
    let words = name.split(['<', '>', '@']);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let words = words.filter(move |w| {
        w.starts_with(|c: char| c.is_alphabetic() || c == '_') && w.chars().all(is_word)
    });
    let parts = ["Array", "VT", "class", "vt"];
    words.filter(move |w| !parts.contains(w)).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_in_the_names_that_compilers_make() {
        let of = |name| classes_in(name).collect::<Vec<_>>();
        assert_eq!(of("a.B$C"), ["a.B$C"]);
        assert_eq!(of("Array<a.B>@class"), ["a.B"]);
        assert_eq!(of("Array<&I>"), Vec::<String>::new());
        assert_eq!(of("a.B$Comparator~3fa9c21b"), Vec::<String>::new());
        assert_eq!(of(""), Vec::<String>::new());
    }
}
