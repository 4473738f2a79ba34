package helper

import (
	"encoding/json"

	"github.com/exec-server/exec-server/internal/helper/codexhome"
	"github.com/exec-server/exec-server/internal/proto"
)

// Config handles environmentConfig/read. The params have native paths: home, the
// user's home directory, and cwd.
func Config(c *Call) {
	p := proto.ParamsOf(c.Params, "EnvironmentConfigReadParams")
	home, cwd := p.String("home"), p.String("cwd")
	config, requirements := paths(p, "configPaths"), paths(p, "requirementsPaths")
	if err := p.Err(); err != nil {
		c.Answer(nil, err)
		return
	}
	answer(c)(codexhome.ReadConfig(home, cwd, config, requirements))
}

// Discover handles capabilities/discoverV2. The params have the user's home
// directory.
func Discover(c *Call) {
	p := proto.ParamsOf(c.Params, "DiscoverV2CapabilitiesParams")
	home := p.String("home")
	if err := p.Err(); err != nil {
		c.Answer(nil, err)
		return
	}
	answer(c)(codexhome.Discover(home))
}

func paths(p *proto.Params, name string) [][]string {
	list := p.Required(name)
	all := make([][]string, list.Len())
	for i := range all {
		all[i] = p.Strings(list.At(i))
	}
	return all
}

// answer sends a result, or the error that there is instead.
func answer(c *Call) func(result any, err error) {
	return func(result any, err error) {
		if err != nil {
			c.Answer(nil, err)
			return
		}
		text, err := json.Marshal(result)
		c.Answer(proto.JSON(text), err)
	}
}
