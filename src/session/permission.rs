//! Who may do what: pure, decided on resolved facts, closed when in doubt.
//!
//! Order: a mode that reads only forbids; `deny` beats a caution (a protected path, a file of secrets), which beats
//! `ask`, which beats `allow` and what the person allowed for the session, which beats the mode.

use std::collections::HashSet;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::config::Mode;
use crate::tools::{Preview, ToolKind};
use crate::workspace::Workspace;

/// What a call is known to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Facts {
    tool: String,
    kind: ToolKind,
    /// Relative to the workspace, as resolved; what the tool's rule pattern is matched against.
    targets: Vec<String>,
    cautious: bool,
}

impl Facts {
    /// What the preview of a call says about it.
    #[must_use]
    pub fn new(tool: &str, kind: ToolKind, preview: &Preview, workspace: &Workspace) -> Self {
        let targets = preview.locations.iter().map(|location| relative(&location.path, workspace)).collect();
        Self { tool: tool.to_owned(), kind, targets, cautious: preview.caution.is_some() }
    }
}

/// A path as rules name it: relative to the root it is in.
fn relative(path: &Path, workspace: &Workspace) -> String {
    let roots = workspace.roots();
    let inside = roots.iter().find_map(|root| path.strip_prefix(root.path()).ok());
    inside.unwrap_or(path).display().to_string()
}

/// What is to happen with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The person is asked.
    Ask,
    /// It does not run; the model is told why.
    Forbid(String),
}

/// A rule of the configuration, such as `edit_file(docs/**)` or `write_file`.
#[derive(Debug, Clone)]
struct Rule {
    tool: String,
    targets: Option<GlobMatcher>,
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| format!("`{text}`: the closing `)` is missing"))?;
                (tool, Some(pattern))
            }
        };
        let tool = tool.trim();
        if tool.is_empty() || !tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(format!("`{text}`: a rule is `tool` or `tool(pattern)`, such as `edit_file(docs/**)`"));
        }
        let targets = match pattern {
            None => None,
            Some(pattern) => Some(
                GlobBuilder::new(pattern)
                    .literal_separator(true)
                    .build()
                    .map_err(|error| format!("`{text}`: {error}"))?
                    .compile_matcher(),
            ),
        };
        Ok(Self { tool: tool.to_owned(), targets })
    }

    /// Whether the rule speaks of the tool. One about editing holds whichever way the model edits.
    fn names(&self, tool: &str) -> bool {
        self.tool == tool || (self.tool == "edit_file" && tool == "apply_patch")
    }

    /// Whether the rule speaks of any target (to deny or ask) of the call.
    fn touches(&self, facts: &Facts) -> bool {
        self.names(&facts.tool)
            && self.targets.as_ref().is_none_or(|glob| facts.targets.iter().any(|target| glob.is_match(target)))
    }

    /// Whether the rule speaks of every target (to allow) of the call.
    fn covers(&self, facts: &Facts) -> bool {
        self.names(&facts.tool)
            && self.targets.as_ref().is_none_or(|glob| {
                !facts.targets.is_empty() && facts.targets.iter().all(|target| glob.is_match(target))
            })
    }
}

/// The rules of the configuration and what the person allowed in this session.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    remembered: HashSet<Facts>,
}

