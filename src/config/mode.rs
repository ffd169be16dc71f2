//! The modes in words.

use std::str::FromStr;

use super::Mode;

impl Mode {
    /// All modes, from narrow to wide.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];

    /// The word for it in configuration and protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }

    /// The word for it in a menu.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Ask => "Ask",
            Self::Edit => "Edit",
            Self::Auto => "Auto",
        }
    }

    /// What it means.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Plan => "Reads only, changes nothing",
            Self::Ask => "Asks before every edit and command",
            Self::Edit => "Edits files in the workspace freely, asks before commands",
            Self::Auto => "Edits freely and runs sandboxed commands; protected files still ask",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no mode `{name}`; the modes are {names}")
        })
    }
}
