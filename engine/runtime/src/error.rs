//! Errors, each in one line that names the place.

use crate::store::root::Rooted;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Result of the engine's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a module could not be loaded or linked, or why a program ended early.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The bytes are no valid module.
    #[error(
        "invalid module: {message} (at offset {offset:#x}{})",
        in_function(function)
    )]
    Invalid {
        /// The description of the error.
        message: String,
        /// Byte offset in the module.
        offset: u64,
        /// The function that holds the offset.
        function: Option<String>,
    },
    /// The module needs a proposal that the engine does not implement.
    #[error(
        "unsupported module: it needs {feature} (at offset {offset:#x}{})",
        in_function(function)
    )]
    Unsupported {
        /// Name of the proposal.
        feature: String,
        /// Byte offset in the module.
        offset: u64,
        /// The function that holds the offset.
        function: Option<String>,
    },
    /// Text form that does not parse.
    #[error("{0}")]
    Text(String),
    /// An import that is not provided.
    #[error(
        "missing import: the module needs {kind} `{}` `{}`; define it in the linker",
        printable(module),
        printable(name)
    )]
    MissingImport {
        /// First part of the import's name.
        module: String,
        /// Second part of the import's name.
        name: String,
        /// The kind of import: a function, a table, ...
        kind: &'static str,
    },
    /// An import of another type than the one that was given.
    #[error(
        "incompatible import type: `{}` `{}`: the module expects {expected}, given is {given}",
        printable(module),
        printable(name)
    )]
    ImportType {
        /// First part of the import's name.
        module: String,
        /// Second part of the import's name.
        name: String,
        /// The type that the module declares.
        expected: String,
        /// The type that was provided.
        given: String,
    },
    /// The observer of the program's accesses takes no more of them: the end is not the program's fault.
    #[error("the run was ended: the observer of the program stopped")]
    Unobserved,
    /// The program reported an interval that cannot be.
    #[error("the program's report is wrong: {0}")]
    Report(#[from] varve_heap::ReportError),
    /// Objects that were to survive do not, or cannot.
    #[error("{0}")]
    Durable(#[from] varve_durable::Error),
    /// The program trapped.
    #[error("{0}")]
    Trap(Box<Trap>),
    /// An exception that no handler of the program caught.
    #[error("uncaught exception of tag {tag}")]
    Exception {
        /// The tag's number in its store.
        tag: u32,
        /// The exception itself.
        exception: Rooted,
    },
    /// A host function failed.
    #[error("host function failed: {0}")]
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// The program's output was not accepted.
    #[error("writing {stream} failed: {error}")]
    Output {
        /// Standard output or standard error.
        stream: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// The program asked to end with this code.
    #[error("program ended with exit code {0}")]
    Exit(i32),
    /// A wrong argument, a missing export, an object of another store.
    #[error("{0}")]
    Usage(String),
    /// The host gives no memory, or this machine is not one that the engine generates code for.
    #[error("{0}")]
    System(String),
    /// A defect of the engine itself.
    #[error("internal error of the engine, please report it: {0}")]
    Internal(String),
}

/// A name of a module's choice, or a text with such names, in one line.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect::<String>().into()
}

fn in_function(function: &Option<String>) -> String {
    function
        .as_ref()
        .map(|f| format!(" in function {f}"))
        .unwrap_or_default()
}

impl Error {
    /// An error of a host function.
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Host(error.into())
    }

    /// The trap, if this is one.
    pub fn trap(&self) -> Option<&Trap> {
        match self {
            Error::Trap(t) => Some(t),
            _ => None,
        }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Error {
        Error::Usage(text.into())
    }
}

impl From<TrapKind> for Error {
    fn from(kind: TrapKind) -> Error {
        Error::Trap(Box::new(Trap {
            kind,
            frames: Vec::new(),
        }))
    }
}

/// Reason of a trap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum TrapKind {
    Unreachable = 1,
    MemoryOutOfBounds,
    TableOutOfBounds,
    /// `call_indirect` of an index that the table does not have.
    UndefinedElement,
    /// `call_indirect` of a null element.
    UninitializedElement,
    IndirectCallType,
    NullReference,
    ArrayOutOfBounds,
    CastFailure,
    /// An array that is longer than any heap could hold, or a heap that is full.
    OutOfMemory,
    StackOverflow,
    IntegerOverflow,
    IntegerDivisionByZero,
    BadConversion,
    /// A segment's elements or bytes are read beyond its end.
    ElementOutOfBounds,
    TableLimit,
    /// Another thread stopped the program: see [`Interrupt`](crate::Interrupt).
    Interrupted,
    /// The index of a string's unit is out of bounds.
    StringOutOfBounds,
    /// A number is to be a character, and no character has it.
    CodePoint,
}

