//! What a model's name says about it, whoever serves it: family and version.
//!
//! Names change, so no models are listed here: a new name is parsed like the known ones.

/// A family of models with the same wire behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Claude,
    /// `gpt-…`, `chatgpt-…` and `codex-…`, but not the open-weight `gpt-oss`.
    Gpt,
    /// `o1`, `o3`, `o4`, …
    OSeries,
    GptOss,
    Gemini,
    DeepSeek,
    Kimi,
    Grok,
    Mistral,
    Qwen,
    Glm,
    MiniMax,
    Other,
}

/// A model, as parsed from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub(super) family: Family,
    /// Major and minor; `None` if the name has no number (`claude-opus-latest`).
    version: Option<(u32, u32)>,
}

/// Substrings of a family's names. The first match wins.
const MARKS: [(&str, Family); 21] = [
    ("claude", Family::Claude),
    ("gpt-oss", Family::GptOss),
    ("chatgpt", Family::Gpt),
    ("gpt", Family::Gpt),
    ("codex", Family::Gpt),
    ("gemini", Family::Gemini),
    ("deepseek", Family::DeepSeek),
    ("kimi", Family::Kimi),
    ("moonshot", Family::Kimi),
    ("grok", Family::Grok),
    ("ministral", Family::Mistral),
    ("mistral", Family::Mistral),
    ("magistral", Family::Mistral),
    ("devstral", Family::Mistral),
    ("codestral", Family::Mistral),
    ("mixtral", Family::Mistral),
    ("pixtral", Family::Mistral),
    ("qwen", Family::Qwen),
    ("qwq", Family::Qwen),
    ("glm", Family::Glm),
    ("minimax", Family::MiniMax),
];

/// A name without the prefixes and suffixes that hosts add, in lower case, with dashes in versions: `claude-sonnet-4-6` for
/// `us.anthropic.claude-sonnet-4-6-v1:0`, `glm-4-7` for `accounts/fireworks/models/glm-4p7`.
pub(super) fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let has_mark = |part: &&str| MARKS.iter().any(|(mark, _)| part.contains(mark));
    let mut parts = name.split([':', '@']);
    let name = parts
        .clone()
        .find(has_mark)
        .or(parts.next())
        .unwrap_or_default();
    // Bedrock adds the region, the vendor and a version of its own.
    let mut name = name.strip_suffix("-v1").unwrap_or(name);
    while let Some((maker, rest)) = name.split_once('.')
        && !maker.contains(|c: char| c.is_ascii_digit())
    {
        name = rest;
    }
    let at = MARKS.iter().find_map(|(mark, _)| name.find(mark));
    let name = name.get(at.unwrap_or_default()..).unwrap_or(name);
    let is_digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    let letters = name.as_bytes();
    let dashed = name.char_indices().map(|(at, c)| match c {
        '.' => '-',
        'p' if at > 0 && is_digit(letters.get(at - 1)) && is_digit(letters.get(at + 1)) => '-',
        c => c,
    });
    let name: String = dashed.collect();
    // Kimi's coding plan leaves the maker out; K2 Think is another vendor's.
    match name.as_bytes() {
        [b'k', b'3'..=b'9', ..] => format!("kimi-{name}"),
        _ => name,
    }
}

impl Known {
    /// Parses a name such as `gpt-5.1`, `anthropic/claude-opus-4.8` or `us.anthropic.claude-sonnet-4-6-v1:0`.
    pub fn by_name(name: &str) -> Self {
        let name = plain(name);
        let version = version(&name).map(|(_, version, _)| version);
        // A distilled model belongs to its base family, which its name mentions first or not at all.
        let mark = MARKS.iter().find(|(mark, _)| name.starts_with(mark));
        let family = match (name.get(..1), version) {
            _ if let Some((_, family)) = mark => *family,
            (Some("o"), Some(_)) if is_numbered(&name) => Family::OSeries,
            _ => Family::Other,
        };
        Self { family, version }
    }

    /// Whether the version is at least this one. A name without a number counts as the newest. Digits after a dot are
    /// decimals: 4.20 is older than 4.3.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        self.version
            .is_none_or(|version| order(version) >= order((major, minor)))
    }

    /// Whether its name has a number: a deployment may be called anything.
    pub(super) fn has_version(self) -> bool {
        self.version.is_some()
    }

    /// Additional instructions for models of this family.
    pub(super) fn habit(self) -> Option<&'static str> {
        match self.family {
            Family::Gemini => Some(
                "Never return an empty response; after an edit, continue with the next call or the final answer.",
            ),
            Family::Gpt | Family::OSeries => {
                Some("Before a group of calls, say in one sentence what you are about to do.")
            }
            _ => None,
        }
    }

    /// Whether OpenAI trained it to edit with patches in the V4A format.
    pub fn patches(self) -> bool {
        match self.family {
            Family::Gpt => self.at_least(4, 1),
            Family::OSeries => self.at_least(3, 0),
            Family::GptOss => true,
            _ => false,
        }
    }
}

