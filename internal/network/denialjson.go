package network

import "encoding/json"

// shownDenial is a Denial as JSON has it: rules are counted from 1, as everywhere that
// people read, and there is no rule where none denies.
type shownDenial struct {
	plainDenial
	Rule int `json:"rule,omitempty"`
}

type plainDenial Denial

// MarshalJSON implements json.Marshaler.
func (d Denial) MarshalJSON() ([]byte, error) {
	return json.Marshal(shownDenial{plainDenial(d), d.Rule + 1})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Denial) UnmarshalJSON(text []byte) error {
	var s shownDenial
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*d = Denial(s.plainDenial)
	d.Rule = s.Rule - 1
	return nil
}
