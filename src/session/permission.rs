//! Who may do what: pure, decided on resolved facts, closed when in doubt.
//!
//! Order: a mode that reads only forbids; `deny` beats a caution (a protected path, a file of secrets, a command that
//! removes the workspace), which beats `ask`, which beats `allow` and what the person allowed, which beats the mode.
//!
//! A rule allows a command when the line is understood ([`command`]) and each of its simple commands is allowed; it
//! denies or asks when any of them is meant, and asks when nobody can tell. No rule lets a command out of the sandbox,
//! and only one about `network` lets it reach the network.

pub mod command;
mod emptying;
mod programs;
pub mod remembered;
mod rule;

use std::path::{Path, PathBuf};

use command::windows;
pub use rule::Rule;
use rule::{NETWORK, may_be_short, of_path, of_words};

use crate::agent::event::About;
use crate::config::Mode;
use crate::tools::process::Dialect;
use crate::tools::{CommandLine, Preview, ToolKind, Undo};
use crate::workspace::{Workspace, native};

/// What a call is known to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    tool: String,
    about: About,
    kind: ToolKind,
    targets: Vec<Target>,
    command: Option<Line>,
    /// It reads or stops a command that was decided about when it started.
    follows_up: bool,
    cautious: bool,
}

/// A file a call touches (every name rules may know it by), or the server that does what the call wants.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    /// With symlinks followed; relative to the root it is in.
    relative: String,
    /// The same, absolute.
    absolute: String,
    /// Whether its relative name is that of no other file: there is one root, and it is in it.
    is_alone: bool,
}

/// A command line a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// `None`: it is not understood.
    commands: Option<Vec<command::Words>>,
    dialect: Dialect,
    sandboxed: bool,
    network: bool,
    undo: Undo,
}

impl Facts {
    /// Whether this asks if a turn continues, and is no call.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        self.about == About::Pause
    }

    /// What the preview of a call says about it.
    #[must_use]
    pub fn new(tool: &str, about: About, kind: ToolKind, preview: &Preview, workspace: &Workspace) -> Self {
        // Both as named and as resolved: a rule that restricts must hold for either.
        let named = preview.locations.iter().map(|location| &location.path);
        let mut targets: Vec<Target> = Vec::new();
        for target in preview.targets.iter().chain(named).map(|path| Target::new(path, workspace)) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets.extend(preview.origin.clone().map(Target::origin));
        let roots: Vec<PathBuf> = workspace.roots().iter().map(|root| root.real().to_owned()).collect();
        let command = preview.command.as_deref();
        let empties = command.is_some_and(|line| empties(line, &roots));
        let cautious = preview.caution.is_some() || empties;
        let (command, follows_up) = (command.map(Line::new), preview.follows_up);
        Self { tool: tool.to_owned(), about, kind, targets, command, follows_up, cautious }
    }

    /// What rules about its tool are written with.
    fn rule_name(&self) -> &str {
        match &self.about {
            About::Call { rule_name } => rule_name,
            About::Pause => &self.tool,
        }
    }

    fn reaches_network(&self) -> bool {
        self.command.as_ref().is_some_and(|line| line.network)
    }

    /// Whether the rule speaks of its tool. One about editing holds whichever way the model edits.
    fn is_named_by(&self, rule: &Rule) -> bool {
        rule.names(&self.tool) || rule.names(self.rule_name())
    }

    /// Whether the rule may allow it: one about its tool, or about `network` where it reaches that.
    fn is_allowed_by(&self, rule: &Rule) -> bool {
        if self.reaches_network() { rule.names(NETWORK) } else { self.is_named_by(rule) }
    }

    /// The rule that would allow exactly this; `None` for what is asked about every time.
    fn exactly(&self) -> Option<String> {
        if self.cautious {
            return None;
        }
        if let Some(line) = &self.command {
            let [words] = line.commands.as_deref()? else { return None };
            let name = if line.network { NETWORK } else { self.rule_name() };
            return line.sandboxed.then(|| of_words(name, words));
        }
        match (self.kind, self.targets.as_slice()) {
            (ToolKind::Edit, [target]) if target.is_alone => Some(of_path(self.rule_name(), &target.relative)),
            (ToolKind::Edit, [target]) => Some(of_path(self.rule_name(), &target.absolute)),
            (ToolKind::Other, [origin]) => Some(of_path(self.rule_name(), &origin.relative)),
            _ => None,
        }
    }
}

