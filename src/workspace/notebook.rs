//! A Jupyter notebook as a model reads and edits it: the sources of its cells below marker lines, not the JSON of its
//! file. Pure.
//!
//! A changed text is split into cells again, and only what differs is written into the JSON: all other bytes stay. A
//! notebook that cannot be told from its text, such as one with a marker inside a cell, is read and edited as JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize as _};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::content::LineEnding;
use super::edit::{self, Change, MatchError, Outcome};
use crate::text::{self, Hunk, hunks, patched, without_middle};

const NOTE: &str = "# A notebook. `# %% [code] 1` begins cell 1; without a number, it begins a new cell. Outputs are shortened; \
    they can be removed but not changed.\n";
const OUTPUT: &str = "output";
const KINDS: [&str; 4] = ["code", "markdown", "raw", OUTPUT];
/// A new notebook starts as this.
const EMPTY: &str =
    "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
/// How much of an output is shown at either end, in bytes.
const SHOWN_OUTPUT: usize = 1000;

/// The file. Raw values borrow from its text.
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    nbformat: u32,
    #[serde(default)]
    nbformat_minor: u32,
}

#[derive(Deserialize)]
struct Cell<'a> {
    #[serde(rename = "cell_type")]
    kind: String,
    #[serde(borrow)]
    source: &'a RawValue,
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    #[serde(borrow)]
    execution_count: Option<&'a RawValue>,
}

type Fields = BTreeMap<String, Value>;
/// The fields of a cell that may differ.
const SHOWN_FIELDS: [&str; 3] = ["source", "id", "execution_count"];

/// The file, to be compared.
#[derive(Deserialize)]
struct Whole {
    cells: Vec<Fields>,
    #[serde(flatten)]
    rest: Fields,
}

/// A text in the file: a string, or its lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

/// A cell or its output, in the order of the text.
#[derive(PartialEq)]
struct Part {
    kind: String,
    /// The number of the cell in the file; `None` for a new one.
    number: Option<usize>,
    /// Without line breaks at its end.
    text: String,
}

/// `text`, as the model reads the file at `path`.
pub(crate) fn as_read<'a>(path: &Path, text: &'a str) -> Cow<'a, str> {
    let shown = is_notebook(path).then(|| shown(text)).flatten();
    shown.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Both texts of a change, as the model reads the file at `path` if that shows all that changes.
pub(crate) fn change_as_read<'a>(
    path: &Path,
    old: Option<&'a str>,
    new: &'a str,
) -> (Option<Cow<'a, str>>, Cow<'a, str>) {
    let before = old.unwrap_or(EMPTY);
    let both = is_notebook(path).then(|| shown(before).zip(shown(new)));
    match both.flatten() {
        Some((was, is)) if was != is && only_shown_differs(before, new) => {
            (old.map(|_| was.into()), is.into())
        }
        _ => (old.map(Cow::Borrowed), new.into()),
    }
}

/// Whether all that differs is in the text of [`shown`]: cells that come, go, move or get another source, and outputs
/// that go. Other outputs, attachments and metadata are not.
fn only_shown_differs(old: &str, new: &str) -> bool {
    let parse = |text| serde_json::from_str::<Whole>(text).ok();
    let Some((old, new)) = parse(old).zip(parse(new)) else {
        return false;
    };
    let mut known = HashSet::new();
    for mut cell in old.cells {
        cell.retain(|field, _| !SHOWN_FIELDS.contains(&field.as_str()));
        known.insert(cell.clone());
        cell.entry("outputs".to_owned())
            .and_modify(|outputs| *outputs = json!([]));
        known.insert(cell);
    }
    let is_shown = |mut cell: Fields| {
        cell.retain(|field, _| !SHOWN_FIELDS.contains(&field.as_str()));
        let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
        let is_new = |(field, value): (&String, &Value)| field == "cell_type" || is_empty(value);
        cell.iter().all(is_new) || known.contains(&cell)
    };
    old.rest == new.rest && new.cells.into_iter().all(is_shown)
}

/// The text of the file at `path`, laid out as `now`: editors write a whole notebook with fields in their own order, even
/// if one cell has changed. Unchanged if `now` could not be written this way either.
pub(crate) fn laid_out_as<'a>(path: &Path, text: &'a str, now: &str) -> Cow<'a, str> {
    let laid_out = is_notebook(path).then(|| {
        let layout: Value = serde_json::from_str(now).ok()?;
        let second = now.lines().nth(1)?;
        let step = second.strip_suffix(second.trim_start())?;
        let end = now.strip_prefix(now.trim_end())?;
        if pretty(&layout, step) + end != now {
            return None;
        }
        let mut orders = Vec::new();
        note_orders(&layout, &mut orders);
        let ordered = in_order(serde_json::from_str(text).ok()?, &orders);
        Some(pretty(&ordered, step) + end)
    });
    laid_out.flatten().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Collects the objects of a JSON value; each shows an order of fields.
