//! A turn never ends in silence: a model that stopped short is asked to continue, at most twice, and then the person is
//! told.

use std::fmt;

use super::{Message, State, said};
use crate::agent::answer::End;
use crate::agent::event::AgentEvent;
use crate::agent::prompt;
use crate::agent::schedule::Outcome;
use crate::text::display::counted;
use crate::tools::{PlanEntry, PlanStatus};

/// How often in a row the model is asked to continue.
const TIMES: u32 = 2;
/// How many open steps of the plan are named.
const STEPS: usize = 3;
/// Stands in for an empty answer in the conversation, because roles have to alternate.
const NOTHING: &str = "(no text)";

/// Why an answer is not final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Empty,
    Malformed,
    /// It announced calls and made none.
    NoCalls,
    /// The provider failed in the middle of it.
    Broken,
    /// Its text looks like a call but is not one, for this reason.
    Unusable(String),
    /// These steps of the plan are open.
    OpenPlan(Vec<String>),
}

/// How often the model was asked to continue, and its plan.
#[derive(Debug, Default)]
pub(super) struct Nudges {
    in_a_row: u32,
    /// The current plan of this turn.
    plan: Vec<PlanEntry>,
}

impl Nudges {
    /// Successful calls count as progress.
    pub fn note(&mut self, outcomes: &[Outcome]) {
        if outcomes.iter().any(|outcome| !outcome.result.is_error) {
            self.in_a_row = 0;
        }
        if let Some(plan) = outcomes
            .iter()
            .rev()
            .find_map(|outcome| outcome.result.plan.as_ref())
        {
            self.plan.clone_from(plan);
        }
    }

    /// Whether the model is not asked again.
    pub fn are_used_up(&self) -> bool {
        self.in_a_row >= TIMES
    }

    /// Whether the model made a plan of several steps.
    pub fn has_plan(&self) -> bool {
        self.plan.len() > 1
    }

    fn open_steps(&self) -> Option<Reason> {
        let open = self
            .plan
            .iter()
            .filter(|step| step.status != PlanStatus::Completed);
        let open: Vec<String> = open.map(|step| step.content.clone()).collect();
        // A plan of one step is a note, and the text after it may well be the answer.
        (!open.is_empty() && self.plan.len() > 1).then_some(Reason::OpenPlan(open))
    }
}

/// What is wrong with an answer, as far as it shows.
pub(super) fn reason(end: &End, is_empty: bool, unusable: Option<String>) -> Option<Reason> {
    match end {
        End::Malformed => Some(Reason::Malformed),
        End::Broken(_) => Some(Reason::Broken),
        End::Stop | End::NoCalls | End::Other(_) if is_empty => Some(Reason::Empty),
        End::Stop | End::NoCalls | End::Other(_) if unusable.is_some() => {
            unusable.map(Reason::Unusable)
        }
        End::NoCalls => Some(Reason::NoCalls),
        End::Stop
        | End::Other(_)
        | End::Repeats
        | End::Pause
        | End::Length
        | End::Filtered(_)
        | End::Refused
        | End::Failed(_) => None,
    }
}

/// Whether a text has no words of its own: blanks, invisible characters and dots, or a result in the tags that chat
/// templates put around it, which the model only repeats.
pub(super) fn says_nothing(text: &str) -> bool {
    let tagged = text
        .trim()
        .strip_prefix('<')
        .and_then(|it| it.split_once('>'));
    let is_result = tagged.is_some_and(|(name, rest)| {
        let has = |words: [&str; 2]| words.iter().any(|word| name.contains(word));
        let result = rest.strip_suffix(&format!("</{name}>"));
        has(["tool", "function"])
            && has(["response", "result"])
            && result.is_some_and(|result| !result.contains(&format!("</{name}>")))
    });
    if is_result {
        return true;
    }
    let invisible = |c: char| matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    text.chars()
        .all(|c| c.is_whitespace() || matches!(c, '.' | '…') || invisible(c))
}

