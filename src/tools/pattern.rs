//! Globs as models write them: without a slash they match file names at any depth, with a slash the path below the
//! searched folder.

use std::borrow::Cow;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ToolError;

/// A compiled glob.
#[derive(Clone)]
pub(super) struct PathPattern {
    globs: GlobSet,
    /// Written with a leading `!`: everything else matches.
    negated: bool,
}

impl PathPattern {
    pub fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = tidy(pattern)?;
        let (negated, pattern) = pattern
            .strip_prefix('!')
            .map_or((false, &*pattern), |rest| (true, rest));
        let anywhere = if pattern.contains('/') { "" } else { "**/" };
        Ok(Self {
            globs: compile(&format!("{anywhere}{pattern}"))?,
            negated,
        })
    }

    pub fn matches(&self, below: &Path) -> bool {
        self.globs.is_match(below) != self.negated
    }
}

/// A glob split so that only folders with possible matches are walked.
pub(super) struct Search {
    /// The folder below which matches are possible; may be empty.
    pub folder: String,
    /// The pattern below that folder.
    pub pattern: PathPattern,
    /// How deep below it matches are possible.
    pub depth: usize,
}

impl Search {
    pub fn new(pattern: &str) -> Result<Self, ToolError> {
        let mut pattern = tidy(pattern)?;
        if pattern.ends_with('/') {
            pattern.to_mut().push_str("**");
        }
        let parts: Vec<_> = pattern.split('/').collect();
        let literal = parts
            .iter()
            .take_while(|part| !part.contains(['*', '?', '[', '{', '\\', '!']))
            .count();
        let (folder, rest) = parts.split_at(literal.min(parts.len() - 1));
        if parts.len() == 1 || pattern.starts_with('!') {
            return Ok(Self {
                folder: String::new(),
                pattern: PathPattern::new(&pattern)?,
                depth: usize::MAX,
            });
        }
        let pattern = PathPattern {
            globs: compile(&rest.join("/"))?,
            negated: false,
        };
        let is_deep = rest
            .iter()
            .any(|part| part.contains("**") || part.contains('{'));
        let depth = if is_deep { usize::MAX } else { rest.len() };
        Ok(Self {
            folder: folder.join("/"),
            pattern,
            depth,
        })
    }
}

/// The pattern relative to the searched folder; several with commas in between are alternatives.
fn tidy(pattern: &str) -> Result<Cow<'_, str>, ToolError> {
    let tidy = pattern.trim().trim_start_matches("./");
    if tidy.is_empty() {
        return Err(ToolError(
            "the pattern is empty; use for example *.rs or src/**/*.ts".to_owned(),
        ));
    }
    if tidy.starts_with("//") || tidy.split('/').any(|part| part == "..") {
        return Err(ToolError(format!(
            "the pattern {tidy} leads outside the workspace; name the directory in `path` instead"
        )));
    }
    let tidy = tidy.trim_start_matches('/');
    if tidy.contains(',')
        && !tidy.contains(['{', '/'])
        && !tidy.split(',').any(|part| part.trim().is_empty())
    {
        return Ok(format!("{{{}}}", tidy.replace(", ", ",")).into());
    }
    Ok(tidy.into())
}

fn compile(pattern: &str) -> Result<GlobSet, ToolError> {
    // A folder means everything in it.
    let everything = if pattern.ends_with('/') { "**" } else { "" };
    let glob = GlobBuilder::new(&format!("{pattern}{everything}"))
        .literal_separator(true)
        .empty_alternates(true)
        .build();
    let built = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build());
    built.map_err(|error| ToolError(format!("{pattern} is not a valid glob: {}", error.kind())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PathPattern, Search};

    #[test]
    fn a_pattern_without_a_slash_matches_names_at_any_depth() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(
                PathPattern::new(pattern).unwrap().matches(Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        };
        check("*.rs", "main.rs", true);
        check("*.rs", "src/a/main.rs", true);
        check("main.rs", "src/main.rs", true);
        check("*.{ts,tsx}", "a/b.tsx", true);
        check("src/*.rs", "src/main.rs", true);
        check("src/*.rs", "src/a/main.rs", false);
        check("./src/**/*.rs", "src/main.rs", true);
        check("src/**", "src/a/b", true);
        check("src/", "src/a/b", true);
        check("!*.rs", "main.rs", false);
        check("!*.rs", "main.c", true);
        check("[ab].c", "b.c", true);
    }

    #[test]
    fn searches_start_at_the_literal_prefix() {
        let check = |pattern: &str, folder: &str, depth: usize, matches: &str| {
            let search = Search::new(pattern).unwrap();
            assert_eq!(
                (search.folder.as_str(), search.depth),
                (folder, depth),
                "{pattern}"
            );
            assert!(search.pattern.matches(Path::new(matches)), "{pattern}");
        };
        check("*.rs", "", usize::MAX, "a/b.rs");
        check("src/*.rs", "src", 1, "b.rs");
        check("src/tools/**/*.rs", "src/tools", usize::MAX, "b.rs");
        check("a/b/c.txt", "a/b", 1, "c.txt");
        check("a/*/c/*.txt", "a", 3, "b/c/d.txt");
        check("{a/b,c}/d", "", usize::MAX, "a/b/d");
        check("src/", "src", usize::MAX, "a/b.rs");
        check("!src/**", "", usize::MAX, "a/b.rs");
    }

    #[test]
    fn invalid_patterns_are_explained() {
        let check = |pattern: &str, expected: &str| {
            assert_eq!(Search::new(pattern).err().unwrap().0, expected);
        };
        check(
            " ",
            "the pattern is empty; use for example *.rs or src/**/*.ts",
        );
        check(
            "../x",
            "the pattern ../x leads outside the workspace; name the directory in `path` instead",
        );
        check(
            "[a",
            "**/[a is not a valid glob: unclosed character class; missing ']'",
        );
    }
}
