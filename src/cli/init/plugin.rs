//! The Neovim plugin of this version, embedded in the program and installed as a package that Neovim loads
//! automatically.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use include_dir::{Dir, include_dir};
use ring::digest;

use crate::config::Environment;

/// The directories of the plugin that Neovim needs.
static PARTS: [(&str, Dir<'static>); 4] = [
    (
        "doc",
        include_dir!("$CARGO_MANIFEST_DIR/editors/neovim/doc"),
    ),
    (
        "lsp",
        include_dir!("$CARGO_MANIFEST_DIR/editors/neovim/lsp"),
    ),
    (
        "lua",
        include_dir!("$CARGO_MANIFEST_DIR/editors/neovim/lua"),
    ),
    (
        "plugin",
        include_dir!("$CARGO_MANIFEST_DIR/editors/neovim/plugin"),
    ),
];

/// Marks the directory as ours to replace and remove, with a checksum of its contents.
const MARK: &str = ".installed-by-tandem";

/// The result of an installation.
#[derive(Debug, PartialEq, Eq)]
pub enum Installed {
    New,
    Replaced,
    /// It was already installed.
    Same,
}

/// The variable that names the directory for programs' data.
pub const DATA_HOME: &str = if cfg!(windows) {
    "LOCALAPPDATA"
} else {
    "XDG_DATA_HOME"
};

/// The directory for the plugin: a package below Neovim's data directory.
pub fn folder(environment: &Environment) -> Option<PathBuf> {
    let data = if cfg!(windows) {
        PathBuf::from(environment.get(DATA_HOME)?).join("nvim-data")
    } else {
        let named = environment
            .get(DATA_HOME)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        named
            .or_else(|| Some(Path::new(environment.get("HOME")?).join(".local/share")))?
            .join("nvim")
    };
    Some(data.join("site/pack/tandem/start/tandem"))
}

/// Installs the plugin. The directory is complete at every moment.
///
/// # Errors
/// The directory was not created by an installation, has been changed since, or cannot be written.
pub fn install(folder: &Path) -> anyhow::Result<Installed> {
    let files = files();
    let seal = seal(&files);
    let before = installed(folder)?;
    if before.as_deref() == Some(seal.as_str()) {
        return Ok(Installed::Same);
    }
    let parent = folder.parent().context("the directory has a parent")?;
    fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    // Below another folder, so that Neovim never loads it as a package.
    let shelf = parent.parent().unwrap_or(parent);
    let fresh = tempfile::Builder::new()
        .prefix(".tandem-")
        .tempdir_in(shelf)?;
    for (name, bytes) in &files {
        let path = fresh.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(fresh.path()))?;
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
    }
    fs::write(fresh.path().join(MARK), &seal)?;
    if before.is_some() {
        fs::remove_dir_all(folder).with_context(|| format!("replacing {}", folder.display()))?;
    }
    fs::rename(fresh.keep(), folder).with_context(|| format!("writing {}", folder.display()))?;
    Ok(if before.is_some() {
        Installed::Replaced
    } else {
        Installed::New
    })
}

/// Removes the plugin; returns whether there was one.
///
/// # Errors
/// The directory was not created by an installation, has been changed since, or cannot be removed.
pub fn remove(folder: &Path) -> anyhow::Result<bool> {
    if installed(folder)?.is_none() {
        return Ok(false);
    }
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    // The folders of the package, `tandem/start`, unless something else is in them.
    let _ = folder
        .ancestors()
        .skip(1)
        .take(2)
        .try_for_each(fs::remove_dir);
    Ok(true)
}

/// Whether the plugin that is installed differs from the one this program carries. One that was not installed by
/// `tandem init`, or has been changed since, is its owner's business.
pub fn is_outdated(folder: &Path) -> bool {
    installed(folder).is_ok_and(|mark| mark.is_some_and(|mark| mark != seal(&files())))
}

/// The checksum of what is installed; `None` if nothing is.
fn installed(folder: &Path) -> anyhow::Result<Option<String>> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", folder.display())),
        Ok(_) => {}
    }
    let Ok(mark) = fs::read_to_string(folder.join(MARK)) else {
        bail!(
            "{} was not installed by `tandem init`; move it elsewhere first",
            folder.display()
        );
    };
    let mut found = Vec::new();
    read(folder, Path::new(""), &mut found)?;
    if seal(&found) != mark {
        bail!(
            "{} has been changed since `tandem init` installed it; move it elsewhere first",
            folder.display()
        );
    }
    Ok(Some(mark))
}

