//! Finds the programs that tandem runs for itself, such as git and bubblewrap, outside all workspaces. `PATH` may list a
//! folder of a workspace, such as a virtual environment's, where a sandboxed command can replace programs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::lock;

/// The workspace folders that were opened, without symlinks.
static WORKSPACES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// From now on, [`find_program`] finds nothing in this folder.
pub fn distrust_programs_in(workspace: &Path) {
    // With the system in the workspace, commands are not sandboxed, and there are no programs elsewhere.
    if let Ok(real) = workspace.canonicalize()
        && !Path::new("/usr").starts_with(&real)
    {
        lock(&WORKSPACES).insert(real);
    }
}

fn is_outside(path: &Path) -> bool {
    is_outside_but(path, |_| false)
}

/// Whether it is outside the workspaces that are not `trusted`.
fn is_outside_but(path: &Path, trusted: impl Fn(&Path) -> bool) -> bool {
    path.canonicalize().is_ok_and(|real| {
        let workspaces = lock(&WORKSPACES);
        let mut distrusted = workspaces.iter().filter(|it| !trusted(it));
        !distrusted.any(|folder| real.starts_with(folder))
    })
}

/// The search `path` without what is relative or in a workspace, for programs that look for others there. A workspace that
/// is, or contains, the person's `home` has the person's own programs, too.
pub fn outside_workspaces(path: &str, home: &Path) -> String {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let folders = std::env::split_paths(path);
    let outside = folders.filter(|folder| {
        folder.is_absolute() && is_outside_but(folder, |workspace| home.starts_with(workspace))
    });
    let joined = std::env::join_paths(outside).ok();
    joined
        .and_then(|path| path.into_string().ok())
        .unwrap_or_default()
}

/// The program with this name: the first in the search `path` that is outside all workspaces.
pub fn find_program_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file() && is_outside(program))
}

/// The same for the search path of this process.
#[expect(
    clippy::disallowed_methods,
    reason = "the search path of this process, as the system itself would read it"
)]
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_program_in(&std::env::var_os("PATH")?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn programs_in_a_workspace_are_passed_over_by_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [workspace, outside, linked] = ["work", "outside", "linked"].map(|it| root.join(it));
        for place in [&workspace.join("bin"), &outside, &linked] {
            std::fs::create_dir_all(place).unwrap();
        }
        for place in [&workspace.join("bin"), &outside] {
            std::fs::File::create(place.join("git")).unwrap();
        }
        std::os::unix::fs::symlink(workspace.join("bin/git"), linked.join("git")).unwrap();
        std::os::unix::fs::symlink(&workspace, root.join("link")).unwrap();
        let path = [
            workspace.join("bin"),
            root.join("link/bin"),
            linked,
            outside.clone(),
        ];
        let path = std::env::join_paths(path).unwrap();
        assert_eq!(
            find_program_in(&path, "git"),
            Some(workspace.join("bin/git"))
        );
        distrust_programs_in(&workspace);
        assert_eq!(find_program_in(&path, "git"), Some(outside.join("git")));
    }
}
