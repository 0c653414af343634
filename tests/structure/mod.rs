//! Reads Rust sources as a tree of modules and says which file needs which: every `use`, every path
//! in a body, a signature or a macro's arguments, followed through re-exports to the file that
//! defines what it names. What is compiled for tests alone does not count. Methods are found by
//! type and not by path, so a call of one is not seen.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A module's or an item's place below the crate's root.
type Path = Vec<String>;

/// One file needs another; the path in its text that says so.
pub type Arrows = BTreeMap<(String, String), String>;

/// A module, in a file of its own or not.
#[derive(Default)]
struct Module {
    file: String,
    /// Names that `use` brings in, and what they stand for as written.
    imports: Vec<Import>,
    /// Items defined here.
    items: BTreeSet<String>,
    /// Paths in everything that is not a `use`.
    paths: BTreeSet<Path>,
}

impl Module {
    /// Whether it defines or brings in an item of this name that is not one of its own modules.
    fn has(&self, name: &String) -> bool {
        let other = |i: &Import| i.name.as_ref() == Some(name) && i.path.len() > 1;
        self.items.contains(name) || self.imports.iter().any(other)
    }
}

struct Import {
    /// `None` for a glob.
    name: Option<String>,
    path: Path,
    re_export: bool,
}

/// The modules of a crate.
#[derive(Default)]
pub struct Tree {
    modules: BTreeMap<Path, Module>,
    /// Modules declared for tests alone.
    tests: BTreeSet<Path>,
}

impl Tree {
    /// Reads files by their path below `src`.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tree {
        let mut tree = Tree::default();
        for (file, text) in files {
            let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{file}: {e}"));
            Reader {
                tree: &mut tree,
                file,
                at: module_of(file),
            }
            .module(&parsed.items);
        }
        let tests = std::mem::take(&mut tree.tests);
        tree.modules
            .retain(|path, _| !tests.iter().any(|t| path.starts_with(t)));
        tree
    }

    /// Which file needs which.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (at, module) in &self.modules {
            let gathers = module.file.ends_with("mod.rs") || module.file == "lib.rs";
            let imports = module
                .imports
                .iter()
                .filter(|i| !(gathers && i.re_export))
                .map(|i| &i.path);
            for path in imports.chain(&module.paths) {
                let Some(file) = self.file_of(at, path) else {
                    continue;
                };
                if file != module.file {
                    arrows
                        .entry((module.file.clone(), file.to_owned()))
                        .or_insert_with(|| path.join("::"));
                }
            }
        }
        arrows
    }

    /// The file that defines what `path`, written in module `at`, names. `None` for what is not of
    /// this crate, and for a module: what is used of it is a path of its own.
    fn file_of(&self, at: &[String], path: &[String]) -> Option<&str> {
        let (module, item) = self.find(at, path, 0)?;
        item.is_some().then(|| self.modules[&module].file.as_str())
    }

    /// The module and the item in it that `path` names.
    fn find(&self, at: &[String], path: &[String], depth: u32) -> Option<(Path, Option<String>)> {
        if depth > 16 {
            return None;
        }
        let (mut cur, mut rest) = self.start(at, path, depth)?;
        while let Some((name, tail)) = rest.split_first() {
            let child = [cur.as_slice(), std::slice::from_ref(name)].concat();
            let module = self.modules.get(&cur)?;
            // A module and an item of one name: a path that ends there means the item.
            let is_item = tail.is_empty() && module.has(name);
            if self.modules.contains_key(&child) && !is_item {
                cur = child;
                rest = tail.to_vec();
                continue;
            }
            let named = module
                .imports
                .iter()
                .find(|i| i.name.as_ref() == Some(name));
            let through = match named {
                _ if module.items.contains(name) => None,
                Some(i) => self.find(&cur, &[&i.path, tail].concat(), depth + 1),
                None => module
                    .imports
                    .iter()
                    .filter(|i| i.name.is_none())
                    .filter_map(|i| self.find(&cur, &i.path, depth + 1))
                    .find(|(m, _)| self.modules[m].items.contains(name))
                    .map(|(m, _)| (m, Some(name.clone()))),
            };
            return Some(through.unwrap_or((cur, Some(name.clone()))));
        }
        Some((cur, None))
    }

    /// Where the search for `path` begins, and what of the path is left.
    fn start(&self, at: &[String], path: &[String], depth: u32) -> Option<(Path, Path)> {
        let (first, tail) = path.split_first()?;
        match first.as_str() {
            "crate" | "xpeak" => Some((Path::new(), tail.to_vec())),
            "self" => Some((at.to_vec(), tail.to_vec())),
            "super" => {
                let (mut at, mut rest) = (at, path);
                while let Some(("super", tail)) = rest.split_first().map(|(f, t)| (f.as_str(), t)) {
                    at = at.split_last()?.1;
                    rest = tail;
                }
                Some((at.to_vec(), rest.to_vec()))
            }
            _ if self
                .modules
                .contains_key(&[at, std::slice::from_ref(first)].concat()) =>
            {
                Some((at.to_vec(), path.to_vec()))
            }
            _ => {
                let imports = &self.modules.get(at)?.imports;
                let import = imports
                    .iter()
                    .find(|i| i.name.as_ref() == Some(first) && i.path.first() != Some(first))?;
                let (module, item) = self.find(at, &import.path, depth + 1)?;
                let rest = item.into_iter().chain(tail.iter().cloned()).collect();
                Some((module, rest))
            }
        }
    }
}

