//! Frames, bins, colours and page placement policies.
