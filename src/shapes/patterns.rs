//! Regular expressions in shapes (SHACL, 4.4.3; `ShEx`, 5.4.6): those of `XPath`. A match takes time in proportion to the
//! length of the text and the size of the compiled expression, and cannot be interrupted. So a large expression is only for
//! short texts.
use penstock_base::xpath_regex::translate;
use regex::{Regex, RegexBuilder};
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum number of patterns of a shapes graph, and the maximum size of a compiled one.
pub(crate) const MAX_PATTERNS: usize = 64;
const MAX_PROGRAM_BYTES: usize = 256 << 10;
/// The size from which the size of a compiled expression is measured, in powers of two.
const MIN_PROGRAM_BYTES: usize = 1 << 10;
/// The maximum memory of the states that a match has visited, which it keeps for the next one.
const MAX_CACHE_BYTES: usize = 256 << 10;
/// The maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// The maximum product of the length of a text and the size of an expression. The worst ones then take about 0.2 s on a
/// small server.
const MAX_WORK: usize = 1 << 30;

/// Numbers the compiled expressions.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A compiled regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Differs from that of every other one.
    pub(crate) id: u64,
    regex: Regex,
    program_bytes: usize,
}

impl Pattern {
    /// Compiles an expression with these flags (`XPath` and `XQuery` Functions, 5.6.2).
    ///
    /// # Errors
    /// Why it cannot be used, as the end of a sentence about it.
    pub(crate) fn compile(pattern: &str, flags: &str) -> Result<Self, String> {
        let translated = translate(pattern, flags).map_err(|why| why.to_string())?;
        let mut builder = RegexBuilder::new(&translated);
        builder.dfa_size_limit(MAX_CACHE_BYTES);
        let mut program_bytes = MIN_PROGRAM_BYTES;
        loop {
            match builder.size_limit(program_bytes).build() {
                Ok(regex) => {
                    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
                    return Ok(Self { id, regex, program_bytes });
                }
                Err(regex::Error::CompiledTooBig(_)) if program_bytes < MAX_PROGRAM_BYTES => {
                    program_bytes *= 2;
                }
                Err(regex::Error::CompiledTooBig(_)) => {
                    return Err(format!(
                        "is too large when it is compiled; shorten its repetitions: {pattern:?}"
                    ));
                }
                Err(error) => {
                    return Err(format!("is no regular expression that is supported: {error}"));
                }
            }
        }
    }

    /// Returns the size of the compiled expression in bytes, at most twice the exact one.
    pub(crate) fn program_bytes(&self) -> usize {
        self.program_bytes
    }

    /// Returns the maximum length of a text that it is for, in bytes.
    pub(crate) fn max_text_bytes(&self) -> usize {
        MAX_TEXT_BYTES.min(MAX_WORK / self.program_bytes)
    }

    /// Returns the expression with a cache of its own.
    pub(crate) fn regex(&self) -> Regex {
        self.regex.clone()
    }
}
