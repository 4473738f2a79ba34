package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
)

// stockFlags are flags of codex exec-server that mean less here, or nothing.
// They are judged as it does, so that a command line which it refuses is refused.
type stockFlags struct {
	Override     []string `name:"c" short:"c" sep:"none" placeholder:"KEY=VALUE" help:"Accepted, without effect: it configures codex. So do the next two."`
	Enable       []string `sep:"none" placeholder:"FEATURE" help:"Accepted, without effect."`
	Disable      []string `sep:"none" placeholder:"FEATURE" help:"Accepted, without effect."`
	StrictConfig bool     `help:"Accepted: unknown keys of the configuration are errors anyway."`

	PIDNamespace *string `name:"linux-sandbox-pid-namespace" placeholder:"isolate|inherit" help:"Accepted: a confined command always has a PID namespace of its own, as by isolate."`

	TransparentTCP bool    `name:"linux-sandbox-transparent-tcp" help:"Refused: the proxy of commands does not have it."`
	UpstreamProxy  *string `name:"tcp-upstream-proxy" placeholder:"HOST:PORT" help:"Refused, likewise."`
	PrivateIPs     bool    `name:"proxy-private-ips-via-upstream" help:"Refused, likewise."`
}

const envPrivateIPs = "CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM"

// check finds mistakes that are usage errors.
func (f *stockFlags) check() error {
	if ns := f.PIDNamespace; ns != nil && *ns != "isolate" && *ns != "inherit" {
		return usageError(fmt.Sprintf("invalid value '%s' for '--linux-sandbox-pid-namespace <MODE>': expected 'isolate' or 'inherit'", *ns))
	}
	if p := f.UpstreamProxy; p != nil {
		if err := checkHostPort(*p); err != nil {
			return usageError(fmt.Sprintf("invalid value '%s' for '--tcp-upstream-proxy <HOST:PORT>': %s", *p, err))
		}
	}
	return fromEnv(&f.PrivateIPs, envPrivateIPs, "--proxy-private-ips-via-upstream")
}

// fromEnv reads a flag that was not given from its variable.
func fromEnv(flag *bool, variable, name string) error {
	value, set := os.LookupEnv(variable)
	if *flag || !set {
		return nil
	}
	if value != "true" && value != "false" {
		return usageError(fmt.Sprintf("invalid value '%s' for '%s' in %s: true or false", value, name, variable))
	}
	*flag = value == "true"
	return nil
}

// offered refuses what would be missed: a proxy that somebody relies on must not
// be left out silently.
func (f *stockFlags) offered() error {
	var name string
	switch {
	case f.TransparentTCP:
		name = "--linux-sandbox-transparent-tcp"
	case f.UpstreamProxy != nil:
		name = "--tcp-upstream-proxy"
	case f.PrivateIPs:
		name = "--proxy-private-ips-via-upstream (or " + envPrivateIPs + ")"
	default:
		return nil
	}
	return fmt.Errorf("this server does not offer %s: its proxy for commands does not have it", name)
}

// warn says once what has no effect.
func (f *stockFlags) warn(w io.Writer) {
	if len(f.Override)+len(f.Enable)+len(f.Disable) > 0 {
		fmt.Fprintln(w, "exec-server: -c, --enable and --disable configure codex and have no effect on this server")
	}
	if f.PIDNamespace != nil && *f.PIDNamespace == "inherit" {
		fmt.Fprintln(w, "exec-server: --linux-sandbox-pid-namespace inherit has no effect: confined commands have PID namespaces of their own")
	}
}

var hostRule = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// checkHostPort judges a proxy's address: a name or an IP literal, IPv6 in
// brackets, and a port.
func checkHostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if addr, ok := errors.AsType[*net.AddrError](err); ok {
		return errors.New(addr.Err)
	}
	if _, ipErr := netip.ParseAddr(host); ipErr != nil && (len(host) > 253 || !hostRule.MatchString(host)) {
		return errors.New("no host")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("no port from 1 to 65535")
	}
	return nil
}
