//! Whether a change of a program only imports or only formats, told by its text and in any language.
//!
//! Whitespace counts wherever it may mean something: only empty lines and trailing whitespace are formatting.

/// A change that leaves alone what a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// Import statements were added, changed or removed.
    Import,
    /// Only whitespace changed.
    Format,
}

impl Upkeep {
    /// What turns `before` into `after`; `None` if it is more than that.
    pub fn of(before: &str, after: &str) -> Option<Self> {
        let (before, after) = (Program::read(before), Program::read(after));
        if before.code != after.code {
            return None;
        }
        let only_format = before.imports == after.imports;
        Some(if only_format {
            Self::Format
        } else {
            Self::Import
        })
    }
}

/// The lines of a program without empty ones.
#[derive(Default)]
struct Program<'a> {
    imports: Vec<&'a str>,
    code: Vec<&'a str>,
}

impl<'a> Program<'a> {
    fn read(text: &'a str) -> Self {
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        let mut program = Self::default();
        let mut rest = lines.as_slice();
        while !rest.is_empty() {
            let import = import(rest).unwrap_or_default();
            let into = if import == 0 {
                &mut program.code
            } else {
                &mut program.imports
            };
            let (statement, more) = rest.split_at(import.max(1));
            into.extend(statement.iter().filter(|line| !line.is_empty()));
            rest = more;
        }
        program
    }
}

/// How many lines the import statement has that begins with the first one; `None` if none begins there.
fn import(lines: &[&str]) -> Option<usize> {
    if !begins(lines.first()?) {
        return None;
    }
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '(' | '{' | '[' => depth += 1,
                ')' | '}' | ']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        if depth == 0 && !line.ends_with([',', '\\']) {
            let (statement, _) = lines.split_at(index + 1);
            // A second statement on one of its lines may do anything.
            let is_alone = |line: &&str| !line.trim_end_matches(';').contains(';');
            return statement.iter().all(is_alone).then_some(statement.len());
        }
    }
    None
}

fn begins(line: &str) -> bool {
    let line = line.trim_start();
    let after = |word: &str| {
        let rest = line.strip_prefix(word)?;
        rest.starts_with([' ', '\t', '{', '"', '\'', '<', '*'])
            .then_some(rest)
    };
    // With parentheses it is an expression, unless they hold a list of imports.
    let is_statement =
        |rest: &str| !rest.trim_start().starts_with('(') || rest.trim_end().ends_with('(');
    let is_import = ["import", "use", "#include", "#import", "require", "open"]
        .into_iter()
        .filter_map(after)
        .any(is_statement);
    let is_bound = ["const", "let", "var"]
        .into_iter()
        .filter_map(after)
        .any(|rest| rest.contains("= require("));
    is_import
        || is_bound
        || after("from").is_some_and(|rest| rest.contains(" import "))
        || after("using").is_some_and(|rest| is_statement(rest) && !rest.contains('='))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Upkeep;

    #[test]
    fn a_change_is_upkeep_only_if_all_of_it_is() {
        let check = |before: &str, after: &str, expected: Option<Upkeep>| {
            assert_eq!(
                Upkeep::of(before, after),
                expected,
                "{before:?} → {after:?}"
            );
        };
        let import = Some(Upkeep::Import);
        check("f();\n", "import { f } from \"./f\";\n\nf();\n", import);
        check(
            "import {\n  a,\n} from './x';\na(b);\n",
            "import {\n  a,\n  b,\n} from './x';\na(b);\n",
            import,
        );
        check(
            "import { a } from 'x'\n",
            "import { a, b } from 'x'\n",
            import,
        );
        check("x\n", "use std::{\n    fmt,\n    io,\n};\nx\n", import);
        check("int x;\n", "#include <vector>\nint x;\n", import);
        check("x = 1\n", "from a import (\n    b,\n)\nx = 1\n", import);
        check("x\n", "import (\n\t\"fmt\"\n)\nx\n", import);
        check("x\n", "const fs = require('fs');\nx\n", import);
        check("x\n", "using System.Linq;\nx\n", import);
        check("a  \n\n\nb", "a\nb\n", Some(Upkeep::Format));
        for after in [
            "y\n",
            "  x\n",
            "import { f } from 'f'; f();\nx\n",
            "import('f').then(run)\nx\n",
            "import os; os.remove(p)\nx\n",
            "using (var f = open()) {}\nx\n",
            "using var f = open();\nx\n",
            "important();\nx\n",
            "from here on\nx\n",
            "import { never closed\nx\n",
            "",
        ] {
            check("x\n", after, None);
        }
    }

    proptest! {
        /// Imports may be put anywhere between lines of code; code may not.
        #[test]
        fn imports_alone_are_upkeep(
            code in prop::collection::vec(prop::sample::select(vec!["f(x);", "  if y {", "}", "let x = 1;", "\treturn"]), 1..8),
            import in prop::sample::select(vec![
                "import a from 'a';", "use a::{\n    b,\n    c,\n};", "#include \"a.h\"", "from a import b", "import (\n\t\"a\"\n)",
            ]),
            more in prop::sample::select(vec!["g();", "x = 2", "  f(x);"]),
            place in 0..8_usize,
        ) {
            let with = |line: &str| {
                let mut lines = code.clone();
                lines.insert(place.min(code.len()), line);
                lines.join("\n")
            };
            let before = code.join("\n");
            prop_assert_eq!(Upkeep::of(&before, &with(import)), Some(Upkeep::Import));
            prop_assert_eq!(Upkeep::of(&with(import), &before), Some(Upkeep::Import));
            prop_assert_eq!(Upkeep::of(&before, &with(more)), None);
            let both = [import, more].join("\n");
            prop_assert_eq!(Upkeep::of(&before, &with(&both)), None);
        }
    }
}
