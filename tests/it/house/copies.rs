//! Code that exists in two places.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;

use super::source::Source;

/// This many equal tokens in a row count as a copy. jscpd, the usual detector, uses the same number.
const WINDOW: usize = 50;

/// The tokens of a file: a number for each word, and its line.
#[derive(Default)]
struct Tokens {
    words: Vec<u32>,
    lines: Vec<usize>,
}

impl Tokens {
    fn push(&mut self, word: u32, line: usize) {
        self.words.push(word);
        self.lines.push(line);
    }
}

/// The pairs of places, `file:line`, that begin with the same tokens; each copy is named once.
pub fn copies(sources: &[Source]) -> Vec<(String, String)> {
    let mut words = HashMap::new();
    let read = |source: &Source| tokens(source, &mut words);
    let files: Vec<Tokens> = sources.iter().map(read).collect();
    let place =
        |(file, at): (usize, usize)| format!("{}:{}", sources[file].file, files[file].lines[at]);
    let mut first: HashMap<&[u32], (usize, usize)> = HashMap::new();
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for (file, tokens) in files.iter().enumerate() {
        for (at, window) in tokens.words.windows(WINDOW).enumerate() {
            let (other, there) = *first.entry(window).or_insert((file, at));
            // A window that overlaps itself is a table; one that extends an earlier copy belongs to that copy.
            if other == file && at < there + WINDOW {
                continue;
            }
            seen.insert((other, there, file, at));
            let goes_on = at > 0 && there > 0 && seen.contains(&(other, there - 1, file, at - 1));
            if !goes_on {
                found.push((place((other, there)), place((file, at))));
            }
        }
    }
    found
}

type Words = HashMap<String, u32>;

/// The tokens of a file's items without its imports.
fn tokens(source: &Source, words: &mut Words) -> Tokens {
    let mut found = Tokens::default();
    for item in &source.tree.items {
        if !matches!(item, syn::Item::Use(_) | syn::Item::Mod(_)) {
            flatten(item.to_token_stream(), words, &mut found);
        }
    }
    found
}

fn flatten(stream: TokenStream, words: &mut Words, found: &mut Tokens) {
    let mut after_hash = false;
    for token in stream {
        let span = token.span();
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => after_hash = true,
            // Attributes, including documentation, are not code.
            TokenTree::Group(_) if after_hash => after_hash = false,
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                };
                found.push(number(open, words), span.start().line);
                flatten(group.stream(), words, found);
                found.push(number(close, words), span.end().line);
            }
            other => found.push(number(&other.to_string(), words), span.start().line),
        }
    }
}

fn number(word: &str, words: &mut Words) -> u32 {
    let next = u32::try_from(words.len()).expect("there are fewer words than that");
    *words.entry(word.to_owned()).or_insert(next)
}
