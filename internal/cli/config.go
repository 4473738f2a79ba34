package cli

import "github.com/exec-server/exec-server/internal/config"

type configCmd struct{}

// Run prints the defaults.
func (configCmd) Run(std Streams) error { return config.WriteDefaults(std.Out) }
