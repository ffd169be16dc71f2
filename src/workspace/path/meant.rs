//! Inexact names from a model: a leading mark, a trailing line number, the workspace's own name in front.
//!
//! Such a name is another spelling of an existing file, or of a new one in an existing folder. It is resolved like any
//! other, so it reaches nothing that the exact spelling does not.

use std::path::Path;
use std::sync::Arc;

use super::{PathError, Root, WorkspacePath, outside, resolve_path};

/// The place that `name` means.
pub(super) fn resolve(roots: &[Arc<Root>], name: &str) -> Result<WorkspacePath, PathError> {
    let literal = resolve_path(roots, Path::new(name));
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
    if literal.as_ref().is_ok_and(WorkspacePath::has_folder) && is_plain(roots, name) {
        return literal;
    }
    if let Some(new) = places().find(|place| place.has_folder() && !place.is_at_top()) {
        return Ok(new);
    }
    // A name that could be created literally, though nobody means that.
    match literal {
        Ok(_) if cfg!(unix) && name.contains('\\') => Err(PathError::Backslash(name.to_owned())),
        Ok(_) if leaves(roots, name) => Err(outside(roots, Path::new(name))),
        Ok(literal) if is_plain(roots, name) => Ok(literal),
        literal => resolve_path(roots, Path::new(unwrapped(name))).or(literal),
    }
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
    is_marked && leads_out(rest) || bare(name) != name && leads_out(bare(name))
}

/// Other spellings of a name, most likely first.
fn spellings(roots: &[Arc<Root>], name: &str) -> Vec<String> {
    let own = roots
        .first()
        .and_then(|root| root.path.file_name())
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let changes: [&dyn Fn(&str) -> String; 8] = [
        &|name| unwrapped(name).to_owned(),
        &|name| bare(name).to_owned(),
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
            name.strip_prefix(own)
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
    for change in changes {
        for at in 0..spellings.len() {
            let changed = change(&spellings[at]);
            if !changed.is_empty() && !spellings.contains(&changed) {
                spellings.push(changed);
            }
        }
    }
    spellings
}

/// A name without surrounding blanks, quotes and line numbers: `src/a.rs:12`, `src/a.rs#L3-L9`.
fn unwrapped(name: &str) -> &str {
    let name = linked(name.trim()).unwrap_or(name);
    let name = name.trim_matches(|c: char| c.is_whitespace() || "`'\"<>".contains(c));
    let is_lines = |text: &str| {
        !text.is_empty()
            && text.split(['-', ':', '–']).all(|part| {
                let digits = part.trim_start_matches('L');
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

/// A name without what stands around it in a sentence: `path: **src/a.rs**,`, `src/a.rs (unsaved)`, `src/a.rs(3)`.
fn bare(name: &str) -> &str {
    let name = ["path:", "file:", "Path:", "File:"]
        .iter()
        .find_map(|word| name.strip_prefix(word))
        .unwrap_or(name);
    let name = name.trim().trim_matches(|c: char| "*“”‘’,;:\0".contains(c));
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

    #[test]
    #[cfg(unix)]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test writes the files of its workspace"
    )]
    fn path_slips_resolve_to_existing_files_inside() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for file in [
            "project/src/app.py",
            "project/@types/x",
            "project/odd:1",
            "outside/secret",
        ] {
            std::fs::create_dir_all(base.join(file).parent().unwrap()).unwrap();
            std::fs::write(base.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(base.join("outside"), base.join("project/link")).unwrap();
        let roots = [Arc::new(Root::open(&base.join("project")).unwrap())];
        let is = |name: &str, expected: &str| {
            assert_eq!(resolve(&roots, name).unwrap().display(), expected, "{name}");
        };
        for name in [
            "project/src/app.py",
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
            "**../outside/secret**",
            "../outside/secret (1)",
        ] {
            assert!(resolve(&roots, name).is_err(), "{name}");
        }
    }
}
