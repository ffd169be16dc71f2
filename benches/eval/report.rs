//! The numbers of an evaluation: a line a task, a table, JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::behave;
use super::play::Play;
use super::task::write;

/// How a result names a call that was understood although something was wrong with it.
const REPAIRS: [&str; 3] = ["` was run as `", "` was read as ", "and were repaired]"];

/// A task that was played once, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Outcome {
    task: String,
    /// `None`: it was not run.
    passed: Option<bool>,
    passed_first: bool,
    /// Why it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    rounds: u64,
    input: u64,
    cached: u64,
    output: u64,
    dollars: Option<f64>,
    seconds: f64,
    /// Calls whose arguments were no JSON.
    malformed: u64,
    /// Calls of tools that do not exist.
    unknown: u64,
    /// Calls that were understood although something was wrong with them.
    repaired: u64,
    failed_edits: u64,
    /// Answers after which the model was asked to go on.
    nudges: u64,
    /// What each check on the events says; absent where it has nothing to say.
    checks: BTreeMap<String, bool>,
}

impl Outcome {
    pub fn unplayed(task: &str, why: &str) -> Self {
        Self {
            task: task.to_owned(),
            why: Some(why.to_owned()),
            ..Self::default()
        }
    }

    pub fn of(task: &str, play: &Play) -> Self {
        let mut outcome = Self {
            task: task.to_owned(),
            passed: play.failed.is_none().then_some(play.passed),
            why: play.failed.clone(),
            passed_first: play.passed_first,
            dollars: play.cost,
            seconds: play.seconds,
            ..Self::default()
        };
        let checks = behave::checks(play).into_iter();
        outcome.checks = checks
            .filter_map(|(name, says)| Some((name.to_owned(), says?)))
            .collect();
        let (mut begun, mut calls_of_answer) = (BTreeMap::new(), 1);
        for event in &play.events {
            outcome.count(event, &mut begun, &mut calls_of_answer);
        }
        outcome
    }

    fn count(
        &mut self,
        event: &Value,
        begun: &mut BTreeMap<String, String>,
        calls_of_answer: &mut u64,
    ) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "iteration_start" => {
                // Another request after an answer without calls: the model was asked to go on.
                self.nudges += u64::from(*calls_of_answer == 0);
                self.rounds += 1;
            }
            "iteration_complete" => {
                *calls_of_answer = event["tool_calls"].as_u64().unwrap_or_default();
            }
            "turn_start" => *calls_of_answer = 1,
            "tool_call_start" => _ = begun.insert(word(&event["id"]), word(&event["kind"])),
            "tool_call_complete" => {
                self.malformed += u64::from(event["call"].get("raw").is_some());
                self.unknown += u64::from(
                    begun
                        .get(&word(&event["call"]["id"]))
                        .is_some_and(|kind| kind == "other"),
                );
            }
            "tool_execution_end" => {
                let is_edit = ["edit_file", "apply_patch", "write_file"]
                    .contains(&word(&event["name"]).as_str());
                self.failed_edits += u64::from(is_edit && event["result"]["is_error"] == true);
                let told = word(&event["result"]["content"]);
                self.repaired += u64::from(REPAIRS.iter().any(|words| told.contains(words)));
            }
            "usage" => {
                let tokens = |key: &str| event[key].as_u64().unwrap_or_default();
                self.input += tokens("input");
                self.cached += tokens("cached");
                self.output += tokens("output");
            }
            _ => {}
        }
    }

    /// What is said of it while the next one is played.
    pub fn line(&self) -> String {
        match (&self.why, self.passed) {
            (Some(why), _) => format!("- {}: not run: {why}", self.task),
            (None, Some(true)) => format!(
                "✓ {} ({} requests, {:.0} s)",
                self.task, self.rounds, self.seconds
            ),
            (None, _) => format!(
                "✗ {} ({} requests, {:.0} s)",
                self.task, self.rounds, self.seconds
            ),
        }
    }
}

/// All outcomes of a model.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    model: String,
    suite: String,
    version: String,
    outcomes: Vec<Outcome>,
}

impl Report {
    pub fn new(model: &str, suite: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self {
            model: model.to_owned(),
            suite: suite.to_owned(),
            version,
            outcomes: Vec::new(),
        }
    }

