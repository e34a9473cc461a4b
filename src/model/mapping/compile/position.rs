//! The position of a definition in the mapping, which errors name.
use std::fmt;

/// The number of characters of a field's name that an error shows.
const MAX_STEP_CHARS: usize = 64;

/// The position of a definition in the mapping.
#[derive(Debug)]
pub(super) enum Position<'a> {
    Root,
    Field(&'a Position<'a>, &'a str),
    Elements(&'a Position<'a>),
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = self;
        loop {
            place = match place {
                Self::Root => break,
                Self::Field(parent, name) => {
                    steps.push(*name);
                    parent
                }
                Self::Elements(parent) => {
                    steps.push("[]");
                    parent
                }
            };
        }
        if steps.is_empty() {
            return f.write_str("root");
        }
        f.write_str("field `")?;
        for (i, step) in steps.iter().rev().enumerate() {
            if i > 0 && *step != "[]" {
                f.write_str(".")?;
            }
            // Each error below a field repeats its name, so the errors could be larger than the text itself.
            match step.char_indices().nth(MAX_STEP_CHARS) {
                Some((end, _)) => write!(f, "{}...", step.get(..end).unwrap_or_default())?,
                None => f.write_str(step)?,
            }
        }
        f.write_str("`")
    }
}

impl Position<'_> {
    /// Returns the name of a field of the root, after those of its groups.
    pub(super) fn field_name(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => (*name).to_owned(),
            Self::Field(group, name) => format!("{}.{name}", group.field_name()),
            Self::Elements(array) => array.field_name(),
        }
    }
}
