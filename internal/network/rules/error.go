package rules

import "fmt"

// Error is what is wrong with a policy, and where.
type Error struct {
	// Rule is the index of the rule, or -1 for what is not of a rule.
	Rule int
	// Key is the key as configuration files have it, "" for the rule itself.
	Key  string
	Text string
}

// Error counts rules from 1, as everything does that people read.
func (e *Error) Error() string {
	place := ""
	if e.Rule >= 0 {
		place = fmt.Sprintf("rule %d: ", e.Rule+1)
	}
	if e.Key != "" {
		place += e.Key + ": "
	}
	return place + e.Text
}

// wrong is the error of a rule's key; Compile adds which rule it is.
func wrong(key, format string, args ...any) *Error {
	return &Error{-1, key, fmt.Sprintf(format, args...)}
}
