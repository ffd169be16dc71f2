//! Permission decisions: pure, based on resolved facts, and "no" when in doubt.
//!
//! Precedence: a read-only mode forbids; `deny` beats a caution (a protected path, a file with secrets, a command that
//! removes the workspace), which beats `ask`, which beats `allow` and what the person allowed, which beats the mode.
//!
//! A rule allows a command if the line is understood ([`shell::read`]) and each of its simple commands is allowed.
//!
//! A `deny` or `ask` rule applies if any of them matches; if that cannot be decided, the call requires approval. No rule
//! lets a command out of the sandbox, and only a `network` rule lets it reach the network.

mod emptying;
mod numbers;
mod programs;
pub mod remembered;
mod removal;
mod rule;
mod touch;
mod windows;

use std::path::{Path, PathBuf};

pub use rule::Rule;
use rule::{NETWORK, Touch, may_be_short, of_path, of_words};

use crate::agent::event::{About, Offer, PermissionRequest};
use crate::config::Mode;
use crate::text::shell::{self, Dialect, Words};
use crate::tools::{CommandLine, Tool, ToolKind, Undo, Withheld};
use crate::workspace::{Workspace, native};

/// The most commands of a line that one answer adds rules for.
const RULES: usize = 4;

/// The facts about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    tool: String,
    about: About,
    kind: ToolKind,
    targets: Vec<Target>,
    command: Option<Line>,
    /// It reads or stops a running command, which was approved when it started.
    follows_up: bool,
    cautious: bool,
    is_question: bool,
}

/// A file a call touches (with every name rules may use), or the server that handles the call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    /// With symlinks resolved; relative to its root.
    relative: String,
    /// The same, absolute.
    absolute: String,
    /// Whether the relative name is unambiguous: there is only one root, and the file is in it.
    is_alone: bool,
}

/// A command line that a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// `None` if the line cannot be read.
    read: Option<shell::Line>,
    /// `None` if it is not understood.
    commands: Option<Vec<Words>>,
    dialect: Dialect,
    sandboxed: bool,
    network: bool,
    undo: Undo,
}

impl Facts {
    /// Whether this is the request to continue a turn, rather than a call.
    pub fn is_pause(&self) -> bool {
        self.about == About::Pause
    }

    /// Whether this is the request to start a plan.
    pub fn is_plan(&self) -> bool {
        self.about == About::Plan
    }

    /// Whether the call asks the person something, so that only they can answer it.
    pub fn is_question(&self) -> bool {
        self.is_question
    }

