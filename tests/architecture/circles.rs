//! Files that import each other in a circle can be understood only together. So there are few such circles, and small ones.
use super::root;
use penstock_test_support::prelude::*;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, UseTree, Visibility};

const MAX_CIRCLES: usize = 10;
const MAX_FILES_OF_A_CIRCLE: usize = 4;

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
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_none() && !is_for_tests(&module.attrs) {
            self.children.push(module.ident.to_string());
        } else if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.collect_imports(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if !is_for_tests(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
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
                let path = [module.as_slice(), &[child.clone()]].concat();
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
                match rest.first().is_some_and(|name| name == "super") {
                    true => self.begin(parent, rest),
                    false => Some((parent.to_vec(), rest.to_vec())),
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

    /// Returns the module that defines what a path names, through all modules that pass it on.
    fn resolve(&self, mut module: Names, path: &[String], depth: usize) -> Names {
        let mut rest = path;
        while let Some((name, after)) = rest.split_first()
            && self.sources[&module].children.contains(name)
        {
            module.push(name.clone());
            rest = after;
        }
        let Some(name) = rest.first().filter(|_| depth < 12) else { return module };
        let mut imports = self.sources[&module].imports.iter();
        let Some((_, import)) = imports.find(|(known, _)| known == name) else { return module };
        match self.begin(&module, import) {
            Some((from, path)) if (&from, path.as_slice()) != (&module, rest) => {
                self.resolve(from, &[&path, &rest[1..]].concat(), depth + 1)
            }
            _ => module,
        }
    }

    /// Returns the modules that each module imports.
    fn arrows(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let arrows = self.sources.iter().map(|(module, source)| {
            let imports = source.imports.iter().filter(|(name, _)| !source.exports.contains(name));
            let paths = source.paths.iter().filter(|path| path.len() > 1);
            let named = imports.map(|(_, path)| path).chain(paths);
            let resolved = named.filter_map(|path| {
                let (from, path) = self.begin(module, path)?;
                Some(self.resolve(from, &path, 0)).filter(|found| found != module)
            });
            (module, resolved.collect())
        });
        arrows.collect()
    }

    /// Returns the files of each circle.
    fn circles(&self) -> Vec<Vec<&Path>> {
        let arrows = self.arrows();
        let reach = |start: &Names| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&Names> = arrows[start].iter().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(&arrows[module]);
                }
            }
            reached
        };
        let reached: BTreeMap<&Names, BTreeSet<&Names>> =
            arrows.keys().map(|module| (*module, reach(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, others) in &reached {
            if others.contains(module) {
                let circle = others.iter().filter(|other| reached[**other].contains(module));
                circles.insert(circle.copied().collect::<Vec<_>>());
            }
        }
        let files = |circle: &Vec<&Names>| {
            circle.iter().map(|module| self.sources[*module].file.as_path()).collect()
        };
        circles.iter().map(files).collect()
    }
}

#[test]
fn few_files_import_each_other_in_a_circle() {
    let mut folders = vec![root().join("store/src")];
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.retain(|folder| folder.join("lib.rs").exists());
    assert!(folders.len() > 15, "{folders:?}");
    let crates: Vec<Crate> = folders.iter().map(|folder| Crate::read(folder)).collect();
    let circles: Vec<_> = crates.iter().flat_map(Crate::circles).collect();
    assert!(circles.len() <= MAX_CIRCLES, "{circles:#?}");
    let large: Vec<_> =
        circles.iter().filter(|files| files.len() > MAX_FILES_OF_A_CIRCLE).collect();
    assert!(large.is_empty(), "{large:#?}");
}