/// Whether the name begins with a single letter and a number.
fn is_numbered(name: &str) -> bool {
    name.get(1..)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The first number in a plain name and the one after it, with the text before and after them. Dates and sizes are not
/// versions.
pub(super) fn version(name: &str) -> Option<(&str, (u32, u32), &str)> {
    let (before, rest) = name.split_at_checked(name.find(|c: char| c.is_ascii_digit())?)?;
    let (major, rest) = number(rest)?;
    let minor = rest.strip_prefix('-').and_then(number).filter(|(_, rest)| {
        // `4-20250514` is a date, `3-32b` a size.
        !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
    });
    let (minor, rest) = minor.unwrap_or((0, rest));
    Some((before, (major, minor), rest))
}

/// A sort key for versions: 4.5 is newer than 4.10, which is 4.1.
pub(super) fn order((major, minor): (u32, u32)) -> (u32, u32) {
    (major, if minor < 10 { minor * 10 } else { minor })
}

/// One or two digits.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.len() > 2 {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, family: Family, version: Option<(u32, u32)>) {
        assert_eq!(Known::by_name(name), Known { family, version }, "{name}");
    }

    #[test]
    fn model_names_reveal_family_and_version() {
        check("claude-opus-4-8", Family::Claude, Some((4, 8)));
        check("claude-sonnet-4-20250514", Family::Claude, Some((4, 0)));
        check("claude-3-7-sonnet-20250219", Family::Claude, Some((3, 7)));
        check("anthropic/claude-sonnet-4.6", Family::Claude, Some((4, 6)));
        check(
            "us.anthropic.claude-sonnet-4-6-v1:0",
            Family::Claude,
            Some((4, 6)),
        );
        check("claude-sonnet-4@20250514", Family::Claude, Some((4, 0)));
        check("claude-opus-latest", Family::Claude, None);
        check("gpt-5", Family::Gpt, Some((5, 0)));
        check("openai/GPT-5.6-codex", Family::Gpt, Some((5, 6)));
        check("gpt-5-2025-08-07", Family::Gpt, Some((5, 0)));
        check("gpt-4o", Family::Gpt, Some((4, 0)));
        check("gpt-6.1-sol", Family::Gpt, Some((6, 1)));
        check("codex-mini-latest", Family::Gpt, None);
        check("o4-mini", Family::OSeries, Some((4, 0)));
        check("openai/gpt-oss-120b", Family::GptOss, None);
        check("gemini-3.1-pro-preview", Family::Gemini, Some((3, 1)));
        check("deepseek-v4-flash", Family::DeepSeek, Some((4, 0)));
        check("deepseek-chat", Family::DeepSeek, None);
        check("k3-256k", Family::Kimi, Some((3, 0)));
        check("ft:gpt-4.1-mini:acme::x1", Family::Gpt, Some((4, 1)));
        check("K2-Think", Family::Other, Some((2, 0)));
        check(
            "accounts/fireworks/models/glm-4p7",
            Family::Glm,
            Some((4, 7)),
        );
        check("kimi-k2-0905-preview", Family::Kimi, Some((2, 0)));
        check("moonshotai/Kimi-K2.5", Family::Kimi, Some((2, 5)));
        check("grok-4-1-fast", Family::Grok, Some((4, 1)));
        check("qwen3-32b", Family::Qwen, Some((3, 0)));
        check("llama-3.3-70b", Family::Other, Some((3, 3)));
    }

    #[test]
    fn minor_versions_are_decimals() {
        let is_new = |name| Known::by_name(name).at_least(4, 7);
        assert!(is_new("grok-4.7") && is_new("claude-opus-4-8") && is_new("grok-5"));
        assert!(!is_new("grok-4.20-0309-reasoning") && !is_new("grok-4.6"));
    }

    #[test]
    fn openai_models_since_gpt_4_1_use_apply_patch() {
        let check = |name: &str, expected: bool| {
            assert_eq!(Known::by_name(name).patches(), expected, "{name}");
        };
        for name in [
            "gpt-4.1",
            "gpt-5.2-codex",
            "openai/GPT-5",
            "codex-mini-latest",
            "o4-mini",
            "gpt-oss:20b",
            "gpt-6.1-sol",
        ] {
            check(name, true);
        }
        for name in [
            "gpt-4o",
            "gpt-4-turbo",
            "o1",
            "anthropic/claude-sonnet-4.6",
            "qwen3-coder",
            "gemini-3-pro",
        ] {
            check(name, false);
        }
    }
}
