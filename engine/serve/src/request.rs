//! Requests of clients, as the parser returns them.

/// The side effect of a retrieval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retrieve {
    /// Gives the values' unique numbers too.
    pub cas: bool,
    /// Sets a new expiry.
    pub touch: Option<i64>,
}

/// How a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In any case.
    Set,
    /// Where there is none.
    Add,
    /// Where there is one.
    Replace,
    /// After the one that is there.
    Append,
    /// Before the one that is there.
    Prepend,
}

/// One step of a conversation. A retrieval of several keys is several steps, so that none has a large answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// One key of a retrieval.
    Get {
        /// How.
        how: Retrieve,
        /// The key.
        key: &'a [u8],
    },
    /// The end of a retrieval.
    GetEnd,
    /// A value to store.
    Store {
        /// How.
        mode: Mode,
        /// The key.
        key: &'a [u8],
        /// The client's own.
        flags: u32,
        /// As the protocol has it: relative, absolute, 0 or negative.
        expiry: i64,
        /// Only in place of the value with this unique number.
        cas: Option<u64>,
        /// The bytes.
        value: &'a [u8],
        /// Without an answer.
        quiet: bool,
    },
    /// A value to forget.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Without an answer.
        quiet: bool,
    },
    /// A value that is a decimal number, to be changed.
    Count {
        /// Up or down.
        up: bool,
        /// The key.
        key: &'a [u8],
        /// By how much.
        delta: u64,
        /// Without an answer.
        quiet: bool,
    },
    /// A new expiry.
    Touch {
        /// The key.
        key: &'a [u8],
        /// As the protocol has it.
        expiry: i64,
        /// Without an answer.
        quiet: bool,
    },
    /// All values to forget.
    FlushAll {
        /// The delay in seconds.
        delay: i64,
        /// Without an answer.
        quiet: bool,
    },
    /// Numbers about the server.
    Stats {
        /// Which; empty for the general ones.
        what: &'a [u8],
    },
    /// The server's version.
    Version,
    /// How much the server logs: it takes note and logs nothing.
    Verbosity {
        /// Without an answer.
        quiet: bool,
    },
    /// The end.
    Quit,
    /// A meta command.
    Meta {
        /// Which.
        verb: Verb,
        /// The key as the client wrote it.
        key: &'a [u8],
        /// The flags, separated by blanks.
        flags: &'a [u8],
        /// The bytes of a value to store.
        value: &'a [u8],
    },
    /// A meta command that does nothing: for clients that send quiet commands before.
    MetaNoop,
    /// Something that cannot be done; the answer is an error.
    Refused {
        /// The answer, without the end of its line.
        answer: &'static str,
    },
    /// A value that is not even read: it is thrown away as it comes.
    Unread {
        /// The key, as the store has it.
        key: &'a [u8],
        /// Why.
        why: Unread,
        /// The value that is there is out of date.
        forget: bool,
        /// Without an answer.
        quiet: bool,
    },
    /// Another limit for all values together.
    MemoryLimit {
        /// Mebibytes.
        megabytes: u64,
        /// Without an answer.
        quiet: bool,
    },
    /// All keys.
    List {
        /// How they are written.
        listing: Listing,
    },
    /// The next part of a list of keys that is under way.
    ListPart {
        /// Which.
        part: Part,
    },
    /// A request of the binary protocol: the answer says in that protocol that it is not spoken, and the end.
    Binary {
        /// The opcode of the client's request.
        opcode: u8,
        /// The client's own, which the answer has too.
        opaque: [u8; 4],
    },
    /// Something after which nothing can be understood: the answer is an error, and the end.
    Lost {
        /// The answer, without the end of its line.
        answer: &'static str,
    },
}

/// Why a value is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread {
    /// It is larger than values may be.
    TooLarge,
    /// Too much waits already, of all connections together.
    NoBuffer,
}

/// How a list of keys is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    /// With the metadata of their values: `lru_crawler metadump`.
    Described,
    /// As commands that get them: `lru_crawler mgdump`.
    Commands,
}

/// Meta commands with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// `mg`
    Get,
    /// `ms`
    Set,
    /// `md`
    Delete,
    /// `ma`
    Arithmetic,
    /// `me`
    Debug,
}

/// The part of a list that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// How keys are written.
    pub listing: Listing,
    /// The number of the list: no two have the same.
    pub list: u64,
    /// The shard whose keys it has.
    pub shard: usize,
    /// Whether it is the shard's first.
    pub first: bool,
}
