//! Inexact names from a model: a leading mark, a trailing line number, the workspace's own name in front.
//!
//! Such a name is another spelling of an existing file, or of a new one in an existing folder. It is resolved like any
//! other, so it reaches nothing that the exact spelling does not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization as _;

use crate::workspace::native::openable;

use super::{PathError, Root, WorkspacePath, outside, place, resolve_path, tidy};

/// The place that `name` means.
pub(super) fn resolve(roots: &[Arc<Root>], name: &str) -> Result<WorkspacePath, PathError> {
    let exact = |name: &str| resolve_path(roots, Path::new(name));
    let exists = |name: &&str| exact(name).is_ok_and(|path| path.exists());
    let rest = Some(name)
        .filter(|name| !exists(name))
        .and_then(after_variable);
    let name = rest.as_deref().unwrap_or(name);
    let literal = exact(name);
    if literal.as_ref().is_ok_and(WorkspacePath::exists) {
        return literal;
    }
    let spellings = spellings(roots, name);
    let places = || {
        spellings
            .iter()
            .filter_map(|spelling| resolve_path(roots, Path::new(spelling)).ok())
    };
    if let Some(there) = places().find(WorkspacePath::exists) {
        return Ok(there);
    }
    if let Some(there) = spellings
        .iter()
        .find_map(|spelling| folded(roots, spelling))
    {
        return Ok(there);
    }
    if literal.as_ref().is_ok_and(WorkspacePath::has_folder) && is_plain(roots, name) {
        return literal;
    }
    if let Some(new) = places().find(|place| place.has_folder() && !place.is_at_top()) {
        return Ok(new);
    }
    // A name that could be created literally, though nobody means that.
    match literal {
        Ok(_) if cfg!(unix) && name.contains('\\') => Err(PathError::Backslash(name.to_owned())),
        Ok(_) if leaves(roots, name) => {
            Err(with_hint(roots, name, outside(roots, Path::new(name))))
        }
        Ok(literal) if is_plain(roots, name) => Ok(literal),
        literal => resolve_path(roots, Path::new(unwrapped(name)))
            .or(literal)
            .map_err(|error| with_hint(roots, name, error)),
    }
}

/// An error that names the file of this workspace whose path the name ends with. It is not taken: the name may mean a file
/// somewhere else.
fn with_hint(roots: &[Arc<Root>], name: &str, mut error: PathError) -> PathError {
    let mut ends = name
        .match_indices('/')
        .map(|(at, _)| name.split_at(at + 1).1);
    let there = |end: &str| {
        let there = resolve_path(roots, Path::new(end)).ok()?;
        (there.exists() && !end.is_empty()).then_some(there)
    };
    if let PathError::Outside { hint, .. } = &mut error
        && let Some(there) = ends.find_map(there)
    {
        *hint = format!(". Did you mean {}?", there.display());
    }
    error
}

