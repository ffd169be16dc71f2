//! Blocks of a text to search for and its replacement, as Aider, Cline and Roo Code write a change. Pure.
//!
//! Nothing is guessed: where a line may be a rule or a line of the file, there is no block.

/// A block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The last line before it that is no fence: the name of a file, if a format has one there.
    pub heading: Option<&'a str>,
    /// The lines to search for.
    pub old: Vec<&'a str>,
    /// The lines in their place.
    pub new: Vec<&'a str>,
}

/// The blocks of a text; `None` if it has none, or one is not complete.
pub fn blocks(text: &str) -> Option<Vec<Block<'_>>> {
    let (mut blocks, mut heading) = (Vec::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !is_mark(line, "SEARCH") {
            let is_heading = !line.trim().is_empty() && !line.starts_with("```");
            heading = is_heading.then(|| line.trim()).or(heading);
            continue;
        }
        let mut inside = Vec::new();
        loop {
            match lines.next()? {
                line if is_mark(line, "REPLACE") => break,
                line if is_mark(line, "SEARCH") => return None,
                line => inside.push(line),
            }
        }
        // A heading is underlined like the rule, too: which of them divides is uncertain.
        let is_rule =
            |line: &&str| line.trim().len() >= 5 && line.trim().trim_matches('=').is_empty();
        let mut sides = inside.split(is_rule);
        let (Some(old), Some(new), None) = (sides.next(), sides.next(), sides.next()) else {
            return None;
        };
        // Roo Code has the number of its line above the text, which has to match anyway, and another rule.
        let numbers = old
            .iter()
            .take_while(|line| line.starts_with(':') && line.contains("_line:"));
        let number = numbers.count();
        let rule = usize::from(number > 0 && old.get(number) == Some(&"-------"));
        let (_, old) = old.split_at(number + rule);
        blocks.push(Block {
            heading,
            old: old.into(),
            new: new.into(),
        });
    }
    (!blocks.is_empty()).then_some(blocks)
}

/// Whether a line is a mark with this word.
fn is_mark(line: &str, word: &str) -> bool {
    let inside = line.trim().trim_matches(['<', '>', '-', '+', '=']);
    inside.trim() == word && line.len() > word.len() + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[[&str; 2]]>) {
        let found = blocks(text);
        let texts = |block: &Block<'_>| [block.old.join("\n"), block.new.join("\n")];
        let found = found.map(|found| found.iter().map(texts).collect::<Vec<_>>());
        let expected = expected.map(|it| it.iter().map(|it| it.map(str::to_owned)).collect());
        assert_eq!(found, expected, "{text}");
    }

    fn aider(old: &str, new: &str) -> String {
        format!("a.md\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")
    }

    #[test]
    fn each_agent_writes_blocks() {
        let cline = "------- SEARCH\nd\n=======\n+++++++ REPLACE\n";
        let both = aider("a\n\n        \nb", "c") + cline;
        check(&both, Some(&[["a\n\n        \nb", "c"], ["d", ""]]));
        assert_eq!(blocks(&both).unwrap()[0].heading, Some("a.md"));
        let roo = aider(":start_line:2\n:end_line:2\n-------\na", "b");
        check(&roo, Some(&[["a", "b"]]));
    }

    /// Lines of a file that look like marks, on either side.
    #[test]
    fn a_block_has_all_lines_of_the_file() {
        for line in [
            "-------",
            "REPLACE",
            "SEARCH",
            "====",
            ":start_line:2",
            "-- REPLACE",
        ] {
            let [old, new] = ["a", "b"].map(|text| format!("{text}\n{line}\n"));
            check(&aider(&old, &new), Some(&[[&old, &new]]));
            let new = format!("{line}\nb");
            check(&aider("a", &new), Some(&[["a", &new]]));
        }
    }

    #[test]
    fn nothing_uncertain_is_a_block() {
        check("nothing", None);
        check("<<<<<<< SEARCH\na\n=======\nb", None);
        check(&aider("Title\n=======\nold", "new"), None);
        check(&aider("old", "Title\n=======\nnew"), None);
        check(&aider("a", "b\n<<<<<<< SEARCH\nc"), None);
    }
}
