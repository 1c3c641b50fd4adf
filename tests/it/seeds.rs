//! What the fuzz targets promise, for their seeds and for seeds with some bytes changed.

#[path = "../fuzz/checks.rs"]
mod checks;

use std::fs;

use crate::program::root;

/// Calls `check` with each seed of the target, and with many changed ones, the same in each run.
fn hold(target: &str, changed: u32, check: fn(&[u8])) {
    let folder = root().join("tests/fuzz/seeds").join(target);
    let mut seeds: Vec<_> =
        fs::read_dir(folder).expect("there are seeds").map(|entry| entry.expect("a seed can be named").path()).collect();
    seeds.sort();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits fit") % below.max(1)
    };
    for path in seeds {
        let seed = fs::read(&path).expect("a seed can be read");
        check(&seed);
        for _ in 0..changed {
            let mut bytes = seed.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(5) {
                    0 => bytes.truncate(at),
                    1 => drop(bytes.splice(at..at, seed[random(seed.len())..].iter().copied().take(8))),
                    2 => drop(bytes.drain(at..(at + 1 + random(8)).min(bytes.len()))),
                    3 if !bytes.is_empty() => bytes[at] = b"{}[]\":,\\'#|()0-e\n\0 "[random(19)],
                    _ if !bytes.is_empty() => bytes[at] ^= 1 << random(8),
                    _ => {}
                }
            }
            check(&bytes);
        }
    }
}

#[test]
fn json_lines_are_decoded_or_refused() {
    hold("json_lines", 2000, checks::json_lines);
}

#[test]
fn ion_lines_are_decoded_or_refused() {
    hold("ion_lines", 2000, checks::ion_lines);
}

#[test]
fn manifests_are_exports_or_refused() {
    hold("manifest", 200, checks::manifest);
}

#[test]
fn data_files_give_the_same_lines_whatever_their_chunks() {
    hold("data_file", 200, checks::data_file);
}

#[test]
fn templates_render_what_they_matched() {
    hold("template", 2000, checks::template);
}

#[test]
fn conditions_hold_or_do_not() {
    hold("condition", 2000, checks::condition);
}

#[test]
fn pipelines_are_plans_or_mistakes() {
    hold("pipeline", 50, checks::pipeline);
}