impl Target {
    fn new(path: &Path, workspace: &Workspace) -> Self {
        let roots = workspace.roots();
        let inside = roots.iter().find_map(|root| {
            let relative = path.strip_prefix(root.real()).or_else(|_| path.strip_prefix(root.path())).ok()?;
            Some((root.real().join(relative), relative))
        });
        let is_alone = roots.len() == 1 && inside.is_some();
        let (absolute, relative) = inside.unwrap_or((path.to_owned(), path));
        Self { relative: native::shown(relative), absolute: native::shown(&absolute), is_alone }
    }

    /// The server a tool is of, by its fingerprint.
    fn origin(fingerprint: String) -> Self {
        Self { relative: fingerprint.clone(), absolute: fingerprint, is_alone: false }
    }

    fn is_meant(&self, rule: &Rule) -> bool {
        rule.has_path(&self.relative) || rule.has_path(&self.absolute)
    }

    /// How certainly a rule that restricts speaks of it, whatever name of it is used.
    fn touched(&self, rule: &Rule) -> Touch {
        if rule.has_path_by_any_name(&self.relative) || rule.has_path_by_any_name(&self.absolute) {
            Touch::Surely
        } else if cfg!(windows) && rule.is_about_paths() && may_be_short(&self.relative) {
            Touch::Perhaps
        } else {
            Touch::Not
        }
    }
}

impl Line {
    fn new(line: &CommandLine) -> Self {
        Self { sandboxed: line.sandboxed, ..Self::read(&line.command, line.dialect, line.network, line.undo) }
    }

    /// A line as its shell reads it, with nothing that holds it.
    fn read(line: &str, dialect: Dialect, network: bool, undo: Undo) -> Self {
        let commands = match dialect {
            Dialect::Posix => command::parse(line).ok(),
            Dialect::PowerShell | Dialect::Cmd => windows::parse(line),
        };
        Self { commands, dialect, sandboxed: false, network, undo }
    }

    /// How certainly a rule that restricts speaks of it.
    fn touched(&self, rule: &Rule) -> Touch {
        if rule.is_bare() {
            return Touch::Surely;
        }
        let Some(commands) = &self.commands else { return Touch::Perhaps };
        let touched = commands.iter().map(|words| match self.dialect {
            Dialect::Posix => touched(rule, words),
            Dialect::PowerShell | Dialect::Cmd => touched_on_windows(rule, words),
        });
        touched.max().unwrap_or(Touch::Perhaps)
    }
}

/// How certainly a rule that restricts speaks of a simple command.
fn touched(rule: &Rule, words: &[String]) -> Touch {
    // `/bin/rm` is `rm`, and so is `RM` where the disk does not care about case.
    let base = words.first().map(|program| programs::name(program)).unwrap_or_default();
    let by_name: Vec<String> = std::iter::once(base).chain(words.iter().skip(1).cloned()).collect();
    if rule.has_words(words) || rule.has_words(&by_name) {
        Touch::Surely
    } else if programs::runs_others(words) {
        Touch::Perhaps
    } else {
        Touch::Not
    }
}

/// The same where a program has several names, case never counts, and options can be shortened.
fn touched_on_windows(rule: &Rule, words: &[String]) -> Touch {
    let Some((program, arguments)) = words.split_first() else { return Touch::Perhaps };
    let arguments = arguments.iter().map(|word| word.to_lowercase());
    let canonical: Vec<String> = std::iter::once(windows::canonical(program)).chain(arguments).collect();
    let rule = rule.on_windows();
    if rule.has_words(&canonical) {
        Touch::Surely
    } else if windows::runs_others(program) || canonical.first().is_some_and(|program| rule.is_about_program(program)) {
        Touch::Perhaps
    } else {
        Touch::Not
    }
}

/// Whether the line removes the workspace, or may remove broadly what no undo brings back.
fn empties(line: &CommandLine, roots: &[PathBuf]) -> bool {
    let commands = command::parse(&line.command).ok();
    let wipes = commands.iter().flatten().any(|words| programs::wipes(words, &line.cwd, roots));
    wipes || (line.undo != Undo::Everything && emptying::may_empty(&line.command, commands.as_deref()))
}

/// Whether a rule speaks of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Touch {
    Not,
    /// Nobody can tell.
    Perhaps,
    Surely,
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