fn note_orders<'a>(value: &'a Value, orders: &mut Vec<&'a text::Fields>) {
    match value {
        Value::Object(fields) => {
            if !orders.iter().any(|known| known.keys().eq(fields.keys())) {
                orders.push(fields);
            }
            fields.values().for_each(|field| note_orders(field, orders));
        }
        Value::Array(values) => values.iter().for_each(|value| note_orders(value, orders)),
        _ => {}
    }
}

/// Each object with its fields in the order of the first one that has them all.
fn in_order(value: Value, orders: &[&text::Fields]) -> Value {
    match value {
        Value::Object(mut fields) => {
            let has_all = |order: &&&text::Fields| fields.keys().all(|key| order.contains_key(key));
            let order = orders.iter().find(has_all).copied().unwrap_or(&fields);
            let keys: Vec<String> = order.keys().cloned().collect();
            let fields = keys.iter().filter_map(|key| fields.remove_entry(key));
            let ordered = fields.map(|(key, field)| (key, in_order(field, orders)));
            Value::Object(ordered.collect())
        }
        Value::Array(values) => {
            let values = values.into_iter().map(|value| in_order(value, orders));
            Value::Array(values.collect())
        }
        value => value,
    }
}

fn pretty(value: &Value, step: &str) -> String {
    let mut json = Vec::new();
    let formatter = PrettyFormatter::with_indent(step.as_bytes());
    let mut serializer = Serializer::with_formatter(&mut json, formatter);
    value.serialize(&mut serializer).expect("a value is JSON");
    String::from_utf8(json).expect("JSON is text")
}

pub(crate) fn is_notebook(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// [`edit::apply`] for the file at `path`: a notebook is changed as the model reads it.
pub(super) fn apply(path: &Path, text: &str, change: &Change) -> Result<Outcome, MatchError> {
    let is_by_a_model = match change {
        Change::Edits(_) | Change::Sent { .. } | Change::Patch(_) => true,
        Change::Write(content) => {
            let (head, parts) = split(content);
            is_head(&head) && !parts.is_empty()
        }
        _ => false,
    };
    let is_new = text.is_empty() && matches!(change, Change::Write(_));
    let file = if is_new { EMPTY } else { text };
    let shown = (is_by_a_model && is_notebook(path)).then(|| shown(file));
    let Some(shown) = shown.flatten() else {
        return edit::apply(text, change);
    };
    let outcome = match edit::apply(&shown, change) {
        Ok(outcome) => outcome,
        // It may have read the JSON by a command.
        Err(error) => return edit::apply(text, change).map_err(|_| error),
    };
    let new_text = written(file, &outcome.new_text)?;
    Ok(Outcome {
        places: hunks(text, &new_text),
        new_text: new_text.into(),
        strategy: outcome.strategy,
    })
}

fn shown(text: &str) -> Option<String> {
    let (_, cells) = read(text)?;
    let parts = parts(&cells)?;
    let mut shown = NOTE.to_owned();
    for Part { kind, number, text } in &parts {
        let number = number.unwrap_or_default();
        writeln!(shown, "# %% [{kind}] {number}").expect("writing to a string cannot fail");
        shown.push_str(text);
        if !text.is_empty() {
            shown.push('\n');
        }
    }
    (split(&shown).1 == parts).then_some(shown)
}

fn read(text: &str) -> Option<(Notebook<'_>, Vec<&RawValue>)> {
    let notebook: Notebook<'_> = serde_json::from_str(text).ok()?;
    let cells = serde_json::from_str(notebook.cells.get()).ok()?;
    (notebook.nbformat >= 4).then_some((notebook, cells))
}

fn parts(cells: &[&RawValue]) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    for (number, raw) in (1..).zip(cells) {
        let cell: Cell<'_> = serde_json::from_str(raw.get()).ok()?;
        let part = |kind: &str, text: &str| Part {
            kind: kind.to_owned(),
            number: Some(number),
            text: text.trim_end_matches(['\n', '\r']).to_owned(),
        };
        let source: Text = serde_json::from_str(cell.source.get()).ok()?;
        parts.push(part(&cell.kind, &source.joined()));
        let outputs: Vec<Value> = match cell.outputs {
            Some(outputs) => serde_json::from_str(outputs.get()).ok()?,
            None => Vec::new(),
        };
        if !outputs.is_empty() {
            let text: String = outputs.iter().map(shown_output).collect();
            parts.push(part(OUTPUT, &shortened(&text)));
        }
    }
    Some(parts)
}

