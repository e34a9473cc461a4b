//! Logs refused tokens, so that an operator sees which setting does not match. Any client can send tokens, so the
//! number of lines a minute and their length are limited. A line has no part of a token except its issuer and audience.
use super::token::{ExpectedToken, Token};
use crate::AuthError;
use crate::line_limit::LineLimit;
use serde_json::Value;
use std::net::IpAddr;
use std::time::Instant;

/// The maximum number of characters of a claim.
const MAX_CLAIM_CHARS: usize = 200;

/// Logs refused tokens.
#[derive(Debug, Default)]
pub(super) struct RefusalLog(LineLimit);

impl RefusalLog {
    /// Logs the issuer and the audience of a refused token, and the expected ones.
    pub(super) fn log_refused(
        &self,
        token: &Token<'_>,
        expected: &ExpectedToken,
        from: Option<IpAddr>,
        refusal: &AuthError,
    ) {
        if !self.0.take_permit(Instant::now()) {
            return;
        }
        let mut audiences = expected.audiences.clone();
        audiences.extend(expected.client_id_audience.iter().map(|id| format!("{id} (with azp)")));
        tracing::warn!(
            from = from.map(tracing::field::display),
            iss = format_claim(token.claims.get("iss")),
            expected_iss = expected.issuer,
            aud = format_claim(token.claims.get("aud")),
            expected_aud = audiences.join(", "),
            %refusal,
            "An access token was refused."
        );
    }
}

/// Formats a claim as JSON, truncated and with deceptive characters escaped.
fn format_claim(claim: Option<&Value>) -> String {
    let Some(claim) = claim else { return "missing".to_owned() };
    let text = claim.to_string();
    let cut: String = text.chars().take(MAX_CLAIM_CHARS).flat_map(char::escape_debug).collect();
    let cut = cut.replace("\\\"", "\"");
    if text.chars().nth(MAX_CLAIM_CHARS).is_some() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use serde_json::json;

    #[test]
    fn claims_are_truncated_and_escaped() {
        assert_eq!(format_claim(None), "missing");
        assert_eq!(format_claim(Some(&json!(["api://a", 7]))), "[\"api://a\",7]");
        assert_eq!(
            format_claim(Some(&json!("a\u{202e}\n\u{1b}[31m"))),
            "\"a\\u{202e}\\\\n\\\\u001b[31m\""
        );
        let long = format_claim(Some(&json!("x".repeat(100_000))));
        assert_eq!(long.chars().count(), MAX_CLAIM_CHARS + 1);
    }

    #[test]
    fn a_refused_token_is_logged_with_what_was_expected() {
        use base64::Engine;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let text = format!(
            "{}.{}.planted-signature",
            part(&json!({"alg": "RS256"})),
            part(&json!({"iss": "https://v2.example", "aud": "c-1", "sub": "planted-subject"}))
        );
        let expected = ExpectedToken {
            issuer: "https://v1.example".to_owned(),
            audiences: vec!["api://c-1".to_owned()],
            client_id_audience: None,
            client_ids: Vec::new(),
            algorithms: vec![jsonwebtoken::Algorithm::RS256],
        };
        let token = Token::parse(&text, &expected).unwrap();
        let lines = Lines::default();
        let to = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
        let refusal = AuthError::Invalid("why".to_owned());
        penstock_base::telemetry::with_subscriber(to, || {
            RefusalLog::default().log_refused(&token, &expected, None, &refusal);
        });
        let written = String::from_utf8(lines.0.lock().clone()).unwrap();
        let line = written.lines().next().unwrap();
        for part in ["https://v2.example", "https://v1.example", "c-1", "api://c-1", "why"] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert!(!written.contains("planted"), "{written}");
    }

    /// The writer of the log.
    #[derive(Clone, Default)]
    struct Lines(std::sync::Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl tracing_subscriber::fmt::MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }
}
