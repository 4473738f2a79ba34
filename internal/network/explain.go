package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/units"
)

// Explain says what is decided about a question as rules.Ask reads it, and by which
// rule. A name is looked up only if the policy lets the environment do that.
func (w *Way) Explain(ctx context.Context, q rules.Question) rules.Explanation {
	q.Own = w.own
	if rules.Inside(q.Host) {
		return w.table.Load().Explain(q)
	}
	var err error
	if a, perr := netip.ParseAddr(strings.Trim(q.Host, "[]")); perr == nil {
		q.Names = w.names.Names(a.Unmap().WithZone(""))
	} else {
		var removed []netip.Addr
		q.Addrs, removed, err = w.names.Lookup(ctx, q.Host)
		q.Addrs = slices.Concat(q.Addrs, removed)
	}
	t := w.table.Load()
	x := t.Explain(q)
	var denied *names.DeniedError
	if err != nil && !errors.As(err, &denied) {
		x.Lines = append(x.Lines, fmt.Sprintf("the look-up failed: %v", err))
	}
	if t.Policy().Mode != rules.None && w.budget.exhausted() {
		x.Refuse(rules.TooMuch, fmt.Sprintf("denied: the volume of %s is used up (volume). Else:", units.Size(w.budget.now.Load().Bytes)))
	}
	return x
}
