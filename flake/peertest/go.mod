module github.com/flake-go/flake/flake/peertest

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/flake-go/flake v0.0.0
	github.com/google/uuid v1.6.0
	github.com/muyo/sno v1.2.1
	github.com/oklog/ulid/v2 v2.1.1
	github.com/rs/xid v1.6.0
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/flake-go/flake => ../..
