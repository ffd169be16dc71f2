//! Cutting the middle out of a text that is too long.

/// About the first `head` and the last `tail` bytes of a longer text, and how many bytes are between them.
pub fn without_middle(text: &str, head: usize, tail: usize) -> Option<(&str, usize, &str)> {
    if text.len() <= head + tail {
        return None;
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(head));
    let (middle, tail) = rest.split_at(rest.ceil_char_boundary(rest.len() - tail));
    Some((head, middle.len(), tail))
}

#[cfg(test)]
mod tests {
    use super::without_middle;

    #[test]
    fn cutting_the_middle_keeps_both_ends_and_whole_characters() {
        assert_eq!(without_middle("éé12éé", 5, 5), None);
        assert_eq!(without_middle("éé12éé", 3, 3), Some(("é", 6, "é")));
        assert_eq!(without_middle("abc", 0, 1), Some(("", 2, "c")));
    }
}
