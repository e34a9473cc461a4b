//! Short access to JSON that has the expected types.
use serde_json::Value;

/// Values of the expected types, at the cost of a panic.
pub trait JsonExt {
    /// Returns a string.
    fn text(&self) -> &str;
    /// Returns the elements of an array.
    fn list(&self) -> &[Value];

    /// Asserts that an object has at least these members.
    fn includes(&self, members: &Value);

    /// Returns a copy of a string.
    fn string(&self) -> String {
        self.text().to_owned()
    }

    /// Returns whether a string contains these words.
    fn has(&self, words: &str) -> bool {
        self.text().contains(words)
    }
}

impl JsonExt for Value {
    #[track_caller]
    fn text(&self) -> &str {
        self.as_str().unwrap_or_else(|| panic!("{self} is no string"))
    }

    #[track_caller]
    fn list(&self) -> &[Value] {
        self.as_array().unwrap_or_else(|| panic!("{self} is no array"))
    }

    #[track_caller]
    fn includes(&self, members: &Value) {
        for (name, expected) in members.as_object().unwrap() {
            assert_eq!(&self[name], expected, "{name} of {self}");
        }
    }
}

/// Checks of texts.
pub trait TextExt {
    /// Asserts that the text contains each of these parts.
    fn has_all(&self, parts: &[&str]);
}

impl TextExt for str {
    #[track_caller]
    fn has_all(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.contains(part), "{part}\nis not in\n{self}");
        }
    }
}

/// Returns the elements of an array.
pub fn each(values: Value) -> Vec<Value> {
    serde_json::from_value(values).unwrap()
}

/// Returns the code blocks of a page, each with the text after its fence.
pub fn code_blocks(page: &str) -> Vec<(&str, &str)> {
    let inner = page.split("\n```").skip(1).step_by(2);
    inner.map(|block| block.split_once('\n').unwrap()).collect()
}
