//! Recordings of stock Java virtual machines: a folder that `programs/jvm/record` has made, or the small ones that are built in.

use crate::StudyOptions;
use ruzstd::decoding::StreamingDecoder;
use serde::Deserialize;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use varve_run::Error;
use varve_run::jvm::Recorded;

/// The description of a recording by `record`, beside its trace.
#[derive(Clone, Debug, Deserialize)]
pub struct About {
    /// The driver's name for the program.
    pub program: String,
    /// `parallel` or `g1`.
    pub collector: String,
    /// Threads that work.
    pub threads: u32,
    /// Bytes of the young generation, and of the old one.
    pub young_bytes: u64,
    pub old_bytes: u64,
    /// Bytes that were allocated in the window, and that survived a collection there.
    pub allocated_bytes: u64,
    pub promoted_bytes: u64,
}

/// A recording.
pub struct Recording {
    pub about: About,
    pub recorded: Arc<Recorded>,
}

/// The recordings of a study. Those that are built in are files as long as this lives.
pub struct Recordings {
    pub all: Vec<Recording>,
    /// Whether they are the small ones.
    pub small: bool,
    _folder: Option<tempfile::TempDir>,
}

macro_rules! built_in {
    ($($name:literal),*) => {
        [$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/jvm/", $name, ".json")),
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/jvm/", $name, ".trace.zst")).as_slice(),
        )),*]
    };
}

/// Name, what is said of it, compressed trace.
const BUILT_IN: &[(&str, &str, &[u8])] = &built_in!(
    "h2-parallel-1",
    "pagerank-g1-1",
    "pagerank-parallel-1",
    "xalan-parallel-1"
);

impl Recordings {
    /// Those of the options.
    ///
    /// # Errors
    /// A file that cannot be read or is no recording; one line.
    pub fn open(options: &StudyOptions) -> Result<Recordings, Error> {
        match &options.recordings {
            Some(folder) => Recordings::of(folder),
            None => Recordings::built_in(),
        }
    }

    fn of(folder: &Path) -> Result<Recordings, Error> {
        let refuse = |what: String| Error::Java(format!("{}: {what}", folder.display()));
        let entries = std::fs::read_dir(folder)
            .map_err(|e| refuse(format!("{e}: programs/jvm/record FOLDER makes recordings")))?;
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        files.sort();
        let mut all = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|e| refuse(format!("{}: {e}", file.display())))?;
            all.push(Recording::open(&text, &file.with_extension("trace"))?);
        }
        if all.is_empty() {
            return Err(refuse(
                "no recordings are there: programs/jvm/record FOLDER makes some".into(),
            ));
        }
        Ok(Recordings {
            all,
            small: false,
            _folder: None,
        })
    }

    fn built_in() -> Result<Recordings, Error> {
        let refuse = |e: std::io::Error| Error::Java(format!("recordings that are built in: {e}"));
        let folder = tempfile::tempdir().map_err(refuse)?;
        let mut all = Vec::new();
        for (name, about, trace) in BUILT_IN {
            let path = folder.path().join(name).with_extension("trace");
            let mut trace =
                StreamingDecoder::new(*trace).map_err(|e| refuse(std::io::Error::other(e)))?;
            let mut file = File::create(&path).map_err(refuse)?;
            std::io::copy(&mut trace, &mut file).map_err(refuse)?;
            all.push(Recording::open(about, &path)?);
        }
        Ok(Recordings {
            all,
            small: true,
            _folder: Some(folder),
        })
    }
}

impl Recording {
    fn open(about: &str, trace: &Path) -> Result<Recording, Error> {
        let refuse = |what: String| Error::Java(format!("{}: {what}", trace.display()));
        let about: About = serde_json::from_str(about)
            .map_err(|e| refuse(format!("what is said of it, its .json, is wrong: {e}")))?;
        let mut recorded = Recorded::open(trace)?
            .ok_or_else(|| {
                let cut = "no Java virtual machine is in the recording: it was cut off, or is of another program; \
                           programs/jvm/record FOLDER makes it anew";
                refuse(cut.into())
            })?;
        // An instance has as many hardware threads as it has threads that work. Those of its compilers run beside them.
        recorded.busy = recorded.busy.min(about.threads);
        let mut hash = DefaultHasher::new();
        let bytes = std::fs::read(trace).map_err(|e| refuse(e.to_string()))?;
        bytes.hash(&mut hash);
        recorded.identity = Some(format!("recording {:016x}", hash.finish()));
        Ok(Recording {
            about,
            recorded: Arc::new(recorded),
        })
    }
}
