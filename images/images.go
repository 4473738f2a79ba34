// Package images holds the recipes of the images that the server can build
// itself.
package images

import _ "embed"

//go:embed default.toml
var defaultRecipe []byte

// Default is the recipe of the default image, as TOML.
func Default() []byte { return defaultRecipe }
