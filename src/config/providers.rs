//! Providers that need no configuration but a key. One row each; `[providers.NAME]` can change everything.

use std::cmp::Reverse;

use crate::domain::{Api, CompletionApi, without_date};

/// A built-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Its name before the slash of `provider/model`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its API.
    pub api: Api,
    /// Its base URL; empty if every customer has their own.
    pub base_url: &'static str,
    /// An example of a customer's base URL; empty if all customers share one.
    pub example_url: &'static str,
    /// The well-known variable of its key; empty for local servers.
    pub key_variable: &'static str,
    /// The model used if only the key is set and the provider's list cannot be fetched; empty if the key alone does not
    /// choose this provider, because other programs use the same variable.
    pub default_model: &'static str,
    /// Patterns to choose a model by, best first: `#` is a version, of which the highest wins; `|` separates names of
    /// one rank, of which the first is taken where the version is the same.
    pub preferred: &'static [&'static str],
    /// How its models are asked for an inline completion.
    pub completion: CompletionApi,
}

impl Provider {
    /// Whether it is a server on this machine, which needs no key.
    pub fn is_local(&self) -> bool {
        self.key_variable.is_empty()
    }

    /// The row with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}

const fn hosted(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
) -> Provider {
    let completion = CompletionApi::Chat;
    let (example_url, default_model, preferred) = ("", "", &[]);
    Provider {
        name,
        title,
        api: Api::Chat,
        base_url,
        example_url,
        key_variable,
        default_model,
        preferred,
        completion,
    }
}

const fn local(name: &'static str, title: &'static str, base_url: &'static str) -> Provider {
    hosted(name, title, base_url, "")
}

impl Provider {
    const fn speaking(self, api: Api) -> Self {
        Self { api, ..self }
    }

    const fn like(self, example_url: &'static str) -> Self {
        Self {
            example_url,
            ..self
        }
    }

    const fn completing(self, completion: CompletionApi) -> Self {
        Self { completion, ..self }
    }

    const fn with_models(
        self,
        default_model: &'static str,
        preferred: &'static [&'static str],
    ) -> Self {
        Self {
            default_model,
            preferred,
            ..self
        }
    }
}

/// In place of a base URL: the models of the editor, which only an editor that has some can be asked for.
pub const EDITOR: &str = "editor:";

