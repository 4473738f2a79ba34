package control

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exec-server/exec-server/internal/config"
)

func TestEnvironmentsAreAddedRemovedAndListed(t *testing.T) {
	b := newBackend()
	since, n := time.Unix(1795999999, 0).UTC(), 3
	b.list = []Environment{
		{Name: "a", State: "connected", Transport: "noise", ConnectedSince: &since, Reconnects: 2, Streams: 1, Running: true, Sessions: &n, Processes: new(int), Profile: "p"},
		{Name: "b", State: "-"},
	}
	_, path := serveOn(t, b)
	want := AddEnvironment{Name: "a", Key: "a key", Settings: config.Environment{
		Remote: "https://r", EnvironmentID: "b", Transport: "noise", Profile: "p", Key: config.Key{KeyCommand: []string{"x", "y"}}, Way: config.Way{Proxy: "none"},
	}}
	added, err := Add(t.Context(), path, want)
	if err != nil || added.Kept || len(added.Notes) != 1 {
		t.Errorf("%+v, %v", added, err)
	}
	if diff := cmp.Diff(want, <-b.added); diff != "" {
		t.Error(diff)
	}
	if removed, err := Remove(t.Context(), path, "x"); err != nil || len(removed.Notes) != 1 || removed.Notes[0] != "x is gone" {
		t.Errorf("%+v, %v", removed, err)
	}
	list, err := List(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.list, list); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsOfEnvironments(t *testing.T) {
	b := newBackend()
	b.refusal = errors.New("it is \"not\" so")
	_, path := serveOn(t, b)
	if _, err := Add(t.Context(), path, AddEnvironment{}); err == nil || err.Error() != b.refusal.Error() {
		t.Error(err)
	}
	if _, err := List(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoDaemon) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Remove(ctx, path, "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !Alive(path) || Alive(path+"x") {
		t.Error("who is alive is not known")
	}
}
