//! Permissions stored for a project: in the state folder, never in the repository. One file per workspace, named after
//! its folder's real path, readable only by its owner.
//!
//! An unreadable file allows nothing.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Rule;
use crate::workspace::{StateFolder, lock_file};

/// The folder inside the state folder.
const FOLDER: &str = "permissions";

/// The stored permissions of one workspace.
#[derive(Debug, Clone)]
pub struct Remembered {
    state: PathBuf,
    root: PathBuf,
}

/// The stored form.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// The workspace folder, symlinks resolved.
    root: PathBuf,
    /// The rules in the order they were added.
    allow: Vec<String>,
}

impl Remembered {
    /// The permissions of the workspace folder `root` (symlinks resolved).
    pub fn of(state: &Path, root: &Path) -> Self {
        Self {
            state: state.to_owned(),
            root: root.to_owned(),
        }
    }

    /// The rules; empty if nothing was stored.
    ///
    /// # Errors
    /// The file cannot be read or is not what was written.
    pub async fn rules(&self) -> io::Result<Vec<Rule>> {
        if !self.state.join(FOLDER).is_dir() {
            return Ok(Vec::new());
        }
        let Some(bytes) = self.folder().await?.read(&self.name()).await? else {
            return Ok(Vec::new());
        };
        let stored: Stored = serde_json::from_slice(&bytes)?;
        if stored.root != self.root {
            return Err(io::Error::other("it belongs to another workspace"));
        }
        stored
            .allow
            .iter()
            .map(|rule| Rule::parse(rule).map_err(io::Error::other))
            .collect()
    }

    /// Adds a rule, unless it exists.
    ///
    /// # Errors
    /// The file cannot be written; nothing changed then.
    pub async fn add(&self, rule: &Rule) -> io::Result<()> {
        let add = |rules: &mut Vec<Rule>| {
            let text = rule.to_string();
            if rules.iter().all(|other| other.to_string() != text) {
                rules.push(rule.clone());
            }
        };
        self.change(add).await.map(drop)
    }

    /// Removes a rule; `false` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be written; nothing changed then.
    pub async fn remove(&self, rule: &str) -> io::Result<bool> {
        self.change(|rules| rules.retain(|other| other.to_string() != rule))
            .await
    }

    /// Changes the rules, one session at a time; `false` if there are as many as before.
    async fn change(&self, change: impl FnOnce(&mut Vec<Rule>)) -> io::Result<bool> {
        let _alone = lock_file(self.state.join("permissions.lock")).await.ok();
        let mut rules = self.rules().await?;
        let before = rules.len();
        change(&mut rules);
        if rules.len() == before {
            return Ok(false);
        }
        self.store(&rules).await?;
        Ok(true)
    }

    async fn store(&self, rules: &[Rule]) -> io::Result<()> {
        let stored = Stored {
            root: self.root.clone(),
            allow: rules.iter().map(ToString::to_string).collect(),
        };
        self.folder()
            .await?
            .write(&self.name(), serde_json::to_vec_pretty(&stored)?)
            .await
    }

    async fn folder(&self) -> io::Result<StateFolder> {
        StateFolder::open(self.state.join(FOLDER)).await
    }

    fn name(&self) -> String {
        let digest = ring::digest::digest(
            &ring::digest::SHA256,
            self.root.as_os_str().as_encoded_bytes(),
        );
        let begin = digest.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:032x}.json", u128::from_be_bytes(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::parse(text).unwrap()
    }

    async fn rules(remembered: &Remembered) -> Vec<String> {
        remembered
            .rules()
            .await
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[tokio::test]
    async fn answers_are_stored_per_workspace() {
        let state = tempfile::tempdir().unwrap();
        let here = Remembered::of(state.path(), "/work/here".as_ref());
        assert!(rules(&here).await.is_empty());
        assert_eq!(
            std::fs::read_dir(state.path()).unwrap().count(),
            0,
            "looking makes no folder"
        );
        here.add(&rule("run_command(cargo test)")).await.unwrap();
        here.add(&rule("edit_file(src/**)")).await.unwrap();
        here.add(&rule("edit_file(src/**)")).await.unwrap();
        assert_eq!(
            rules(&here).await,
            ["run_command(cargo test)", "edit_file(src/**)"]
        );
        let there = Remembered::of(state.path(), "/work/there".as_ref());
        assert!(rules(&there).await.is_empty());
        assert!(!here.remove("edit_file(x)").await.unwrap());
        assert!(here.remove("edit_file(src/**)").await.unwrap());
        assert_eq!(rules(&here).await, ["run_command(cargo test)"]);
    }

    #[tokio::test]
    async fn answers_stored_at_the_same_time_are_all_kept() {
        let state = tempfile::tempdir().unwrap();
        let here = Remembered::of(state.path(), "/work/here".as_ref());
        let rules = ["read_file", "edit_file", "grep", "glob"].map(rule);
        let added = rules.each_ref().map(|rule| here.add(rule));
        for added in futures_util::future::join_all(added).await {
            added.unwrap();
        }
        assert_eq!(here.rules().await.unwrap().len(), rules.len());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn stored_answers_are_private_and_a_torn_file_allows_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let state = tempfile::tempdir().unwrap();
        let here = Remembered::of(state.path(), "/work/here".as_ref());
        here.add(&rule("write_file(a)")).await.unwrap();
        let (folder, name) = (here.folder().await.unwrap(), here.name());
        let file = state.path().join(FOLDER).join(&name);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        folder
            .write(
                &name,
                br#"{"root": "/work/here", "allow": ["write_file"#.to_vec(),
            )
            .await
            .unwrap();
        assert!(here.rules().await.is_err());
        folder
            .write(
                &name,
                br#"{"root": "/work/there", "allow": ["write_file(a)"]}"#.to_vec(),
            )
            .await
            .unwrap();
        assert!(here.rules().await.is_err());
    }
}
