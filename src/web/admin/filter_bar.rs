//! The choices of the filters above a list. The macro `select` of `form.html` shows them.
use penstock_service::gateway::Gateway;

/// A choice of one of several values, with a parameter of the address.
pub(super) struct Select {
    /// The name of the parameter.
    pub(super) name: &'static str,
    pub(super) caption: &'static str,
    pub(super) choices: Vec<Choice>,
}

/// A value that can be chosen.
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) words: String,
    pub(super) is_chosen: bool,
}

impl Select {
    /// Creates the choice of these values, each with its label. Without `chosen` it is the empty one.
    pub(super) fn new<V: Into<String>, W: Into<String>>(
        name: &'static str,
        caption: &'static str,
        choices: impl IntoIterator<Item = (V, W)>,
        chosen: Option<&str>,
    ) -> Self {
        let choices = choices.into_iter().map(|(value, words)| {
            let value = value.into();
            Choice { is_chosen: chosen.unwrap_or_default() == value, value, words: words.into() }
        });
        Self { name, caption, choices: choices.collect() }
    }

    /// Creates the choice of these values, or of all.
    pub(super) fn with_all(
        name: &'static str,
        caption: &'static str,
        choices: impl IntoIterator<Item = (String, String)>,
        chosen: Option<&str>,
    ) -> Self {
        let all = std::iter::once((String::new(), "All".to_owned()));
        Self::new(name, caption, all.chain(choices), chosen)
    }

    /// Creates the choice of a Business Object, by its id.
    pub(super) fn of_business_objects(gateway: &Gateway, chosen: Option<&str>) -> Self {
        let all = gateway.catalogue.list();
        let choices =
            all.iter().map(|one| (one.object.id.clone(), one.object.definition.name.clone()));
        Self::with_all("businessObject", "Business Object", choices, chosen)
    }
}