    /// The facts in a request.
    pub fn new(request: &PermissionRequest, workspace: &Workspace) -> Self {
        let (about, preview) = (&request.about, &request.preview);
        // Both as named and as resolved: a restricting rule must apply to either.
        let named = preview.locations.iter().map(|location| &location.path);
        let mut targets: Vec<Target> = Vec::new();
        for target in preview
            .targets
            .iter()
            .chain(named)
            .map(|path| Target::new(path, workspace))
        {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets.extend(preview.origin.clone().map(Target::origin));
        let roots: Vec<PathBuf> = workspace
            .roots()
            .iter()
            .map(|root| root.real().to_owned())
            .collect();
        let command = preview.command.as_deref();
        let empties = command.is_some_and(|line| empties(line, &roots));
        // No mode or rule can apply a trial, start a plan or answer a server.
        let cautious = preview.caution.is_some()
            || empties
            || matches!(about, About::Apply | About::Plan | About::Server);
        let (command, follows_up) = (command.map(Line::new), preview.follows_up);
        let is_question = preview.answers.is_some();
        Self {
            tool: request.name.clone(),
            about: about.clone(),
            kind: request.kind,
            targets,
            command,
            follows_up,
            cautious,
            is_question,
        }
    }

    /// The name used in rules about its tool.
    fn rule_name(&self) -> &str {
        match &self.about {
            About::Call { rule_name, .. } => rule_name,
            About::Pause | About::Apply | About::Plan | About::Server => &self.tool,
        }
    }

    /// Whether the model wrote the call into its answer beside prose.
    fn may_be_example(&self) -> bool {
        matches!(self.about, About::Call { in_prose: true, .. })
    }

    fn reaches_network(&self) -> bool {
        self.command.as_ref().is_some_and(|line| line.network)
    }

    /// Whether the rule is about its tool. A rule for editing applies however the model edits.
    fn is_named_by(&self, rule: &Rule) -> bool {
        rule.names(&self.tool) || rule.names(self.rule_name())
    }

    /// Whether the rule may allow it: a rule for its tool, or for `network` if it reaches the network.
    fn is_allowed_by(&self, rule: &Rule) -> bool {
        if self.reaches_network() {
            rule.names(NETWORK)
        } else {
            self.is_named_by(rule)
        }
    }

    /// The rules for the same subcommands with any arguments; `None` if the line names none.
    fn prefixes(&self) -> Option<Vec<String>> {
        let line = self.command.as_ref().filter(|line| !line.network)?;
        let commands = line.commands.as_deref()?;
        let names: Vec<_> = commands
            .iter()
            .map(|words| programs::subcommand(words))
            .collect();
        let rules = names
            .iter()
            .zip(commands)
            .map(|(named, words)| match named {
                Some(named) => format!("{}({} *)", self.rule_name(), shell::quoted(named)),
                None => of_words(self.rule_name(), words),
            });
        names.iter().any(Option::is_some).then(|| rules.collect())
    }

    /// The rules that would allow exactly this, one for each command of its line; `None` if it requires approval every
    /// time.
    fn exactly(&self) -> Option<Vec<String>> {
        if self.cautious || self.is_question {
            return None;
        }
        if let Some(line) = &self.command {
            let commands = line.commands.as_deref().filter(|_| line.sandboxed)?;
            // A rule allows what runs other commands only where it stands alone.
            let is_covered = match commands {
                [_] => true,
                several => {
                    several.len() <= RULES
                        && !several.iter().any(|words| programs::runs_others(words))
                }
            };
            let name = if line.network {
                NETWORK
            } else {
                self.rule_name()
            };
            let rules = commands.iter().map(|words| of_words(name, words));
            return is_covered.then(|| rules.collect());
        }
        let rule = self.exact_path()?;
        Some(vec![rule])
    }

    /// The rule for the one file or server.
    fn exact_path(&self) -> Option<String> {
        match (self.kind, self.targets.as_slice()) {
            (ToolKind::Edit, [target]) if target.is_alone => {
                Some(of_path(self.rule_name(), &target.relative))
            }
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
            let relative = path
                .strip_prefix(root.real())
                .or_else(|_| path.strip_prefix(root.path()))
                .ok()?;
            Some((root.real().join(relative), relative))
        });
        let is_alone = roots.len() == 1 && inside.is_some();
        let (absolute, relative) = inside.unwrap_or((path.to_owned(), path));
        Self {
            relative: native::shown(relative),
            absolute: native::shown(&absolute),
            is_alone,
        }
    }

    /// A tool, by the fingerprint of its server's description.
    fn origin(fingerprint: String) -> Self {
        Self {
            relative: fingerprint.clone(),
            absolute: fingerprint,
            is_alone: false,
        }
    }

    fn is_in(&self, folders: &[PathBuf]) -> bool {
        let path = Path::new(&self.absolute);
        folders.iter().any(|folder| path.starts_with(folder))
    }

    fn is_meant(&self, rule: &Rule) -> bool {
        rule.has_path(&self.relative) || rule.has_path(&self.absolute)
    }

    /// Whether a restricting rule matches it under any of its names.
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
        Self {
            sandboxed: line.sandboxed,
            ..Self::read(&line.command, line.dialect, line.network, line.undo)
        }
    }

    /// A line as its shell reads it, outside any sandbox.
    fn read(line: &str, dialect: Dialect, network: bool, undo: Undo) -> Self {
        let read = shell::read(line, dialect).ok();
        Self {
            commands: read.as_ref().and_then(|line| line.plain().ok()),
            read,
            dialect,
            sandboxed: false,
            network,
            undo,
        }
    }

    /// Whether a restricting rule matches it.
    fn touched(&self, rule: &Rule) -> Touch {
        if rule.is_bare() {
            return Touch::Surely;
        }
        match (&self.read, self.dialect, &self.commands) {
            (Some(line), Dialect::Posix, _) => touch::touched(rule, line),
            (_, Dialect::PowerShell | Dialect::Cmd, Some(commands)) => commands
                .iter()
                .map(|words| touch::touched_on_windows(rule, words))
                .max()
                .unwrap_or(Touch::Perhaps),
            _ => Touch::Perhaps,
        }
    }
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The person decides.
    Ask,
    /// It must not run; the text is for the model.
    Forbid(String),
}

/// The rules that allow exactly this command line; empty if it is not understood.
pub(super) fn exact_rules(tool: &str, line: &str, dialect: Dialect) -> Vec<String> {
    let line = shell::read(line, dialect).ok();
    let commands = line.and_then(|line| line.plain().ok()).unwrap_or_default();
    commands.iter().map(|words| of_words(tool, words)).collect()
}

