//! The modes and their names. What each allows is decided in `session/permission.rs`.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls run without approval, from narrow to wide.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Only reads run.
    Plan,
    /// Edits and commands require approval.
    #[default]
    Ask,
    /// Edits in the workspace run; commands require approval.
    Edit,
    /// Sandboxed commands run, too.
    Auto,
}

impl Mode {
    /// All modes, from narrow to wide.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];

    /// Its name in configuration and protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }

    /// Its title in a menu.
    pub fn title(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Ask => "Ask before edits",
            Self::Edit => "Accept edits",
            Self::Auto => "Auto",
        }
    }

    /// Its description.
    pub fn description(self) -> &'static str {
        match self {
            Self::Plan => "Reads only",
            Self::Ask => "Edits and commands require approval",
            Self::Edit => "Edits are applied; commands require approval",
            Self::Auto => {
                "Edits are applied, commands run in the sandbox; protected files require approval"
            }
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                format!("unknown mode `{name}`; expected one of {names}")
            })
    }
}
