//! The reasoning efforts a model supports.

use super::family::{Family, Known};
use crate::domain::Effort;

impl Effort {
    /// The efforts to offer for a model of this name.
    pub fn offered(model: &str) -> &'static [Self] {
        let known = Known::by_name(model);
        match known.family {
            Family::Claude if known.at_least(4, 7) => {
                &[Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max]
            }
            Family::Claude if known.at_least(4, 6) => {
                &[Self::Low, Self::Medium, Self::High, Self::Max]
            }
            Family::Gpt if known.at_least(6, 0) => {
                &[Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max]
            }
            Family::Gpt if known.at_least(5, 6) => &[
                Self::None,
                Self::Low,
                Self::Medium,
                Self::High,
                Self::Xhigh,
                Self::Max,
            ],
            Family::Gpt if known.at_least(5, 2) => {
                &[Self::None, Self::Low, Self::Medium, Self::High, Self::Xhigh]
            }
            Family::Gemini if known.at_least(3, 7) => &[Self::Low, Self::Medium, Self::High],
            Family::Kimi if known.at_least(3, 0) => &[Self::Low, Self::High, Self::Max],
            Family::Glm if known.at_least(5, 3) => &[Self::Low, Self::High, Self::Max],
            Family::Glm if known.at_least(5, 2) => &[Self::None, Self::High, Self::Max],
            Family::Gemini if known.at_least(3, 0) => {
                &[Self::Minimal, Self::Low, Self::Medium, Self::High]
            }
            Family::Grok if known.at_least(4, 7) => {
                &[Self::Low, Self::Medium, Self::High, Self::Xhigh]
            }
            Family::DeepSeek if known.at_least(4, 1) => {
                &[Self::None, Self::Low, Self::High, Self::Max]
            }
            Family::DeepSeek => &[Self::None, Self::High, Self::Max],
            _ => &[Self::Low, Self::Medium, Self::High],
        }
    }

    /// The nearest effort between two others.
    pub(super) fn within(self, least: Self, most: Self) -> Self {
        let clamped = (self as u8).clamp(least as u8, most as u8);
        Self::ALL
            .into_iter()
            .find(|effort| *effort as u8 == clamped)
            .unwrap_or(self)
    }

    /// Tokens of thought, for models that count them.
    pub(super) fn budget(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal => 1_024,
            Self::Low => 4_000,
            Self::Medium => 10_000,
            Self::High => 24_000,
            Self::Xhigh | Self::Max => 32_000,
        }
    }
}