/// The name of the workspace's folder.
fn own(roots: &[Arc<Root>]) -> &str {
    let name = roots.first().and_then(|root| root.path.file_name());
    name.and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a new file may have exactly this name.
fn is_plain(roots: &[Arc<Root>], name: &str) -> bool {
    unwrapped(name) == name && !(cfg!(unix) && name.contains('\\')) && !leaves(roots, name)
}

/// Whether a name leads outside after its mark.
fn leaves(roots: &[Arc<Root>], name: &str) -> bool {
    let rest = name.trim_start().trim_start_matches('@');
    // No shell is there to expand it.
    if ["~/", "$HOME/", "${HOME}/"]
        .iter()
        .any(|home| rest.starts_with(home))
    {
        return true;
    }
    let is_marked = rest.len() < name.trim_start().len();
    let leads_out = |name: &str| resolve_path(roots, Path::new(name)).is_err();
    let mut others = [bare(name), unwrapped(name)].into_iter();
    is_marked && leads_out(rest) || others.any(|other| other != name && leads_out(other))
}

/// Other spellings of a name, most likely first.
fn spellings(roots: &[Arc<Root>], name: &str) -> Vec<String> {
    let own = own(roots);
    let changes: [&dyn Fn(&str) -> String; 14] = [
        &|name| after_drive(name, own).unwrap_or(name).to_owned(),
        &|name| after_scheme(name).unwrap_or(name).to_owned(),
        &|name| after_authority(name).unwrap_or(name).to_owned(),
        &|name| {
            percent_decode_str(name)
                .decode_utf8()
                .unwrap_or(name.into())
                .into_owned()
        },
        &|name| unescaped(name),
        &|name| unwrapped(name).to_owned(),
        &|name| bare(name).to_owned(),
        // What projects of TypeScript call their sources.
        &|name| name.replacen("@/", "src/", usize::from(name.starts_with("@/"))),
        &|name| name.trim_start_matches('@').to_owned(),
        &|name| name.replace('\\', "/"),
        &|name| {
            let mounts = [
                "/workspace/",
                "/workspaces/",
                "/repo/",
                "/app/",
                "/project/",
                "/code/",
                "/testbed/",
            ];
            mounts
                .iter()
                .find_map(|mount| name.strip_prefix(mount))
                .unwrap_or(name)
                .to_owned()
        },
        &|name| name.trim_start_matches('/').to_owned(),
        &|name| {
            let name = name.trim_start_matches("./");
            // Perhaps out of the workspace, and in again.
            let inside = name.strip_prefix("../").unwrap_or(name);
            inside
                .strip_prefix(own)
                .filter(|_| !own.is_empty())
                .and_then(|rest| rest.strip_prefix('/'))
                .unwrap_or(name)
                .to_owned()
        },
        &|name| {
            name.strip_prefix("a/")
                .or_else(|| name.strip_prefix("b/"))
                .unwrap_or(name)
                .to_owned()
        },
    ];
    let mut spellings = vec![name.to_owned()];
    let mut at = 0;
    while at < spellings.len().min(SPELLINGS) {
        for change in changes {
            let changed = change(&spellings[at]);
            if !changed.is_empty() && !spellings.contains(&changed) {
                spellings.push(changed);
            }
        }
        at += 1;
    }
    spellings
}

/// What follows a variable that stands for the workspace: `${workspaceFolder}/`, `$PWD/`, `%PROJECT_DIR%\`.
fn after_variable(name: &str) -> Option<String> {
    const WORDS: [&str; 5] = ["work", "project", "repo", "cwd", "pwd"];
    let plain = name.trim().trim_start_matches(['"', '\'', '`']);
    let (variable, rest) = plain.split_once(['/', '\\'])?;
    let is_variable = variable.starts_with(['$', '%', '{', '<']);
    let variable = variable.to_lowercase();
    (is_variable && WORDS.iter().any(|word| variable.contains(word))).then(|| rest.to_owned())
}

/// What follows the workspace's own name in a path with a drive letter, which exists nowhere here.
fn after_drive<'a>(name: &'a str, own: &str) -> Option<&'a str> {
    let (drive, rest) = name.split_once(":/")?;
    let is_drive = drive.len() == 1 && !own.is_empty();
    is_drive.then(|| Some(rest.rsplit_once(&format!("/{own}/"))?.1))?
}

/// How many spellings of a name are changed further.
const SPELLINGS: usize = 32;

/// What follows the scheme of a URL, without its query and fragment.
fn after_scheme(name: &str) -> Option<&str> {
    let (scheme, rest) = name.split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    is_scheme.then_some(rest.split_at(end).0)
}

/// The path of a URL, from its first slash on: `vscode://file/home/me/a.rs`.
fn after_authority(name: &str) -> Option<&str> {
    let rest = after_scheme(name)?;
    Some(rest.split_at(rest.find('/')?).1)
}

