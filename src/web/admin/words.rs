//! Numbers, sizes and times in readable form.
use jiff::Timestamp;
use penstock_auth::{Account, Caller, Role};
use penstock_base::principal::Principal;
use penstock_model::search::ObjectCount;
use penstock_service::gateway::Gateway;

/// Returns the display name of an account: its names, or what it signs in with.
pub(super) fn display_name(account: &Account) -> String {
    let names = [account.given_name.as_deref(), account.family_name.as_deref()];
    let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if name.is_empty() { account.email.clone() } else { name }
}

/// Returns the display name of the account with this id. A viewer who may not know it learns nothing about the account.
pub(super) fn name_account(gateway: &Gateway, id: &str, may_know: bool) -> String {
    if !may_know {
        return "another account".to_owned();
    }
    match gateway.auth.accounts.get(id) {
        Some(account) => display_name(&account),
        None => name_deleted(id),
    }
}

/// Returns what is left of an account or API key that is deleted: the id, which the audit trail has too.
pub(super) fn name_deleted(id: &str) -> String {
    format!("deleted account or API key {id}")
}

/// Returns the display name of those who approve or own changes: a group, or an account by its id or email.
pub(super) fn name_principal(
    gateway: &Gateway,
    by: &Caller,
    principal: &Principal,
    may_know: bool,
) -> String {
    match principal {
        Principal::Group(name) => format!("group {name}"),
        Principal::User(id) if gateway.auth.accounts.get(id).is_some() => {
            name_account(gateway, id, may_know || by.id() == id)
        }
        Principal::User(email) => email.clone(),
    }
}

/// Returns the display name of whoever exported or saved something. Every User may know the name of the account.
pub(super) fn name_requester(gateway: &Gateway, by: &Caller, id: &str) -> String {
    match gateway.auth.accounts.get(id) {
        Some(account) => display_name(&account),
        None => name_actor(gateway, by, id),
    }
}

/// Returns the display name of an actor: an account, an API key or local administration.
pub(super) fn name_actor(gateway: &Gateway, by: &Caller, id: &str) -> String {
    if id == "local" {
        return "local administration".to_owned();
    }
    match gateway.auth.keys.get(by, id) {
        Some(key) => format!("API key {:?}", key.name),
        // Others must not learn more about the account than the API shows.
        None => name_account(gateway, id, by.role >= Role::Admin || by.id() == id),
    }
}

/// Returns the display name of the sender of a request: the account, and the API key that it was sent with.
pub(super) fn name_sender(
    gateway: &Gateway,
    by: &Caller,
    account: &str,
    api_key: Option<&str>,
) -> String {
    let name = name_actor(gateway, by, account);
    let key = api_key.filter(|key| *key != account);
    match key.and_then(|id| gateway.auth.keys.get(by, id)) {
        Some(key) => format!("{name}, with the API key {:?}", key.name),
        None => name,
    }
}

/// The maximum number of characters of a stored text in a list or a title.
const MAX_TEXT_CHARS: usize = 80;

/// Shortens a stored text for a list or a title.
pub(super) fn shorten_text(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Shows a stored text as that of a link. One without a visible character has a name too.
pub(super) fn name_text(text: &str) -> String {
    if text.trim().is_empty() { "(empty)".to_owned() } else { shorten_text(text) }
}

/// Formats a whole number with thousands separators: `12,345`.
pub(super) fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 export`, `2 exports`.
pub(super) fn format_count(count: u64, one: &str, more: &str) -> String {
    format!("{} {}", format_number(count), if count == 1 { one } else { more })
}

/// Returns how many objects there are, in words; if they were searched, how many match.
pub(super) fn describe_total(count: ObjectCount, is_searched: bool) -> String {
    let ObjectCount { counted, is_complete } = count;
    let objects = format_count(counted, "object", "objects");
    match (is_complete, is_searched) {
        (true, false) => objects,
        (true, true) if counted == 1 => format!("{objects} matches"),
        (true, true) => format!("{objects} match"),
        (false, false) => format!("At least {objects}"),
        (false, true) => format!("At least {objects} match"),
    }
}

/// Formats a size: `734 B`, `1.5 MiB`.
pub(super) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (u128::from(bytes) * 10 / 1024, "KiB");
    for next in UNITS.into_iter().skip(1) {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, next);
    }
    if tenths >= 1000 || tenths % 10 == 0 {
        format!("{} {unit}", tenths / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// Formats a duration in seconds: `8 s`, `3 min`, `2 h 5 min`, `4 d 1 h`.
pub(super) fn format_duration(seconds: u64) -> String {
    let two = |big: u64, unit: &str, small: u64, under: &str| match small {
        0 => format!("{big} {unit}"),
        _ => format!("{big} {unit} {small} {under}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// Formats how long ago a time (RFC 3339) was; empty if it cannot be parsed.
pub(super) fn format_age(moment: &str) -> String {
    moment.parse::<Timestamp>().map(|at| format_duration(seconds_since(at))).unwrap_or_default()
}

/// Returns the seconds since a time; 0 for a future one.
pub(super) fn seconds_since(at: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().as_second().saturating_sub(at.as_second())).unwrap_or_default()
}

/// Formats a time (RFC 3339) to the minute, for lists whose heading names UTC: `2026-03-01 14:05`.
pub(super) fn format_minute(moment: &str) -> String {
    match moment.parse::<Timestamp>() {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => moment.to_owned(),
    }
}

/// Formats an optional time as [`format_minute`]; without one as `never`.
pub(super) fn format_minute_or_never(moment: Option<&str>) -> String {
    moment.map_or_else(|| "never".to_owned(), format_minute)
}

/// Formats a time to the second: `2026-03-01 14:05:09`.
pub(super) fn format_second(moment: &str) -> String {
    match moment.parse::<Timestamp>() {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => moment.to_owned(),
    }
}

/// Formats a time with its time zone: `2026-03-01 14:05:09 UTC`.
pub(super) fn format_utc(moment: &str) -> String {
    format!("{} UTC", format_second(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_sizes_and_times() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(format_number(count), text);
        }
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (150 << 20, "150 MiB"),
            ((1 << 30) - 1, "1023 MiB"),
            (1 << 30, "1 GiB"),
            (u64::MAX, "16383 PiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3600, "1 h"),
            (7500, "2 h 5 min"),
            (86_400, "1 d"),
            (349_200, "4 d 1 h"),
        ] {
            assert_eq!(format_duration(seconds), text);
        }
        assert_eq!(format_count(1, "export", "exports"), "1 export");
        assert_eq!(format_count(2000, "export", "exports"), "2,000 exports");
        assert_eq!(format_second("2026-03-01T14:05:09.25Z"), "2026-03-01 14:05:09");
        assert_eq!(format_minute("2026-03-01T14:05:09.25Z"), "2026-03-01 14:05");
        assert_eq!(format_age("2999-01-01T00:00:00Z"), "0 s");
    }
}