/// Every set of files that need each other, directly or by way of others.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(file) = todo.pop() {
            for (_, to) in arrows.keys().filter(|(a, _)| a == file) {
                if seen.insert(to.as_str()) {
                    todo.push(to);
                }
            }
        }
        seen
    };
    let files: BTreeSet<&str> = arrows.keys().map(|(from, _)| from.as_str()).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> = files.iter().map(|f| (*f, reach(f))).collect();
    let mut out = BTreeSet::new();
    for (file, all) in reached.iter().filter(|(f, all)| all.contains(*f)) {
        let back = all
            .iter()
            .filter(|f| reached.get(*f).is_some_and(|r| r.contains(file)));
        out.insert(back.map(|f| f.to_string()).collect::<Vec<_>>());
    }
    out.into_iter().collect()
}

/// `hlo/decode/mod.rs` → `[hlo, decode]`.
fn module_of(file: &str) -> Path {
    let parts = file.trim_end_matches(".rs").split('/');
    let mut path: Path = parts.map(str::to_owned).collect();
    if path.last().is_some_and(|l| l == "mod") || path == ["lib"] {
        path.pop();
    }
    path
}

struct Reader<'t> {
    tree: &'t mut Tree,
    file: &'t str,
    at: Path,
}

impl Reader<'_> {
    fn module(&mut self, items: &[syn::Item]) {
        self.here();
        for item in items {
            self.visit_item(item);
        }
    }

    fn here(&mut self) -> &mut Module {
        let module = self.tree.modules.entry(self.at.clone()).or_default();
        module.file = self.file.to_owned();
        module
    }

    fn imports(&mut self, tree: &syn::UseTree, before: &Path, re_export: bool) {
        let mut path = before.clone();
        let (name, last) = match tree {
            syn::UseTree::Path(p) => {
                path.push(p.ident.to_string());
                return self.imports(&p.tree, &path, re_export);
            }
            syn::UseTree::Group(g) => {
                return (g.items.iter()).for_each(|t| self.imports(t, before, re_export));
            }
            syn::UseTree::Name(n) => (Some(n.ident.to_string()), n.ident.to_string()),
            syn::UseTree::Rename(r) => (Some(r.rename.to_string()), r.ident.to_string()),
            syn::UseTree::Glob(_) => (None, String::new()),
        };
        // `a::{self}` brings in `a`.
        let name = match name {
            Some(n) if n == "self" => before.last().cloned(),
            n => n,
        };
        if !last.is_empty() && last != "self" {
            path.push(last);
        }
        let import = Import {
            name,
            path,
            re_export,
        };
        self.here().imports.push(import);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = head(item);
        if attributes.iter().any(for_tests) {
            if let syn::Item::Mod(m) = item {
                let path = [self.at.as_slice(), &[m.ident.to_string()]].concat();
                self.tree.tests.insert(path);
            }
            return;
        }
        self.here().items.extend(name);
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        let name = m.ident.to_string();
        if let Some((_, items)) = &m.content {
            self.at.push(name);
            self.module(items);
            self.at.pop();
        }
    }

    fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
        let re_export = !matches!(u.vis, syn::Visibility::Inherited);
        self.imports(&u.tree, &Path::new(), re_export);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if !f.attrs.iter().any(for_tests) {
            visit::visit_impl_item_fn(self, f);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Path = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 && path.leading_colon.is_none() {
            self.here().paths.insert(names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let mut found = Vec::new();
        paths_in(m.tokens.clone(), &mut found);
        self.here().paths.extend(found);
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Paths of two names and more among a macro's tokens.
fn paths_in(tokens: TokenStream, out: &mut Vec<Path>) {
    let mut path = Path::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Punct(p) if p.as_char() == ':' => colons += 1,
            TokenTree::Ident(i) => {
                if colons != 2 && !path.is_empty() {
                    out.push(std::mem::take(&mut path));
                }
                path.push(i.to_string());
                colons = 0;
            }
            other => {
                out.push(std::mem::take(&mut path));
                colons = 0;
                if let TokenTree::Group(g) = other {
                    paths_in(g.stream(), out);
                }
            }
        }
    }
    out.push(path);
    out.retain(|p| p.len() > 1);
}

/// An item's attributes, and its name where it has one that paths use.
fn head(item: &syn::Item) -> (&[syn::Attribute], Option<String>) {
    use syn::Item;
    let (attributes, ident) = match item {
        Item::Const(i) => (&i.attrs, Some(&i.ident)),
        Item::Enum(i) => (&i.attrs, Some(&i.ident)),
        Item::Fn(i) => (&i.attrs, Some(&i.sig.ident)),
        Item::Static(i) => (&i.attrs, Some(&i.ident)),
        Item::Struct(i) => (&i.attrs, Some(&i.ident)),
        Item::Trait(i) => (&i.attrs, Some(&i.ident)),
        Item::Type(i) => (&i.attrs, Some(&i.ident)),
        Item::Macro(i) => (&i.attrs, i.ident.as_ref()),
        Item::Mod(i) => (&i.attrs, None),
        Item::Impl(i) => (&i.attrs, None),
        Item::Use(i) => (&i.attrs, None),
        _ => return (&[], None),
    };
    (attributes, ident.map(ToString::to_string))
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(doctest)]`, `#[cfg(all(test, ...))]`.
fn for_tests(attribute: &syn::Attribute) -> bool {
    let words = |m: &syn::MetaList| {
        let text = m.tokens.to_string();
        let word = |w: &str| text.split(|c: char| !c.is_alphanumeric()).any(|t| t == w);
        (word("test") || word("doctest")) && !word("not")
    };
    match &attribute.meta {
        syn::Meta::Path(p) => p.is_ident("test"),
        syn::Meta::List(m) => m.path.is_ident("cfg") && words(m),
        syn::Meta::NameValue(_) => false,
    }
}