/// The rules of the configuration and what the person allowed by answering.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Policy {
    /// Reads the rules. What cannot be read is left out ([`super::rule_problems`] tells of it), and where it would have
    /// restricted no other rule allows anything: every call is asked about.
    #[must_use]
    pub fn new(allow: &[String], ask: &[String], deny: &[String]) -> Self {
        let read = |rules: &[String]| -> Vec<Rule> { rules.iter().filter_map(|rule| Rule::parse(rule).ok()).collect() };
        let mut policy = Self { allow: read(allow), ask: read(ask), deny: read(deny) };
        if policy.ask.len() < ask.len() || policy.deny.len() < deny.len() {
            policy.allow.clear();
        }
        policy
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
        let denied = touch(&self.deny, facts);
        if denied == Touch::Surely {
            return Verdict::Forbid(format!("a rule of the user forbids `{}` here; go another way", facts.tool));
        }
        if denied == Touch::Perhaps || facts.cautious || touch(&self.ask, facts) != Touch::Not {
            return Verdict::Ask;
        }
        let is_held =
            facts.command.as_ref().is_some_and(|line| line.sandboxed && !line.network && line.undo != Undo::Nothing);
        let is_free = match facts.kind {
            ToolKind::Edit => matches!(mode, Mode::Edit | Mode::Auto),
            ToolKind::Execute if facts.follows_up => true,
            ToolKind::Execute => mode == Mode::Auto && is_held,
            kind => kind.is_read_only(),
        };
        if is_free || self.covers(facts) { Verdict::Allow } else { Verdict::Ask }
    }

    /// Whether the rules that allow cover all of the call.
    fn covers(&self, facts: &Facts) -> bool {
        let rules: Vec<&Rule> = self.allow.iter().filter(|rule| facts.is_allowed_by(rule)).collect();
        let any_covers = |fits: &dyn Fn(&Rule) -> bool| rules.iter().any(|rule| fits(rule));
        let Some(line) = &facts.command else {
            let all_targets = facts.targets.iter().all(|target| any_covers(&|rule| target.is_meant(rule)));
            return any_covers(&Rule::is_bare) || (!facts.targets.is_empty() && all_targets);
        };
        let Some(commands) = line.commands.as_deref().filter(|_| line.sandboxed) else {
            return line.sandboxed && any_covers(&Rule::is_bare);
        };
        let is_covered = |words: &command::Words| {
            let is_opaque = programs::runs_others(words);
            any_covers(&|rule| match (rule.is_bare(), is_opaque) {
                (true, _) => true,
                (_, true) => commands.len() == 1 && rule.is_exact() && rule.has_words(words),
                _ => rule.has_words(words),
            })
        };
        commands.iter().all(is_covered)
    }

    /// The rule that "always" would add for this call; `None` where it would change nothing.
    #[must_use]
    pub fn offer(&self, facts: &Facts) -> Option<String> {
        let asks_anyway = touch(&self.deny, facts) != Touch::Not || touch(&self.ask, facts) != Touch::Not;
        facts.exactly().filter(|_| !asks_anyway)
    }

    /// Adds a rule the person allowed by answering the question about this call: the one that was offered, or one they
    /// edited that still is about the call and no wider than an answer may be.
    ///
    /// # Errors
    /// When it is not, in words for the person.
    pub fn remember(&mut self, facts: &Facts, edited: Option<&str>) -> Result<Rule, String> {
        let offered = self.offer(facts).ok_or("this is asked about every time")?;
        let rule = Rule::parse(edited.unwrap_or(&offered))?;
        if edited.is_some_and(|edited| edited != offered) {
            let alone = Self { allow: vec![rule.clone()], ..Self::default() };
            if !alone.covers(facts) {
                return Err(format!("`{rule}` does not allow this call"));
            }
            if !rule.is_narrow() {
                return Err(format!("`{rule}` allows too much for an answer; write it into config.toml"));
            }
        }
        self.allow.push(rule.clone());
        Ok(rule)
    }

    /// Adds what the person allowed in an earlier session.
    pub fn recall(&mut self, rules: Vec<Rule>) {
        self.allow.extend(rules);
    }
}

/// How certainly any of the rules that restrict speaks of the call.
fn touch(rules: &[Rule], facts: &Facts) -> Touch {
    let is_about = |rule: &&Rule| facts.is_named_by(rule) || (facts.reaches_network() && rule.names(NETWORK));
    let about = rules.iter().filter(is_about);
    let touches = about.map(|rule| match &facts.command {
        Some(line) => line.touched(rule),
        None if rule.is_bare() => Touch::Surely,
        None => facts.targets.iter().map(|target| target.touched(rule)).max().unwrap_or(Touch::Not),
    });
    touches.max().unwrap_or(Touch::Not)
}

#[cfg(test)]
mod tests;
