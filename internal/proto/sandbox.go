package proto

// Sandbox is the wish for confinement that process/start, fs/* and discovery
// carry, with the members of the profile that mean something on Linux.
type Sandbox struct {
	// Restricted says that only what Entries name may be used; else all files
	// may be read and written.
	Restricted bool
	Entries    []SandboxEntry
	// GlobDepth bounds how deep patterns look; 0 is no bound of the client's.
	GlobDepth uint64
	// Network says that the network may be used.
	Network bool
	// Cwd is the policy's working directory, if HasCwd.
	Cwd    URI
	HasCwd bool
	// Roots are the project's directories.
	Roots []URI
	// MXC asks for a confinement that only Windows has, LegacyLandlock for one
	// that cannot restrict files.
	MXC, LegacyLandlock bool
}

// SandboxEntry gives or denies access to a path.
type SandboxEntry struct {
	// Kind is "path", "glob_pattern", or that of a special path.
	Kind    string
	Path    URI    // of "path"
	Pattern string // of "glob_pattern"
	Subpath string // of "project_roots"
	Access  string // "read", "write", "deny" or "none"
	// Skip says that the entry means nothing while the path is not there.
	Skip bool
}

// Dynamic says that a cwd is needed to know what the entries mean.
func (s *Sandbox) Dynamic() bool {
	for _, e := range s.Entries {
		switch e.Kind {
		case "project_roots", "current_working_directory":
			return true
		case "glob_pattern":
			if e.Pattern == "" || e.Pattern[0] != '/' {
				return true
			}
		}
	}
	return false
}

// SandboxParam reads the member "sandbox"; nil if it is missing or null.
func (p *Params) SandboxParam() *Sandbox { return p.sandbox(false) }

// StrictSandboxParam reads the member "sandbox" where its own cwd is required.
func (p *Params) StrictSandboxParam() *Sandbox { return p.sandbox(true) }

func (p *Params) sandbox(strict bool) *Sandbox {
	s := p.Sub(p.Nullable("sandbox"), "FileSystemSandboxContext")
	if s == nil {
		return nil
	}
	defer func() { p.Join(s) }()
	out := &Sandbox{Network: true}
	profile := s.Sub(s.Required("permissions"), "PermissionProfile")
	if profile != nil {
		out.profile(profile)
		s.Join(profile)
	}
	out.MXC = s.Variant(s.Required("windowsSandboxLevel"), "disabled", "restricted-token", "elevated", "mxc") == "mxc"
	if strict {
		out.Cwd, out.HasCwd = s.URI("cwd"), true
	} else {
		out.Cwd, out.HasCwd = s.OptURI("cwd")
	}
	out.Roots = s.URIs(s.v.Get("workspaceRoots"))
	if ctx := s.Sub(s.Nullable("policyContext"), "PolicyContext"); ctx != nil {
		out.Cwd, out.HasCwd = ctx.OptURI("cwd")
		out.Roots = ctx.URIs(ctx.v.Get("workspaceRoots"))
		s.Join(ctx)
	}
	s.OptURI("userHomeDir")
	s.URIs(s.Nullable("temporaryDirectories"))
	s.variantOr("sandboxOverride", "noOverride", "escalatedSandboxWithRestrictions", "bypassSandboxFirstAttempt")
	s.Variant(s.Nullable("windowsSandboxProxySettingsMode"), "reconcile", "preserve")
	out.LegacyLandlock = s.BoolOr("useLegacyLandlock", false)
	return out
}

func (s *Sandbox) profile(p *Params) {
	switch p.Variant(p.Required("type"), "managed", "disabled", "external") {
	case "external":
		s.Network = p.Variant(p.Required("network"), "restricted", "enabled") == "enabled"
	case "managed":
		if fs := p.Sub(p.Required("file_system"), "FileSystemPermissions"); fs != nil {
			s.files(fs)
			p.Join(fs)
		}
		s.Network = p.Variant(p.Required("network"), "restricted", "enabled") == "enabled"
	}
}

func (s *Sandbox) files(p *Params) {
	if p.Variant(p.Required("type"), "restricted", "unrestricted") != "restricted" {
		return
	}
	s.Restricted = true
	list := p.Required("entries")
	if list.Kind != Array {
		p.expected(list, "a sequence")
		return
	}
	for i := range list.Len() {
		e := p.Sub(list.At(i), "FileSystemSandboxEntry")
		s.Entries = append(s.Entries, e.sandboxEntry())
		p.Join(e)
		if p.err != nil {
			return
		}
	}
	if depth := p.Nullable("glob_scan_max_depth"); depth.Kind != Absent {
		if s.GlobDepth = p.uint(depth); s.GlobDepth == 0 {
			p.fail("invalid value: integer `0`, expected a nonzero usize")
		}
	}
}

func (p *Params) sandboxEntry() (e SandboxEntry) {
	at := p.Sub(p.Required("path"), "FileSystemPath")
	if at != nil {
		e = at.sandboxPath()
		p.Join(at)
	}
	e.Access = p.Variant(p.Required("access"), "read", "write", "deny", "none")
	e.Skip = p.Variant(p.Nullable("missing_path_behavior"), "skip") != ""
	return e
}

func (p *Params) sandboxPath() (e SandboxEntry) {
	e.Kind = p.Variant(p.Required("type"), "path", "glob_pattern", "special")
	switch e.Kind {
	case "path":
		e.Path = p.URI("path")
	case "glob_pattern":
		e.Pattern = p.String("pattern")
	case "special":
		value := p.Sub(p.Required("value"), "FileSystemSpecialPath")
		if value == nil {
			break
		}
		e.Kind = value.Variant(value.Required("kind"), "root", "minimal", "current_working_directory", "project_roots", "tmpdir", "slash_tmp", "unknown")
		e.Subpath, _ = value.OptString("subpath")
		p.Join(value)
	}
	return e
}
