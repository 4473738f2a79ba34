package network

import (
	"context"
	"errors"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// Explain is not there yet.
func (w *Way) Explain(ctx context.Context, target string, protocol rules.Protocol) ([]string, error) {
	return nil, errors.ErrUnsupported
}
