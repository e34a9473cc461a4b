//! Walks from a document to its objects, and collects what they take from around them.
use super::finder::{ObjectFinder, OuterField};
use crate::ingest::places::ObjectPlace;
use crate::mapping::{Field, FieldKind, Mapping, Outer, Step, find_inner};
use penstock_base::error::GatewayError;
use penstock_base::json::{Json, push_pointer};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// The maximum length of a JSON Pointer in a document. Each object has one, and a name can be as long as the body.
const MAX_POINTER_BYTES: usize = 256;

impl ObjectFinder<'_> {
    /// Adds the objects of a body: of one document, or of a list of them.
    pub(super) fn add_body(&mut self, json: &Json) -> Result<(), GatewayError> {
        let is_list = self.items.first() != Some(&Step::Each);
        match json {
            Json::Array(documents) if is_list && !documents.is_empty() => {
                for (index, document) in documents.iter().enumerate() {
                    self.add_document(document, format!("/{index}"))?;
                }
                Ok(())
            }
            // An empty list has no objects.
            Json::Array(_) if is_list => {
                self.warn_of_no_objects("");
                Ok(())
            }
            document => self.add_document(document, String::new()),
        }
    }

    fn add_document(&mut self, document: &Json, pointer: String) -> Result<(), GatewayError> {
        let objects = self.places.len();
        let items = self.items;
        let root = pointer.clone();
        Walk::new(self, document, pointer).visit(items, document)?;
        if self.places.len() == objects {
            self.warn_of_no_objects(&root);
        }
        Ok(())
    }
}

/// A value around an object.
#[derive(Debug, Clone)]
struct Around<'d> {
    json: &'d Json,
    /// The length of its text.
    bytes: usize,
    pointer: Arc<str>,
}

impl<'d> Around<'d> {
    fn new(json: &'d Json, pointer: String) -> Self {
        Self { json, bytes: json.to_string().len(), pointer: pointer.into() }
    }
}

/// The way from a document to its objects.
struct Walk<'f, 'm, 'd> {
    finder: &'f mut ObjectFinder<'m>,
    fields: Rc<[OuterField<'m>]>,
    /// The JSON Pointer of the current value.
    pointer: String,
    /// For each star on the way: the name of the member that it matches, `None` for an element, and where the pointer of the
    /// member ends.
    stars: Vec<(Option<&'d str>, usize)>,
    /// What an object here takes, for each of `fields`.
    around: Vec<Option<Around<'d>>>,
}

impl<'f, 'm, 'd> Walk<'f, 'm, 'd> {
    fn new(finder: &'f mut ObjectFinder<'m>, document: &'d Json, pointer: String) -> Self {
        let fields = Rc::clone(&finder.fields);
        let find = |field: &OuterField<'_>| {
            let Outer::At(names) = field.outer else { return None };
            let json = names.iter().try_fold(document, |json, name| find_inner(json, name))?;
            let mut pointer = pointer.clone();
            for name in names {
                push_bounded(&mut pointer, name);
            }
            Some(Around::new(json, pointer))
        };
        let around = fields.iter().map(find).collect();
        Self { finder, fields, pointer, stars: Vec::new(), around }
    }

    /// Adds the objects that these steps lead to from a value.
    fn visit(&mut self, steps: &[Step], json: &'d Json) -> Result<(), GatewayError> {
        let Some((step, rest)) = steps.split_first() else { return self.add_object(json) };
        let before = self.find_members(json);
        match (step, json) {
            (Step::Name(name), json) => {
                if let Some(inner) = find_inner(json, name) {
                    self.descend(name, |here| here.visit(rest, inner))?;
                }
            }
            (Step::Each, Json::Array(elements)) => {
                for (index, element) in elements.iter().enumerate() {
                    self.descend(&index.to_string(), |here| here.visit_star(rest, None, element))?;
                }
            }
            (Step::Each, Json::Object(members)) => {
                for (name, member) in members {
                    self.descend(name, |here| here.visit_star(rest, Some(name), member))?;
                }
            }
            (Step::Each, _) => {}
        }
        self.around = before;
        Ok(())
    }

    fn visit_star(
        &mut self,
        steps: &[Step],
        name: Option<&'d str>,
        json: &'d Json,
    ) -> Result<(), GatewayError> {
        self.stars.push((name, self.pointer.len()));
        let visited = self.visit(steps, json);
        self.stars.pop();
        visited
    }

    /// Runs `work` at a value in the current one.
    fn descend<T>(&mut self, token: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        push_bounded(&mut self.pointer, token);
        let done = work(self);
        self.pointer.truncate(length);
        done
    }

    /// Takes the members that objects below this value take by name. Returns what they took around it.
    fn find_members(&mut self, json: &'d Json) -> Vec<Option<Around<'d>>> {
        let before = self.around.clone();
        for (around, field) in self.around.iter_mut().zip(&*self.fields) {
            let Outer::Nearest(name) = field.outer else { continue };
            let Some(json) = json.member(name) else { continue };
            let mut pointer = self.pointer.clone();
            push_bounded(&mut pointer, name);
            *around = Some(Around::new(json, pointer));
        }
        before
    }

    /// Adds an object with what it takes.
    fn add_object(&mut self, item: &'d Json) -> Result<(), GatewayError> {
        self.finder.check_count(&self.pointer)?;
        let (mut object, mut taken) = (Cow::Borrowed(item), Vec::new());
        for (slot, OuterField { field, outer, text }) in self.fields.iter().enumerate() {
            if has_value(self.finder.mapping, field, item) {
                continue;
            }
            let pointer: Arc<str> = if let Outer::Star(star) = outer {
                let Some((Some(name), end)) = self.stars.get(*star) else { continue };
                self.finder.count_taken(field, name.len())?;
                if let (Some(text), Json::Object(members)) = (text, object.to_mut()) {
                    text.add_to(members, name);
                }
                self.pointer.get(..*end).unwrap_or_default().into()
            } else {
                let Some(Some(around)) = self.around.get(slot) else { continue };
                self.finder.count_taken(field, around.bytes)?;
                field.set_value(object.to_mut(), Some(around.json.clone()));
                Arc::clone(&around.pointer)
            };
            taken.push((slot, pointer));
        }
        let place = ObjectPlace { pointer: self.pointer.clone(), line: self.finder.line, taken };
        self.finder.places.push(Some(place));
        self.finder.text.extend_from_slice(object.to_string().as_bytes());
        self.finder.text.push(self.finder.separator);
        Ok(())
    }
}

/// Returns whether an object has the field itself, also with `null`, or cannot have it.
fn has_value(mapping: &Mapping, field: &Field, object: &Json) -> bool {
    if let (FieldKind::Id, Json::Object(members)) = (&field.kind, object) {
        return members.iter().any(|(name, _)| mapping.root.is_id(name));
    }
    let mut json = object;
    for name in field.path() {
        match json.member(name) {
            Some(inner) => json = inner,
            None => return !matches!(json, Json::Object(_)),
        }
    }
    true
}

/// Appends a token, unless the pointer would exceed the limit.
fn push_bounded(pointer: &mut String, token: &str) {
    const CUT: &str = "/\u{2026}";
    if pointer.len() + token.len() < MAX_POINTER_BYTES {
        push_pointer(pointer, token);
    } else if !pointer.ends_with(CUT) {
        pointer.push_str(CUT);
    }
}
