//! Messages of the agent inside a Java virtual machine to the process that traces it: system calls with numbers of our
//! own, which the kernel refuses without effect.

/// A virtual machine has started: collector (its code), feature version.
pub const CALL_MACHINE: i64 = 0x7661_0004;
/// A range of memory: its use (a code), first address, bytes. It holds until another range has a part of it.
pub const CALL_HEAP_RANGE: i64 = 0x7661_0005;
/// A pause for a collection begins.
pub const CALL_PAUSE: i64 = 0x7661_0006;
/// It ends: collections of the young generation in it, collections of everything.
pub const CALL_RESUME: i64 = 0x7661_0007;
