//! What a check found.

use schemars::JsonSchema;
use serde::Serialize;

/// One check, as `tandem doctor --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was checked.
    pub check: &'static str,
    /// The outcome.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It works.
    Good,
    /// It works, but not as it should.
    Warning,
    /// It does not work.
    Bad,
}

impl Finding {
    /// A check that passed.
    pub fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Good,
            found: found.into(),
            advice: None,
        }
    }

    /// Something that works but could be better, and how.
    pub fn warning(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            check,
            verdict: Verdict::Warning,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    /// Something that does not work, and what to do.
    pub fn bad(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Bad,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }
}
