//! `_tandem/language`: questions to the editor's language servers, and what LSP's result types say in ours.
//!
//! Results are read leniently: each has a place somewhere, whatever type it is of.

use serde_json::Value;

use crate::protocol::ext;
use crate::text::Range;
use crate::workspace::language::{Answer, DocumentEdits, Operation, Place, Question};

/// The operations a client says it answers. What we do not know is not asked.
pub(in crate::server) fn operations(capability: &Value) -> Vec<Operation> {
    let names = capability.as_array().into_iter().flatten();
    names
        .filter_map(|name| serde_json::from_value(name.clone()).ok())
        .collect()
}

pub(in crate::server) fn params(question: Question) -> ext::LanguageParams {
    let Question {
        operation,
        uri,
        position,
        query,
        preferred,
        new_name,
    } = question;
    ext::LanguageParams {
        op: operation,
        uri,
        position,
        query,
        preferred,
        new_name,
    }
}

/// The meaning of a result; an error is worded for the model.
pub(in crate::server) fn answer(
    operation: Operation,
    uri: Option<&str>,
    result: &Value,
) -> Result<Answer, String> {
    match operation {
        Operation::Hover => Ok(Answer::Words(words(&result["contents"]))),
        operation if operation.edits() => edits(result).map(Answer::Edits),
        _ => {
            let mut found = Vec::new();
            let items = result
                .as_array()
                .map_or(std::slice::from_ref(result), Vec::as_slice);
            for item in items {
                places(item, uri, 0, &mut found);
            }
            Ok(Answer::Places(found))
        }
    }
}

/// The places of a `Location`, `LocationLink`, `SymbolInformation`, `WorkspaceSymbol`, `DocumentSymbol` (and what is inside
/// of it) or of a call. `uri` is the document of the request.
fn places(item: &Value, uri: Option<&str>, depth: usize, found: &mut Vec<Place>) {
    let mut add = |at: &Value, ranges: &[&Value], name: &Value| {
        let uri = at["uri"]
            .as_str()
            .or_else(|| at["targetUri"].as_str())
            .or(uri)
            .map(str::to_owned);
        let ranges = ranges.iter().filter_map(|range| read_range(range));
        let name = name.as_str().map(str::to_owned);
        if let Some(uri) = uri {
            found.extend(ranges.map(|range| Place {
                uri: uri.clone(),
                range,
                name: name.clone(),
                depth,
            }));
        }
    };
    let from = item["fromRanges"]
        .as_array()
        .filter(|_| item["from"].is_object());
    if let Some(calls) = from {
        return add(
            &item["from"],
            &calls.iter().collect::<Vec<_>>(),
            &item["from"]["name"],
        );
    }
    let at = ["to", "location"]
        .iter()
        .map(|key| &item[*key])
        .find(|at| at.is_object())
        .unwrap_or(item);
    if at.is_object() {
        let ranges = ["targetSelectionRange", "range", "selectionRange"].map(|key| &at[key]);
        let own = ranges
            .into_iter()
            .find(|range| range.is_object())
            .unwrap_or(&Value::Null);
        add(at, &[own], &item["name"]);
    }
    for child in item["children"].as_array().into_iter().flatten() {
        places(child, uri, depth + 1, found);
    }
}

/// A range; the beginning of the document where there is none.
fn read_range(value: &Value) -> Option<Range> {
    if value.is_null() {
        return Some(Range::default());
    }
    serde_json::from_value(value.clone()).ok()
}

