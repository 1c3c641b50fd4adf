//! What was meant by a name that nobody knows.

/// The known name that is nearest to `name`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let limit = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        // As many edits at the least as one is longer than the other.
        .filter(|candidate| candidate.chars().count().abs_diff(name.chars().count()) <= limit)
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        // A name of one letter has nothing in common with another one.
        .filter(|(distance, _)| *distance <= limit && (*distance == 0 || name.chars().nth(1).is_some()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two texts: insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
                let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_in_three_letters_is_near_and_case_does_not_count() {
        let known = ["createdAt", "PK", "owner"];
        for (name, near) in [
            ("creatdAt", Some("createdAt")),
            ("createdat", Some("createdAt")),
            ("pk", Some("PK")),
            ("ower", Some("owner")),
            ("title", None),
            ("e", None),
        ] {
            assert_eq!(nearest(name, known), near, "{name}");
        }
    }
}