/// All files of a directory except the mark, by relative path.
fn read(top: &Path, below: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(top.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            read(top, &name, found)?;
        } else if name != Path::new(MARK) {
            found.push((name, fs::read(entry.path())?));
        }
    }
    Ok(())
}

/// The files of the plugin, with help tags.
fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for (part, folder) in &PARTS {
        collect(Path::new(part), folder, &mut files);
    }
    // Where `:helptags` was run in the clone, its own tags are in it, too.
    let tags_file = Path::new("doc").join("tags");
    files.retain(|(name, _)| *name != tags_file);
    let is_help = |name: &Path| name.parent() == Some(Path::new("doc"));
    let tags: String = files
        .iter()
        .filter(|(name, _)| is_help(name))
        .map(|(name, help)| {
            tags(
                &String::from_utf8_lossy(help),
                &name.file_name().unwrap_or_default().to_string_lossy(),
            )
        })
        .collect();
    files.push((tags_file, tags.into_bytes()));
    files
}

fn collect(part: &Path, folder: &Dir<'_>, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    files.extend(
        folder
            .files()
            .map(|file| (part.join(file.path()), file.contents().to_vec())),
    );
    folder.dirs().for_each(|below| collect(part, below, files));
}

/// The output of `:helptags` for a help file.
fn tags(help: &str, file: &str) -> String {
    let words = help.split_whitespace();
    let names = words.filter_map(|word| word.strip_prefix('*')?.strip_suffix('*'));
    let mut names: Vec<&str> = names
        .filter(|name| !name.is_empty() && !name.contains(['*', '|']))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().fold(String::new(), |mut tags, name| {
        let place = name.replace('\\', "\\\\").replace('/', "\\/");
        tags += &format!("{name}\t{file}\t/*{place}*\n");
        tags
    })
}

/// A checksum of names and contents.
fn seal(files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut sorted: Vec<_> = files.iter().collect();
    sorted.sort();
    let mut context = digest::Context::new(&digest::SHA256);
    for (name, bytes) in sorted {
        let name = name.to_string_lossy().replace('\\', "/");
        context.update(format!("{name}\0{}\0", bytes.len()).as_bytes());
        context.update(bytes);
    }
    context.finish().as_ref().iter().fold(
        format!("{} ", env!("CARGO_PKG_VERSION")),
        |mut text, byte| {
            text += &format!("{byte:02x}");
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_installed_once_and_removed_completely() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("site/pack/tandem/start/tandem");
        assert!(!remove(&folder).unwrap());
        assert_eq!(install(&folder).unwrap(), Installed::New);
        for file in [
            "plugin/tandem.lua",
            "lua/tandem/init.lua",
            "lsp/tandem.lua",
            "doc/tandem.txt",
            "doc/tags",
        ] {
            assert!(folder.join(file).is_file(), "{file}");
        }
        assert_eq!(install(&folder).unwrap(), Installed::Same);
        assert!(remove(&folder).unwrap() && !folder.exists());
        let left: Vec<_> = fs::read_dir(home.path().join("site/pack"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn files_the_user_made_or_changed_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tandem/start/tandem");
        fs::create_dir_all(&folder).unwrap();
        assert!(
            install(&folder)
                .unwrap_err()
                .to_string()
                .contains("was not installed by")
        );
        assert!(
            remove(&folder)
                .unwrap_err()
                .to_string()
                .contains("was not installed by")
        );
        fs::remove_dir(&folder).unwrap();
        install(&folder).unwrap();
        fs::write(folder.join("lua/mine.lua"), "").unwrap();
        assert!(
            install(&folder)
                .unwrap_err()
                .to_string()
                .contains("has been changed since")
        );
        assert!(
            remove(&folder)
                .unwrap_err()
                .to_string()
                .contains("has been changed since")
        );
    }

    #[test]
    fn another_version_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tandem/start/tandem");
        let old = vec![(PathBuf::from("old.lua"), b"old".to_vec())];
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("old.lua"), "old").unwrap();
        fs::write(folder.join(MARK), seal(&old)).unwrap();
        assert!(is_outdated(&folder));
        assert_eq!(install(&folder).unwrap(), Installed::Replaced);
        assert!(!folder.join("old.lua").exists() && !is_outdated(&folder));
    }

    #[test]
    fn help_tags_match_those_of_neovim() {
        let help = "*tandem.txt*  For Neovim\n  *:Tandem* *b/c*\n** *a|b* *tandem.txt*\n";
        let expected = ":Tandem\ttandem.txt\t/*:Tandem*\nb/c\ttandem.txt\t/*b\\/c*\ntandem.txt\ttandem.txt\t/*tandem.txt*\n";
        assert_eq!(tags(help, "tandem.txt"), expected);
    }
}