    pub fn add(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    /// US dollars so far.
    pub fn cost(&self) -> f64 {
        self.outcomes
            .iter()
            .filter_map(|outcome| outcome.dollars)
            .sum()
    }

    /// Whether everything was played and passed.
    pub fn all_passed(&self) -> bool {
        self.outcomes
            .iter()
            .all(|outcome| outcome.passed == Some(true))
    }

    /// The share of plays that passed at the first try, of those that were played.
    fn pass_at_1(&self) -> (usize, usize) {
        let played: Vec<_> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.passed.is_some())
            .collect();
        (
            played.iter().filter(|outcome| outcome.passed_first).count(),
            played.len(),
        )
    }

    /// A line a play, and the sums; with the checks where those are what counts.
    pub fn table(&self, with_checks: bool) -> String {
        let mut table = format!(
            "{:<28} {:>6} {:>8} {:>9} {:>9} {:>8} {:>8} {:>7} {:>5} {:>7} {:>8} {:>6} {:>6}\n",
            "task",
            "passed",
            "requests",
            "in",
            "cached",
            "out",
            "$",
            "s",
            "bad",
            "unknown",
            "repaired",
            "failed",
            "nudges"
        );
        for outcome in &self.outcomes {
            row(&mut table, outcome);
        }
        row(&mut table, &self.sum());
        let (passed, played) = self.pass_at_1();
        let unplayed = self.outcomes.len() - played;
        let _ = writeln!(
            table,
            "\n{}: pass@1 {passed} of {played}; {unplayed} not run",
            self.model
        );
        let _ = writeln!(
            table,
            "bad: arguments that are not JSON; unknown: tools that do not exist; repaired: calls that were understood all the same; failed: edits"
        );
        if with_checks {
            table.push('\n');
            for (name, (yes, all)) in self.checks() {
                let _ = writeln!(table, "{yes:>3} of {all:<3} {name}");
            }
        }
        table
    }

    fn sum(&self) -> Outcome {
        let mut sum = Outcome {
            task: "all".to_owned(),
            passed: None,
            ..Outcome::default()
        };
        for one in &self.outcomes {
            sum.rounds += one.rounds;
            sum.input += one.input;
            sum.cached += one.cached;
            sum.output += one.output;
            sum.seconds += one.seconds;
            sum.malformed += one.malformed;
            sum.unknown += one.unknown;
            sum.repaired += one.repaired;
            sum.failed_edits += one.failed_edits;
            sum.nudges += one.nudges;
        }
        sum.dollars = self
            .outcomes
            .iter()
            .any(|one| one.dollars.is_some())
            .then(|| self.cost());
        sum
    }

    /// How often each check said yes, of how often it said anything.
    fn checks(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (name, says) in self.outcomes.iter().flat_map(|outcome| &outcome.checks) {
            let (yes, all) = sums.entry(name.as_str()).or_default();
            *yes += usize::from(*says);
            *all += 1;
        }
        sums
    }

    /// Writes `results.json`.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        write(
            &folder.join("results.json"),
            &(serde_json::to_string_pretty(self)? + "\n"),
        )
    }
}

fn row(table: &mut String, outcome: &Outcome) {
    let Outcome {
        task,
        passed,
        rounds,
        input,
        cached,
        output,
        dollars,
        seconds,
        ..
    } = outcome;
    let Outcome {
        malformed,
        unknown,
        repaired,
        failed_edits,
        nudges,
        ..
    } = outcome;
    let (passed, dollars) = (
        word(*passed),
        dollars.map_or_else(|| "-".to_owned(), |dollars| format!("{dollars:.4}")),
    );
    let passed = if task == "all" { "" } else { passed };
    let _ = writeln!(
        table,
        "{task:<28} {passed:>6} {rounds:>8} {input:>9} {cached:>9} {output:>8} {dollars:>8} {seconds:>7.1} {malformed:>5} \
         {unknown:>7} {repaired:>8} {failed_edits:>6} {nudges:>6}"
    );
}

fn word(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: [Option<bool>; 3]) -> Report {
        let mut report = Report::new("mine/m", "smoke");
        for (task, passed) in ["a", "b", "c<d"].into_iter().zip(passed) {
            let outcome = Outcome {
                task: task.to_owned(),
                passed,
                passed_first: passed == Some(true),
                rounds: 3,
                input: 100,
                ..Outcome::default()
            };
            report.add(outcome);
        }
        report
    }

    #[test]
    fn a_report_counts_passes() {
        let now = report([Some(true), Some(false), None]);
        assert!(
            now.table(true).contains("mine/m: pass@1 1 of 2; 1 not run"),
            "{}",
            now.table(true)
        );
        assert!(!now.all_passed());
    }
}
