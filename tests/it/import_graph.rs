//! Imports between the files of `src`, read from their text, and the cycles among them.
//!
//! An import is a path to another file in a `use` or elsewhere in the code, outside comments and tests. The declaration
//! `mod x;` is not an import.

use std::collections::BTreeSet;

/// Import: the importing module, and the module of the imported item. `conversation::turn` is `turn/mod.rs`.
type Import = (String, String);

pub struct ImportGraph {
    imports: BTreeSet<Import>,
}

impl ImportGraph {
    /// Reads the imports of these files, each given as its path, such as `src/conversation/grammar/keyword_grammar.rs`,
    /// and its code without tests.
    pub fn from_files(files: &[(&str, &str)]) -> Self {
        let modules: BTreeSet<Vec<String>> = files.iter().map(|(path, _)| module_of(path)).collect();
        let mut imports = BTreeSet::new();
        for (path, text) in files {
            let module = module_of(path);
            let code = without_comments(text);
            let named = used_paths(&code).into_iter().chain(inline_paths(&code));
            let imported = named.filter_map(|path| resolve(&module, &path, &modules));
            imports.extend(
                imported.filter(|other| *other != module).map(|other| (module.join("::"), other.join("::"))),
            );
        }
        Self { imports }
    }

    /// Keeps the imports among the modules below `parent`.
    pub fn within(&self, parent: &str) -> Self {
        let is_below = |module: &str| module.strip_prefix(parent).is_some_and(|rest| rest.starts_with("::"));
        let imports = self.imports.iter().filter(|(from, to)| is_below(from) && is_below(to));
        Self { imports: imports.cloned().collect() }
    }

    /// Merges every module with the ones below it, so that names have at most `depth` parts.
    pub fn merged(&self, depth: usize) -> Self {
        let cut = |module: &str| module.split("::").take(depth).collect::<Vec<_>>().join("::");
        let imports = self.imports.iter().map(|(from, to)| (cut(from), cut(to)));
        Self { imports: imports.filter(|(from, to)| from != to).collect() }
    }

    /// Returns the imports that are part of a cycle, as `from -> to`.
    pub fn cyclic_imports(&self) -> Vec<String> {
        let cyclic = self.imports.iter().filter(|(from, to)| self.reaches(to, from));
        cyclic.map(|(from, to)| format!("{from} -> {to}")).collect()
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            let imports = self.imports.iter().filter(|(importing, _)| importing == module);
            open.extend(imports.map(|(_, imported)| imported.as_str()).filter(|next| seen.insert(next)));
        }
        seen.contains(to)
    }
}

fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').filter(|part| *part != "lib").map(str::to_owned).collect()
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the paths of `use` declarations, one for each name.
fn used_paths(code: &str) -> Vec<String> {
    let declarations = code.split(';').filter_map(|statement| Some(statement.rsplit_once("use ")?.1));
    declarations.flat_map(|tree| expand(&tree.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// Returns the paths of a tree such as `super::{words, turn::{self, Turn}}`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        return tree.split(" as ").next().map(str::to_owned).into_iter().collect();
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0_i32;
    let branches = inner.split(|mark: char| {
        depth += i32::from(mark == '{') - i32::from(mark == '}');
        mark == ',' && depth == 0
    });
    let branches = branches.filter(|branch| !branch.trim().is_empty());
    branches.flat_map(expand).map(|branch| format!("{prefix}{branch}")).collect()
}

/// Returns paths such as `words::command` in the code. A path that ends with `::` is the beginning of a tree.
fn inline_paths(code: &str) -> Vec<String> {
    let words = code.split(|mark: char| !mark.is_alphanumeric() && mark != '_' && mark != ':');
    words.filter(|word| word.contains("::") && !word.ends_with("::")).map(str::to_owned).collect()
}

/// Returns the module with the longest name that begins `path`, as seen from `module`; `None` for a module of another
/// crate and for a name from a `use`.
fn resolve(module: &[String], path: &str, modules: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let mut parts = path.split("::").peekable();
    let mut found = module.to_vec();
    match *parts.peek()? {
        "crate" => found.clear(),
        "self" | "super" => {}
        child => {
            let is_module = modules.contains(&[module, &[child.to_owned()]].concat());
            return is_module.then(|| descend(found, parts, modules));
        }
    }
    while let Some(part) = parts.next_if(|part| matches!(*part, "crate" | "self" | "super")) {
        if part == "super" {
            found.pop();
        }
    }
    Some(descend(found, parts, modules))
}

fn descend<'p>(
    mut module: Vec<String>,
    parts: impl Iterator<Item = &'p str>,
    modules: &BTreeSet<Vec<String>>,
) -> Vec<String> {
    for part in parts {
        module.push(part.to_owned());
        if !modules.contains(&module) {
            module.pop();
            break;
        }
    }
    module
}
