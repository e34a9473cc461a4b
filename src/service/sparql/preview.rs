//! The beginning of an answer, for a page without script.
use super::result_name::ResultName;
use super::{acquire_permit, query_deadline, run_on_query_thread, run_query};
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_base::error::GatewayError;
use penstock_sparql::{DatasetParameters, Query, QueryForm};
use std::io;

/// The beginning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerBeginning {
    /// TSV for SELECT, `true` or `false` for ASK, and Turtle for graphs.
    pub text: String,
    /// What the text is.
    pub form: QueryForm,
    /// Whether it is the whole answer. Otherwise its last line may be incomplete.
    pub is_whole: bool,
    /// What is valid in the query and probably not meant, a sentence for each.
    pub warnings: Vec<String>,
}

/// Evaluates a query, and returns the first `max_bytes` of its answer.
///
/// # Errors
/// - `ErrorClass::Malformed`, with the place in `text`
/// - those of [`acquire_permit`] and [`run_query`]
pub async fn preview_query(
    gateway: &Gateway,
    by: &Authorized,
    text: String,
    max_bytes: usize,
) -> Result<AnswerBeginning, GatewayError> {
    let permit = acquire_permit(gateway, by).await?;
    let (gateway, deadline) = (gateway.clone(), query_deadline(gateway));
    run_on_query_thread(move || {
        let _permit = permit;
        let query = Query::parse(&text, &DatasetParameters::default())?;
        let (form, warnings) = (query.form(), query.warnings());
        let (_, format) = ResultName::default_of(form);
        let mut beginning = Beginning { bytes: Vec::new(), max_bytes, is_whole: true };
        let result = run_query(&gateway, query, deadline, format, &mut beginning);
        // Otherwise the query ended because the page has enough of its answer.
        if let Err(error) = result
            && beginning.is_whole
        {
            return Err(error);
        }
        Ok(AnswerBeginning { warnings, ..beginning.into_answer(form) })
    })
    .await
}

/// Keeps the beginning of what is written, and fails after it, which ends the query.
struct Beginning {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_whole: bool,
}

impl Beginning {
    fn into_answer(mut self, form: QueryForm) -> AnswerBeginning {
        if let Err(error) = std::str::from_utf8(&self.bytes) {
            self.bytes.truncate(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        AnswerBeginning { text, form, is_whole: self.is_whole, warnings: Vec::new() }
    }
}

impl io::Write for Beginning {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let capacity = self.max_bytes.saturating_sub(self.bytes.len());
        if capacity == 0 && !buffer.is_empty() {
            self.is_whole = false;
            return Err(io::Error::other("the page shows only the beginning of the answer"));
        }
        let kept = buffer.get(..capacity).unwrap_or(buffer);
        self.bytes.extend_from_slice(kept);
        Ok(kept.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn only_the_beginning_of_an_answer_is_kept() {
        let begin = |text: &str| {
            let mut beginning = Beginning { bytes: Vec::new(), max_bytes: 4, is_whole: true };
            let is_written = beginning.write_all(text.as_bytes()).is_ok();
            let answer = beginning.into_answer(QueryForm::Select);
            assert_eq!(answer.is_whole, is_written);
            (answer.text, answer.is_whole)
        };
        assert_eq!(begin("abcd"), ("abcd".to_owned(), true));
        assert_eq!(begin("abcde"), ("abcd".to_owned(), false));
        // A character is not cut.
        assert_eq!(begin("abc\u{e4}"), ("abc".to_owned(), false));
    }
}
