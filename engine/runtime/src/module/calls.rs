//! The call graph, as far as code names callees.

use super::{ExternType, Module};
use std::collections::{HashMap, HashSet, VecDeque};
use wasmparser::Operator;

impl Module {
    /// The nearest function from which an imported function is called, over any number of calls, whose name `wanted` accepts; and the
    /// function that it calls on the way.
    ///
    /// Calls through references are in no code. Where nothing calls a method by its name, functions that make an object of its class stand for its
    /// callers. Classes are identified by names of the form `package.Class::method`.
    pub fn caller_of_import(
        &self,
        module: &str,
        name: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(String, String)> {
        let inner = &self.inner;
        let is_func = |ty: &ExternType| matches!(ty, ExternType::Func(_));
        let import = inner
            .imports
            .iter()
            .filter(|i| is_func(&i.ty))
            .position(|i| i.module == module && i.name == name)? as u32;
        let mut callers: HashMap<u32, Vec<u32>> = HashMap::new();
        for caller in inner.imported_funcs..inner.funcs.len() as u32 {
            inner.each_operator(caller, |_, op| {
                if let Operator::Call { function_index: to }
                | Operator::ReturnCall { function_index: to }
                | Operator::RefFunc { function_index: to } = *op
                {
                    callers.entry(to).or_default().push(caller);
                }
                true
            });
        }
        let mut constructors: HashMap<&str, Vec<u32>> = HashMap::new();
        for (&index, name) in &inner.names {
            if let Some((class, "<init>")) = name.split_once("::") {
                constructors.entry(class).or_default().push(index);
            }
        }
        let mut seen = HashSet::from([import]);
        let mut next = VecDeque::from([(import, import)]);
        // Methods to whose classes' constructors the search goes on when calls lead no further.
        let mut later = Vec::new();
        loop {
            while let Some((at, callee)) = next.pop_front() {
                let name = inner.names.get(&at).map_or("", String::as_str);
                if at != import && wanted(name) {
                    let callee = inner.names.get(&callee).map_or("", String::as_str);
                    return Some((name.into(), callee.into()));
                }
                later.extend(name.split_once("::").map(|(class, _)| class));
                for &caller in callers.get(&at).into_iter().flatten() {
                    if seen.insert(caller) {
                        next.push_back((caller, at));
                    }
                }
            }
            for class in std::mem::take(&mut later) {
                let mut made = constructors.remove(class).unwrap_or_default();
                made.sort_unstable();
                let unseen = made.into_iter().filter(|&index| seen.insert(index));
                next.extend(unseen.map(|index| (index, index)));
            }
            if next.is_empty() {
                return None;
            }
        }
    }
}
