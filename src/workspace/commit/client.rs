//! One write of a file through a client that counts no versions (ACP), from request to verified result.
//!
//! The client's answer is not trusted: the file on the disk decides. What the client did not write, or cut, tandem writes
//! itself; text that somebody else saved is never overwritten.

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
        return again("the editor did not write it, or another program did");
    }
    match disk::complete(path, new.clone(), !is_merge).await {
        Ok(true) => return done,
        Ok(false) if is_merge => return again("the editor saved a different text"),
        Ok(false) => answer.map_err(refused)?,
        Err(error) if is_merge => return Err(error),
        // The disk may be full; what is left is recorded, to be undone.
        Err(_) => {}
    }
    let Some(left) = left? else {
        return again("the editor removed it");
    };
    let [old, new, found] = [&now.text, &new.text, &left.text].map(Clone::clone);
    // Then the edit, which removes some of the old lines, was not made.
    let has_old = move || has_lines_of(&found, &old) && !has_lines_of(&new, &old);
    if disk::blocking(has_old).await {
        return again("another program saved a different text");
    }
    Ok(Some(Attempt::Left(left)))
}

/// What is on the disk; `None`: nothing.
async fn on_disk(path: &WorkspacePath) -> Result<Option<Content>, FileError> {
    match disk::text(path).await {
        Ok((text, stored)) => Ok(Some(Content {
            text: text.into(),
            stored,
        })),
        Err(FileError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
