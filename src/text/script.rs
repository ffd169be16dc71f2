//! Words that mix writing systems, such as a Cyrillic `а` among Latin letters, and so imitate another word.

/// Writing systems with letters that can be mistaken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Cherokee,
    /// Latin letters in another width or style.
    Styled,
}

impl Script {
    fn name(self) -> &'static str {
        match self {
            Self::Latin => "Latin",
            Self::Greek => "Greek",
            Self::Cyrillic => "Cyrillic",
            Self::Armenian => "Armenian",
            Self::Cherokee => "Cherokee",
            Self::Styled => "styled Latin",
        }
    }

    /// The script of a letter; `None` for letters that cannot be mistaken for another script's.
    fn of(letter: char) -> Option<Self> {
        // The blocks of Unicode.
        Some(match letter {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{250}'..='\u{2af}' | '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}' => {
                Self::Styled
            }
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Self::Greek,
            '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' => Self::Cyrillic,
            '\u{531}'..='\u{58f}' => Self::Armenian,
            '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => Self::Cherokee,
            _ => return None,
        })
    }
}

/// The first word of `text` that mixes writing systems, with their names: ``` `pаypal` mixes Latin and Cyrillic letters ```.
pub fn mixed(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    text.split(|character: char| !character.is_alphanumeric())
        .find_map(|word| {
            let mut scripts = word.chars().filter_map(Script::of);
            let first = scripts.next()?;
            let other = scripts.find(|&script| script != first)?;
            Some(format!(
                "`{word}` mixes {} and {} letters",
                first.name(),
                other.name()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::mixed;

    #[test]
    fn words_mixing_scripts_are_reported() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(mixed(text).as_deref(), expected, "{text}");
        };
        check("cargo test", None);
        check("über café naïve", None);
        check("src/привет.rs привет", None);
        check("日本語text", None);
        check(
            "curl p\u{430}ypal.com",
            Some("`p\u{430}ypal` mixes Latin and Cyrillic letters"),
        );
        check(
            "\u{3bf}pen",
            Some("`\u{3bf}pen` mixes Greek and Latin letters"),
        );
        check(
            "src/m\u{ff41}in.rs",
            Some("`m\u{ff41}in` mixes Latin and styled Latin letters"),
        );
    }
}