/// Whether a line removes the workspace, or may remove much that undo does not cover.
fn empties(line: &CommandLine, roots: &[PathBuf]) -> bool {
    removal::removes(line, roots)
        || (line.undo != Undo::Everything && emptying::may_empty(&line.command))
}

/// The configured rules, and what the person allowed in permission requests.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// Whether a rule that would have restricted something is invalid: every call requires approval, in every mode.
    is_broken: bool,
    /// tandem's own files and folders in the workspace, without symlinks: a call about them requires approval, in every mode.
    own: Vec<PathBuf>,
}

impl Policy {
    /// Parses the rules. Invalid ones are skipped ([`super::rule_problems`] reports them).
    pub fn new(allow: &[String], ask: &[String], deny: &[String]) -> Self {
        let read = |rules: &[String]| -> Vec<Rule> {
            rules
                .iter()
                .filter_map(|rule| Rule::parse(rule).ok())
                .collect()
        };
        let (restrictions, found) = (ask.len() + deny.len(), (read(ask), read(deny)));
        Self {
            is_broken: found.0.len() + found.1.len() < restrictions,
            allow: read(allow),
            ask: found.0,
            deny: found.1,
            own: Vec::new(),
        }
    }

    /// The policy, with approval required for every call that reads or changes tandem's own files.
    #[must_use]
    pub fn guarding(mut self, own: Vec<PathBuf>) -> Self {
        self.own = own;
        self
    }

    /// The policy, with approval required for every call if restricting rules may be missing.
    #[must_use]
    pub fn fail_closed(mut self, may_miss_rules: bool) -> Self {
        self.is_broken |= may_miss_rules;
        self
    }

    /// The files that a restricting rule for `read_file` or `grep` is about, and tandem's own: a search that starts above
    /// them leaves them out, as it leaves out secrets. A search of one such file was decided by the rules for `grep`.
    pub fn withheld(&self) -> Withheld {
        let is_about_reading = |rule: &&Rule| {
            rule.is_about_paths() && ["read_file", "grep"].iter().any(|tool| rule.names(tool))
        };
        let rules = self.deny.iter().chain(&self.ask).filter(is_about_reading);
        let rules: Vec<Rule> = rules.cloned().collect();
        let own = self.own.clone();
        if rules.is_empty() && own.is_empty() {
            return Withheld::default();
        }
        Withheld::new(move |workspace, path, is_named| {
            let file = Target::new(path, workspace);
            let counts = |rule: &&Rule| !is_named || rule.names("read_file");
            let mut rules = rules.iter().filter(counts);
            !is_named && file.is_in(&own) || rules.any(|rule| file.touched(rule) != Touch::Not)
        })
    }

    /// Whether every call of the tool is forbidden, so that no request lists it.
    pub fn forbids(&self, tool: &dyn Tool) -> bool {
        let names = |rule: &Rule| rule.names(tool.name()) || rule.names(tool.rule_name());
        self.deny.iter().any(|rule| rule.is_bare() && names(rule))
    }

    /// Decides about one call.
    pub fn decide(&self, mode: Mode, facts: &Facts) -> Verdict {
        // No mode decides whether a trial is applied.
        let changes = !facts.kind.is_read_only() && facts.about != About::Apply;
        if mode == Mode::Plan && changes {
            return Verdict::Forbid(
                "the session is in mode `plan`, which changes nothing\nPresent your plan; the user can switch the mode."
                    .to_owned(),
            );
        }
        let denied = touch(&self.deny, facts);
        if denied == Touch::Surely {
            return Verdict::Forbid(format!(
                "one of the user's rules forbids `{}` here\nDo not work around it: ask the user, or continue without it.",
                facts.tool
            ));
        }
        if denied == Touch::Perhaps
            || self.is_broken
            || facts.cautious
            || facts.is_question
            || facts.targets.iter().any(|target| target.is_in(&self.own))
            || touch(&self.ask, facts) != Touch::Not
        {
            return Verdict::Ask;
        }
        let is_held = facts
            .command
            .as_ref()
            .is_some_and(|line| line.sandboxed && !line.network && line.undo != Undo::Nothing);
        let is_free = match facts.kind {
            ToolKind::Edit => matches!(mode, Mode::Edit | Mode::Auto),
            // Managing jobs that already run.
            ToolKind::Execute if facts.follows_up => true,
            ToolKind::Execute => mode == Mode::Auto && is_held,
            kind => kind.is_read_only(),
        };
        if !is_free && !self.covers(facts) {
            return Verdict::Ask;
        }
        if facts.may_be_example() && !facts.kind.is_read_only() {
            return Verdict::Forbid(
                "not run: the call is next to other text, or repeats something the model has read, so it may be an example\n\
                 If you meant it, call the tool itself, or answer with the call alone."
                    .to_owned(),
            );
        }
        Verdict::Allow
    }

