//! Which files git and ripgrep ignore.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::workspace::Root;

/// Longer ignore files are read up to this size.
const LIMIT: u64 = 1 << 20;

/// A name that only a rule for any name matches.
const ANY: &str = "\u{1}";

/// Sources of rules, by precedence: within one source, the innermost folder with a matching rule decides.
const FILES: [IgnoreFile; 4] = [
    IgnoreFile {
        name: ".ignore",
        of_repository: false,
        of_git: false,
    },
    IgnoreFile {
        name: ".gitignore",
        of_repository: true,
        of_git: true,
    },
    IgnoreFile {
        name: ".git/info/exclude",
        of_repository: true,
        of_git: true,
    },
    // The person's own excludes, which are not in any folder.
    IgnoreFile {
        name: "",
        of_repository: false,
        of_git: true,
    },
];

struct IgnoreFile {
    name: &'static str,
    /// Whether it does not apply to a repository from outside.
    of_repository: bool,
    /// Whether git reads it.
    of_git: bool,
}

/// The rules of one folder and of those above it.
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    matchers: [Gitignore; FILES.len()],
    is_repository: bool,
}

/// Which of the relevant files a folder has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found {
    ignore: bool,
    gitignore: bool,
    repository: bool,
}

impl Found {
    pub const ALL: Self = Self {
        ignore: true,
        gitignore: true,
        repository: true,
    };

    pub fn add(mut self, name: &OsStr) -> Self {
        self.ignore |= name == ".ignore";
        self.gitignore |= name == ".gitignore";
        self.repository |= name == ".git";
        self
    }
}

impl Rules {
    /// The rules that apply to the folder `start` of `root` from outside: the person's own excludes and the files of
    /// the folders above, up to the repository's root; outside a repository, up to the workspace root. Files above that
    /// ignore all of the workspace do not apply: it was opened on purpose.
    pub fn above(root: &Root, start: &Path) -> Arc<Self> {
        let (personal, _) = GitignoreBuilder::new(root.real()).build_global();
        let matchers = [
            Gitignore::empty(),
            Gitignore::empty(),
            Gitignore::empty(),
            personal,
        ];
        let personal = Arc::new(Self {
            above: None,
            matchers,
            is_repository: false,
        });
        let (mut rules, mut is_ignored) = (Arc::clone(&personal), false);
        for (index, folder) in folders_above(root.real()).into_iter().enumerate() {
            is_ignored |= index > 0 && rules.ignores_for_git(folder, true);
            rules = Self::of(folder, Found::ALL, &open_outside, rules);
        }
        is_ignored |= rules.ignores_for_git(root.real(), true)
            || rules.ignores_for_git(&root.real().join(ANY), false);
        if is_ignored {
            rules = personal;
        }
        let inside = start.ancestors().skip(1).collect::<Vec<_>>();
        for folder in inside.into_iter().rev() {
            rules = Self::of(
                &root.real().join(folder),
                Found::ALL,
                &|path| open(root, path),
                rules,
            );
        }
        rules
    }

    /// The rules in `folder`, an absolute path.
    pub fn of(
        folder: &Path,
        found: Found,
        open: &dyn Fn(&Path) -> io::Result<File>,
        above: Arc<Self>,
    ) -> Arc<Self> {
        if !(found.ignore || found.gitignore || found.repository) {
            return above;
        }
        let read = |wanted: bool, file: &IgnoreFile| {
            let file = wanted.then(|| open(&folder.join(file.name)).ok()).flatten();
            file.map_or_else(Gitignore::empty, |file| parse(folder, file))
        };
        let [ignore, gitignore, exclude, _] = &FILES;
        Arc::new(Self {
            matchers: [
                read(found.ignore, ignore),
                read(found.gitignore, gitignore),
                read(found.repository, exclude),
                Gitignore::empty(),
            ],
            is_repository: found.repository && is_repository(folder),
            above: Some(above),
        })
    }

    /// Whether `path` (absolute, in this folder) is ignored.
    pub fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        self.decide(path, is_folder, |_| true)
    }

    /// Whether git ignores `path`, whatever `.ignore` says.
    pub fn ignores_for_git(&self, path: &Path, is_folder: bool) -> bool {
        self.decide(path, is_folder, |file| file.of_git)
    }

    fn decide(&self, path: &Path, is_folder: bool, counts: impl Fn(&IgnoreFile) -> bool) -> bool {
        let decide = |(index, file): (usize, &IgnoreFile)| {
            let mut rules = Some(self);
            while let Some(here) = rules {
                match here.matchers[index].matched(path, is_folder) {
                    Match::None if here.is_repository && file.of_repository => return None,
                    Match::None => rules = here.above.as_deref(),
                    Match::Ignore(_) => return Some(true),
                    Match::Whitelist(_) => return Some(false),
                }
            }
            None
        };
        FILES
            .iter()
            .enumerate()
            .filter(|(_, file)| counts(file))
            .find_map(decide)
            .unwrap_or(false)
    }
}

fn parse(folder: &Path, file: File) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let mut text = Vec::new();
    let _unreadable = file.take(LIMIT).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is not a valid glob is skipped, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Opens an ignore file inside the root; `path` is absolute.
pub(crate) fn open(root: &Root, path: &Path) -> io::Result<File> {
    let relative = path
        .strip_prefix(root.real())
        .map_err(|_| io::ErrorKind::NotFound)?;
    root.open_file(relative)
}

/// Opens an ignore file above the workspace, where no capability reaches; it is only parsed as globs.
fn open_outside(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_file() {
        File::open(path)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The folders above the workspace root that belong to the same repository, outermost first.
fn folders_above(root: &Path) -> Vec<&Path> {
    if is_repository(root) {
        return Vec::new();
    }
    let Some(top) = root
        .ancestors()
        .skip(1)
        .find(|folder| is_repository(folder))
    else {
        return Vec::new();
    };
    let mut folders: Vec<_> = root
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != top)
        .collect();
    folders.push(top);
    folders.reverse();
    folders
}

fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
}