/// An output as lines: its text, its error, or the types of other data.
fn shown_output(output: &Value) -> String {
    let text = |value: &Value| Text::deserialize(value).map_or(String::new(), Text::joined);
    let mut shown = match output["output_type"].as_str() {
        Some("stream") => text(&output["text"]),
        Some("error") => format!("{}: {}", text(&output["ename"]), text(&output["evalue"])),
        _ => text(&output["data"]["text/plain"]),
    };
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    for kind in output["data"]
        .as_object()
        .into_iter()
        .flat_map(|data| data.keys())
    {
        if kind != "text/plain" {
            writeln!(shown, "[{kind}]").expect("writing to a string cannot fail");
        }
    }
    shown
}

fn shortened(text: &str) -> Cow<'_, str> {
    match without_middle(text, SHOWN_OUTPUT, SHOWN_OUTPUT) {
        Some((head, cut, tail)) => format!("{head}\n[{cut} bytes]\n{tail}").into(),
        None => text.into(),
    }
}

/// What is before the first marker, and the parts.
fn split(text: &str) -> (String, Vec<Part>) {
    let mut head = String::new();
    let mut parts = Vec::<Part>::new();
    for line in text.split_inclusive('\n') {
        if let Some((kind, number)) = marker(line) {
            parts.push(Part {
                kind: kind.to_owned(),
                number,
                text: String::new(),
            });
        } else {
            let place = parts.last_mut().map_or(&mut head, |part| &mut part.text);
            place.push_str(line);
        }
    }
    for Part { text, .. } in &mut parts {
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
    }
    (head, parts)
}

/// The kind and the number of a marker line.
fn marker(line: &str) -> Option<(&str, Option<usize>)> {
    let (kind, number) = line.trim_end().strip_prefix("# %% [")?.split_once(']')?;
    let number = match number.trim() {
        "" => None,
        number => Some(number.parse().ok()?),
    };
    KINDS.contains(&kind).then_some((kind, number))
}

fn is_head(head: &str) -> bool {
    head == NOTE || head.trim().is_empty()
}

/// The notebook `text` with the cells of `shown`.
fn written(text: &str, shown: &str) -> Result<String, MatchError> {
    let refused = |why: String| Err(MatchError(why));
    let read = read(text).and_then(|(notebook, raw)| Some((parts(&raw)?, notebook, raw)));
    let Some((old, notebook, raw)) = read else {
        return refused("the file is no longer a notebook".to_owned());
    };
    let (head, new) = split(shown);
    if !is_head(&head) {
        return refused("text before the first marker line does not belong to a cell".to_owned());
    }
    let layout = Layout::new(text, &notebook, &raw);
    let mut cells = Vec::<(Option<usize>, String)>::new();
    let mut new = new.into_iter().peekable();
    while let Some(part) = new.next() {
        let output = new.next_if(|next| next.kind == OUTPUT);
        let is_changed = |output: &Part| output.number != part.number || !old.contains(output);
        if part.kind == OUTPUT || output.as_ref().is_some_and(is_changed) {
            return refused(
                "an output can only be removed as a whole, with its marker line; run the cell to change it"
                    .to_owned(),
            );
        }
        let Some(number) = part.number else {
            let id = notebook.has_ids().then(|| unused_id(text, &cells));
            cells.push((None, layout.new_cell(&part, id)));
            continue;
        };
        let is_it = |old: &&Part| old.number == part.number && old.kind == part.kind;
        let is_there_twice = cells.iter().any(|(other, _)| *other == part.number);
        let Some(before) = old.iter().find(is_it).filter(|_| !is_there_twice) else {
            return refused(format!(
                "there is no {} cell {number}, or its marker occurs twice; the marker of a new cell has no number",
                part.kind
            ));
        };
        let source = (before.text != part.text).then_some(part.text.as_str());
        let loses_output = output.is_none()
            && old
                .iter()
                .any(|old| old.number == part.number && old.kind == OUTPUT);
        cells.push((
            Some(number),
            layout.changed_cell(raw[number - 1], source, loses_output),
        ));
    }
    let place = range_in(text, notebook.cells.get());
    let new_text = layout.array(&cells);
    Ok(patched(
        text,
        &[Hunk {
            range: place,
            new_text,
        }],
    ))
}

impl Notebook<'_> {
    /// Since version 4.5 each cell has an id.
    fn has_ids(&self) -> bool {
        (self.nbformat, self.nbformat_minor) >= (4, 5)
    }
}

fn unused_id(text: &str, cells: &[(Option<usize>, String)]) -> String {
    let is_used = |id: &String| {
        let id = format!("\"{id}\"");
        text.contains(&id) || cells.iter().any(|(_, cell)| cell.contains(&id))
    };
    let mut ids = (1_u64..).map(|number| format!("cell-{number}"));
    ids.find(|id| !is_used(id)).unwrap_or_default()
}