impl TrapKind {
    pub(crate) const ALL: [TrapKind; 19] = [
        TrapKind::Unreachable,
        TrapKind::MemoryOutOfBounds,
        TrapKind::TableOutOfBounds,
        TrapKind::UndefinedElement,
        TrapKind::UninitializedElement,
        TrapKind::IndirectCallType,
        TrapKind::NullReference,
        TrapKind::ArrayOutOfBounds,
        TrapKind::CastFailure,
        TrapKind::OutOfMemory,
        TrapKind::StackOverflow,
        TrapKind::IntegerOverflow,
        TrapKind::IntegerDivisionByZero,
        TrapKind::BadConversion,
        TrapKind::ElementOutOfBounds,
        TrapKind::TableLimit,
        TrapKind::Interrupted,
        TrapKind::StringOutOfBounds,
        TrapKind::CodePoint,
    ];
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrapKind::Unreachable => "unreachable",
            TrapKind::MemoryOutOfBounds => "out of bounds memory access",
            TrapKind::TableOutOfBounds => "out of bounds table access",
            TrapKind::UndefinedElement => "undefined element",
            TrapKind::UninitializedElement => "uninitialized element",
            TrapKind::IndirectCallType => "indirect call type mismatch",
            TrapKind::NullReference => "null reference",
            TrapKind::ArrayOutOfBounds => "out of bounds array access",
            TrapKind::CastFailure => "cast failure",
            TrapKind::OutOfMemory => "out of memory: the heap is full (see --heap-max)",
            TrapKind::StackOverflow => "call stack exhausted",
            TrapKind::IntegerOverflow => "integer overflow",
            TrapKind::IntegerDivisionByZero => "integer divide by zero",
            TrapKind::BadConversion => "invalid conversion to integer",
            TrapKind::ElementOutOfBounds => "out of bounds segment access",
            TrapKind::TableLimit => "table grows beyond its limit",
            TrapKind::Interrupted => "interrupted",
            TrapKind::StringOutOfBounds => "out of bounds string access",
            TrapKind::CodePoint => "invalid code point",
        })
    }
}

/// A trap with the calls that led to it.
#[derive(Clone, Debug)]
pub struct Trap {
    /// Why.
    pub kind: TrapKind,
    /// The compiled calls, innermost first; empty if the trap arose outside of compiled code.
    pub frames: Vec<FrameInfo>,
}

/// One call on the stack of a trap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameInfo {
    /// Name of the function, from the name section or its exports, else `func[N]`.
    pub function: String,
    /// Byte offset of the instruction in the module.
    pub offset: u32,
    /// File and line of the source, where they are known: see [`Store::source_lines`](crate::Store::source_lines).
    pub line: Option<String>,
}

impl fmt::Display for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in function {} at offset {:#x}",
            self.function, self.offset
        )?;
        match &self.line {
            Some(line) => write!(f, " ({line})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trap: {}", self.kind)?;
        if let Some(top) = self.frames.first() {
            write!(f, " {top}")?;
        }
        Ok(())
    }
}
