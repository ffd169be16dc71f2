//! Terms that were replaced by the standard ones, wherever people read: sources, editor plugins, documentation.

use std::path::Path;

/// The retired terms that still stand, each with what to write instead.
pub fn retired(file: &str, text: &str, terms: &[(&str, &str)]) -> Vec<String> {
    // Most texts have none of them, and one search of all of it is much cheaper than one for each line.
    let whole = words(text);
    let terms = terms
        .iter()
        .map(|(term, instead)| (term, instead, format!(" {term} ")));
    let terms: Vec<_> = terms
        .filter(|(_, _, word)| whole.contains(word.as_str()))
        .collect();
    if terms.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = words(line);
        let here = terms
            .iter()
            .filter(|(_, _, word)| line.contains(word.as_str()));
        found.extend(
            here.map(|(term, instead, _)| {
                format!("{file}:{}: {term}: write `{instead}`", index + 1)
            }),
        );
    }
    found
}

/// A line as lower-case words with a blank around each; identifiers are split into theirs.
fn words(line: &str) -> String {
    let mut words = " ".to_owned();
    let mut before = ' ';
    for letter in line.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        if letter.is_alphanumeric() {
            words.extend(letter.to_lowercase());
        } else if !words.ends_with(' ') {
            words.push(' ');
        }
        before = letter;
    }
    words + " "
}

/// The texts of the repository that people read, with their names.
pub fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found: Vec<_> = ["src", "editors", "docs", ".github"]
        .iter()
        .flat_map(|folder| {
            let named = move |(file, text)| (format!("{folder}/{file}"), text);
            files(&root.join(folder), &["rs", "ts", "lua", "md"])
                .into_iter()
                .map(named)
        })
        .collect();
    assert!(found.len() > 100, "the texts were not found");
    found
}

/// The files of these kinds in a folder, by their paths in it. What was built or fetched is left out.
pub fn files(folder: &Path, kinds: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(path) = queue.pop() {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if ["node_modules", "out", "dist", "CHANGELOG.md"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            queue.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path
            .extension()
            .is_some_and(|kind| kinds.iter().any(|known| kind == *known))
        {
            let file = path.strip_prefix(folder).unwrap().display().to_string();
            found.push((file, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn a_term_is_found_in_prose_and_in_identifiers() {
    let text = "fn take_back() {}\nlet x = takeBack;\n// Take back!\nretake backs";
    let found = [1, 2, 3].map(|line| format!("a.rs:{line}: take back: write `undo`"));
    assert_eq!(retired("a.rs", text, &[("take back", "undo")]), found);
}