impl Text {
    fn joined(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Lines(lines) => lines.concat(),
        }
    }
}

/// Where the bytes of `part`, which is a part of `text`, are.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// How the JSON is laid out.
struct Layout<'a> {
    line_ending: &'static str,
    /// One step of indentation.
    step: &'a str,
    /// The cells as they are, and what is before, between and after them.
    array: &'a str,
    places: Vec<Range<usize>>,
    lead: String,
    tail: String,
}

impl<'a> Layout<'a> {
    fn new(text: &'a str, notebook: &Notebook<'a>, raw: &[&'a RawValue]) -> Self {
        let array = notebook.cells.get();
        let places: Vec<_> = raw.iter().map(|cell| range_in(array, cell.get())).collect();
        let line_ending = LineEnding::of(text).as_str();
        let second = text.lines().nth(1).unwrap_or_default();
        let step = second.split_at(second.len() - second.trim_start().len()).0;
        let inside = |range: Range<usize>| array.get(range).unwrap_or_default().to_owned();
        let (lead, tail) = match (places.first(), places.last()) {
            (Some(first), Some(last)) => {
                (inside(1..first.start), inside(last.end..array.len() - 1))
            }
            _ if second.is_empty() => (String::new(), String::new()),
            _ => (
                format!("{line_ending}{step}{step}"),
                format!("{line_ending}{step}"),
            ),
        };
        Self {
            line_ending,
            step,
            array,
            places,
            lead,
            tail,
        }
    }

    /// All cells, with their numbers before. What is between two that were neighbors stays.
    fn array(&self, cells: &[(Option<usize>, String)]) -> String {
        let mut array = "[".to_owned();
        let mut before = None::<usize>;
        for (index, (number, cell)) in cells.iter().enumerate() {
            let between = match (before, *number) {
                (Some(before), Some(number)) if before + 1 == number => self
                    .array
                    .get(self.places[before - 1].end..self.places[before].start),
                _ => None,
            };
            match between {
                Some(between) => array.push_str(between),
                None if index == 0 => array.push_str(&self.lead),
                None => {
                    array.push(',');
                    array.push_str(&self.lead);
                }
            }
            array.push_str(cell);
            before = *number;
        }
        if !cells.is_empty() {
            array.push_str(&self.tail);
        }
        array.push(']');
        array
    }

    /// The cell with another source if there is one, and without its output if it loses that.
    fn changed_cell(&self, raw: &RawValue, source: Option<&str>, loses_output: bool) -> String {
        let raw = raw.get();
        let Ok(cell) = serde_json::from_str::<Cell<'_>>(raw) else {
            return raw.to_owned();
        };
        let mut hunks = Vec::new();
        if let Some(source) = source {
            let value = if cell.source.get().starts_with('"') {
                source.into()
            } else {
                lines(source)
            };
            let indent = format!("{}{}", self.indent(), self.step);
            let new_text = self.json(&value, raw.contains('\n').then_some(indent.as_str()));
            hunks.push((cell.source, new_text));
        }
        if loses_output {
            hunks.extend(cell.outputs.map(|it| (it, "[]".to_owned())));
            hunks.extend(cell.execution_count.map(|it| (it, "null".to_owned())));
        }
        let mut hunks: Vec<Hunk> = hunks
            .into_iter()
            .map(|(old, new_text)| Hunk {
                range: range_in(raw, old.get()),
                new_text,
            })
            .collect();
        hunks.sort_by_key(|hunk| hunk.range.start);
        patched(raw, &hunks)
    }

    fn new_cell(&self, part: &Part, id: Option<String>) -> String {
        let mut cell = json!({ "cell_type": part.kind });
        if part.kind == "code" {
            cell["execution_count"] = Value::Null;
        }
        if let Some(id) = id {
            cell["id"] = id.into();
        }
        cell["metadata"] = json!({});
        if part.kind == "code" {
            cell["outputs"] = json!([]);
        }
        cell["source"] = lines(&part.text);
        self.json(&cell, self.lead.contains('\n').then_some(self.indent()))
    }

    /// The indentation of a cell.
    fn indent(&self) -> &str {
        self.lead.rsplit('\n').next().unwrap_or_default()
    }

    /// On one line, or on lines that are indented.
    fn json(&self, value: &Value, indent: Option<&str>) -> String {
        let Some(indent) = indent else {
            return value.to_string();
        };
        pretty(value, self.step).replace('\n', &format!("{}{indent}", self.line_ending))
    }
}

/// As Jupyter stores a source: its lines, each with its end.
fn lines(source: &str) -> Value {
    source.split_inclusive('\n').collect()
}
