//! The trace format, its readers and writers, importers, and the recorder of native programs.
