//! Asks pkg-config for the library; no build dependency.
use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG");
    println!("cargo:rerun-if-changed=build.rs");
    let tool = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(&tool)
        .args(["--libs", "perigee >= 0.1"])
        .output()
        .unwrap_or_else(|e| panic!("{}: {}", tool, e));
    assert!(
        output.status.success(),
        "perigee is not known to pkg-config; set PKG_CONFIG_PATH: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", folder);
            println!("cargo:libdir={}", folder);
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", library);
        }
    }
}
