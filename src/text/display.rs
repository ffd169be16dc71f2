//! What may reach a person's eyes: characters that hide, reorder or fake text are shown as `\u{…}`.
//!
//! The result holds no control character but newline and tab, no bidirectional control, nothing of zero width and no
//! tag character, so that what is shown is what there is.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with every deceptive character written as `\u{…}`; newline and tab stay.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_deceptive(character) {
            write!(shown, "{}", character.escape_unicode()).expect("writing to a string cannot fail");
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// [`escape`] for one line (titles, file names, commands): newline, carriage return and tab are escaped too.
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    match escape(text) {
        shown if !shown.contains(['\n', '\t']) => shown,
        shown => Cow::Owned(shown.replace('\n', "\\n").replace('\t', "\\t")),
    }
}

/// Whether `character` is one a reader cannot see or that changes how its neighbors are seen.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    // In the order of the lines: soft hyphen, combining joiner, Arabic letter mark, Hangul and Khmer fillers, Mongolian
    // separators; zero width, marks of direction, line and paragraph separators, embeddings, overrides, isolates,
    // invisible operators; more fillers, byte order mark, interlinear annotations, musical controls; tags and the
    // supplementary variation selectors, both used to smuggle text.
    let is_format = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    is_format || (character.is_control() && !matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected);
    }

    #[test]
    fn what_deceives_is_shown() {
        check("plain\ttext\nÄ 漢 🎉", "plain\ttext\nÄ 漢 🎉");
        check("\u{1b}[31m", "\\u{1b}[31m");
        check("echo \u{202e}x\u{2066}", "echo \\u{202e}x\\u{2066}");
        check("touch\u{200b} a\u{2060}\u{e0041}", "touch\\u{200b} a\\u{2060}\\u{e0041}");
        check("\r\u{7f}\u{9b}\u{feff}", "\\u{d}\\u{7f}\\u{9b}\\u{feff}");
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(escape_line("a\nb\tc\u{0}"), "a\\nb\\tc\\u{0}");
    }
}
