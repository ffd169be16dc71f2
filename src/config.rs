//! (stub until the room lands)
#![allow(missing_docs)]
use std::path::PathBuf;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode { Plan, Ask, Edit, Auto }
impl Mode {
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];
    pub fn name(self) -> &'static str { match self { Self::Plan => "plan", Self::Ask => "ask", Self::Edit => "edit", Self::Auto => "auto" } }
    pub fn title(self) -> &'static str { self.name() }
    pub fn description(self) -> &'static str { self.name() }
    pub fn from_name(name: &str) -> Option<Self> { Self::ALL.into_iter().find(|m| m.name() == name) }
}
pub struct Settings { pub model: Option<ModelSettings>, pub mode: Mode, pub problems: Vec<String>, pub state_dir: PathBuf, pub no_model: String }
pub struct ModelSettings { pub provider: String, pub model: String, pub base_url: String, pub key: Option<String>, pub context_window: Option<u64> }
