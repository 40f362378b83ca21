//! Where threads and their memory are.

use serde::{Deserialize, Serialize};

/// Where threads and their memory are on a machine with several sockets (paper A, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numa {
    /// Threads and memory on the first socket.
    #[default]
    Local,
    /// Threads on the second socket, memory on the first.
    Remote,
    /// As automatic balancing leaves it: instances alternate between the sockets, and of each one's pages in fast memory as many are
    /// on the one as on the other. That they are exactly half and half is an assumption. Slow memory is the first socket's: balancing
    /// moves pages to nodes with processors, and the paper has all its Optane files in one region (section 3).
    Auto,
}

impl Numa {
    /// The socket that instance `i` runs on.
    pub fn socket(self, i: u32, sockets: u32) -> u32 {
        match self {
            Numa::Local => 0,
            Numa::Remote => 1.min(sockets - 1),
            Numa::Auto => i % sockets,
        }
    }
}

impl std::str::FromStr for Numa {
    type Err = String;

    fn from_str(text: &str) -> Result<Numa, String> {
        match text {
            "local" => Ok(Numa::Local),
            "remote" => Ok(Numa::Remote),
            "auto" => Ok(Numa::Auto),
            _ => Err(format!("`{text}` is none of local, remote and auto")),
        }
    }
}

impl std::fmt::Display for Numa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Numa::Local => "local",
            Numa::Remote => "remote",
            Numa::Auto => "auto",
        })
    }
}
