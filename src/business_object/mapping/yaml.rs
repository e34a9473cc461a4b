//! YAML and JSON read into nodes that know their line and column.