/// What `MarkupContent`, a `MarkedString` or a list of them say.
fn words(contents: &Value) -> String {
    match contents {
        Value::String(words) => words.clone(),
        Value::Array(parts) => parts.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => other["value"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The text edits of a `WorkspaceEdit`, each document once.
fn edits(result: &Value) -> Result<Vec<DocumentEdits>, String> {
    let mut documents: Vec<DocumentEdits> = Vec::new();
    let by_uri = result["changes"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(uri, edits)| (Some(uri.as_str()), edits));
    let in_order = result["documentChanges"].as_array().into_iter().flatten();
    let in_order =
        in_order.map(|change| (change["textDocument"]["uri"].as_str(), &change["edits"]));
    // A client that sends both means the same by them.
    let changes: Vec<_> = if result["documentChanges"].is_array() {
        in_order.collect()
    } else {
        by_uri.collect()
    };
    for (uri, edits) in changes {
        let uri =
            uri.ok_or("the edit creates, moves or deletes files, which tandem doesn't allow language servers to do")?;
        let edits = edits
            .as_array()
            .into_iter()
            .flatten()
            .map(edit)
            .collect::<Result<Vec<_>, _>>()?;
        match documents.iter_mut().find(|document| document.uri == uri) {
            Some(document) => document.edits.extend(edits),
            None => documents.push(DocumentEdits {
                uri: uri.to_owned(),
                edits,
            }),
        }
    }
    Ok(documents)
}

fn edit(value: &Value) -> Result<(Range, String), String> {
    let range = serde_json::from_value(value["range"].clone());
    match (range, value["newText"].as_str()) {
        (Ok(range), Some(text)) => Ok((range, text.to_owned())),
        _ => Err("the language server returned an unsupported kind of edit".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(line: u32) -> Value {
        json!({ "start": { "line": line, "character": 1 }, "end": { "line": line, "character": 2 } })
    }

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case writes its JSON in place"
    )]
    fn check(result: Value, expected: &[(&str, u32, Option<&str>, usize)]) {
        let answer = answer(Operation::References, Some("file:///asked"), &result);
        let Ok(Answer::Places(places)) = answer else {
            panic!("{answer:?}")
        };
        let found: Vec<_> = places
            .iter()
            .map(|place| {
                (
                    place.uri.as_str(),
                    place.range.start.line,
                    place.name.as_deref(),
                    place.depth,
                )
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn all_lsp_result_types_become_locations() {
        check(Value::Null, &[]);
        check(json!([]), &[]);
        check(
            json!({ "uri": "file:///a", "range": at(1) }),
            &[("file:///a", 1, None, 0)],
        );
        let link = json!({ "targetUri": "file:///a", "targetRange": at(1), "targetSelectionRange": at(2) });
        check(json!([link]), &[("file:///a", 2, None, 0)]);
        let location = json!({ "uri": "file:///a", "range": at(3) });
        let information = json!({ "name": "f", "kind": 12, "location": location });
        check(json!([information]), &[("file:///a", 3, Some("f"), 0)]);
        let inside = json!({ "name": "g", "kind": 6, "range": at(5), "selectionRange": at(5) });
        let symbol = json!({ "name": "f", "kind": 5, "range": at(4), "selectionRange": at(4), "children": [inside] });
        check(
            json!([symbol]),
            &[
                ("file:///asked", 4, Some("f"), 0),
                ("file:///asked", 5, Some("g"), 1),
            ],
        );
        let item = json!({ "name": "f", "kind": 12, "uri": "file:///a", "range": at(6), "selectionRange": at(6) });
        check(
            json!([{ "from": item, "fromRanges": [at(7), at(8)] }]),
            &[
                ("file:///a", 7, Some("f"), 0),
                ("file:///a", 8, Some("f"), 0),
            ],
        );
        check(
            json!([{ "to": item, "fromRanges": [at(9)] }]),
            &[("file:///a", 6, None, 0)],
        );
        check(
            json!([{ "name": "f", "kind": 12, "location": { "uri": "file:///a" } }]),
            &[("file:///a", 0, Some("f"), 0)],
        );
    }

    #[test]
    fn workspace_edits_are_grouped_by_document() {
        let one = json!({ "range": at(1), "newText": "x" });
        let two = json!({ "range": at(2), "newText": "y" });
        let document = |edits: Value| json!({ "textDocument": { "uri": "file:///a", "version": 1 }, "edits": edits });
        let read =
            edits(&json!({ "documentChanges": [document(json!([one])), document(json!([two]))] }))
                .unwrap();
        assert_eq!((read.len(), read[0].edits.len()), (1, 2));
        assert_eq!(
            edits(&json!({ "changes": { "file:///a": [one] } })).unwrap()[0].edits[0].1,
            "x"
        );
        assert_eq!(edits(&Value::Null).unwrap(), []);
        edits(&json!({ "documentChanges": [{ "kind": "delete", "uri": "file:///a" }] }))
            .unwrap_err();
        edits(&json!({ "changes": { "file:///a": [{ "range": at(1), "snippet": { "value": "x" } }] } })).unwrap_err();
    }

    #[test]
    fn hover_content_becomes_text() {
        for contents in [
            json!("a"),
            json!({ "kind": "markdown", "value": "a" }),
            json!({ "language": "rust", "value": "a" }),
        ] {
            let answer = answer(Operation::Hover, None, &json!({ "contents": contents })).unwrap();
            assert_eq!(answer, Answer::Words("a".to_owned()));
        }
        assert_eq!(words(&json!(["a", { "value": "b" }])), "a\nb");
    }

    #[test]
    fn only_known_operations_are_requested() {
        assert_eq!(operations(&json!(["hover", "dance"])), [Operation::Hover]);
        assert_eq!(operations(&json!(true)), []);
    }
}
