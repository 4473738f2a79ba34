package codexhome

import (
	"os"
	"path/filepath"

	"github.com/exec-server/exec-server/internal/proto"
)

// Discovery is the result of capabilities/discoverV2.
type Discovery struct {
	Plugins  []Plugin `json:"plugins"`
	Skills   []Skill  `json:"skills"`
	Warnings []string `json:"warnings"`
}

// Plugin is one that is installed.
type Plugin struct {
	ID             string  `json:"id"`
	DisplayName    string  `json:"displayName"`
	RemotePluginID *string `json:"remotePluginId"`
	Version        string  `json:"version"`
	Root           string  `json:"root"`
	Files          Files   `json:"files"`
	Skills         []Skill `json:"skills"`
}

// Files are what a plugin consists of, beside its skills.
type Files struct {
	Manifest   File  `json:"manifest"`
	MCPConfig  *File `json:"mcpConfig"`
	AppsConfig *File `json:"appsConfig"`
}

// File is a text.
type File struct {
	Path     string `json:"path"`
	Contents string `json:"contents"`
}

// Skill is what the front matter and the metadata of a skill say. Those of
// plugins have no DiscoveryRoot.
type Skill struct {
	Name             string        `json:"name"`
	Description      string        `json:"description"`
	ShortDescription *string       `json:"shortDescription"`
	Path             string        `json:"path"`
	DiscoveryRoot    *Root         `json:"discoveryRoot,omitempty"`
	Dependencies     *Dependencies `json:"dependencies"`
	Policy           *Policy       `json:"policy"`
}

// Root is where a skill was found.
type Root struct {
	ID   string `json:"id"`
	Path string `json:"path"`
}

// The warnings.
const (
	notLoaded   = "some capability metadata could not be loaded; discovery may be incomplete"
	notResolved = "some capability locations could not be resolved; discovery may be incomplete"
)

// Discover finds what is installed for the user with that home directory. Errors
// are *proto.Error.
func Discover(home string) (*Discovery, error) {
	dir, err := codexHome(home)
	if err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "%s", err)
	}
	d := &Discovery{Plugins: []Plugin{}, Skills: []Skill{}, Warnings: []string{}}
	d.plugins(filepath.Join(dir, "plugins", "cache"))
	d.skills("codex-home-skills", filepath.Join(dir, "skills"))
	d.skills("user-agent-skills", filepath.Join(home, ".agents", "skills"))
	return d, nil
}

// skills adds those below a directory, which need not be there.
func (d *Discovery) skills(id, dir string) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		if err != nil && !missing(err) {
			d.Warnings = append(d.Warnings, notLoaded)
		}
		return
	}
	s := &scan{root: dir}
	found := s.skills()
	for i := range found {
		found[i].DiscoveryRoot = &Root{ID: id, Path: uri(dir)}
	}
	d.Skills = append(d.Skills, found...)
	if s.failed {
		d.Warnings = append(d.Warnings, notLoaded)
	}
}
