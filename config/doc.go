// Package config reads flake's configuration, a TOML file (https://toml.io/en/v1.0.0),
// into a typed and validated value. The shipped, commented file is rel/files/sys.toml.
//
// Start at [Load], which reports all faults of a file, and of the flags that override
// it, at once, each as an [Error]. [Environ] makes flags of the environment. [Config.Values] tells from
// where each value is.
//
// Not supported: several files.
package config
