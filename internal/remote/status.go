package remote

import "time"

// State is where a link stands.
type State string

// The states of a link.
const (
	Registering  State = "registering"  // asks the registry, for the first time or anew
	Connecting   State = "connecting"   // has a registration, and dials
	Connected    State = "connected"    // harnesses can come
	Disconnected State = "disconnected" // waits for the next try
	Failed       State = "failed"       // was refused; tries again slowly, or with another credential
	Stopped      State = "stopped"
)

// Transport is how connections travel.
type Transport string

// The transports.
const (
	Noise  Transport = "noise"  // many encrypted streams over one socket
	Direct Transport = "direct" // one connection, in the clear but for TLS
)

// Status tells about a link.
type Status struct {
	State     State
	Transport Transport
	// Since is when the present socket was connected; zero if there is none.
	Since time.Time
	// Reconnects counts the sockets after the first.
	Reconnects int
	// Streams are the connections of harnesses at present.
	Streams int
	// LastError is the last thing that went wrong, "" if nothing has, and
	// LastErrorAt when.
	LastError   string
	LastErrorAt time.Time
	// NextTry is when it is tried again; zero if nothing is waited for.
	NextTry time.Time
}
