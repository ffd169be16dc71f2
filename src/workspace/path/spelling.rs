//! The one spelling of a name where the file system takes several for the same: the one that its folder has.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cap_std::fs::Dir;

use super::Root;
use crate::workspace::native::openable;

impl Root {
    /// `name` as the folder has it. In a copy, the original's folder counts for what the copy does not have: it may be on
    /// a file system of another kind.
    pub(super) fn spelling(&self, folder: &Path, name: OsString) -> OsString {
        let original = || {
            self.original()
                .and_then(|original| in_folder(original.dir(), folder, &name))
        };
        in_folder(self.dir(), folder, &name)
            .or_else(original)
            .unwrap_or(name)
    }
}

/// Whether what is at `path` can be reached by another spelling.
pub(crate) fn has_aliases(dir: &Dir, path: &Path) -> bool {
    let has_alias = |path: &Path| {
        let (folder, name) = (path.parent()?, path.file_name()?);
        in_folder(dir, folder, other_case(name.to_str()?)?.as_ref())
    };
    path.ancestors().any(|path| has_alias(path).is_some())
}

/// The name that the folder has for `name`, if it is another one.
fn in_folder(dir: &Dir, folder: &Path, name: &OsStr) -> Option<OsString> {
    let text = name.to_str()?;
    let exists = |name: &str| dir.symlink_metadata(folder.join(name)).is_ok();
    // Nearly everywhere, case makes it another name.
    if !exists(&other_case(text)?) || !exists(text) {
        return None;
    }
    let names: Vec<OsString> = dir
        .read_dir(openable(folder))
        .ok()?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    if names.iter().any(|its| its == name) {
        return None;
    }
    let folded = text.to_lowercase();
    names
        .into_iter()
        .find(|its| its.to_str().is_some_and(|its| its.to_lowercase() == folded))
}

fn other_case(name: &str) -> Option<String> {
    let upper = name.to_uppercase();
    let other = if upper == name {
        name.to_lowercase()
    } else {
        upper
    };
    (other != name).then_some(other)
}
