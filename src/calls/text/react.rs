//! Calls as the `ReAct` prompt asks for them: a thought, an action, its input, and then the observation. Pure.

use super::json::{Found, fenced, of_json, with_json};

/// How a call begins.
pub(super) const ACTION: &str = "Action:";
/// How its arguments begin.
pub(super) const ACTION_INPUT: &str = "Action Input:";
/// What some prompts want at the end of a call.
const PAUSE: &str = "PAUSE";
/// How its result begins, which is not the model's to write.
pub(super) const OBSERVATION: &str = "Observation:";

/// `NAME`, `Action Input:` and an object (`ReAct`), or an object with both; what the model expects as the result may be
/// announced, but not made up.
pub(super) fn action(text: &str) -> Found<'_> {
    if text.starts_with('{') || text.starts_with("```") {
        let (value, rest, is_completed) = fenced(text)?;
        return (!is_completed).then(|| Some((of_json(&value)?, unannounced(rest))))?;
    }
    let (name, rest) = text.split_once('\n')?;
    let input = rest.trim_start().strip_prefix(ACTION_INPUT)?;
    let (call, rest) = with_json(name.trim().trim_matches('`'), input)?;
    Some((call, unannounced(rest)))
}

fn unannounced(rest: &str) -> &str {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(PAUSE).unwrap_or(rest).trim_start();
    rest.strip_prefix(OBSERVATION)
        .filter(|rest| rest.trim().is_empty())
        .map_or(rest, str::trim)
}
