package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/exec-server/exec-server/internal/config"
)

// AddEnvironment asks for an environment to be registered and served.
type AddEnvironment struct {
	Name     string             `json:"name"`
	Settings config.Environment `json:"settings"`
	// Key is the token for the registry, if it is not found by the settings. The
	// environment ends with the daemon then, since nobody keeps the token.
	Key string `json:"key,omitempty"`
}

// Added tells about an environment that was added.
type Added struct {
	Kept bool `json:"kept"` // the next daemon serves it too
	// Notes are for the user, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Removed tells about an environment that was removed.
type Removed struct {
	Notes []string `json:"notes,omitempty"`
}

// Environment is what there is to tell about an environment.
type Environment struct {
	Name string `json:"name"`
	// State is that of its link, or "running" for one that the listener alone leads to.
	State     string `json:"state"`
	Transport string `json:"transport,omitempty"`
	// ConnectedSince is when the present socket was connected.
	ConnectedSince *time.Time `json:"connected_since"`
	Reconnects     int        `json:"reconnects"`
	Streams        int        `json:"streams"` // connections of harnesses through the link
	// Running says that it has a sandbox. Sessions and Processes in it are null if
	// its agent does not tell.
	Running     bool       `json:"running"`
	Sessions    *int       `json:"sessions"`
	Processes   *int       `json:"processes"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	NextTry     *time.Time `json:"next_try,omitempty"`
	Profile     string     `json:"profile"`

	Remote        string `json:"remote,omitempty"`
	EnvironmentID string `json:"environment_id,omitempty"`
	Origin        string `json:"origin,omitempty"` // "configuration", "added", "command line"
	Kept          bool   `json:"kept"`
}

type nameParams struct {
	Name string `json:"name"`
}

// What answers the requests.
var (
	addEnvironment    = answered(func(ctx context.Context, b Backend, p AddEnvironment) (Added, error) { return b.AddEnvironment(ctx, p) })
	removeEnvironment = answered(func(ctx context.Context, b Backend, p nameParams) (Removed, error) {
		return b.RemoveEnvironment(ctx, p.Name)
	})
	listEnvironments = answered(func(ctx context.Context, b Backend, _ struct{}) ([]Environment, error) { return b.Environments(ctx) })
)

// Add adds an environment to the daemon at that socket.
func Add(ctx context.Context, path string, a AddEnvironment) (added Added, err error) {
	return added, call(ctx, path, "env.add", a, &added)
}

// Remove removes an environment from the daemon at that socket, and returns when
// it is gone.
func Remove(ctx context.Context, path, name string) (removed Removed, err error) {
	return removed, call(ctx, path, "env.rm", nameParams{name}, &removed)
}

// List lists the environments of the daemon at that socket.
func List(ctx context.Context, path string) (list []Environment, err error) {
	return list, call(ctx, path, "env.ls", struct{}{}, &list)
}

// call makes a request that has one answer.
func call(ctx context.Context, path, method string, params, result any) error {
	c, err := dial(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	answer, err := ask(c, method, params)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, result)
}
