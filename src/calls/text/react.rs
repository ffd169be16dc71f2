//! Calls as the `ReAct` prompt asks for them: a thought, an action, its input, and then the observation. Pure.

use super::json::{Found, of_json, with_json};
use crate::text::repair;

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
        let (code, rest) = unfenced(text);
        let (value, left) = repair::first_value(code.trim_start())?;
        return left
            .trim()
            .is_empty()
            .then(|| Some((of_json(&value)?, unannounced(rest))))?;
    }
    let (name, rest) = text.split_once('\n')?;
    let (input, rest) = unfenced(rest.trim_start().strip_prefix(ACTION_INPUT)?.trim_start());
    let (call, left) = with_json(name.trim().trim_matches('`'), input)?;
    // Without a fence what follows is behind the object.
    let rest = if rest.is_empty() { left } else { rest };
    Some((call, unannounced(rest)))
}

fn unannounced(rest: &str) -> &str {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(PAUSE).unwrap_or(rest).trim_start();
    rest.strip_prefix(OBSERVATION)
        .filter(|rest| rest.trim().is_empty())
        .map_or(rest, str::trim)
}

/// What stands in the fence at the beginning of a text, and what follows it; without a fence all of it.
fn unfenced(text: &str) -> (&str, &str) {
    let inside = text
        .strip_prefix("```")
        .and_then(|inside| inside.split_once('\n'));
    inside
        .and_then(|(_language, inside)| inside.split_once("```"))
        .unwrap_or((text, ""))
}
