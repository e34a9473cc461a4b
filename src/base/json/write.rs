//! Writes JSON.
use super::value::Json;
use std::fmt::{self, Write};

/// The maximum indentation in columns, so that a deeply nested value does not become many times longer.
const MAX_INDENT_COLUMNS: usize = 32;

/// Writes without white space, or with `{:#}` one member or element in each line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = f.alternate().then_some(0);
        write_value(self, f, indent)
    }
}

fn write_value(value: &Json, f: &mut fmt::Formatter<'_>, indent: Option<usize>) -> fmt::Result {
    let inner = indent.map(|indent| (indent + 2).min(MAX_INDENT_COLUMNS));
    match value {
        Json::Null => f.write_str("null"),
        Json::Bool(value) => write!(f, "{value}"),
        Json::Number(digits) => f.write_str(digits),
        Json::String(text) => write_string(text, f),
        Json::Array(elements) if elements.is_empty() => f.write_str("[]"),
        Json::Object(members) if members.is_empty() => f.write_str("{}"),
        Json::Array(elements) => {
            f.write_char('[')?;
            for (i, element) in elements.iter().enumerate() {
                write_separator(f, i == 0, inner)?;
                write_value(element, f, inner)?;
            }
            write_line_break(f, indent)?;
            f.write_char(']')
        }
        Json::Object(members) => {
            f.write_char('{')?;
            for (i, (name, value)) in members.iter().enumerate() {
                write_separator(f, i == 0, inner)?;
                write_string(name, f)?;
                f.write_str(if indent.is_some() { ": " } else { ":" })?;
                write_value(value, f, inner)?;
            }
            write_line_break(f, indent)?;
            f.write_char('}')
        }
    }
}

fn write_separator(f: &mut fmt::Formatter<'_>, first: bool, indent: Option<usize>) -> fmt::Result {
    if !first {
        f.write_char(',')?;
    }
    write_line_break(f, indent)
}

fn write_line_break(f: &mut fmt::Formatter<'_>, indent: Option<usize>) -> fmt::Result {
    match indent {
        Some(indent) => write!(f, "\n{:indent$}", ""),
        None => Ok(()),
    }
}

fn write_string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}
