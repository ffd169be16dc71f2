//! The one name of a file, under which its changes are recorded, and the one a person knows it by.
//!
//! A workspace may be opened through a symlink (`/tmp` is one on macOS), and an editor may name documents by either path.

use std::path::{Path, PathBuf};

use super::path::place;
use super::{Workspace, native};

/// How many files a message names.
const NAMED: usize = 5;
/// How many characters their names have, but for the first.
const LENGTH: usize = 160;

impl Workspace {
    /// The identity of the file at the absolute `path`, however the folders above its root are spelled. What is at the
    /// path now does not matter: a link may have taken the place of a file.
    pub fn identity(&self, path: &Path) -> PathBuf {
        let inside = |path: &Path| {
            place(self.roots(), path).map(|(root, relative)| root.real().join(relative))
        };
        let resolved = || inside(&native::canonical_folder(path)?);
        inside(path)
            .or_else(resolved)
            .unwrap_or_else(|| path.to_owned())
    }

    /// The identity of the file that a person or their editor calls `name`.
    pub fn identity_of_named(&self, name: &Path) -> PathBuf {
        let document = self
            .documents()
            .find_named(name)
            .and_then(|document| document.path.clone());
        document.unwrap_or_else(|| self.identity(name))
    }

    /// The name that a user knows the file of this identity by: as the editor names its document, else below its root as
    /// that was named.
    pub fn name_of(&self, identity: &Path) -> PathBuf {
        let document = self
            .documents()
            .find(identity)
            .and_then(|document| document.name());
        let below =
            || place(self.roots(), identity).map(|(root, relative)| root.path().join(relative));
        document
            .or_else(below)
            .unwrap_or_else(|| identity.to_owned())
    }

    /// What a message calls the file at `path`.
    pub fn shown(&self, path: &Path) -> String {
        self.resolve_path(path)
            .map_or_else(|_| native::shown(path), |path| path.display())
    }

    /// Names the first of these files, and counts the others.
    pub fn named<P: AsRef<Path>>(&self, paths: impl ExactSizeIterator<Item = P>) -> String {
        first_names(paths, |path| self.shown(path.as_ref()))
    }
}

/// Names the first items, and counts the others.
pub fn first_names<T>(
    items: impl ExactSizeIterator<Item = T>,
    name: impl FnMut(T) -> String,
) -> String {
    let count = items.len();
    let mut length = 0;
    let named = items
        .take(NAMED)
        .map(name)
        .enumerate()
        .take_while(|(at, name)| {
            length += name.len();
            *at == 0 || length <= LENGTH
        });
    let names: Vec<_> = named.map(|(_, name)| name).collect();
    let more = count - names.len();
    let names = names.join(", ");
    if more > 0 {
        format!("{names} and {more} more")
    } else {
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_once_there_are_many_or_they_are_long() {
        let named = |length: usize, count: usize| {
            let names: Vec<_> = (0..count).map(|_| "n".repeat(length)).collect();
            first_names(names.iter(), String::clone)
        };
        assert_eq!(named(1, 5), "n, n, n, n, n");
        assert_eq!(named(1, 7), "n, n, n, n, n and 2 more");
        let long = "n".repeat(LENGTH);
        assert_eq!(named(LENGTH, 3), format!("{long} and 2 more"));
    }
}