    /// Whether the allow rules cover all of the call.
    fn covers(&self, facts: &Facts) -> bool {
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| facts.is_allowed_by(rule))
            .collect();
        let any_covers = |fits: &dyn Fn(&Rule) -> bool| rules.iter().any(|rule| fits(rule));
        let Some(line) = &facts.command else {
            let all_targets = facts
                .targets
                .iter()
                .all(|target| any_covers(&|rule| target.is_meant(rule)));
            return any_covers(&Rule::is_bare) || (!facts.targets.is_empty() && all_targets);
        };
        let Some(commands) = line.commands.as_deref().filter(|_| line.sandboxed) else {
            return line.sandboxed && any_covers(&Rule::is_bare);
        };
        let is_covered = |words: &Words| {
            let is_opaque = programs::runs_others(words);
            any_covers(&|rule| match (rule.is_bare(), is_opaque) {
                (true, _) => true,
                (_, true) => commands.len() == 1 && rule.is_exact() && rule.has_words(words),
                _ => rule.has_words(words),
            })
        };
        commands.iter().all(is_covered)
    }

    /// The rule that "always" would add for this call; `None` if it would change nothing.
    pub fn offer(&self, facts: &Facts) -> Option<String> {
        let asks_anyway =
            touch(&self.deny, facts) != Touch::Not || touch(&self.ask, facts) != Touch::Not;
        facts
            .exactly()
            .filter(|_| !asks_anyway)
            .map(|rules| rules.join(AND))
    }

    /// The broader permissions offered with this call, in a session whose widest mode this is.
    pub fn offers(&self, widest: Mode, facts: &Facts) -> Offer {
        let rule = self.offer(facts);
        let is_call = matches!(facts.about, About::Call { .. });
        Offer {
            prefix: rule
                .as_ref()
                .and_then(|_| facts.prefixes())
                .map(|rules| rules.join(AND)),
            turn: is_call && self.decide(widest, facts) == Verdict::Allow,
            rule,
        }
    }

    /// Adds the rules the person allowed when answering this request: offered ones, or an edited one that still matches
    /// the call and is narrow enough.
    ///
    /// # Errors
    /// It is not; the text is for the person.
    pub fn remember(&mut self, facts: &Facts, edited: Option<&str>) -> Result<Vec<Rule>, String> {
        let offer = self.offers(Mode::Ask, facts);
        let exact = offer.rule.ok_or("this requires approval every time")?;
        let chosen = edited.unwrap_or(&exact);
        let offered = if chosen == exact {
            facts.exactly()
        } else {
            facts.prefixes().filter(|rules| rules.join(AND) == chosen)
        };
        let rules = offered.unwrap_or_else(|| vec![chosen.to_owned()]);
        let rules: Vec<Rule> = rules
            .iter()
            .map(|rule| Rule::parse(rule))
            .collect::<Result<_, _>>()?;
        if let [rule] = rules.as_slice()
            && chosen != exact
        {
            let alone = Self {
                allow: vec![rule.clone()],
                ..Self::default()
            };
            if !alone.covers(facts) {
                return Err(format!("`{rule}` does not allow this call"));
            }
            if !rule.is_narrow() {
                return Err(format!(
                    "`{rule}` is too broad to add here; write it into config.toml"
                ));
            }
        }
        self.allow.extend(rules.iter().cloned());
        Ok(rules)
    }

    /// Adds rules from earlier sessions.
    pub fn add_stored(&mut self, rules: Vec<Rule>) {
        self.allow.extend(rules);
    }
}

/// What joins rules that a person reads.
const AND: &str = ", ";

/// Whether any of the restricting rules matches the call.
fn touch(rules: &[Rule], facts: &Facts) -> Touch {
    let is_about =
        |rule: &&Rule| facts.is_named_by(rule) || (facts.reaches_network() && rule.names(NETWORK));
    let about = rules.iter().filter(is_about);
    let touches = about.map(|rule| match &facts.command {
        Some(line) => line.touched(rule),
        None if rule.is_bare() => Touch::Surely,
        None => facts
            .targets
            .iter()
            .map(|target| target.touched(rule))
            .max()
            .unwrap_or(Touch::Not),
    });
    touches.max().unwrap_or(Touch::Not)
}

#[cfg(test)]
mod tests;
