//! Who uses whom: paths resolved through re-exports to the file that defines what they name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::source::{Source, by_module};

/// The use of an item of another file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// The index of the file that uses it.
    pub from: usize,
    /// The index of the file that defines it.
    pub to: usize,
    /// The full path as written, from the crate's root.
    pub path: Vec<String>,
}

/// All uses between files. A re-export alone is not a use.
pub fn imports(sources: &[Source]) -> BTreeSet<Import> {
    let names = Names::new(sources);
    let mut found = BTreeSet::new();
    for (from, source) in sources.iter().enumerate() {
        let mut paths = Paths {
            names: &names,
            from,
            module: &source.module,
            found: BTreeSet::new(),
        };
        paths.visit_file(&source.tree);
        for path in paths.found {
            if let Some(to) = names.definer(&path)
                && to != from
            {
                found.insert(Import { from, to, path });
            }
        }
    }
    found
}

/// The groups of two or more files that use each other in a cycle, each sorted.
pub fn cycles(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..count).map(|start| reachable(start, edges)).collect();
    let mut groups = BTreeSet::new();
    for (start, reached) in reach.iter().enumerate() {
        let group: Vec<usize> = reached
            .iter()
            .copied()
            .filter(|&other| reach[other].contains(&start))
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reachable(start: usize, edges: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let (mut found, mut queue) = (BTreeSet::new(), vec![start]);
    while let Some(from) = queue.pop() {
        for &(_, to) in edges.range((from, 0)..=(from, usize::MAX)) {
            if found.insert(to) {
                queue.push(to);
            }
        }
    }
    found
}

/// The files by module path.
type Modules<'a> = BTreeMap<&'a [String], usize>;

/// The names in each module: its own items and its imports.
struct Names<'a> {
    modules: Modules<'a>,
    own: Vec<BTreeSet<String>>,
    imported: Vec<BTreeMap<String, Vec<String>>>,
    globs: Vec<Vec<Vec<String>>>,
}

impl<'a> Names<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let mut names = Self {
            modules: by_module(sources),
            own: Vec::new(),
            imported: Vec::new(),
            globs: Vec::new(),
        };
        for source in sources {
            let (mut own, mut imported, mut globs) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
            for item in &source.tree.items {
                own.extend(defined(item));
                if let Item::Use(item) = item {
                    for leaf in leaves(&item.tree) {
                        match (
                            absolute(&source.module, &leaf.path, &names.modules),
                            leaf.name,
                        ) {
                            (Some(path), Some(name)) => drop(imported.insert(name, path)),
                            (Some(path), None) => globs.push(path),
                            (None, _) => {}
                        }
                    }
                }
            }
            names.own.push(own);
            names.imported.push(imported);
            names.globs.push(globs);
        }
        names
    }

    /// The file that defines what a path from the crate's root names.
    fn definer(&self, path: &[String]) -> Option<usize> {
        self.find(path, 0)
    }

    fn find(&self, path: &[String], depth: usize) -> Option<usize> {
        let mut module: &[String] = &[];
        let mut rest = path;
        while let Some((_, after)) = rest.split_first() {
            let deeper = &path[..=module.len()];
            if !self.modules.contains_key(deeper) {
                break;
            }
            (module, rest) = (deeper, after);
        }
        let at = *self.modules.get(module)?;
        let Some((name, after)) = rest.split_first() else {
            return Some(at);
        };
        if self.own[at].contains(name) || depth > 8 {
            return Some(at);
        }
        if let Some(import) = self.imported[at].get(name) {
            return self.find(&[import.as_slice(), after].concat(), depth + 1);
        }
        let globs = self.globs[at]
            .iter()
            .filter(|glob| glob.as_slice() != module);
        let mut through =
            globs.filter_map(|glob| self.find(&[glob.as_slice(), rest].concat(), depth + 1));
        through.find(|&found| self.own[found].contains(name))
    }

    /// Whether a path may begin with one of a module's own names.
    fn starts(&self, at: usize, module: &[String], name: &str) -> Option<Vec<String>> {
        let child = [module, &[name.to_owned()]].concat();
        if self.modules.contains_key(child.as_slice()) {
            return Some(child);
        }
        self.imported[at].get(name).cloned()
    }
}

fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// One name in a `use`; a glob has no name.
struct Leaf {
    path: Vec<String>,
    name: Option<String>,
}

fn leaves(tree: &UseTree) -> Vec<Leaf> {
    fn walk(tree: &UseTree, before: &[String], found: &mut Vec<Leaf>) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(path) => walk(&path.tree, &with(&path.ident), found),
            UseTree::Name(name) if name.ident == "self" => {
                found.push(Leaf {
                    path: before.to_vec(),
                    name: before.last().cloned(),
                });
            }
            UseTree::Name(name) => found.push(Leaf {
                path: with(&name.ident),
                name: Some(name.ident.to_string()),
            }),
            UseTree::Rename(name) => {
                found.push(Leaf {
                    path: with(&name.ident),
                    name: Some(name.rename.to_string()),
                });
            }
            UseTree::Glob(_) => found.push(Leaf {
                path: before.to_vec(),
                name: None,
            }),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| walk(tree, before, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

/// A path from the crate's root: `crate::…`, `self::…`, `super::super::…`, or a path that begins with a child module.
fn absolute(module: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    let (base, rest) = match path.first()?.as_str() {
        "crate" => (&[][..], &path[1..]),
        "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
        "self" => {
            let ups = path[1..].iter().take_while(|word| *word == "super").count();
            (&module[..module.len().checked_sub(ups)?], &path[1 + ups..])
        }
        name if modules.contains_key([module, &[name.to_owned()]].concat().as_slice()) => {
            (module, path)
        }
        _ => return None,
    };
    Some([base, rest].concat())
}

/// The paths within the crate that a file names.
struct Paths<'a> {
    names: &'a Names<'a>,
    from: usize,
    module: &'a [String],
    found: BTreeSet<Vec<String>>,
}

impl Paths<'_> {
    fn add(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        if let Some(start) = self.names.starts(self.from, self.module, first) {
            self.found.insert([start.as_slice(), &path[1..]].concat());
        } else if let Some(path) = absolute(self.module, path, &self.names.modules) {
            self.found.insert(path);
        }
    }

    /// Paths in macro arguments, which have no syntax tree.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.add(path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !matches!(item.vis, Visibility::Inherited) {
            return;
        }
        for leaf in leaves(&item.tree) {
            // An imported module is used if a path goes through it.
            if leaf.name.is_some() {
                self.add(&leaf.path);
            }
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let words: Vec<String> = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect();
            self.add(&words);
        }
        visit::visit_path(self, path);
    }
}
