package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// output is what a command writes, while it does.
type output struct {
	mu  sync.Mutex // guards all below
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// program is a run of Main.
type program struct {
	t        *testing.T
	in       io.WriteCloser
	out, err *output
	stop     context.CancelFunc // is what a signal does
	status   chan int
	ended    chan struct{} // closed
}

// start runs Main with a pipe as its standard input. The variables that it looks at
// are those of the test.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p := &program{t: t, in: w, out: &output{}, err: &output{}, stop: stop, status: make(chan int, 1), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.status <- Main(ctx, args, Streams{In: r, Out: p.out, Err: p.err})
	}()
	t.Cleanup(func() {
		stop()
		_ = w.Close()
		select {
		case <-p.ended:
		case <-time.After(patience):
			t.Error("the program does not end")
		}
		_ = r.Close()
	})
	return p
}

// ends waits for the end of the program and its status.
func (p *program) ends(status int) {
	p.t.Helper()
	select {
	case got := <-p.status:
		if got != status {
			p.t.Errorf("the status is %d; expected %d: %s", got, status, p.err)
		}
	case <-time.After(patience):
		p.t.Fatalf("the program does not end: %s", p.err)
	}
}

func (p *program) write(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

// bare takes away what of the test's own environment is a credential or a way out.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", envExitOnStdinClose, "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy",
		"ALL_PROXY", "all_proxy", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
	} {
		if value, set := os.LookupEnv(name); set {
			t.Setenv(name, value) // which puts it back afterwards
			_ = os.Unsetenv(name)
		}
	}
	t.Setenv("CODEX_HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
}
