//! Writes language maps.
use super::{NestingPath, ObjectWriter};
use crate::mapping::Property;
use crate::view::ShownLiteral;
use penstock_base::error::GatewayError;

impl<'w> ObjectWriter<'w> {
    /// Writes the texts of a language map, which are ordered by language. A map without texts is left out.
    pub(super) fn write_texts(
        &mut self,
        name: &str,
        property: &'w Property,
        texts: &[ShownLiteral<'_>],
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        if texts.is_empty() {
            return Ok(());
        }
        let has_arrays = property.value.language_map().is_some_and(|map| map.has_arrays);
        self.write_name(name, first)?;
        self.out.push(b'{');
        let mut is_first = true;
        for texts in texts.chunk_by(|one, other| one.language() == other.language()) {
            let language = texts.first().and_then(ShownLiteral::language).unwrap_or_default();
            self.write_name(&language, &mut is_first)?;
            if has_arrays {
                self.out.push(b'[');
            } else if texts.len() > 1 {
                let count = texts.len();
                let message = format!(
                    "there are {count} texts in the language {language}, but the field has one in each; only the first \
                     is shown"
                );
                self.add_warning(path, &message);
            }
            let shown = if has_arrays { texts.len() } else { 1 };
            for (index, text) in texts.iter().take(shown).enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                self.report_value(path, property, text.term.into())?;
                self.write_literal(text, path)?;
            }
            if has_arrays {
                self.out.push(b']');
            }
        }
        self.out.push(b'}');
        Ok(())
    }
}
