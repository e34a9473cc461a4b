//! Reads the keys of a language map: `languages`, and `elements: array`.
use super::compiler::{Checked, Compiler};
use super::definition::Definition;
use crate::mapping::yaml::Content;
use crate::mapping::{LanguageMap, format_language_tag};

impl Compiler {
    /// Reads the languages of a language map, and whether each has several texts.
    pub(super) fn read_language_map(
        &mut self,
        definition: &Definition<'_>,
    ) -> Checked<LanguageMap> {
        let languages = self.read_languages(definition);
        let has_arrays = match self.read_text(definition, "elements")? {
            None => false,
            Some((_, "array")) => true,
            Some((at, other)) => {
                let message = format!(
                    "the elements of a `languageMap` are texts, and `elements` is `{other}`; write `elements: array` if a \
                     language can have several texts, otherwise leave it out"
                );
                return Err(self.report_error(at, definition.place, message));
            }
        };
        Ok(LanguageMap { languages: languages?, has_arrays })
    }

    /// Reads the language tags under `languages`, in lower case; none if all languages are allowed.
    fn read_languages(&mut self, definition: &Definition<'_>) -> Checked<Vec<String>> {
        let Some((at, node)) = definition.get("languages") else { return Ok(Vec::new()) };
        let place = definition.place;
        let mut languages = Vec::new();
        let mut result = Ok(());
        for (at, tag) in self.read_texts(node, "languages", "a language tag", place)? {
            match oxrdf::Literal::new_language_tagged_literal("", tag) {
                Ok(_) if languages.contains(&tag.to_ascii_lowercase()) => {
                    let message = format!(
                        "`languages` has the language `{}` twice; remove one of them",
                        format_language_tag(tag)
                    );
                    result = Err(self.report_error(at, place, message));
                }
                Ok(_) => languages.push(tag.to_ascii_lowercase()),
                Err(error) => {
                    let message = format!(
                        "`{tag}` is not a language tag ({error}); write one such as `en` or `de-AT`"
                    );
                    result = Err(self.report_error(at, place, message));
                }
            }
        }
        if languages.is_empty() && result.is_ok() && matches!(node.content, Content::Sequence(_)) {
            let message = "`languages` is empty; name a language, or leave it out to allow all";
            return Err(self.report_error(at, place, message));
        }
        result.map(|()| languages)
    }
}

#[cfg(test)]
mod tests {
    use crate::mapping::{LanguageMap, Value, compile};

    fn read(keys: &str) -> Result<LanguageMap, String> {
        let config = format!(
            "type: object\npath: A:.\nfields:\n  name: {{type: languageMap, path: <urn:name>{keys}}}\n"
        );
        let mapping = compile(&config).map_err(|errors| {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })?;
        let property = mapping.root.property_at(0).unwrap();
        assert!(!property.is_array);
        Ok(property.value.language_map().unwrap().clone())
    }

    #[test]
    fn a_language_map_has_languages_and_arrays() {
        assert_eq!(read(""), Ok(LanguageMap::new()));
        let languages = vec!["en".to_owned(), "de-at".to_owned()];
        let expected = LanguageMap { languages, has_arrays: true };
        assert_eq!(read(", languages: [en, de-AT], elements: array"), Ok(expected));
        let expected = LanguageMap { languages: vec!["fr".to_owned()], has_arrays: false };
        assert_eq!(read(", languages: fr"), Ok(expected));
    }

    #[test]
    fn an_error_names_the_key_and_the_remedy() {
        for (keys, part) in [
            (", languages: [en, EN]", "has the language `en` twice"),
            (", languages: [e n]", "`e n` is not a language tag"),
            (", languages: []", "`languages` is empty"),
            (", languages: {en: x}", "`languages` is a language tag or a list of them"),
            (", elements: string", "write `elements: array`"),
            (", language: en", "`language` has no meaning here"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(part), "{keys}: {error}");
        }
    }

    #[test]
    fn only_a_property_without_another_map_is_shared() {
        let config = |more: &str| {
            format!(
                "type: object\npath: A:.\nfields:\n  names: {{type: languageMap, path: <urn:name>}}\n  \
                 name: {{type: string, path: <urn:name>, language: en}}\n  {more}\n"
            )
        };
        let mapping = compile(&config("plain: {type: string, path: <urn:name>}")).unwrap();
        assert!(matches!(mapping.root.property_at(0).unwrap().value, Value::Literal(_)));
        let errors = compile(&config("other: {type: languageMap, path: <urn:name>}")).unwrap_err();
        assert!(errors[0].message.contains("in common with the field `names`"), "{errors:?}");
    }

    #[test]
    fn maps_and_json_are_no_elements() {
        for (kind, remedy) in
            [("json", "write `type: json`"), ("languageMap", "write `elements: array`")]
        {
            for elements in [kind.to_owned(), format!("{{type: {kind}}}")] {
                let config = format!(
                    "type: object\npath: A:.\nfields:\n  all: {{type: array, path: <urn:p>, elements: {elements}}}\n"
                );
                let errors = compile(&config).unwrap_err();
                assert!(errors[0].message.contains(remedy), "{errors:?}");
            }
        }
    }
}
