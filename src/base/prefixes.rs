//! The prefixes that need no declaration.

/// The prefixes of every mapping and every SPARQL request. A declaration of the same name has priority.
pub const WELL_KNOWN_PREFIXES: &[(&str, &str)] = &[
    ("brick", "https://brickschema.org/schema/Brick#"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("qudt", "http://qudt.org/schema/qudt/"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("saref", "https://saref.etsi.org/core/"),
    ("schema", "http://schema.org/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("ssn", "http://www.w3.org/ns/ssn/"),
    ("unit", "http://qudt.org/vocab/unit/"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];
