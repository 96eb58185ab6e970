// Package config reads flake's configuration, a TOML file (https://toml.io/en/v1.0.0), into a
// typed and validated value. The shipped, commented file is rel/files/sys.toml.
//
// Start from [Load], which reports all faults of a file at once, each as an [Error], and from
// [Config.Validate], which is to be called again after flags have changed a value.
//
// Not supported: values from the environment, several files, a change while running.
package config