/// All built-in providers; if several keys are set, the first one in this order is used.
pub const PROVIDERS: &[Provider] = &[
    local("vscode", "VS Code (Copilot and other extensions)", EDITOR),
    hosted("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY")
        .speaking(Api::Responses)
        .with_models("gpt-6.1-sol", &["gpt-#-sol|gpt-#", "gpt-#-terra", "gpt-#-codex", "o#"]),
    hosted("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
        .speaking(Api::Messages)
        .with_models("claude-sonnet-5-5", &["claude-sonnet-#", "claude-opus-#", "claude-haiku-#"]),
    hosted("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY").with_models(
        "anthropic/claude-sonnet-5.5",
        &["anthropic/claude-sonnet-#", "openai/gpt-#-sol|openai/gpt-#", "deepseek/deepseek-v#-pro"],
    ),
    hosted("gemini", "Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")
        .with_models(
            "gemini-3.8-flash",
            // `customtools` is made for agents with tools of their own.
            &["gemini-#-pro-preview-customtools|gemini-#-pro|gemini-#-pro-preview|gemini-#-flash|gemini-#-flash-preview"],
        ),
    hosted("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY")
        .completing(CompletionApi::Deepseek)
        .with_models("deepseek-v4-pro", &["deepseek-v#-pro", "deepseek-flash", "deepseek-v#-flash|deepseek-v#", "deepseek-chat"]),
    hosted("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY")
        .completing(CompletionApi::Mistral)
        .with_models("mistral-large-latest", &["mistral-large-latest", "mistral-medium-latest", "devstral-latest"]),
    hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY")
        .with_models("openai/gpt-oss-120b", &["openai/gpt-oss-120b", "moonshotai/kimi-k#", "qwen/qwen#-32b"]),
    hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY")
        .with_models("grok-4.7", &["grok-#", "grok-#-reasoning|grok-#-fast-reasoning", "grok-code-fast-#"]),
    hosted("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY").with_models(
        "openai/gpt-oss-120b",
        &["moonshotai/Kimi-K#", "deepseek-ai/DeepSeek-V#-Pro", "openai/gpt-oss-120b"],
    ),
    hosted("moonshot", "Moonshot (Kimi)", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY")
        .with_models("kimi-k3.1-pro", &["kimi-k#-pro|kimi-k#", "kimi-k#-code", "kimi-k#-thinking"]),
    hosted("zai", "Z.ai (GLM)", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY").with_models("glm-5.3", &["glm-#"]),
    hosted("zai-coding", "Z.ai coding plan", "https://api.z.ai/api/coding/paas/v4", "ZAI_CODING_API_KEY")
        .with_models("glm-5.3", &["glm-#"]),
    hosted("minimax", "MiniMax", "https://api.minimax.io/anthropic/v1", "MINIMAX_API_KEY")
        .speaking(Api::Messages)
        .with_models("MiniMax-M3", &["MiniMax-M#"]),
    hosted("dashscope", "Alibaba Cloud", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY")
        .with_models("qwen3.8-max", &["qwen#-max", "qwen#-plus", "qwen#-coder-plus"]),
    hosted("kimi-coding", "Kimi coding plan", "https://api.kimi.com/coding/v1", "KIMI_API_KEY")
        .speaking(Api::Messages)
        .with_models("k3", &["k#", "kimi-k#", "kimi-for-coding"]),
    hosted("vercel", "Vercel AI Gateway", "https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY")
        .with_models("anthropic/claude-sonnet-5.5", &["anthropic/claude-sonnet-#"]),
    hosted("opencode", "opencode Zen", "https://opencode.ai/zen/v1", "OPENCODE_API_KEY")
        .with_models("glm-5.2", &["glm-#", "kimi-k#"]),
    hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY")
        .with_models("gpt-oss-120b", &["zai-glm-#", "gpt-oss-120b"]),
    hosted("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY")
        .with_models("accounts/fireworks/models/gpt-oss-120b", &["accounts/fireworks/models/gpt-oss-120b"]),
    hosted("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY")
        .with_models("openai/gpt-oss-120b", &["moonshotai/kimi-k#", "openai/gpt-oss-120b"]),
    hosted("azure", "Azure OpenAI", "", "AZURE_OPENAI_API_KEY")
        .speaking(Api::Responses)
        .like("https://NAME.openai.azure.com"),
    hosted("bedrock", "Amazon Bedrock", "", "AWS_BEARER_TOKEN_BEDROCK")
        .like("https://bedrock-runtime.REGION.amazonaws.com/openai/v1"),
    hosted("vertex", "Google Vertex AI", "", "VERTEX_ACCESS_TOKEN")
        .like("https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/endpoints/openapi"),
    hosted("github", "GitHub Models", "https://models.github.ai/inference", "GITHUB_TOKEN"),
    hosted("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
    local("ollama", "Ollama", "http://127.0.0.1:11434/v1").completing(CompletionApi::Ollama),
    local("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1").completing(CompletionApi::Completions),
    local("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1").completing(CompletionApi::Infill),
    local("vllm", "vLLM", "http://127.0.0.1:8000/v1").completing(CompletionApi::Completions),
];

/// The best of `offered` by the patterns of `preferred`, if any matches.
pub fn best<'a>(
    preferred: &[&str],
    offered: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<&'a str> {
    preferred.iter().find_map(|rank| {
        let fitting = offered.clone().filter_map(|name| {
            let mut patterns = rank.split('|').enumerate();
            let (version, place) = patterns.find_map(|(place, pattern)| {
                Some((version_of(pattern, without_date(name))?, Reverse(place)))
            })?;
            // Among names of one version, the one without a date is the one that is updated.
            Some(((version, place, Reverse(name.len())), name))
        });
        fitting.max_by_key(|(key, _)| *key).map(|(_, name)| name)
    })
}

/// The version in `name` in place of the `#` of `pattern`. Digits after a dot are decimals: 4.20 is older than 4.3.
fn version_of(pattern: &str, name: &str) -> Option<(u32, u32)> {
    let Some((before, after)) = pattern.split_once('#') else {
        return (pattern == name).then_some((0, 0));
    };
    let version = name.strip_prefix(before)?.strip_suffix(after)?;
    let number = |text: &str| text.parse().ok().filter(|_| text.len() <= 2);
    match version.split_once(['.', '-']) {
        Some((major, minor)) if minor.len() == 1 => Some((number(major)?, number(minor)? * 10)),
        Some((major, minor)) => Some((number(major)?, number(minor)?)),
        None => Some((number(version)?, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(provider: &str, offered: &[&str], expected: Option<&str>) {
        let row = Provider::named(provider).unwrap();
        assert_eq!(best(row.preferred, &offered.iter().copied()), expected);
    }

    #[test]
    fn the_newest_model_of_the_preferred_line_is_chosen() {
        check(
            "openai",
            &[
                "text-embedding-3-large",
                "gpt-5.1",
                "gpt-5.6",
                "gpt-5.6-mini",
                "gpt-4o",
            ],
            Some("gpt-5.6"),
        );
        check(
            "openai",
            &["gpt-5.6", "gpt-6.1", "gpt-6.1-2026-11-01"],
            Some("gpt-6.1"),
        );
        check(
            "openai",
            &["gpt-5-2025-08-07", "gpt-4.1"],
            Some("gpt-5-2025-08-07"),
        );
        check("openai", &["whisper-1"], None);
        check(
            "anthropic",
            &[
                "claude-opus-4-8",
                "claude-sonnet-4-5-20250929",
                "claude-sonnet-4-6",
            ],
            Some("claude-sonnet-4-6"),
        );
        check(
            "anthropic",
            &["claude-opus-4-8", "claude-haiku-4-5"],
            Some("claude-opus-4-8"),
        );
        check(
            "gemini",
            &[
                "gemini-2.5-pro",
                "gemini-3.1-pro-preview",
                "gemini-3.5-flash",
            ],
            Some("gemini-3.5-flash"),
        );
    }

    #[test]
    fn suffixes_and_decimals_of_versions_are_understood() {
        check(
            "gemini",
            &[
                "gemini-3.1-pro-preview",
                "gemini-3.1-pro-preview-customtools",
                "gemini-3-flash",
            ],
            Some("gemini-3.1-pro-preview-customtools"),
        );
        check(
            "openai",
            &[
                "gpt-5.5",
                "gpt-5.6-sol",
                "gpt-5.6-luna",
                "gpt-6-astra",
                "gpt-6-luna",
                "gpt-6-sol",
            ],
            Some("gpt-6-sol"),
        );
        check(
            "xai",
            &["grok-4.20", "grok-4.3", "grok-4.5", "grok-4.6"],
            Some("grok-4.6"),
        );
        check(
            "xai",
            &[
                "grok-3",
                "grok-4.3",
                "grok-4.20-0309-reasoning",
                "grok-imagine-image",
            ],
            Some("grok-4.3"),
        );
        check(
            "moonshot",
            &["kimi-k3", "kimi-k3.1-pro", "kimi-k2.7-code"],
            Some("kimi-k3.1-pro"),
        );
        check(
            "deepseek",
            &["deepseek-v4-flash", "deepseek-v4-pro"],
            Some("deepseek-v4-pro"),
        );
    }
}
