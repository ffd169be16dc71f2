//! The production sources as the compiler sees them: the files that `lib.rs` and `main.rs` declare, without test items.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item};

/// One file of production code.
pub struct Source {
    /// The path below `src/`.
    pub file: String,
    /// The module path; empty for `lib.rs`.
    pub module: Vec<String>,
    pub text: String,
    /// The syntax tree without test-only code.
    pub tree: syn::File,
    /// The first and last lines of each removed part.
    pub test_lines: Vec<(usize, usize)>,
}

impl Source {
    /// Parses a file. Panics if it is not Rust.
    pub fn parse(file: &str, module: &[&str], text: &str) -> Self {
        let mut tree = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut strip = Strip::default();
        strip.visit_file_mut(&mut tree);
        let module = module.iter().map(|&name| name.to_owned()).collect();
        Self {
            file: file.to_owned(),
            module,
            text: text.to_owned(),
            tree,
            test_lines: strip.removed,
        }
    }

    /// The top-level module that the file belongs to.
    pub fn layer(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }

    /// The lines of the file that are not tests, with their numbers from 1.
    pub fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = |line| {
            self.test_lines
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&line))
        };
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(move |(line, _)| !is_test(*line))
    }
}

/// The Rust files in a folder, with their texts, by relative path.
pub fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            queue.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let file = path.strip_prefix(folder).unwrap().display().to_string();
            found.push((file, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// Removes test items and remembers their lines.
#[derive(Default)]
struct Strip {
    removed: Vec<(usize, usize)>,
}

impl Strip {
    fn keep(&mut self, attributes: &[Attribute], whole: proc_macro2::Span) -> bool {
        let is_test = attributes.iter().any(is_for_tests);
        if is_test {
            let first = attributes
                .iter()
                .map(|attribute| attribute.span().start().line)
                .min();
            self.removed
                .push((first.unwrap_or(whole.start().line), whole.end().line));
        }
        !is_test
    }
}

impl VisitMut for Strip {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items
            .retain(|item| self.keep(attributes(item), item.span()));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| self.keep(attributes(item), item.span()));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| match item {
            syn::ImplItem::Fn(function) => self.keep(&function.attrs, function.span()),
            syn::ImplItem::Const(constant) => self.keep(&constant.attrs, constant.span()),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, item);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an attribute is `#[test]` or a `#[cfg(…)]` that is true only in test builds.
fn is_for_tests(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let Ok(list) = attribute.meta.require_list() else {
        return false;
    };
    list.path.is_ident("cfg") && needs_test(list.tokens.clone())
}

/// Whether a condition names `test` outside `not(…)` and `any(…)`.
fn needs_test(condition: TokenStream) -> bool {
    let mut word = String::new();
    condition.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => {
            word = ident.to_string();
            word == "test"
        }
        TokenTree::Group(group) => word == "all" && needs_test(group.stream()),
        _ => false,
    })
}

/// All production files, by their names below `src/`.
pub fn load() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for (file, module) in [("lib.rs", Vec::new()), ("main.rs", vec!["main".to_owned()])] {
        follow(&root, file, &module, &mut found);
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

/// Reads a file and those it declares with `mod name;`.
fn follow(root: &Path, file: &str, module: &[String], found: &mut Vec<Source>) {
    let text =
        std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let names: Vec<&str> = module.iter().map(String::as_str).collect();
    let source = Source::parse(file, &names, &text);
    let children: Vec<String> = source.tree.items.iter().filter_map(declared).collect();
    found.push(source);
    for child in children {
        let folder = if module.is_empty() {
            PathBuf::new()
        } else {
            PathBuf::from(file.trim_end_matches(".rs"))
        };
        let file = folder.join(format!("{child}.rs"));
        let module = [module, &[child]].concat();
        follow(
            root,
            file.to_str().expect("file names in src are UTF-8"),
            &module,
            found,
        );
    }
}

fn declared(item: &Item) -> Option<String> {
    match item {
        Item::Mod(module) if module.content.is_none() => Some(module.ident.to_string()),
        _ => None,
    }
}

/// The sources of a sample, from `(file, text)`; the module path is derived from the file's name.
pub fn sample(files: &[(&str, &str)]) -> Vec<Source> {
    let parse = |(file, text): &(&str, &str)| {
        let path = file.trim_end_matches(".rs");
        let module: Vec<&str> = if path == "lib" {
            Vec::new()
        } else {
            path.split('/').collect()
        };
        Source::parse(file, &module, text)
    };
    files.iter().map(parse).collect()
}

/// The sources by module path.
pub fn by_module(sources: &[Source]) -> BTreeMap<&[String], usize> {
    sources
        .iter()
        .enumerate()
        .map(|(index, source)| (source.module.as_slice(), index))
        .collect()
}

#[test]
fn test_items_are_removed_and_what_follows_them_is_read() {
    let text = "#[cfg(test)]\nmod tests {}\nfn a() {}\n#[cfg(not(test))]\nfn b() {}\n#[cfg(all(unix, test))]\nfn c() {\n}\nfn d() {}\n";
    let source = Source::parse("a.rs", &["a"], text);
    assert_eq!(source.tree.items.len(), 3);
    assert_eq!(
        source
            .production_lines()
            .map(|(line, _)| line)
            .collect::<Vec<_>>(),
        [3, 4, 5, 9]
    );
}
