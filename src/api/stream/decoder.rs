//! Converts the text of a stream to UTF-8.
use encoding_rs::{DecoderResult, Encoding, UTF_8};
use penstock_http::problem::Problem;
use salvo::http::StatusCode;

/// Converts the text of a stream to UTF-8. Text in UTF-8 passes unchanged, so that only what is wrong in it is rejected.
#[derive(Default)]
pub(super) struct TextDecoder(Option<encoding_rs::Decoder>);

impl TextDecoder {
    /// Creates a decoder for the charset with this label (WHATWG Encoding); `None` is UTF-8.
    pub(super) fn new(charset: Option<&str>) -> Result<Self, Problem> {
        let Some(label) = charset else { return Ok(Self(None)) };
        let encoding = Encoding::for_label(label.as_bytes()).ok_or_else(|| {
            Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "the charset {label:?} in Content-Type is not known; send UTF-8, or name another charset, such as \
                     windows-1252"
                ),
            )
        })?;
        Ok(Self((encoding != UTF_8).then(|| encoding.new_decoder())))
    }

    /// Appends the next bytes to the text.
    pub(super) fn decode(&mut self, bytes: &[u8], text: &mut Vec<u8>) -> Result<(), Problem> {
        self.append(bytes, text, false)
    }

    /// Appends what the end of the stream completes.
    pub(super) fn finish(&mut self, text: &mut Vec<u8>) -> Result<(), Problem> {
        self.append(&[], text, true)
    }

    fn append(&mut self, bytes: &[u8], text: &mut Vec<u8>, is_last: bool) -> Result<(), Problem> {
        let Some(decoder) = &mut self.0 else {
            text.extend_from_slice(bytes);
            return Ok(());
        };
        let (start, mut read) = (text.len(), 0);
        let length = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
        text.resize(start + length.unwrap_or_default(), 0);
        let mut end = start;
        loop {
            let rest = bytes.get(read..).unwrap_or_default();
            let space = text.get_mut(end..).unwrap_or_default();
            let (result, more, written) =
                decoder.decode_to_utf8_without_replacement(rest, space, is_last);
            (read, end) = (read + more, end + written);
            match result {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => text.resize(end + 4 * rest.len() + 16, 0),
                DecoderResult::Malformed(..) => {
                    return Err(Problem::malformed(format!(
                        "the text is not in the charset {} that Content-Type names; name its real one",
                        decoder.encoding().name()
                    )));
                }
            }
        }
        text.truncate(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(charset: &str, pieces: &[&[u8]]) -> Result<String, Problem> {
        let (mut decoder, mut text) = (TextDecoder::new(Some(charset))?, Vec::new());
        for piece in pieces {
            decoder.decode(piece, &mut text)?;
        }
        decoder.finish(&mut text)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn text_in_another_charset_becomes_utf_8() {
        assert_eq!(decode("windows-1252", &[b"M\xFCller \x80"]).unwrap(), "M\u{fc}ller \u{20ac}");
        // A character arrives in two pieces, after a byte order mark.
        let utf_16: [&[u8]; 3] = [b"\xFF\xFEa\0\xFC", b"\0\xAC", b"\x20"];
        assert_eq!(decode("utf-16le", &utf_16).unwrap(), "a\u{fc}\u{20ac}");
        assert_eq!(decode("UTF8", &[b"\xC3", b"\xBC"]).unwrap(), "\u{fc}");
    }

    #[test]
    fn text_in_no_charset_is_refused() {
        assert_eq!(decode("latin-nine", &[]).unwrap_err().status().as_u16(), 415);
        assert_eq!(decode("shift_jis", &[b"\x81"]).unwrap_err().status().as_u16(), 400);
    }
}
