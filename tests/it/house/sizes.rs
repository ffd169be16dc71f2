//! How long files and functions are.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::source::Source;

/// A function and its length in lines, from its signature to its closing brace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length {
    pub lines: usize,
    pub place: String,
}

/// The lengths of all functions with a body, shortest first.
pub fn functions(sources: &[Source]) -> Vec<Length> {
    let mut found = Vec::new();
    for source in sources {
        let mut visitor = Functions {
            file: &source.file,
            found: &mut found,
        };
        visitor.visit_file(&source.tree);
    }
    found.sort();
    found
}

/// The lengths of all files without their tests, shortest first.
pub fn files(sources: &[Source]) -> Vec<Length> {
    let length = |source: &Source| Length {
        lines: source.production_lines().count(),
        place: source.file.clone(),
    };
    let mut found: Vec<Length> = sources.iter().map(length).collect();
    found.sort();
    found
}

/// The length that `percent` of all stay within. Panics when there are none.
pub fn percentile(sorted: &[Length], percent: usize) -> usize {
    sorted[(sorted.len() - 1) * percent / 100].lines
}

struct Functions<'a> {
    file: &'a str,
    found: &'a mut Vec<Length>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let lines = body.span().end().line - signature.span().start().line + 1;
        self.found.push(Length {
            lines,
            place: format!("{}: {}", self.file, signature.ident),
        });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
