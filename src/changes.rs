//! Tracks and reverts the changes of turns and commands: snapshots before and after a command, stored file contents
//! ([`Images`]), undo, redo, review by hunk, protected files, and copies of a workspace.

pub(crate) mod backup;
pub mod change_set;
pub mod checkpoint;
pub mod edits;
pub mod guard;
pub mod hunks;
pub mod images;
mod in_workspace;
pub mod origins;
mod pack;
pub mod revert;
pub mod snapshot;

pub use self::change_set::ChangeSet;
pub use self::guard::{Guard, Pins};
pub use self::images::Images;
pub use self::in_workspace::{Purpose, made, revert_in};
