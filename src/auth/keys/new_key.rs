//! The definition of a new API key, as a client sends it.
use jiff::Timestamp;
use penstock_base::characters;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, Members};
use penstock_resources::role::Role;
use std::sync::Arc;

/// The maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 200;
/// The maximum number of Business Objects that a key names. Each ingestion with the key looks up all of them.
const MAX_BUSINESS_OBJECTS: usize = 100;

/// The definition of a new API key. It can be used for the Business Objects that `business_object` and
/// `business_objects` name by id or name, or for all if there are none. [`Self::resolve`] replaces names by ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApiKey {
    /// The name, which says what the key is for.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The time of expiry.
    pub expires_at: Option<Timestamp>,
    /// One Business Object.
    pub business_object: Option<String>,
    /// Several Business Objects.
    pub business_objects: Vec<String>,
}

impl NewApiKey {
    /// Reads the request body of a creation.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` with every finding.
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        Self::from_value(json::parse(body, 8)?)
    }

    /// Reads the value of such a body, or the fields of a form with the same names.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with every finding.
    pub fn from_value(value: Json) -> Result<Self, GatewayError> {
        let mut findings = Vec::new();
        let mut new = Self {
            name: String::new(),
            role: Role::User,
            expires_at: None,
            business_object: None,
            business_objects: Vec::new(),
        };
        if let Some(mut members) = Members::of_object(value, "", &mut findings) {
            match members.take_string("name") {
                Some(name) => match check_name(&name) {
                    Ok(name) => new.name = name,
                    Err(why) => members.add_finding("name", why),
                },
                None => members.report_missing("name", "it says what the key is for"),
            }
            match members.take_string("role") {
                Some(role) => match Role::from_name(&role) {
                    Some(role) => new.role = role,
                    None => members.add_finding("role", unknown_role_message(&role)),
                },
                None => members.report_missing("role", "one of Metrics, User, Contributor, Admin"),
            }
            if let Some(text) = members.take_string("expiresAt") {
                match text.parse::<Timestamp>() {
                    Ok(at) => new.expires_at = Some(at),
                    Err(_) => members.add_finding(
                        "expiresAt",
                        format!("{text:?} is not an RFC 3339 time such as 2027-01-31T12:00:00Z"),
                    ),
                }
            }
            new.business_object = members.take_string("businessObject");
            new.business_objects = read_business_objects(&mut members);
            members.report_unknown();
        }
        if findings.is_empty() { Ok(new) } else { Err(invalid_key_error(findings)) }
    }

    /// Returns it with the ids of the Business Objects in place of their names.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with a finding for each that does not exist.
    pub fn resolve(
        mut self,
        find_id: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, GatewayError> {
        let mut findings = Vec::new();
        let mut replace = |name: &mut String, pointer: &str| match find_id(name) {
            Some(id) => *name = id,
            None => findings.push(Finding::at_pointer(
                pointer,
                format!("there is no Business Object with the id or name {name:?}"),
            )),
        };
        if let Some(name) = &mut self.business_object {
            replace(name, "/businessObject");
        }
        for (index, name) in self.business_objects.iter_mut().enumerate() {
            replace(name, &format!("/businessObjects/{index}"));
        }
        if findings.is_empty() { Ok(self) } else { Err(invalid_key_error(findings)) }
    }

    /// Returns all Business Objects that it names, each once; `None` if it names none.
    pub(super) fn limit(&self) -> Option<Arc<[String]>> {
        let mut limit: Vec<String> = Vec::new();
        for id in self.business_object.iter().chain(&self.business_objects) {
            if !limit.contains(id) {
                limit.push(id.clone());
            }
        }
        (!limit.is_empty()).then(|| limit.into())
    }
}

/// Reads the member `businessObjects`. Refuses an empty array, which could mean all Business Objects or none.
fn read_business_objects(members: &mut Members<'_>) -> Vec<String> {
    const MEMBER: &str = "businessObjects";
    let Some(elements) = members.take_array(MEMBER) else { return Vec::new() };
    if elements.is_empty() {
        members.add_finding(
            MEMBER,
            "it is empty; name at least one Business Object, or leave it out for an API key that can be used for all",
        );
    } else if elements.len() > MAX_BUSINESS_OBJECTS {
        members.add_finding(
            MEMBER,
            format!("it has {} elements; the limit is {MAX_BUSINESS_OBJECTS}", elements.len()),
        );
        return Vec::new();
    }
    let pointer = members.pointer_to(MEMBER);
    let mut names = Vec::new();
    for (index, element) in elements.into_iter().enumerate() {
        match element {
            Json::String(name) => names.push(name),
            _ => members.findings().push(Finding::at_pointer(
                format!("{pointer}/{index}"),
                "expected the id or name of a Business Object, as a string",
            )),
        }
    }
    names
}

/// Formats the error text for an unknown role.
pub fn unknown_role_message(name: &str) -> String {
    format!("there is no role {name:?}; use one of Metrics, User, Contributor, Admin")
}

pub(super) fn invalid_key_error(findings: Vec<Finding>) -> GatewayError {
    GatewayError::with_findings(ErrorClass::Invalid, "the API key is not valid", findings)
}

fn check_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() {
        Err("it is empty; say what the key is for".to_owned())
    } else if name.chars().count() > MAX_NAME_CHARS {
        Err(format!("it is longer than {MAX_NAME_CHARS} characters"))
    } else if let Some(why) = characters::describe_deceptive(name, characters::is_deceptive) {
        Err(why)
    } else {
        Ok(name.to_owned())
    }
}