impl Policy {
    /// Reads the rules; what cannot be read is told, and a rule that would have restricted fails closed: every call
    /// is asked about.
    #[must_use]
    pub fn new(allow: &[String], ask: &[String], deny: &[String]) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut read = |rules: &[String]| -> Vec<Rule> {
            rules.iter().filter_map(|rule| Rule::parse(rule).map_err(|problem| problems.push(problem)).ok()).collect()
        };
        let mut policy = Self { allow: read(allow), ask: read(ask), deny: read(deny), remembered: HashSet::new() };
        if policy.ask.len() < ask.len() || policy.deny.len() < deny.len() {
            policy.allow.clear();
        }
        (policy, problems)
    }

    /// Decides about one call.
    #[must_use]
    pub fn decide(&self, mode: Mode, facts: &Facts) -> Verdict {
        if mode == Mode::Plan && !facts.kind.is_read_only() {
            return Verdict::Forbid(
                "the session is in mode `plan`: nothing may be changed. Present your plan; the user can switch the mode"
                    .to_owned(),
            );
        }
        if self.deny.iter().any(|rule| rule.touches(facts)) {
            return Verdict::Forbid(format!("a rule of the user forbids `{}` here; go another way", facts.tool));
        }
        if facts.cautious || self.ask.iter().any(|rule| rule.touches(facts)) {
            return Verdict::Ask;
        }
        let allowed = facts.kind.is_read_only()
            || self.remembered.contains(facts)
            || self.allow.iter().any(|rule| rule.covers(facts))
            || (facts.kind == ToolKind::Edit && matches!(mode, Mode::Edit | Mode::Auto));
        if allowed { Verdict::Allow } else { Verdict::Ask }
    }

    /// Remembers that the person allows exactly this (the same tool on the same targets) for the session. What asks
    /// in every mode is not remembered.
    pub fn remember(&mut self, facts: Facts) {
        if !facts.cautious {
            self.remembered.insert(facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(target: &str) -> Facts {
        Facts { tool: "edit_file".into(), kind: ToolKind::Edit, targets: vec![target.into()], cautious: false }
    }

    fn policy(allow: &[&str], ask: &[&str], deny: &[&str]) -> Policy {
        let owned = |rules: &[&str]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (policy, problems) = Policy::new(&owned(allow), &owned(ask), &owned(deny));
        assert_eq!(problems, Vec::<String>::new());
        policy
    }

    #[test]
    fn modes_decide_when_no_rule_does() {
        let none = Policy::default();
        assert!(matches!(none.decide(Mode::Plan, &edit("a")), Verdict::Forbid(_)));
        assert_eq!(none.decide(Mode::Ask, &edit("a")), Verdict::Ask);
        assert_eq!(none.decide(Mode::Edit, &edit("a")), Verdict::Allow);
        let run = Facts { tool: "run_command".into(), kind: ToolKind::Execute, targets: vec![], cautious: false };
        assert_eq!(none.decide(Mode::Edit, &run), Verdict::Ask);
    }

    #[test]
    fn deny_beats_ask_beats_allow_beats_mode() {
        let rules = policy(&["edit_file(docs/**)"], &["edit_file(docs/api/**)"], &["edit_file(docs/api/secret*)"]);
        assert_eq!(rules.decide(Mode::Ask, &edit("docs/a.md")), Verdict::Allow);
        assert_eq!(rules.decide(Mode::Edit, &edit("docs/api/a.md")), Verdict::Ask);
        assert!(matches!(rules.decide(Mode::Edit, &edit("docs/api/secret.md")), Verdict::Forbid(_)));
        assert_eq!(rules.decide(Mode::Ask, &edit("src/a.rs")), Verdict::Ask);
    }

    #[test]
    fn a_rule_about_edits_holds_for_patches() {
        let rules = policy(&["edit_file(docs/**)"], &[], &["edit_file(src/**)"]);
        let patch = |targets: &[&str]| Facts {
            tool: "apply_patch".into(),
            targets: targets.iter().map(ToString::to_string).collect(),
            ..edit("")
        };
        assert_eq!(rules.decide(Mode::Ask, &patch(&["docs/a.md", "docs/b.md"])), Verdict::Allow);
        assert_eq!(rules.decide(Mode::Ask, &patch(&["docs/a.md", "b.md"])), Verdict::Ask);
        assert!(matches!(rules.decide(Mode::Ask, &patch(&["docs/a.md", "src/b.rs"])), Verdict::Forbid(_)));
    }

    #[test]
    fn caution_asks_in_every_mode_and_is_never_remembered() {
        let mut rules = policy(&["edit_file"], &[], &[]);
        let facts = Facts { cautious: true, ..edit(".git/config") };
        assert_eq!(rules.decide(Mode::Auto, &facts), Verdict::Ask);
        rules.remember(facts.clone());
        assert_eq!(rules.decide(Mode::Auto, &facts), Verdict::Ask);
    }

    #[test]
    fn always_grants_the_same_tool_on_the_same_target_only() {
        let mut rules = Policy::default();
        rules.remember(edit("a.rs"));
        assert_eq!(rules.decide(Mode::Ask, &edit("a.rs")), Verdict::Allow);
        assert_eq!(rules.decide(Mode::Ask, &edit("b.rs")), Verdict::Ask);
    }

    #[test]
    fn a_rule_that_cannot_be_read_fails_closed() {
        let (rules, problems) = Policy::new(&["edit_file".into()], &[], &["edit_file(src/**".into()]);
        assert_eq!(problems.len(), 1);
        assert_eq!(rules.decide(Mode::Ask, &edit("src/a.rs")), Verdict::Ask);
    }
}
