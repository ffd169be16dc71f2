//! Command lines of PowerShell and `cmd`, as far as both read them the same way: plain words and plain quotes.

use super::reader::{Read, Reader, UNQUOTED, is_blank};
use super::{Command, Unclear, Word};

/// What separates simple commands on Windows.
const SEPARATORS: [char; 4] = [';', '|', '&', '\n'];
/// What stands for itself in a word there, besides ASCII letters and digits: PowerShell takes other dashes and quotes
/// for its own.
const PLAIN: &str = "_-./\\:=+~*?";
/// What does not stand for itself between double quotes, in `cmd` or PowerShell.
const SPECIAL: &str = "\"$`%!^\n";

impl Reader<'_> {
    /// The simple commands of a line for PowerShell or `cmd`.
    pub(super) fn windows(&mut self) -> Read<Vec<Command>> {
        let (mut commands, mut command) = (Vec::new(), Command::default());
        while let Some(character) = self.peek() {
            if is_blank(character) {
                self.next();
            } else if SEPARATORS.contains(&character) {
                self.next();
                if self.peek() == Some(character) {
                    self.next();
                }
                if !command.words.is_empty() {
                    commands.push(std::mem::take(&mut command));
                }
            } else {
                let mut word = Word::default();
                // PowerShell takes a line that begins with a text for an expression.
                if !command.words.is_empty() && self.eat("\"") {
                    self.windows_quoted(&mut word)?;
                } else {
                    let is_part = |c: char| !c.is_whitespace() && !SEPARATORS.contains(&c);
                    let before = self.rest;
                    self.rest = self.rest.trim_start_matches(is_part);
                    let text = self.since(before);
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
                    if text.is_empty() || !text.chars().all(is_plain) {
                        return Err(Unclear(
                            "contains syntax that PowerShell and cmd interpret differently",
                        ));
                    }
                    word.push(text);
                }
                command.words.push(word);
            }
        }
        commands.extend(Some(command).filter(|command| !command.words.is_empty()));
        Ok(commands)
    }

    /// Text up to its closing quote, after which the word ends.
    fn windows_quoted(&mut self, word: &mut Word) -> Read<()> {
        let (text, rest) = self.rest.split_once('"').ok_or(Unclear(UNQUOTED))?;
        let is_special = |c: char| SPECIAL.contains(c) || !(' '..='~').contains(&c);
        self.rest = rest;
        let ends = self
            .peek()
            .is_none_or(|next| next.is_whitespace() || SEPARATORS.contains(&next));
        // A backslash would take the closing quote into the text.
        if text.contains(is_special) || text.ends_with('\\') || !ends {
            return Err(Unclear(
                "contains syntax that PowerShell and cmd interpret differently",
            ));
        }
        word.push(text);
        Ok(())
    }
}
