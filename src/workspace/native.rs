//! Paths as Windows writes them, and as people and models read them; on other systems they are the same.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// Paths up to this length need no prefix, in characters.
const SHORT: usize = 240;

/// A path without symlinks. On Windows it has no `\\?\` in front unless it needs one: few programs accept that.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(plain)
}

/// The file that a URI names; `None` for an editor's own documents.
pub(crate) fn file_of(uri: &str) -> Option<PathBuf> {
    url::Url::parse(uri).ok()?.to_file_path().ok()
}

/// The URI of a file; `None` for a path that is not absolute.
pub(crate) fn uri_of(path: &Path) -> Option<String> {
    url::Url::from_file_path(path).map(String::from).ok()
}

/// The path with the symlinks of its folder resolved, as far as that exists.
pub(crate) fn canonical_folder(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let (folder, real) = above.find_map(|folder| Some((folder, canonical(folder).ok()?)))?;
    Some(real.join(path.strip_prefix(folder).ok()?))
}

/// A path without `\\?\`, unless it needs it.
pub(super) fn plain(path: PathBuf) -> PathBuf {
    let plain = path
        .to_str()
        .filter(|_| cfg!(windows))
        .and_then(without_prefix)
        .map(|plain| PathBuf::from(&*plain));
    plain.unwrap_or(path)
}

/// The name by which a directory capability opens the `folder` below it.
pub(crate) fn openable(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}

/// A path for people and models: folders are divided by `/` on every system.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) {
        forward(&text)
    } else {
        text.into_owned()
    }
}

/// Why Windows cannot have a file of this name, or has a device of it.
pub(super) fn reserved(name: &str) -> Option<&'static str> {
    const DEVICES: [&str; 6] = ["aux", "con", "conin$", "conout$", "nul", "prn"];
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    let is_port = |port: &str| {
        let number = stem.strip_prefix(port).and_then(|number| {
            number
                .chars()
                .next()
                .filter(|_| number.chars().count() == 1)
        });
        number.is_some_and(|number| number.is_ascii_digit() || "¹²³".contains(number))
    };
    if DEVICES.contains(&stem.as_str()) || is_port("com") || is_port("lpt") {
        return Some("on Windows, this is the name of a device");
    }
    if name.contains(|c: char| c.is_control() || "<>:\"|?*".contains(c)) {
        return Some("Windows does not allow `< > : \" | ? *` in a name");
    }
    name.ends_with(['.', ' '])
        .then_some("on Windows, a name cannot end with a dot or a space")
}

/// The same parts, whatever the case: on Windows another spelling of one path.
pub(super) fn strip_folded<'a>(path: &'a Path, base: &Path) -> Option<&'a Path> {
    let mut parts = path.components();
    for expected in base.components() {
        let (part, expected) = (parts.next()?, expected.as_os_str());
        let fold = |text: &std::ffi::OsStr| text.to_str().map(str::to_lowercase);
        if part.as_os_str() != expected
            && (fold(part.as_os_str()) != fold(expected) || fold(expected).is_none())
        {
            return None;
        }
    }
    Some(parts.as_path())
}

fn without_prefix(path: &str) -> Option<Cow<'_, str>> {
    let rest = path.strip_prefix(r"\\?\")?;
    // With the prefix a name is taken as it is; without it, these would mean something else.
    let is_odd = |name: &str| reserved(name).is_some();
    if rest.chars().count() > SHORT || rest.split('\\').skip(1).any(is_odd) {
        return None;
    }
    match rest.strip_prefix(r"UNC\") {
        Some(share) => Some(Cow::Owned(format!(r"\\{share}"))),
        None => rest
            .get(1..3)
            .filter(|drive| *drive == r":\")
            .map(|_| Cow::Borrowed(rest)),
    }
}

fn forward(path: &str) -> String {
    without_prefix(path)
        .as_deref()
        .unwrap_or(path)
        .replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_path_prefix_is_removed_if_possible() {
        for (path, expected) in [
            (r"\\?\C:\a\b c.rs", Some(r"C:\a\b c.rs")),
            (r"\\?\UNC\server\share\a", Some(r"\\server\share\a")),
            (r"\\?\Volume{1}\a", None),
            (r"\\?\C:\a\nul", None),
            (r"\\?\C:\a.\b", None),
            (r"C:\a", None),
        ] {
            assert_eq!(without_prefix(path).as_deref(), expected, "{path}");
        }
        assert_eq!(
            without_prefix(&format!(r"\\?\C:\{}", "a".repeat(300))),
            None
        );
        assert_eq!(forward(r"\\?\C:\a\b"), "C:/a/b");
        assert_eq!(forward(r"sub\a b.rs"), "sub/a b.rs");
    }

    #[test]
    fn names_invalid_on_windows_are_recognized() {
        for name in [
            "CON", "nul.txt", "Aux", "com1", "LPT9.log", "con .txt", "a.rs.", "a ", "a:b", "what?",
            "COM²",
        ] {
            assert!(reserved(name).is_some(), "{name}");
        }
        for name in [
            "console", "com", "com10", "a.con", ".env", "nul-test", "a b.rs", "é",
        ] {
            assert_eq!(reserved(name), None, "{name}");
        }
    }

    #[test]
    fn another_case_is_another_spelling() {
        assert_eq!(
            strip_folded(Path::new("/Work/Proj/a.rs"), Path::new("/work/proj")),
            Some(Path::new("a.rs"))
        );
        assert_eq!(
            strip_folded(Path::new("/work/project/a.rs"), Path::new("/work/proj")),
            None
        );
        assert_eq!(
            strip_folded(Path::new("/work"), Path::new("/work/proj")),
            None
        );
    }
}
