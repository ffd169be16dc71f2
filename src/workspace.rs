//! The person's files and open buffers: the only place that names, reads or changes them.
//!
//! Text comes from the open document when there is one, else from disk through a directory capability; an edit goes
//! through the editor when the file is open, else atomically to disk. What was read is remembered by content hash, so
//! an edit never lands on text the model has not seen without being matched against it again.

/// The files of one session. Cheap to clone.
#[derive(Clone)]
pub struct Workspace {}
