//! The names of S3 buckets (Amazon S3 User Guide, "General purpose bucket naming rules").

/// The rule in words, for errors and documents.
pub const BUCKET_NAME_RULE: &str = "an S3 bucket name: 3 to 63 of a-z 0-9 . -, a letter or digit at both ends, no two dots in a row, not an IP address";

/// Checks the name of a bucket.
///
/// # Errors
/// The name with the rule that it breaks.
pub fn check_bucket_name(name: &str) -> Result<(), String> {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let valid = (3..=63).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-')
        && edge(name.chars().next())
        && edge(name.chars().next_back())
        && !name.contains("..")
        && name.parse::<std::net::Ipv4Addr>().is_err();
    if valid { Ok(()) } else { Err(format!("{name:?} is not {BUCKET_NAME_RULE}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_rules_of_s3() {
        for name in ["abc", "plant-exports", "my.bucket.1", "0-9"] {
            assert_eq!(check_bucket_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(64);
        for name in [
            "",
            "ab",
            &long,
            "Plant",
            "a_b_c",
            "-abc",
            "abc.",
            "a..b",
            "../x",
            "192.168.0.1",
            "a/b",
            "bücket",
        ] {
            assert!(check_bucket_name(name).is_err(), "{name}");
        }
    }
}
