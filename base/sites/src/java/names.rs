//! Names of Java's classes, and which call of a stack is the program's own.

use super::Frame;

/// A class as people write it, from its signature: `[[Ljava/lang/String;` is `java.lang.String[][]`.
pub fn of_signature(signature: &str) -> String {
    let inner = signature.trim_start_matches('[');
    let depth = signature.len() - inner.len();
    let name = match inner {
        "B" => "byte".into(),
        "C" => "char".into(),
        "D" => "double".into(),
        "F" => "float".into(),
        "I" => "int".into(),
        "J" => "long".into(),
        "S" => "short".into(),
        "Z" => "boolean".into(),
        class => class
            .strip_prefix('L')
            .and_then(|class| class.strip_suffix(';'))
            .unwrap_or(class)
            .replace('/', "."),
    };
    // The rest is a different number in each run.
    const LAMBDA: &str = "$$Lambda";
    let name = match name.find(LAMBDA) {
        Some(at) => name[..at + LAMBDA.len()].into(),
        None => name,
    };
    name + &"[]".repeat(depth)
}

/// Packages of the platform and of languages on it: they allocate on behalf of their callers.
const LIBRARIES: [&str; 8] = [
    "java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "groovy.",
];

/// The place in a stack of the call that the program wrote itself: the innermost one outside of libraries, or the innermost.
pub fn own(stack: &[Frame]) -> usize {
    let library = |class: &str| LIBRARIES.iter().any(|package| class.starts_with(package));
    stack
        .iter()
        .position(|frame| !library(&frame.class))
        .unwrap_or(0)
}

/// A class without its package.
pub fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// Where a call is, for people: `Orders.java:24`, or class and method where the source is not known.
pub fn place(frame: &Frame) -> String {
    match (frame.file.is_empty(), frame.line) {
        (false, line) if line > 0 => format!("{}:{line}", frame.file),
        _ => format!("{}.{}", short(&frame.class), frame.method),
    }
}

/// A site's name: the line that the program wrote, the class, and the library's method that allocates for it.
pub fn name(stack: &[Frame], class: &str) -> String {
    let class = short(class);
    let Some(frame) = stack.get(own(stack)) else {
        return match class {
            "" => "all other sites".into(),
            class => format!("(no stack) {class}"),
        };
    };
    let by = match own(stack) {
        0 => String::new(),
        _ => format!(", {}.{}", short(&stack[0].class), stack[0].method),
    };
    format!("{} {class}{by}", place(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_as_people_write_classes() {
        assert_eq!(of_signature("[B"), "byte[]");
        assert_eq!(of_signature("[[Ljava/lang/String;"), "java.lang.String[][]");
        assert_eq!(of_signature("LOrders$Item;"), "Orders$Item");
        let hidden = "Lshop/Orders$$Lambda$14.0x00007f3bc4000a00;";
        assert_eq!(of_signature(hidden), "shop.Orders$$Lambda");
        assert_eq!(of_signature(""), "");
    }

    #[test]
    fn a_site_is_called_by_the_line_that_the_program_wrote() {
        let frame = |class: &str, method: &str, file: &str, line| Frame {
            class: class.into(),
            method: method.into(),
            file: file.into(),
            line,
        };
        let grow = frame("java.util.ArrayList", "grow", "ArrayList.java", 237);
        let order = frame("shop.Orders", "order", "Orders.java", 24);
        assert_eq!(
            name(&[grow.clone(), order.clone()], "java.lang.Object[]"),
            "Orders.java:24 Object[], ArrayList.grow"
        );
        assert_eq!(name(&[order], "shop.Item"), "Orders.java:24 Item");
        assert_eq!(
            name(&[grow], "java.lang.Object[]"),
            "ArrayList.java:237 Object[]",
            "no caller outside of the library is known"
        );
        let without = frame("shop.Orders", "order", "", 0);
        assert_eq!(name(&[without], "shop.Item"), "Orders.order Item");
        assert_eq!(name(&[], ""), "all other sites");
    }
}