/// The message to the model.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(
                f,
                "Your answer was empty, or only a tool's result. Call a tool, or give the final answer in words."
            ),
            Self::Malformed => {
                write!(
                    f,
                    "Your tool call could not be read. Make it again with valid JSON, or give the final answer."
                )
            }
            Self::NoCalls => write!(
                f,
                "Your answer announced a tool call, but no call arrived. Make the call, or give the final answer in words."
            ),
            Self::Broken => f.write_str(prompt::BROKEN),
            Self::Unusable(why) => write!(
                f,
                "A tool call in the text of your answer was not run: {why}. Call the tool itself, or give the final \
                 answer in words."
            ),
            Self::OpenPlan(steps) => {
                let more = steps.len().saturating_sub(STEPS);
                let named = steps
                    .iter()
                    .take(STEPS)
                    .map(|step| format!("“{step}”"))
                    .collect::<Vec<_>>()
                    .join(", ");
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                write!(
                    f,
                    "Your plan has open steps: {named}{more}. Continue with the next call; if they are done or not needed, \
                     close them with update_plan and give the final answer."
                )
            }
        }
    }
}

impl Reason {
    /// The notice to the person when asking did not help.
    fn notice(&self) -> String {
        let times = TIMES + 1;
        match self {
            Self::Empty => {
                format!(
                    "the model gave {times} empty answers in a row; prompt again, or choose another model"
                )
            }
            Self::Malformed => {
                format!(
                    "the model made {times} tool calls that the provider could not read; prompt again"
                )
            }
            Self::NoCalls => {
                format!(
                    "the model announced a tool call {times} times and made none; prompt again, or choose another model"
                )
            }
            Self::Broken => {
                format!("the provider cut off {times} answers; send \"continue\" to go on")
            }
            Self::Unusable(why) => {
                format!("the model wrote a tool call as text, which was not run: {why}")
            }
            Self::OpenPlan(steps) => format!(
                "the model stopped with {} in its plan",
                counted(steps.len(), "open step")
            ),
        }
    }
}

impl State {
    /// Whether the model ended with a question: then it waits for the answer.
    pub fn asks_the_person(&self) -> bool {
        self.ends_with(&["?", "？"])
    }

    /// Whether the answer trails off: what it leads up to, in any language, did not come.
    fn trails_off(&self) -> bool {
        self.ends_with(&[":", "：", "…", "..."])
    }

    /// Whether the answer ends with one of these signs, bold or not.
    fn ends_with(&self, signs: &[&str]) -> bool {
        let answer = said(self.answer.as_deref()).trim_end();
        let answer = answer.trim_end_matches(['*', '_']);
        signs.iter().any(|sign| answer.ends_with(sign))
    }

    /// Asks the model to continue if its answer is not final; returns whether it did.
    pub async fn nudge(&mut self, reason: Option<Reason>) -> bool {
        // Once: it may be the answer after all.
        let trails_off =
            self.trails_off() && self.nudges.in_a_row == 0 && !self.turn.tools.is_empty();
        let trails_off = trails_off.then_some(Reason::NoCalls);
        let reason = reason.or(trails_off).or_else(|| {
            // In plan mode the plan is the answer, so its steps stay open.
            let stays = self.asks_the_person() || self.only_plans();
            self.nudges.open_steps().filter(|_| !stays)
        });
        let Some(reason) = reason else { return false };
        if self.nudges.are_used_up() {
            self.steps.notice(reason.notice()).await;
            return false;
        }
        self.nudges.in_a_row += 1;
        let goes_on = matches!(reason, Reason::Broken);
        if !goes_on && !said(self.answer.as_deref()).is_empty() {
            let content = "\n\n".to_owned(); // what follows is another paragraph
            self.steps.event(AgentEvent::TextDelta { content }).await;
        }
        if self.answer.is_none() {
            self.push(Message::answer(NOTHING)).await;
        }
        self.push(Message::note(reason.to_string())).await;
        true
    }
}
