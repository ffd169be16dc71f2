//! Files that are more than text: those that run or configure something once written, and those that hold secrets.
//!
//! Names are compared as on the most tolerant file system (case, Unicode forms, ignorable characters, trailing dots,
//! streams, short names), so that no alias of a protected name is missed.

use std::ffi::OsStr;
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

/// Protects any file or folder with this name, and everything below it, anywhere in the workspace.
const PROTECTED_NAMES: &[&str] = &[
    // git, and its 8.3 short name
    ".git",
    "git~1",
    ".gitattributes",
    ".gitmodules",
    // editors
    ".vscode",
    ".idea",
    ".zed",
    ".helix",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".vimrc",
    ".gvimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    // agents: their settings, tools and rules
    ".cursor",
    ".cursorrules",
    ".windsurf",
    ".windsurfrules",
    ".claude",
    ".codex",
    ".gemini",
    ".tandem",
    ".agents",
    ".clinerules",
    ".opencode",
    "opencode.json",
    ".roo",
    ".roomodes",
    ".kiro",
    ".qwen",
    ".continue",
    ".junie",
    ".amazonq",
    ".aider.conf.yml",
    ".mcp.json",
    "agents.md",
    "agents.override.md",
    "agent.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "copilot-instructions.md",
    // run automatically by other tools
    ".envrc",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // mise trusts a file by its path, whatever is in it
    "mise.toml",
    ".mise.toml",
    ".devcontainer",
    ".devcontainer.json",
    // shells
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    "config.fish",
];

/// The hooks that git runs where somebody works, by githooks(5). They are protected like [`PROTECTED_NAMES`]: by
/// `core.hooksPath`, or if `.git/hooks` is a link, they may be in any folder.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
    "sendemail-validate",
];

/// Protects what has the second name in a folder with the first.
const PROTECTED_PAIRS: &[[&str; 2]] = &[
    [".github", "workflows"],
    [".hg", "hgrc"],
    // tandem's own, in a dotfiles repository
    ["tandem", "config.toml"],
];

const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
];

const SECRET_FOLDERS: &[&str] = &[".ssh", ".gnupg", ".aws", ".kube"];

const SECRET_EXTENSIONS: &[&str] = &["pem", "key", "p12", "pfx", "jks", "keystore", "ppk", "kdbx"];

/// Endings such as that of `.env.example`: these are meant to be read.
const TEMPLATE_ENDINGS: &[&str] = &[".example", ".sample", ".template", ".dist"];

/// Whether writing `path` (relative to its root) could make something run later or change an agent's rules.
pub fn is_protected(path: &Path) -> bool {
    let names = folded(path);
    names
        .iter()
        .any(|name| PROTECTED_NAMES.contains(&name.as_str()))
        || names
            .windows(2)
            .any(|pair| PROTECTED_PAIRS.iter().any(|names| names == pair))
        || names
            .last()
            .is_some_and(|name| HOOKS.contains(&name.as_str()) || name.ends_with(".code-workspace"))
}

/// Whether a file of this name is a hook of git's; a folder is none.
pub(crate) fn is_hook(name: &OsStr) -> bool {
    HOOKS.contains(&fold(&name.to_string_lossy()).as_str())
}

/// Whether `name` in `folder` is protected, if the folder is not.
pub(crate) fn is_protected_in(folder: &Path, name: &OsStr) -> bool {
    is_protected(&Path::new(folder.file_name().unwrap_or_default()).join(name))
}

/// Whether `path` probably holds a secret.
pub fn is_secret(path: &Path) -> bool {
    let names = folded(path);
    let Some((name, folders)) = names.split_last() else {
        return false;
    };
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_env =
        name.starts_with(".env") && !TEMPLATE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    is_env
        || SECRET_NAMES.contains(&name.as_str())
        || extension.is_some_and(|extension| SECRET_EXTENSIONS.contains(&extension))
        || folders
            .iter()
            .any(|folder| SECRET_FOLDERS.contains(&folder.as_str()))
}

fn folded(path: &Path) -> Vec<String> {
    path.components()
        .map(|part| fold(&part.as_os_str().to_string_lossy()))
        .collect()
}

/// One spelling for all names that some file system considers equal. A pattern of names stays a pattern.
pub fn fold(name: &str) -> String {
    // Nearly all names, for which there is nothing to normalize.
    let is_plain = name
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let visible = || {
        name.nfkc()
            .filter(|&character| !crate::text::display::is_deceptive(character))
    };
    let lower: String = if is_plain {
        name.to_ascii_lowercase()
    } else {
        visible().flat_map(char::to_lowercase).collect()
    };
    let (name, _stream) = lower.split_once(':').unwrap_or((&lower, ""));
    name.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_are_recognized_under_all_aliases() {
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            "sub/.git",
            ".g\u{200c}it/config",
            ".git./config",
            ".git::$INDEX_ALLOCATION/config",
            "GIT~1/config",
            ".vscode/tasks.json",
            "my.code-workspace",
            "docs/AGENTS.md",
            "Claude.MD",
            ".github/workflows/ci.yml",
            ".ＧＩＴ/config",
            ".envrc",
            "home/.bashrc",
            ".gvimrc",
            "src/.dir-locals-2.el",
            "sub/.hg/hgrc",
            "mise.toml",
            "dotfiles/tandem/config.toml",
            ".githooks/check.sh",
            "scripts/hooks/pre-commit",
            "Commit-Msg",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn ordinary_names_are_not_protected() {
        for path in [
            "src/main.rs",
            ".gitignore",
            ".github/CODEOWNERS",
            "git/config",
            ".hg/store/hgrc",
            "workflows/a.yml",
            "README.md",
            ".env",
            "src/hooks/useName.ts",
            "docs/pre-commit.md",
            "cmd/pre-commit/main.go",
            "update",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_name_in_an_ordinary_folder_is_judged_alone() {
        for path in [
            ".github/workflows",
            "a/.GitHub/workflows",
            ".hg/hgrc",
            "a/.envrc",
            ".git",
            "src/main.rs",
            "a/workflows",
            "a/ .",
        ] {
            let path = Path::new(path);
            let alone = is_protected_in(path.parent().unwrap(), path.file_name().unwrap());
            assert_eq!(alone, is_protected(path), "{}", path.display());
        }
    }

    #[test]
    fn secret_files_are_recognized_and_templates_are_not() {
        for path in [
            ".env",
            ".ENV.local",
            ".envrc",
            "certs/server.pem",
            "id_ed25519",
            "home/.ssh/config",
            "app.p12",
        ] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in [
            ".env.example",
            "id_rsa.pub",
            "src/environment.rs",
            "keys.rs",
            "key",
        ] {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }
}
