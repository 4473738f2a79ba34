// Package rules decides what an environment may reach: which names resolve, which
// addresses may be connected to, and what a connection has to prove. It opens no
// connection and keeps no state; docs/network.md has its table of precedence.
package rules

// Mode is what a policy does where no rule speaks.
type Mode string

// The modes.
const (
	None  Mode = "none"  // there is no way out at all
	Rules Mode = "rules" // what no rule allows is denied
	Open  Mode = "open"  // what no rule denies is allowed, except for special addresses
)

// Policy is what an environment may reach, as it is configured and edited. It
// holds no secret: those are read from where its credentials say.
type Policy struct {
	Mode Mode `json:"mode"`
	// VEth adds a pair of interfaces, for what is neither TCP nor DNS.
	VEth bool `json:"veth,omitempty"`
	// Intercept lets credentials be added to HTTPS, with a CA of the environment's
	// own that it is made to trust.
	Intercept bool   `json:"intercept,omitempty"`
	Rules     []Rule `json:"rules,omitempty"`
	Limits
}

// Bounds of Limits.Connections: each takes descriptors of the daemon.
const (
	UsualConnections = 1024
	MaxConnections   = 4096
)

// Limits bound the traffic of an environment; 0 is no limit but for Connections.
type Limits struct {
	// BytesPerSecond bounds each direction.
	BytesPerSecond int64 `json:"bandwidth,omitempty"`
	// Bytes bounds both directions together over the environment's life.
	Bytes int64 `json:"volume,omitempty"`
	// Connections bounds those that are open or in the making: at most MaxConnections,
	// and 0 is UsualConnections. It is written when it is 0 as well.
	Connections int `json:"connections"`
	// ConnectionsPerSecond bounds new ones, with a burst of as many.
	ConnectionsPerSecond int `json:"connection_rate,omitempty"`
}

// Rule allows or denies. Exactly one of Allow and Deny is set.
type Rule struct {
	// Each is a name ("pypi.org"), what is below one ("*.pypi.org"), everything
	// ("*"), an address or a prefix ("10.1.0.0/16").
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Ports are those that it is about. Left out, a rule that allows names is about
	// 80 and 443, and any other about all.
	Ports []Ports `json:"ports,omitempty"`
	// Protocols are those that it is about: "tls" and "http", which show the name,
	// "tcp" (anything over TCP: for a name it trusts the address alone), "udp" and
	// "icmp". Left out: for names that are allowed tls and http, for addresses that
	// are allowed tcp, for what is denied all.
	Protocols []Protocol `json:"protocols,omitempty"`
	// Credential is added to requests for the names.
	Credential *Credential `json:"credential,omitempty"`
}

// Ports is a range of ports, both ends included.
type Ports struct{ First, Last uint16 }

// Protocol is how a flow is carried, and what of it can be seen.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "tcp"
	TLS  Protocol = "tls"
	HTTP Protocol = "http"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp"
)

// Credential is what the daemon adds to HTTP requests, and where its secret is:
// exactly one of the three sources is set.
type Credential struct {
	// Header is the field that is set; "" is Authorization.
	Header string `json:"header,omitempty"`
	// Format has "{secret}" in the place of the secret; "" is "Bearer {secret}", or
	// the secret alone for another header than Authorization.
	Format string `json:"format,omitempty"`
	// BasicUser makes it basic authentication of that user, with the secret as its
	// password. Header and Format are "" then.
	BasicUser string `json:"basic_user,omitempty"`

	SecretFile    string   `json:"secret_file,omitempty"`
	SecretEnv     string   `json:"secret_env,omitempty"`
	SecretCommand []string `json:"secret_command,omitempty"`
	// Placeholder is the text that stands for the secret in the sandbox, where a
	// variable has it; "" has none.
	Placeholder string `json:"placeholder,omitempty"`
}
