//! The headers of the messages of GPT-OSS and Muse Glimmer: who speaks, in which channel. Pure.

use crate::text::marks;

/// What ends a message of GPT-OSS.
pub(super) const MESSAGE_END: &str = "<|end|>";

/// Ends each message of Muse Glimmer except the last.
const EOM: &str = "<|eom|>";

/// The same, and what begins the next one where all tokens are gone.
pub(super) const MESSAGE_ENDS: &[&str] = &[
    MESSAGE_END,
    EOM,
    "assistantfinal",
    "assistantcommentary",
    "assistantanalysis",
];

/// The header of a message of GPT-OSS. With a recipient it is part of a call, and none.
#[derive(Debug, PartialEq)]
pub(super) enum Header<'a> {
    None,
    /// The text may become one.
    Begun,
    Whole {
        is_thought: bool,
        rest: &'a str,
    },
}

/// The header that a text begins with: ends of the message before, the sender, the channel and the kind of content, each
/// of which may be missing, and so may the tokens between them.
pub(super) fn header(text: &str) -> Header<'_> {
    const BODY: &str = "<|message|>";
    const KIND: &str = "<|constrain|>";
    const START: &str = "<|start|>";
    const CHANNEL: &str = "<|channel|>";
    const TOKENS: [&str; 7] = [START, CHANNEL, MESSAGE_END, EOM, "<|return|>", KIND, BODY];
    // The messages of others are the model's invention. Muse Glimmer names a recipient where GPT-OSS names a channel.
    const ANSWERS: [&str; 5] = ["assistant", "model", "commentary", "final", "to=user"];
    const CHANNELS: [&str; 5] = ["analysis", "commentary", "final", "to=self", "to=user"];
    let (mut rest, mut last, mut said) = (text, "", Vec::new());
    let mut is_marked = false;
    loop {
        let is_thought = said.last().is_some_and(|word| !ANSWERS.contains(word));
        let body = if is_marked { rest.trim_start() } else { rest };
        let is_glued = said.len() > 1 && rest.starts_with(char::is_alphabetic);
        if CHANNELS.contains(&last) && (is_glued || body.starts_with(char::is_uppercase)) {
            let rest = body;
            return Header::Whole { is_thought, rest };
        }
        rest = rest.trim_start_matches(' ');
        if last == BODY && said.last() == Some(&"commentary") {
            // An object is a call whose recipient is missing.
            match body.trim_start().chars().next() {
                None => return Header::Begun,
                Some('{') => return Header::None,
                Some(_) => {}
            }
        }
        if last == BODY {
            return Header::Whole { is_thought, rest };
        }
        let senders = marks::SENDERS.iter().take(if last == START {
            marks::SENDERS.len()
        } else {
            1
        });
        let parts = TOKENS.iter().chain(&CHANNELS).chain(senders);
        let found = parts
            .clone()
            .find_map(|part| Some((*part, marks::after(rest, part)?)));
        match found {
            Some((part, _)) if part == BODY && last.is_empty() => return Header::None,
            Some((part, after)) => {
                if !TOKENS.contains(&part) {
                    said.push(part);
                }
                if part == START {
                    said.clear();
                }
                is_marked |= part == CHANNEL;
                (last, rest) = (part, after);
            }
            None if last == KIND => {
                // Any word may be the kind.
                rest = rest.trim_start_matches(char::is_alphanumeric);
                last = CHANNEL;
            }
            None => {
                let may_go_on = parts.clone().any(|part| marks::may_become(rest, part));
                let ended = marks::after(text, MESSAGE_END)
                    .filter(|next| marks::after(next, START).is_some());
                return match ended {
                    _ if may_go_on && !text.is_empty() => Header::Begun,
                    // What follows is a call; the end belongs to the message before.
                    Some(rest) => Header::Whole {
                        is_thought: false,
                        rest,
                    },
                    None => Header::None,
                };
            }
        }
    }
}
