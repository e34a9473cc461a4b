//! Files that import each other in a circle can be understood only together. So no file imports what imports it.
use super::root;
use penstock_test_support::prelude::*;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

type Names = Vec<String>;

/// What a file names of others.
#[derive(Default)]
struct Source {
    file: PathBuf,
    /// The modules below it that have files of their own.
    children: Names,
    /// The paths in `use`, by the names that they have here.
    imports: Vec<(String, Names)>,
    /// Those that it only passes on: its importers import them.
    exports: Vec<String>,
    /// The paths in the code.
    paths: Vec<Names>,
}

impl Source {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let mut source = Self { file: file.to_owned(), ..Self::default() };
        source.visit_file(&syn::parse_file(&text).unwrap());
        let named: BTreeSet<&str> = source.paths.iter().map(|path| path[0].as_str()).collect();
        source.exports.retain(|name| !named.contains(name.as_str()));
        source
    }

    fn collect_imports(&mut self, tree: &UseTree, before: &[String], exported: bool) {
        let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => {
                return self.collect_imports(&path.tree, &with(&path.ident), exported);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|item| self.collect_imports(item, before, exported));
            }
            UseTree::Glob(_) => ("*".to_owned(), before.to_vec()),
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().unwrap().clone(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) => (name.rename.to_string(), with(&name.ident)),
        };
        if exported {
            self.exports.push(name.clone());
        }
        self.imports.push((name, path));
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let mut conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.any(|condition| {
        condition.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            Item::Mod(module) => &module.attrs,
            Item::Use(import) => &import.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_none() {
            self.children.push(module.ident.to_string());
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.collect_imports(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        let tokens = called.tokens.to_string().replace(" :: ", "::");
        let words = tokens.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let paths = words.map(|word| word.split("::").map(str::to_owned).collect::<Names>());
        self.paths.extend(paths.filter(|path| path.iter().all(|name| !name.is_empty())));
    }
}

/// The files of a crate by the paths of their modules.
struct Crate {
    sources: BTreeMap<Names, Source>,
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let mut sources = BTreeMap::new();
        let mut found = vec![(Names::new(), folder.join("lib.rs"), folder.to_owned())];
        while let Some((module, file, below)) = found.pop() {
            let source = Source::read(&file);
            for child in &source.children {
                let path = [module.as_slice(), std::slice::from_ref(child)].concat();
                found.push((path, below.join(format!("{child}.rs")), below.join(child)));
            }
            sources.insert(module, source);
        }
        Self { sources }
    }

    /// Returns the module where a path begins, and the rest of the path. None for a path into another crate.
    fn begin(&self, module: &[String], path: &[String]) -> Option<(Names, Names)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Names::new(), rest.to_vec())),
            "self" => Some((module.to_vec(), rest.to_vec())),
            "super" => {
                let parent = &module[..module.len() - 1];
                if rest.first().is_some_and(|name| name == "super") {
                    self.begin(parent, rest)
                } else {
                    Some((parent.to_vec(), rest.to_vec()))
                }
            }
            _ => {
                let source = &self.sources[module];
                let is_here = source.children.contains(first)
                    || source.imports.iter().any(|(name, path)| name == first && path[0] != *first);
                is_here.then(|| (module.to_vec(), path.to_vec()))
            }
        }
    }

    /// Adds the modules that a path leads to: those that pass the name on, and the one that defines it. The root of a crate
    /// passes on what the crate offers, so it counts only for what it defines.
    fn trace(&self, mut module: Names, path: &[String], depth: usize, found: &mut Vec<Names>) {
        let mut rest = path;
        while let Some((name, after)) = rest.split_first()
            && self.sources[&module].children.contains(name)
        {
            module.push(name.clone());
            rest = after;
        }
        let name = rest.first().filter(|_| depth < 12);
        let mut imports = self.sources[&module].imports.iter();
        let import = name.and_then(|name| imports.find(|(known, _)| known == name));
        let next = import.and_then(|(_, import)| self.begin(&module, import));
        if next.is_none() || !module.is_empty() {
            found.push(module);
        }
        if let Some((from, path)) = next {
            self.trace(from, &[&path, &rest[1..]].concat(), depth + 1, found);
        }
    }

    /// Returns the modules that each module imports.
    fn arrows(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let arrows = self.sources.iter().map(|(module, source)| {
            let imports = source.imports.iter().filter(|(name, _)| !source.exports.contains(name));
            let paths = source.paths.iter().filter(|path| path.len() > 1);
            let mut found = Vec::new();
            for path in imports.map(|(_, path)| path).chain(paths) {
                if let Some((from, path)) = self.begin(module, path) {
                    self.trace(from, &path, 0, &mut found);
                }
            }
            (module, found.into_iter().filter(|found| found != module).collect())
        });
        arrows.collect()
    }

    /// Returns the files in circles: those left after all that import none of the others, or that none of them imports.
    fn files_in_circles(&self) -> Vec<&Path> {
        let mut arrows = self.arrows();
        loop {
            let imported: BTreeSet<Names> = arrows.values().flatten().cloned().collect();
            let left: BTreeSet<Names> = arrows.keys().map(|module| (*module).clone()).collect();
            arrows.retain(|module, imports| {
                imported.contains(*module) && !imports.is_disjoint(&left)
            });
            if arrows.len() == left.len() {
                return left.iter().map(|module| self.sources[module].file.as_path()).collect();
            }
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut folders = vec![root().join("store/src")];
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.retain(|folder| folder.join("lib.rs").exists());
    assert!(folders.len() > 15, "{folders:?}");
    for folder in folders {
        let read = Crate::read(&folder);
        let files = read.files_in_circles();
        assert!(files.is_empty(), "these import each other: {files:#?}");
    }
}

/// Returns the files in circles of a crate with these files.
fn find_circles(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let read = Crate::read(dir.path());
    let relative = |file: &Path| file.strip_prefix(dir.path()).unwrap().display().to_string();
    read.files_in_circles().into_iter().map(relative).collect()
}

#[test]
fn a_circle_is_found_through_the_root_that_passes_a_name_on() {
    let lib = "mod a;\nmod b;\npub use a::A;\n#[cfg(test)]\nuse b::f;\n";
    let a = "use super::b;\npub struct A;\nfn g() { b::f() }\n";
    let find = |b| find_circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
    assert_eq!(find("use crate::A;\npub fn f() { drop(A) }\n"), ["a.rs", "b.rs"]);
    assert_eq!(find("pub fn f() { drop(super::A) }\n"), ["a.rs", "b.rs"]);
    assert_eq!(find("pub fn f() { println!(\"{:?}\", crate::A) }\n"), ["a.rs", "b.rs"]);
    assert!(find("pub fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::A;\n}\n").is_empty());
}

#[test]
fn an_import_of_what_a_module_passes_on_is_one_of_that_module() {
    let lib = "mod a;\nmod b;\n";
    let b = "pub(crate) mod c;\npub use c::C;\nfn g() { crate::a::f() }\n";
    let c = "pub struct C;\n";
    let find = |a| find_circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("b/c.rs", c)]);
    assert_eq!(find("use super::b::C;\npub fn f() { drop(C) }\n"), ["a.rs", "b.rs"]);
    assert_eq!(find("use super::b;\npub fn f() { drop(b::C) }\n"), ["a.rs", "b.rs"]);
    assert!(find("use super::b::c::C;\npub fn f() { drop(C) }\n").is_empty());
    // In the middle of three.
    let a = "mod d;\nuse super::e::C;\npub fn f() { drop(C) }\n";
    let e = [("e.rs", "pub use super::b::C;\n"), ("a/d.rs", "")];
    let files = [("lib.rs", "mod a;\nmod b;\nmod e;\n"), ("a.rs", a), ("b.rs", b), ("b/c.rs", c)];
    assert_eq!(find_circles(&[&files[..], &e].concat()), ["a.rs", "b.rs"]);
}

#[test]
fn the_root_counts_for_what_it_defines() {
    let a = ("a.rs", "use crate::C;\npub fn f() { drop(C) }\n");
    let c = ("c.rs", "pub struct C;\n");
    let passes_on = "mod a;\nmod c;\npub use c::C;\nfn g() { a::f() }\n";
    assert!(find_circles(&[("lib.rs", passes_on), a, c]).is_empty());
    let defines = "mod a;\nmod c;\npub struct C;\nfn g() { a::f() }\n";
    assert_eq!(find_circles(&[("lib.rs", defines), a, c]), ["lib.rs", "a.rs"]);
}
