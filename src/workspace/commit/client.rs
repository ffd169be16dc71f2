//! One write of a file through a client that counts no versions (ACP), from request to verified result.
//!
//! The client's answer is not trusted: the file on the disk decides. What the client did not write, or cut, tandem writes
//! itself. What somebody else saved meanwhile stays, unless it looks like a beginning of the new text.

use std::collections::HashMap;

use super::placeholder::words;
use super::{Attempt, Now, Place};
use crate::text::has_lines_of;
use crate::workspace::disk::{self, Content};
use crate::workspace::{EditorError, FileError, Workspace, WorkspacePath, editor};

/// Has the client write the `new` content of a file, which has the `old` one on the disk unless it is open; `None` if the
/// client cannot write files. A merge has to be as it was requested, to the byte.
pub(super) async fn write(
    workspace: &Workspace,
    path: &WorkspacePath,
    now: &Now,
    (old, new): (Option<&Content>, &Content),
    is_merge: bool,
) -> Result<Option<Attempt>, FileError> {
    let before = match now.place {
        Place::Editor(_) => on_disk(path).await?,
        _ => old.cloned(),
    };
    let name = path.absolute();
    let asked = workspace.0.editor.write(&name, &new.text);
    let answer = match editor::in_time(asked).await {
        Some(Some(answer)) => answer,
        Some(None) => return Ok(None),
        None => return Err(FileError::Editor(path.display(), editor::silent())),
    };
    let refused = |error: EditorError| FileError::Editor(path.display(), error.to_string());
    let again = |reason: &str| Ok(Some(Attempt::Again(reason.to_owned())));
    let done = Ok(Some(Attempt::Done(None)));
    let left = on_disk(path).await;
    let is_left = |text: Option<&Content>| {
        let left = left.as_ref().map(Option::as_ref);
        left.is_ok_and(|left| left.map(|left| &left.text) == text.map(|text| &text.text))
    };
    if is_left(before.as_ref()) && !is_left(Some(new)) {
        let is_unsaved = before.as_ref().is_some_and(|old| old.text != now.text);
        // Somebody may have saved this, which would be why the editor refused.
        if !is_merge || is_unsaved {
            answer.map_err(refused)?;
        }
        let is_done = match Now::look(workspace, path).await {
            // It may have the new text in a buffer, and save it later.
            Ok(later) if later.text != now.text => matches!(later.place, Place::Editor(_)),
            _ => !is_unsaved && disk::replace(path, before, new.clone()).await?,
        };
        if is_done {
            return done;
        }
        return again("the editor did not write it, or another program changed it");
    }
    let failure = match disk::complete(path, new.clone(), !is_merge).await {
        Ok(true) => return done,
        Ok(false) if is_merge => return again("the editor saved a different text"),
        Ok(false) => answer.map_err(refused).map(|()| None)?,
        Err(error) if is_merge => return Err(error),
        // The disk may be full; what is left is recorded, to be undone.
        Err(error) => Some(error),
    };
    let Some(left) = left? else {
        return again("the editor removed it");
    };
    let [old, new, found] = [&now.text, &new.text, &left.text].map(Clone::clone);
    let lacks_edit = move || is_without_edit(&found, &old, &new);
    if failure.is_none() && disk::blocking(lacks_edit).await {
        return again("another program saved a different text");
    }
    Ok(Some(Attempt::Left(left, failure)))
}

/// Whether `found` has all lines of an `old` text and nothing of the edit that makes it `new`. A formatter may move,
/// split and join lines, change their punctuation and remove what is unused; in doubt, this is its work.
fn is_without_edit(found: &str, old: &str, new: &str) -> bool {
    if !has_lines_of(found, old) {
        return false;
    }
    let [left, before, after] = [found, old, new].map(|text| {
        let mut counts = HashMap::new();
        for word in words(text) {
            *counts.entry(word).or_insert(0) += 1;
        }
        counts
    });
    let count = |words: &HashMap<String, i32>, word: &String| words.get(word).copied().unwrap_or(0);
    let is_added = |word: &&String| count(&after, word) > count(&before, word);
    let added: Vec<_> = after.keys().filter(is_added).collect();
    let size = |words: &HashMap<String, i32>| words.values().sum::<i32>();
    // Somebody else may use a common word, too.
    match added.iter().map(|word| count(&before, word)).min() {
        Some(rarest) => added
            .iter()
            .all(|word| count(&before, word) > rarest || count(&left, word) <= rarest),
        // It removes words, or changes only punctuation: a formatter adds no words to that, unless to the whole of it.
        None => !has_lines_of(new, old) || !has_lines_of(found, new) && size(&left) > size(&before),
    }
}

/// What is on the disk; `None`: nothing.
async fn on_disk(path: &WorkspacePath) -> Result<Option<Content>, FileError> {
    let content = |(text, stored): (String, _)| Content {
        text: text.into(),
        stored,
    };
    Ok(disk::existing_text(path).await?.map(content))
}
