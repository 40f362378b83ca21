//! Names as people wrote them.

/// The name of a C++ or Rust symbol in its language; any other name as it is.
///
/// ```
/// use varve_symbols::demangle;
/// assert_eq!(demangle("_Znwm"), "operator new(unsigned long)");
/// assert_eq!(demangle("_ZN5graph4load17h0123456789abcdefE"), "graph::load");
/// assert_eq!(demangle("main"), "main");
/// ```
pub fn demangle(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        // without the hash
        return format!("{name:#}");
    }
    if !name.starts_with("_Z") {
        return name.into();
    }
    let demangled = cpp_demangle::Symbol::new(name).ok();
    let demangled = demangled.and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| name.into())
}
