//! The tokens models were trained with to fill in the middle, for servers that leave it to the client.

/// Parts of names, and the tokens before the prefix, before the suffix, and before the middle. The first match wins.
const TOKENS: [(&[&str], [&str; 3]); 4] = [
    (
        &["qwen", "codegemma"],
        ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    ),
    (
        &["starcoder", "granite-code"],
        ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"],
    ),
    (
        &["deepseek-coder"],
        ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
    ),
    (&["codellama"], ["<PRE> ", " <SUF>", " <MID>"]),
];

/// A prompt with the tokens of the model of this name; `None` if they are not known.
pub(super) fn prompt(model: &str, before: &str, after: &str) -> Option<String> {
    let name = model.to_ascii_lowercase();
    // Codestral alone reads the suffix first.
    if name.contains("codestral") {
        return Some(format!("[SUFFIX]{after}[PREFIX]{before}"));
    }
    let fits = |part: &&str| name.contains(part);
    let (_, [prefix, suffix, middle]) = TOKENS.iter().find(|(parts, _)| parts.iter().any(fits))?;
    Some(format!("{prefix}{before}{suffix}{after}{middle}"))
}

#[cfg(test)]
mod tests {
    use super::prompt;

    #[test]
    fn fim_tokens_are_chosen_by_model_name() {
        let check = |model: &str, expected: Option<&str>| {
            assert_eq!(prompt(model, "a", "b").as_deref(), expected);
        };
        check(
            "Qwen/Qwen2.5-Coder-7B",
            Some("<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"),
        );
        check(
            "deepseek-coder:6.7b-base",
            Some("<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>"),
        );
        check("codellama-7b", Some("<PRE> a <SUF>b <MID>"));
        check("mistralai/Codestral-22B", Some("[SUFFIX]b[PREFIX]a"));
        check("gpt-3.5-turbo-instruct", None);
    }
}
