//! Skills: folders with a `SKILL.md` that describes how to do a kind of task, in the format of agentskills.io. The
//! person's own are in `skills/` beside `config.toml`, those of a workspace in `.tandem/skills/` and `.agents/skills/`,
//! where installers of skills and most other agents put them.
//!
//! Invariants: a skill is text.
//!
//! Finding one reads the beginning of its file, using one reads the file: nothing is run or allowed. No file outside
//! the skill's own folder is read, and none in a workspace that may hold secrets.

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::disk::{self, blocking};
use super::native::openable;
use super::path::{self, resolve_path};
use super::{Root, Workspace};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// Where a workspace keeps its skills.
const PLACES: [&str; 2] = [".tandem/skills", ".agents/skills"];
/// At most this many are offered.
const MOST: usize = 50;
/// How many folders are searched in each place.
const LOOKED_AT: usize = 200;
/// Name and description must be within these first bytes.
const HEAD: u64 = 8 << 10;
/// The most that is read of one file.
const LONGEST: u64 = 64 << 10;
/// Longer names are ignored.
const LONGEST_NAME: usize = 64;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is its folder's.
    pub name: String,
    /// Its purpose, on one line.
    pub description: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Whether it is the person's own, outside the workspace.
    is_own: bool,
}

/// The skills of a person (whose configuration is in `own`) and of a workspace; if several have the same name, the
/// first. Blocks.
pub fn find(own: Option<&Path>, workspace: &Workspace) -> Vec<Skill> {
    let own = own.map(|folder| (folder.join("skills"), true));
    let shared = workspace
        .roots()
        .iter()
        .flat_map(|root| PLACES.map(|place| (root.path().join(place), false)));
    let mut found: Vec<Skill> = Vec::new();
    for (place, is_own) in own.into_iter().chain(shared) {
        for name in folders(&place, is_own, workspace) {
            let skill = Skill {
                folder: place.join(&name),
                name,
                description: String::new(),
                is_own,
            };
            if found.len() < MOST
                && found.iter().all(|other| other.name != skill.name)
                && let Some(description) = skill.described(workspace)
            {
                found.push(Skill {
                    description,
                    ..skill
                });
            }
        }
    }
    found
}

/// The names in a folder of skills, in order.
fn folders(place: &Path, is_own: bool, workspace: &Workspace) -> Vec<String> {
    let roots = roots(place, is_own, workspace);
    let entries =
        path::place(&roots, place).map(|(root, relative)| root.dir().read_dir(openable(relative)));
    let names = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
    names.sort_unstable();
    names.truncate(LOOKED_AT);
    names
}

/// The roots that a folder of skills is in.
fn roots(folder: &Path, is_own: bool, workspace: &Workspace) -> Vec<Arc<Root>> {
    if is_own {
        Root::open(folder).map(Arc::new).into_iter().collect()
    } else {
        workspace.roots().to_vec()
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain)
}

impl Skill {
    /// Its description; `None` if it is not a skill.
    fn described(&self, workspace: &Workspace) -> Option<String> {
        let text = self.beginning(workspace, FILE, HEAD).ok()?;
        let matter = front_matter(&text)
            .filter(|(name, description)| *name == self.name && !description.is_empty());
        if matter.is_none() {
            let path = self.folder.join(FILE);
            tracing::warn!(
                "{} is no skill: it needs `name: {}` and a description",
                path.display(),
                self.name
            );
        }
        matter.map(|(_, description)| description)
    }

    /// The file `name` in its folder, by default `SKILL.md`; truncated if it is too long.
    ///
    /// # Errors
    /// The file does not exist, is outside the folder, or may hold secrets.
    pub async fn read(&self, workspace: &Workspace, name: Option<&str>) -> io::Result<String> {
        let name = name.unwrap_or(FILE).to_owned();
        let (skill, workspace) = (self.clone(), workspace.clone());
        let mut text = blocking(move || skill.beginning(&workspace, &name, LONGEST + 1)).await?;
        if text.len() as u64 > LONGEST {
            text.push_str("\n[the rest was left out: it is longer than 64 kB]\n");
        }
        Ok(text)
    }

    fn beginning(&self, workspace: &Workspace, name: &str, limit: u64) -> io::Result<String> {
        let inside = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let refused = "only the files of the skill's directory can be read, and no secrets";
        if !inside {
            return Err(io::Error::other(refused));
        }
        let roots = roots(&self.folder, self.is_own, workspace);
        let path = resolve_path(&roots, &self.folder.join(name)).map_err(io::Error::other)?;
        if path.is_secret() {
            return Err(io::Error::other(refused));
        }
        let mut bytes = Vec::new();
        disk::open(&path)
            .map_err(io::Error::other)?
            .take(limit)
            .read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Name and description from the front matter: plain, quoted or multi-line YAML values. Other keys are ignored; front
/// matter without an end does not count.
fn front_matter(text: &str) -> Option<(String, String)> {
    let mut lines = text.lines().map(str::trim_end);
    lines.next().filter(|line| *line == "---")?;
    let mut entries: Vec<(&str, String)> = Vec::new();
    for line in lines {
        match (line.split_once(':'), entries.last_mut()) {
            _ if line == "---" => {
                let value = |key: &str| {
                    entries
                        .iter()
                        .find(|entry| entry.0 == key)
                        .map(|entry| plain(&entry.1))
                };
                return Some((value("name")?, value("description")?));
            }
            (_, Some((_, value))) if line.starts_with([' ', '\t']) => {
                value.push(' ');
                value.push_str(line.trim_start());
            }
            (Some((key, value)), _) => entries.push((key, value.trim().to_owned())),
            (None, _) => {}
        }
    }
    None
}

/// A value without its quotes or block marker.
fn plain(value: &str) -> String {
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(text) = quoted('"') {
        return text.replace("\\\"", "\"");
    }
    if let Some(text) = quoted('\'') {
        return text.replace("''", "'");
    }
    let block = value
        .strip_prefix(['>', '|'])
        .map(|text| text.trim_start_matches(['-', '+']));
    block.unwrap_or(value).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_description_come_from_the_front_matter() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let expected =
                expected.map(|(name, description)| (name.to_owned(), description.to_owned()));
            assert_eq!(front_matter(text), expected, "{text}");
        };
        check(
            "---\nname: fix\ndescription: Fix it: now\n---\nHow.",
            Some(("fix", "Fix it: now")),
        );
        check(
            "---\r\nname: \"fix\"\r\ndescription: 'It''s'\r\n---\r\n",
            Some(("fix", "It's")),
        );
        check(
            "---\ndescription: >-\n  Two\n  lines\nname: fix\n---\n",
            Some(("fix", "Two lines")),
        );
        check(
            "---\nname: fix\n# a comment\ndescription: one\n  and two\nmeta:\n  name: x\n---\n",
            Some(("fix", "one and two")),
        );
        check("---\nname: fix\nallowed-tools: Bash(rm:*)\n---\n", None);
        check("---\nname: fix\ndescription: no end\n", None);
        check("# Fix\n---\nname: fix\ndescription: late\n---\n", None);
        check("", None);
    }
}
