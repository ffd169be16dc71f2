//! Notebooks: read as cells, changed in the JSON of their file.

use super::*;
use crate::tools::FileDiff;

/// As Jupyter and VS Code write it.
const SUMS: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a1",
   "metadata": {},
   "source": [
    "# Sums\n",
    "\n",
    "of \"numbers\""
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "b2",
   "metadata": {
    "tags": []
   },
   "outputs": [
    {
     "data": {
      "image/png": "iVBORw0KGgo=",
      "text/plain": [
       "<Figure>"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    }
   ],
   "source": [
    "x = 1\n",
    "plot(x)"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c3",
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {
  "kernelspec": {
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;
const CELLS: &str = "# %% [markdown] 1\n# Sums\n\nof \"numbers\"\n# %% [code] 2\nx = 1\nplot(x)\n\
    # %% [output] 2\n<Figure>\n[image/png]\n# %% [code] 3\n";

/// What the model reads, without the explanatory line and the line numbers.
async fn cells(place: &Place) -> String {
    let read = place.answer("read_file", json!({"path": "a.ipynb"})).await;
    let lines = read.lines().map(|line| line.split_once('\t').unwrap().1);
    let (note, cells) = lines.map(|line| format!("{line}\n")).fold(
        (String::new(), String::new()),
        |(note, cells), line| match note.as_str() {
            "" => (line, cells),
            _ => (note, cells + &line),
        },
    );
    assert!(note.starts_with("# A notebook."), "{note}");
    cells
}

async fn edit(place: &Place, old: &str, new: &str) -> String {
    let edits = json!([{"old_text": old, "new_text": new}]);
    place
        .answer("edit_file", json!({"path": "a.ipynb", "edits": edits}))
        .await
}

#[tokio::test]
async fn an_edit_of_a_cell_changes_only_its_source() {
    let place = Place::new(&[("a.ipynb", SUMS)]);
    assert_eq!(cells(&place).await, CELLS);
    let answer = edit(&place, "x = 1\n", "x = 'ä'\ny = \"\\\"\n").await;
    assert_eq!(
        answer,
        "Changed a.ipynb; matched exactly.\n@@ -4,7 +4,8 @@\n \n of \"numbers\"\n # %% [code] 2\n-x = 1\n+x = 'ä'\n+y = \"\\\"\n plot(x)\n # %% [output] 2\n <Figure>\n"
    );
    let expected = SUMS.replace(
        r#""x = 1\n""#,
        "\"x = 'ä'\\n\",\n    \"y = \\\"\\\\\\\"\\n\"",
    );
    assert_eq!(place.on_disk("a.ipynb"), expected);
    edit(&place, "# %% [code] 3\n", "# %% [code] 3\nx + 1\n").await;
    let expected = expected.replace("\"source\": []", "\"source\": [\n    \"x + 1\"\n   ]");
    assert_eq!(place.on_disk("a.ipynb"), expected);
    // The form a command shows.
    edit(&place, r#""x + 1""#, r#""x + 2""#).await;
    assert_eq!(place.on_disk("a.ipynb"), expected.replace("x + 1", "x + 2"));
}

#[tokio::test]
async fn cells_and_outputs_come_go_and_move() {
    let place = Place::new(&[("a.ipynb", SUMS)]);
    let new = "# %% [code] 3\n# %% [code]\nprint(x)\n\n# %% [markdown]\nDone.\n";
    edit(&place, "# %% [code] 3\n", new).await;
    let added = "  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"cell-1\",\n   \
        \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"print(x)\"\n   ]\n  },\n  {\n   \
        \"cell_type\": \"markdown\",\n   \"id\": \"cell-2\",\n   \"metadata\": {},\n   \"source\": [\n    \"Done.\"\n   ]\n  }\n ],\n \"metadata\": {\n  \"k";
    let all = SUMS.replace("  }\n ],\n \"metadata\": {\n  \"k", added);
    assert_eq!(place.on_disk("a.ipynb"), all);
    edit(&place, "# %% [output] 2\n<Figure>\n[image/png]\n", "").await;
    let (before, rest) = all.split_once("\"execution_count\": 3").unwrap();
    let (middle, rest) = rest.split_once("\"outputs\": [").unwrap();
    let (_, rest) = rest.split_once("\n   ],").unwrap();
    let cleared = format!("{before}\"execution_count\": null{middle}\"outputs\": [],{rest}");
    assert_eq!(place.on_disk("a.ipynb"), cleared);
    let removed = "# %% [code] 3\n# %% [code] 4\nprint(x)\n# %% [markdown] 5\nDone.\n";
    edit(&place, removed, "").await;
    let first = "# %% [markdown] 1\n# Sums\n\nof \"numbers\"\n";
    let second = "# %% [code] 2\nx = 1\nplot(x)\n";
    edit(
        &place,
        &format!("{first}{second}"),
        &format!("{second}{first}"),
    )
    .await;
    let now: Value = serde_json::from_str(&place.on_disk("a.ipynb")).unwrap();
    let was: Value = serde_json::from_str(&cleared).unwrap();
    assert_eq!(now["cells"], json!([was["cells"][1], was["cells"][0]]));
}

#[tokio::test]
async fn outputs_of_a_notebook_cannot_be_edited() {
    let place = Place::new(&[("a.ipynb", SUMS)]);
    let check = async |old: &str, new: &str, expected: &str| {
        let answer = edit(&place, old, new).await;
        assert!(answer.contains(expected), "{old:?} {new:?}: {answer}");
        assert_eq!(place.on_disk("a.ipynb"), SUMS);
    };
    check("<Figure>", "<Picture>", "an output can only be removed").await;
    check(
        "# %% [code] 2\nx = 1\nplot(x)\n",
        "",
        "an output can only be removed",
    )
    .await;
    check(
        "# %% [code] 3\n",
        "# %% [code] 4\n",
        "there is no code cell 4",
    )
    .await;
    check(
        "# %% [code] 3\n",
        "# %% [raw] 3\n",
        "there is no raw cell 3",
    )
    .await;
    check(
        "# %% [code] 3\n",
        "# %% [code] 2\n",
        "its marker occurs twice",
    )
    .await;
    check("# %% [markdown] 1\n", "", "does not belong to a cell").await;
    check("plot(x)", "# ... rest of the cell unchanged", "placeholder").await;
}

#[tokio::test]
async fn each_notebook_keeps_its_layout() {
    let check = async |file: &str, old: &str, new: &str, expected: &str| {
        let place = Place::new(&[("a.ipynb", file)]);
        let answer = edit(&place, old, new).await;
        assert_eq!(place.on_disk("a.ipynb"), expected, "{answer}");
    };
    let small = r#"{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":[{"cell_type":"raw","metadata":{},"source":"one\ntwo"}]}"#;
    check(small, "one\n", "1\n", &small.replace("one", "1")).await;
    let more = small.replace(
        "]}",
        r#",{"cell_type":"raw","metadata":{},"source":["3\n","4"]}]}"#,
    );
    check(small, "two", "two\n# %% [raw]\n3\n4", &more).await;
    let windows = SUMS.replace('\n', "\r\n");
    let expected = windows.replace(r#""plot(x)""#, "\"plot(x)\\n\",\r\n    \"y\"");
    check(&windows, "plot(x)", "plot(x)\ny", &expected).await;
    let none = "{\n  \"cells\": [],\n  \"metadata\": {},\n  \"nbformat\": 4,\n  \"nbformat_minor\": 2\n}\n";
    let cell = "[\n    {\n      \"cell_type\": \"markdown\",\n      \"metadata\": {},\n      \"source\": [\n        \"Hi\"\n      ]\n    }\n  ]";
    let place = Place::new(&[("a.ipynb", none)]);
    cells(&place).await;
    let content = "# %% [markdown]\nHi\n";
    let write = json!({"path": "a.ipynb", "content": content});
    place.run("write_file", write.clone()).await.unwrap();
    assert_eq!(place.on_disk("a.ipynb"), none.replace("[]", cell));
    let place = Place::new(&[]);
    place.run("write_file", write).await.unwrap();
    assert_eq!(cells(&place).await, "# %% [markdown] 1\nHi\n");
}

#[tokio::test]
async fn a_search_has_the_lines_that_reading_has() {
    let place = Place::new(&[("a.ipynb", SUMS)]);
    let found = place
        .answer("grep", json!({"pattern": r"plot|iVBOR|\\n"}))
        .await;
    assert!(found.contains("8:plot(x)"), "{found}");
    assert!(
        !found.contains("iVBOR") && !found.contains("\\n"),
        "{found}"
    );
    let read = place
        .answer(
            "read_file",
            json!({"path": "a.ipynb", "offset": 8, "limit": 1}),
        )
        .await;
    assert!(read.starts_with("8\tplot(x)\n"), "{read}");
}

/// A cell that contains a marker would be indistinguishable from two cells.
#[tokio::test]
async fn a_notebook_whose_text_would_be_ambiguous_is_json() {
    let file = SUMS.replace("plot(x)", "# %% [code] 9");
    let place = Place::new(&[("a.ipynb", &file)]);
    let read = place.answer("read_file", json!({"path": "a.ipynb"})).await;
    assert!(read.starts_with("1\t{\n"), "{read}");
    edit(&place, r#""x = 1\n""#, r#""x = 2\n""#).await;
    assert_eq!(place.on_disk("a.ipynb"), file.replace("x = 1", "x = 2"));
}

#[test]
fn a_change_is_shown_as_cells_unless_they_do_not_tell_it_all() {
    let shown = |old: &str, new: &str| {
        FileDiff::new("/w/a.ipynb".into(), Some(old.into()), new.into()).unified()
    };
    let emptied = SUMS.replace("[\n    \"x = 1\\n\",\n    \"plot(x)\"\n   ]", "[]");
    let diff = shown(SUMS, &emptied);
    assert!(diff.contains("-x = 1\n-plot(x)\n"), "{diff}");
    let one = SUMS.replace("x = 1", "x = 2");
    assert!(shown(SUMS, &one).contains("-x = 1\n+x = 2\n"));
    for (hidden, other) in [
        ("iVBORw0KGgo=", "iVBORw0KGgp="),
        ("\"tags\": []", "\"tags\": [\"x\"]"),
        ("python3", "sh"),
    ] {
        let diff = shown(SUMS, &one.replace(hidden, other));
        assert!(diff.contains("+    \"x = 2\\n\",\n"), "{diff}");
        assert!(diff.contains(other), "{diff}");
    }
}

#[test]
fn characters_that_a_cell_hides_are_reported() {
    let escaped = SUMS.replace("x = 1", r"x = 1\u202e");
    let diff = FileDiff::new("/w/a.ipynb".into(), Some(SUMS.into()), escaped.into());
    let preview = Preview {
        diffs: vec![diff],
        ..Preview::default()
    };
    assert!(preview.description().concat().contains("invisible"));
}
