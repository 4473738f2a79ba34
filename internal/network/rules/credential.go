package rules

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	variableRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerRule   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")
)

// framing are the fields that say where a message goes and ends.
var framing = []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection", "expect", "content-type"}

// check finds what is wrong with a rule's credential. It shows no value that could
// be the secret.
func (c *Credential) check(r *Rule, intercept bool) *Error {
	if c == nil {
		return nil
	}
	https := len(r.Protocols) == 0 || slices.Contains(r.Protocols, TLS)
	switch {
	case len(r.Deny) > 0:
		return wrong("credential", "it needs allow")
	case slices.ContainsFunc(r.Protocols, func(p Protocol) bool { return p != TLS && p != HTTP }):
		return wrong("credential", "it can be added over tls and http alone, and protocols has another")
	case https && !intercept:
		return wrong("credential", `to be added to HTTPS it needs intercept = true; protocols = ["http"] is for what is not encrypted`)
	case c.Header != "" && (!headerRule.MatchString(c.Header) || slices.Contains(framing, strings.ToLower(c.Header))):
		return wrong("credential.header", "%q is no field that can be set", c.Header)
	case c.BasicUser != "" && c.Header+c.Format != "":
		return wrong("credential.basic_user", "it sets the field by itself; leave out header and format")
	case control(c.BasicUser) || strings.Contains(c.BasicUser, ":"):
		return wrong("credential.basic_user", "it is no user's name")
	case c.Format != "" && !strings.Contains(c.Format, "{secret}"):
		return wrong("credential.format", "there is no {secret} in it")
	case control(c.Format):
		return wrong("credential.format", "it has control characters")
	case control(c.Placeholder) || c.Placeholder != "" && len(c.Placeholder) < 8:
		return wrong("credential.placeholder", "it has to be at least 8 characters, so that it is found nowhere by chance, and none of control")
	case c.SecretFile != "" && !path.IsAbs(c.SecretFile):
		return wrong("credential.secret_file", "it is no absolute path of a file")
	case c.SecretEnv != "" && !variableRule.MatchString(c.SecretEnv):
		return wrong("credential.secret_env", "it is no name of a variable")
	case len(c.SecretCommand) > 0 && (c.SecretCommand[0] == "" || strings.ContainsRune(strings.Join(c.SecretCommand, ""), 0)):
		return wrong("credential.secret_command", "it is not a program and its arguments")
	}
	sources := 0
	for _, given := range []bool{c.SecretFile != "", c.SecretEnv != "", len(c.SecretCommand) > 0} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		return wrong("credential", "it needs one of secret_file, secret_env and secret_command")
	}
	return nil
}

func control(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Field is the name of the header that is set.
func (c *Credential) Field() string { return cmp.Or(c.Header, "Authorization") }

// text does not show a command's arguments, which people put secrets into.
func (c *Credential) text() string {
	if c == nil {
		return ""
	}
	what := " with " + c.Field()
	if c.BasicUser != "" {
		what = fmt.Sprintf(" with basic authentication as %q", c.BasicUser)
	}
	switch {
	case c.SecretFile != "":
		return what + " from file " + c.SecretFile
	case c.SecretEnv != "":
		return what + " from variable " + c.SecretEnv
	case len(c.SecretCommand) > 0:
		return what + " from program " + c.SecretCommand[0]
	}
	return what
}
