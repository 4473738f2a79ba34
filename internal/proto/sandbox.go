package proto

// Sandbox is the wish for per-command confinement that process/start, fs/* and
// discovery carry.
type Sandbox struct {
	// RestrictsFiles is true if the profile takes any path away.
	RestrictsFiles bool
	// RestrictsNetwork is true if the profile takes the network away.
	RestrictsNetwork bool
}

// SandboxParam reads the member "sandbox"; nil if it is missing or null.
func (p *Params) SandboxParam() *Sandbox {
	s := p.Sub(p.Nullable("sandbox"), "FileSystemSandboxContext")
	if s == nil {
		return nil
	}
	defer func() { p.Join(s) }()
	s.Variant(s.Required("windowsSandboxLevel"), "disabled", "restricted-token", "elevated", "mxc")
	profile := s.Sub(s.Required("permissions"), "PermissionProfile")
	if profile == nil {
		return nil
	}
	defer func() { s.Join(profile) }()
	out := &Sandbox{}
	network := func() bool {
		return profile.Variant(profile.Required("network"), "restricted", "enabled") != "enabled"
	}
	switch profile.Variant(profile.Required("type"), "disabled", "external", "managed") {
	case "external":
		out.RestrictsNetwork = network()
	case "managed":
		out.RestrictsNetwork = network()
		fs := profile.Sub(profile.Required("file_system"), "FileSystemPolicy")
		if fs == nil {
			break
		}
		if fs.Variant(fs.Required("type"), "unrestricted", "restricted") == "restricted" {
			out.RestrictsFiles = true
		}
		profile.Join(fs)
	}
	return out
}
