//! The reasoning efforts a model takes.

use super::family::{self, Family, Known};
use super::host::Host;
use crate::domain::Effort::{self, High, Low, Max, Medium, Minimal, Xhigh};

impl Effort {
    /// The efforts that a provider takes for a model of this name, lowest first: the ones to offer. Empty if there is no
    /// choice.
    pub fn taken(provider: &str, model: &str) -> Vec<Self> {
        let (host, known) = (Host::named(provider), Known::by_name(model));
        let mut taken = by_host(host, provider, known)
            .unwrap_or_else(|| by_model(known, &family::plain(model)))
            .to_vec();
        // Gateways translate efforts, but not all of them know the highest.
        let knows_max = match known.family {
            Family::Claude => host != Host::Vercel,
            Family::Gpt => true,
            _ => !matches!(host, Host::OpenRouter | Host::Vercel),
        };
        if !knows_max && taken.last() == Some(&Max) {
            taken.pop();
            taken.retain(|effort| *effort != Xhigh);
            taken.push(Xhigh);
        }
        taken
    }

    /// The nearest of these; between two it is the higher one. Only `none` turns reasoning off.
    pub fn nearest(self, taken: &[Self]) -> Option<Self> {
        if self == Self::None {
            return taken.first().copied();
        }
        let on = taken.iter().rev().filter(|other| **other != Self::None);
        on.copied()
            .min_by_key(|other| (*other as u8).abs_diff(self as u8))
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

/// Reasoning is on or off.
const SWITCH: &[Effort] = &[Effort::None, High];

/// Where the provider decides.
fn by_host(host: Host, provider: &str, known: Known) -> Option<&'static [Effort]> {
    Some(match (host, known.family) {
        (_, Family::GptOss) => &[Low, Medium, High],
        (Host::Groq | Host::DashScope, Family::Qwen) => SWITCH,
        (Host::Groq, _) => &[],
        (Host::Hosted, Family::Glm) if provider == "cerebras" => &[Effort::None],
        (Host::OpenRouter | Host::Vercel, Family::Other) => {
            &[Effort::None, Low, Medium, High, Xhigh]
        }
        (Host::Other, _) if provider == "ollama" => &[Effort::None, Low, Medium, High, Max],
        (Host::Other, Family::Qwen) if known.at_least(3, 8) => &[Low, Medium, Xhigh],
        _ => return None,
    })
}

fn by_model(known: Known, name: &str) -> &'static [Effort] {
    let since = |major, minor| known.at_least(major, minor);
    let is = |part| name.contains(part);
    match known.family {
        Family::Claude if since(4, 7) => &[Low, Medium, High, Xhigh, Max],
        Family::Claude if since(4, 6) => &[Low, Medium, High, Max],
        Family::Claude if !since(3, 7) => &[],
        Family::Gpt if !since(5, 0) || is("gpt-5-chat") => &[],
        Family::Gpt if is("-chat") => &[Medium],
        Family::Gpt if is("-pro") && since(5, 2) => &[Medium, High, Xhigh],
        Family::Gpt if is("-pro") => &[High],
        Family::Gpt if since(6, 0) => &[Low, Medium, High, Xhigh, Max],
        Family::Gpt if since(5, 6) => &[Effort::None, Low, Medium, High, Xhigh, Max],
        Family::Gpt if is("codex") && !since(5, 3) => {
            if since(5, 2) || is("codex-max") {
                &[Low, Medium, High, Xhigh]
            } else {
                &[Low, Medium, High]
            }
        }
        Family::Gpt if since(5, 2) => &[Effort::None, Low, Medium, High, Xhigh],
        Family::Gpt if since(5, 1) => &[Effort::None, Low, Medium, High],
        Family::Gpt => &[Minimal, Low, Medium, High],
        Family::Gemini if is("pro") && since(3, 0) && !since(3, 1) => &[Low, High],
        Family::Gemini if since(3, 0) && !since(3, 7) && !is("pro") => {
            &[Minimal, Low, Medium, High]
        }
        Family::Kimi if is("code") || is("thinking") || !since(2, 5) => &[],
        Family::Kimi if since(3, 0) => &[Low, High, Max],
        Family::Glm if since(5, 3) => &[Low, High, Max],
        Family::DeepSeek if since(4, 1) => &[Effort::None, Low, High, Max],
        Family::DeepSeek => &[Effort::None, High, Max],
        Family::Glm if since(5, 2) => &[Effort::None, High, Max],
        Family::Mistral if is("codestral") || is("devstral") || is("magistral") => &[],
        Family::Kimi | Family::Glm | Family::Mistral => SWITCH,
        Family::MiniMax if since(3, 1) => &[Low, Medium, High, Xhigh, Max],
        Family::MiniMax if since(3, 0) => &[Effort::None, Low, Medium, High, Xhigh, Max],
        Family::Grok if !since(4, 3) || is("build") || is("code") => &[],
        Family::Grok if since(4, 6) => &[Low, Medium, High, Xhigh],
        Family::Grok if !since(4, 5) => &[Effort::None, Low, Medium, High],
        Family::Qwen => &[Effort::None, Low, Medium, High],
        _ => &[Low, Medium, High],
    }
}
