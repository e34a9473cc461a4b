//! The mapping: the compiled form of a Business Object's YAML `config` (specification, 2.2).
//!
//! A mapping is a finite tree of shapes: `compiled` has the whole, `shape` the tree. `yaml` reads YAML or JSON with the
//! position of every node. `compile` converts the nodes into the tree and reports every error. `path` parses the forms of a
//! path. `kind` has what is known of each kind of values, `literal` the types of literals, and `value` the kind of each type.
//! `codes` has what the JSON has in place of values. `group` knows the objects in the JSON that have no node, and `map` those
//! whose names are data. `schema` writes the JSON Schema, and `shapes` writes SHACL and ShEx. `example` builds an object that
//! the mapping accepts. `document` says where the objects are in what senders send. `namespaces` looks up the namespaces that
//! a mapping names.
//!
//! # The text
//! The root is a definition with `type: object`, a `path` that names the namespace of its objects (`Plant:.`), and
//! `fields`. `prefixes` (`ex: http://example.com/`) is optional and shortens IRIs. Well-known prefixes such as `rdf`
//! and `xsd` need no declaration. `label: name` is optional and names the field by which people recognise an object.
//! Every field is a definition:
//!
//! | `type` | in JSON | in the graph | other keys |
//! |---|---|---|---|
//! | `id` | the object's own URI | the subject | nothing |
//! | `string` | a string | `xsd:string`, or the given `datatype` or `language` | `path`, `required`, `datatype`, `language`, `values` |
//! | `number` | a number | `xsd:decimal`; `xsd:double` when it has an exponent | `path`, `required` |
//! | `integer` | a number | `xsd:integer` | `path`, `required`, `values` |
//! | `boolean` | a boolean | `xsd:boolean` | `path`, `required` |
//! | `date`, `dateTime` | a string | `xsd:date`, `xsd:dateTime` | `path`, `required` |
//! | `resource` | an IRI as a string | the IRI | `path`, `required`, `base`, `values` |
//! | `scalar` | a string, a number or a boolean | `xsd:string`, `xsd:integer`, `xsd:decimal`, `xsd:double` or `xsd:boolean` | `path`, `required` |
//! | `json` | any value | `rdf:JSON` | `path`, `required` |
//! | `languageMap` | an object whose names are language tags | `rdf:langString` for each text | `path`, `required`, `languages`, `elements: array` |
//! | `object` | an object | a link to an object of the path's namespace | `path`, `required`, `fields`, `key`, `keyScope`, `types` |
//! | `array` | an array of any other type except `id` | a value or link for each element | `path`, `required`, `elements`, `ordered` |
//! | `map` | an object whose member names are data | a link to an object for each member | `path`, `required`, `key`, `elements` |
//! | `group` | an object | nothing: its fields are fields of the object around it | `fields` |
//!
//! An array without `elements` is an array of strings, and takes `datatype` or `language` itself. Elements with single
//! values may be given by the name of their type (`elements: number`).
//!
//! `ordered: true` keeps the order of an array and what it has twice: it is one value, an RDF list, and the only field of
//! its property.
//!
//! The property of an array is on the array, on its elements, or on both if they agree. Arrays of arrays are refused,
//! because RDF has no equivalent of the inner ones. The field name `uri` is reserved for the object's own URI.
//!
//! Two fields of one object may share a property if each value belongs to only one of them. The datatype or language
//! decides it for values. For fields of objects the namespace decides it: the URI of an object lies in the namespace of
//! its field.
//!
//! What senders may write besides the canonical form of a value (`accept`, `timeZone`, `absent`, `default`) is in `reading`.
//!
//! The root, and every object in it, takes `key` (the fields whose values identify it) and `types` (the `rdf:type`s that are
//! written with it), a nested object also `keyScope: parent`. `unknownFields: ignore` at the root accepts objects with
//! fields that the mapping does not have. `items` at the root and `outer` on a field are for documents around the objects.
//!
//! Unknown keys, duplicate keys, tags and further documents are errors and never ignored. An alias (`*name`) is a copy
//! of what its anchor names.
//!
//! # Limits
//! 1 MiB of text, 200,000 values after expansion of aliases, 256 levels of objects (in JSON: 255 levels of brackets),
//! 1,000 namespaces, and 256 characters in the name of a field.

mod codes;
mod compile;
mod compiled;
mod document;
mod example;
mod group;
mod kind;
mod language_map;
mod literal;
mod map;
mod namespaces;
mod path;
mod prefixes;
mod reading;
mod schema;
mod shape;
mod shapes;
mod value;
pub(crate) mod yaml;

pub use codes::{CodeList, Codes};
pub(crate) use codes::{code_text, expand_code};
pub use compile::compile;
pub use compiled::{Mapping, UnknownFields};
pub(crate) use document::find_inner;
pub use document::{DocumentForm, Outer, Step};
pub use example::build_example;
pub use group::{Entry, Level};
pub use kind::table::CODE_SCALAR;
pub use kind::{Form, Kind, Scalar, parse_scalar};
pub use language_map::{LanguageMap, format_language_tag};
pub use literal::Literal;
pub use map::{MEMBER_KEY, MapMember};
pub use prefixes::Prefixes;
pub(crate) use reading::ReadValue;
pub use reading::{AcceptedForm, FormName, ListedValue, Reading, UnixUnit};
pub use schema::build_json_schema;
pub use shape::{Field, FieldKind, KeyDefinition, KeyFields, KeyScope, Property, Shape, Value};
pub use shapes::{ShapeSource, build_shacl, write_shex};
pub(crate) use value::find_kind;
pub use value::{Detail, KINDS, list_scalars};