/// A name without the backslashes that a shell wants before blanks and signs.
fn unescaped(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let escapes = |next: &char| !next.is_alphanumeric() && !"\\/._-".contains(*next);
        if character != '\\' || !characters.peek().is_some_and(escapes) {
            plain.push(character);
        }
    }
    plain
}

/// The existing file whose name looks the same: composed otherwise, or with other blanks, quotes and dashes. A model
/// writes the name that it sees; where two files look the same it has to be exact.
fn folded(roots: &[Arc<Root>], name: &str) -> Option<WorkspacePath> {
    let (root, relative) = place(roots, Path::new(name))?;
    let mut found = PathBuf::new();
    for part in tidy(relative)?.components() {
        let wanted = looks(part.as_os_str().to_str()?);
        if root.dir().symlink_metadata(found.join(part)).is_ok() {
            found.push(part);
            continue;
        }
        let entries = root.dir().read_dir(openable(&found)).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut same = names.filter(|name| looks(name) == wanted);
        let (Some(one), None) = (same.next(), same.next()) else {
            return None;
        };
        found.push(one);
    }
    if found.as_os_str().is_empty() {
        return None;
    }
    resolve_path(roots, &root.path.join(found))
        .ok()
        .filter(WorkspacePath::exists)
}

/// A name as it looks: compatibility forms composed, without differences of blanks, quotes and dashes.
fn looks(name: &str) -> String {
    let plain = |character: char| match character {
        '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}' => None,
        blank if blank.is_whitespace() => Some(' '),
        '‘' | '’' | '‛' | '′' | '`' | '´' => Some('\''),
        '“' | '”' | '„' | '″' => Some('"'),
        '‐' | '‑' | '‒' | '–' | '—' | '−' => Some('-'),
        other => Some(other),
    };
    name.nfkc().filter_map(plain).nfc().collect()
}

