//! The tested providers, and what is special about each.

use tandem::model::Api;

/// A provider and a model of it.
pub type Row = (&'static str, &'static str);

/// Every provider that has a row in tandem, with the models whose rules differ.
pub const ROWS: [Row; 40] = [
    ("openai", "gpt-5.5"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-5.6-terra"),
    ("openai", "gpt-6-sol"),
    ("openai", "gpt-4o"),
    ("azure", "gpt-5.1"),
    ("anthropic", "claude-sonnet-4-6"),
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-opus-5-5"),
    ("openrouter", "anthropic/claude-sonnet-5"),
    ("openrouter", "openai/gpt-5.5"),
    ("gemini", "gemini-3.5-flash"),
    ("deepseek", "deepseek-v4-pro"),
    ("moonshot", "kimi-k2.6"),
    ("moonshot", "kimi-k3"),
    ("mistral", "mistral-large-latest"),
    ("xai", "grok-4.3"),
    ("groq", "openai/gpt-oss-120b"),
    ("together", "Qwen/Qwen3-Coder-480B-A35B"),
    ("cerebras", "gpt-oss-120b"),
    ("fireworks", "accounts/fireworks/models/kimi-k2.6"),
    ("nvidia", "moonshotai/kimi-k2.6"),
    ("github", "openai/gpt-4.1"),
    ("huggingface", "deepseek-ai/DeepSeek-V4-Pro"),
    ("bedrock", "openai.gpt-oss-120b"),
    ("vertex", "google/gemini-3.5-flash"),
    ("zai", "glm-5.2"),
    ("zai-coding", "glm-5.3"),
    ("minimax", "MiniMax-M3"),
    ("dashscope", "qwen3.7-max"),
    ("kimi-coding", "k3"),
    ("vercel", "anthropic/claude-sonnet-5.5"),
    ("opencode", "glm-5.2"),
    ("vllm", "Qwen/Qwen3-Coder"),
    ("vllm", "Qwen/Qwen3.6-27B"),
    ("vllm", "mistralai/Devstral-Small"),
    ("ollama", "qwen3-coder"),
    ("lmstudio", "qwen3-coder-30b"),
    ("llamacpp", "gpt-oss-20b"),
];

/// The API of a provider.
pub fn api(provider: &str) -> Api {
    match provider {
        "openai" | "azure" => Api::Responses,
        "anthropic" | "minimax" | "kimi-coding" => Api::Messages,
        _ => Api::Chat,
    }
}

/// The field of the chat API that contains the thoughts of a provider's models; `None` if they are sent in another way or
/// not at all.
pub fn thoughts((provider, _): Row) -> Option<&'static str> {
    match provider {
        "groq" | "cerebras" | "together" | "openrouter" | "vercel" => Some("reasoning"),
        "github" | "gemini" | "vertex" | "mistral" => None,
        _ => Some("reasoning_content"),
    }
}

/// Whether a model's thoughts must accompany its calls in every later request.
pub fn wants_thoughts((provider, model): (&str, &str)) -> bool {
    let model = model.to_lowercase();
    matches!(provider, "deepseek" | "moonshot")
        || matches!(provider, "fireworks" | "nvidia" | "huggingface")
            && (model.contains("kimi") || model.contains("deepseek"))
}

/// Whether a model's thoughts accompany every answer in later requests, to keep its cache valid.
pub fn keeps_thoughts((provider, model): (&str, &str)) -> bool {
    matches!(provider, "zai" | "zai-coding") || model.contains("Qwen3.6")
}

/// Whether a model checks the form of IDs and the order of roles as Mistral's templates do.
pub fn is_mistral((provider, model): (&str, &str)) -> bool {
    provider == "mistral" || model.contains("Devstral")
}

/// The ID that a provider's models give the call with this number.
pub fn call_id(row: Row, number: usize, name: &str) -> String {
    match row {
        ("openai" | "azure", _) => format!("call_{number:024}"),
        ("anthropic", _) => format!("toolu_01{number:022}"),
        ("gemini" | "vertex", _) => format!("function-call-{number:019}"),
        ("vllm" | "nvidia", model) if !is_mistral(("", model)) => {
            format!("chatcmpl-tool-{number:032x}")
        }
        ("huggingface", _) => format!("call_{number:080}"),
        ("moonshot" | "fireworks", _) => format!("functions.{name}:{number}"),
        row if is_mistral(row) => format!("m{number:08}"),
        _ => format!("call_{number}"),
    }
}
