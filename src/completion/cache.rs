//! The last suggestions, so that typing what was suggested, or going back to a place, costs no request.

use std::collections::VecDeque;

use crate::workspace::Excerpt;

/// How many suggestions are kept.
const SIZE: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Cache(VecDeque<Suggested>);

#[derive(Debug)]
struct Suggested {
    uri: String,
    /// The text around the place when the model was asked.
    excerpt: Excerpt,
    /// Empty if the model had nothing to say.
    text: String,
}

impl Cache {
    pub fn put(&mut self, uri: &str, excerpt: Excerpt, text: String) {
        self.0.truncate(SIZE - 1);
        self.0.push_front(Suggested {
            uri: uri.to_owned(),
            excerpt,
            text,
        });
    }

    /// What is left of a suggestion for this place; empty if the model had nothing to say.
    pub fn get(&self, uri: &str, now: &Excerpt) -> Option<String> {
        self.0
            .iter()
            .filter(|suggested| suggested.uri == uri)
            .find_map(|suggested| suggested.rest(now))
    }
}

impl Suggested {
    /// The part of the suggestion that was not typed yet, if nothing else has changed around it.
    fn rest(&self, now: &Excerpt) -> Option<String> {
        let Self {
            excerpt: then,
            text,
            ..
        } = self;
        let (typed, rest) = text.split_at_checked(now.offset.checked_sub(then.offset)?)?;
        // A suggestion that was typed to its end says nothing about what follows.
        let is_typed_out = rest.is_empty() && !typed.is_empty();
        let before = now.before.strip_suffix(typed)?;
        // The two may begin at different places.
        let same_before = before.ends_with(&then.before) || then.before.ends_with(before);
        (same_before && now.after == then.after && !is_typed_out).then(|| rest.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bar marks the place.
    fn excerpt(marked: &str) -> Excerpt {
        let (before, after) = marked.split_once('|').unwrap();
        let (before, after) = (before.to_owned(), after.to_owned());
        Excerpt {
            path: None,
            language: String::new(),
            offset: before.len(),
            before,
            after,
        }
    }

    #[test]
    fn typing_along_a_suggestion_hits_the_cache() {
        let mut cache = Cache::default();
        cache.put("a", excerpt("let x|\n"), " = 1;".to_owned());
        let check = |uri: &str, marked: &str, expected: Option<&str>| {
            assert_eq!(
                cache.get(uri, &excerpt(marked)).as_deref(),
                expected,
                "{marked}"
            );
        };
        check("a", "let x|\n", Some(" = 1;"));
        check("a", "let x = |\n", Some("1;"));
        check("a", "let x = 1;|\n", None);
        check("a", "let x = 2|\n", None);
        check("a", "let y = |\n", None);
        check("a", "let |\n", None);
        check("a", "let x|\nmore", None);
        check("b", "let x|\n", None);
    }

    #[test]
    fn empty_suggestions_are_cached_and_old_entries_evicted() {
        let mut cache = Cache::default();
        cache.put("a", excerpt("x|"), String::new());
        assert_eq!(cache.get("a", &excerpt("x|")).as_deref(), Some(""));
        assert_eq!(cache.get("a", &excerpt("xy|")), None);
        for number in 0..SIZE {
            cache.put("b", excerpt(&format!("{number}|")), String::new());
        }
        assert_eq!(
            (cache.get("a", &excerpt("x|")), cache.0.len()),
            (None, SIZE)
        );
    }
}
