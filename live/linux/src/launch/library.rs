//! The libraries that go into programs, carried inside this one. The build script has made them.

/// A shared object.
pub struct Library {
    /// The file's name.
    pub name: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

/// Places pages, from `shim/`.
pub static PAGES: Library = Library {
    name: "libvarve_live.so",
    bytes: include_bytes!(env!("VARVE_LIVE_SHIM")),
};

/// The allocator that places objects, from `objects/`.
pub static OBJECTS: Library = Library {
    name: "libvarve_objects.so",
    bytes: include_bytes!(env!("VARVE_LIVE_OBJECTS")),
};

/// The agent inside Java virtual machines, from the recorder's.
pub static AGENT: Library = Library {
    name: "varve-agent.so",
    bytes: include_bytes!(env!("VARVE_LIVE_AGENT")),
};

/// The agent that samples allocations of Java virtual machines, from `sites/`.
pub static SITES: Library = Library {
    name: "varve-sites.so",
    bytes: include_bytes!(env!("VARVE_LIVE_SITES")),
};