/// A name without surrounding blanks, quotes and line numbers: `src/a.rs:12`, `src/a.rs#L3-L9`.
fn unwrapped(name: &str) -> &str {
    let name = linked(name.trim()).unwrap_or(name);
    let name = name.trim_matches(|c: char| c.is_whitespace() || "`'\"<>".contains(c));
    let is_lines = |text: &str| {
        !text.is_empty()
            && text.split(['-', ':', '–', 'C']).all(|part| {
                let digits = part.trim_start_matches(['L', 'C']);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
    };
    let mut marks = name.match_indices([':', '#']);
    marks
        .find_map(|(at, mark)| {
            let (before, after) = name.split_at(at);
            (!before.is_empty() && is_lines(after.strip_prefix(mark)?)).then_some(before)
        })
        .unwrap_or(name)
}

/// A name without what stands around it in a sentence or a report: `path: **src/a.rs**,`, `src/a.rs (unsaved)`,
/// `src/a.rs(3)`, `File "src/a.py", line 1`, `tests/a.py::test`.
fn bare(name: &str) -> &str {
    let quoted = || name.split_once('"')?.1.split_once('"');
    if let Some((inside, _)) = quoted().filter(|(inside, _)| !inside.is_empty()) {
        return inside;
    }
    let name = name.split_once("::").map_or(name, |(file, _item)| file);
    let name = ["path:", "file:", "Path:", "File:"]
        .iter()
        .find_map(|word| name.strip_prefix(word))
        .unwrap_or(name);
    let name = name.trim().trim_start_matches("- ");
    let name = name.trim_matches(|c: char| "*“”‘’,;:\0".contains(c));
    match name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once('('))
    {
        Some((name, _note)) if !name.is_empty() => name.trim_end(),
        _ => name,
    }
}

/// Where a link of Markdown leads.
fn linked(name: &str) -> Option<&str> {
    let (words, target) = name
        .strip_prefix('[')?
        .strip_suffix(')')?
        .split_once("](")?;
    (!words.contains(']') && !target.is_empty()).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_extracted_from_decoration() {
        for name in [
            "src/a.rs",
            " src/a.rs\n",
            "`src/a.rs`",
            "\"src/a.rs\"",
            "src/a.rs:12",
            "src/a.rs:3-9",
            "src/a.rs:3:9",
            "[a](src/a.rs)",
        ] {
            assert_eq!(unwrapped(name), "src/a.rs", "{name}");
        }
        assert_eq!(unwrapped("src/a.rs#L3-L9"), "src/a.rs");
        for name in ["C:", "a:b", "notes#todo", ":3", "a b.txt"] {
            assert_eq!(unwrapped(name), name);
        }
    }

    #[cfg(unix)]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test writes the files of its workspace"
    )]
    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        for file in [
            "project/src/app.py",
            "project/@types/x",
            "project/odd:1",
            "outside/secret",
        ] {
            std::fs::create_dir_all(base.join(file).parent().unwrap()).unwrap();
            std::fs::write(base.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../outside", base.join("project/link")).unwrap();
        folder
    }

    #[cfg(unix)]
    fn roots(folder: &tempfile::TempDir) -> [Arc<Root>; 1] {
        let project = folder.path().canonicalize().unwrap().join("project");
        [Arc::new(Root::open(&project).unwrap())]
    }

    #[test]
    #[cfg(unix)]
    fn path_slips_resolve_to_existing_files_inside() {
        let folder = project();
        let roots = roots(&folder);
        let is = |name: &str, expected: &str| {
            assert_eq!(resolve(&roots, name).unwrap().display(), expected, "{name}");
        };
        for name in [
            "project/src/app.py",
            "./project/src/app.py",
            "src/app.py#L1C3",
            "@src/app.py",
            "/src/app.py",
            r"src\app.py",
            r".\src\app.py",
            "a/src/app.py",
        ] {
            is(name, "src/app.py");
        }
        is("`@src/app.py:7`", "src/app.py");
        for name in [
            "src/app.py,",
            "src/app.py:",
            "**src/app.py**",
            "“src/app.py”",
            "path: src/app.py",
            "src/app.py (unsaved)",
            "${workspaceFolder}/src/app.py",
            "`$PWD/src/app.py`",
            "$(pwd)/src/app.py",
            r"%PROJECT_DIR%\src\app.py",
            r"$env:GITHUB_WORKSPACE\src\app.py",
            "{{workspace}}/src/app.py",
            "<project_root>/src/app.py",
        ] {
            is(name, "src/app.py");
        }
        is("/workspace/src/app.py", "src/app.py");
        is("/app/src/new.py", "src/new.py");
        is("@types/x", "@types/x");
        is("odd:1", "odd:1");
        is("project/src/new.py", "src/new.py");
        is(r"src\new.py", "src/new.py");
        is("new.py:3", "new.py");
        is("${workspaceRoot}/new.py", "new.py");
        is("@scope/new.py", "@scope/new.py");
        is("project/new.py", "project/new.py");
        for name in [
            "@../outside/secret",
            "@../outside/new",
            "/../outside/secret",
            r"..\outside\secret",
            r"..\outside\new",
            r"odd\new",
            "project/../../outside/secret",
            "/link/secret",
            "@link/secret",
            "/workspace/../outside/secret",
            "~/new.py",
            "$HOME/new.py",
            "path: ../outside/secret",
            "$PWD/../outside/secret",
            "${workspaceFolder}/link/secret",
            "**../outside/secret**",
            "../outside/secret (1)",
        ] {
            assert!(resolve(&roots, name).is_err(), "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_foreign_path_names_the_file_it_may_mean() {
        let folder = project();
        let roots = roots(&folder);
        for (name, is_named) in [
            ("/home/user/project/src/app.py", true),
            ("/c/me/project/src/none.py", false),
        ] {
            let error = resolve(&roots, name).unwrap_err().to_string();
            assert_eq!(
                error.ends_with("Did you mean src/app.py?"),
                is_named,
                "{error}"
            );
        }
    }
}
