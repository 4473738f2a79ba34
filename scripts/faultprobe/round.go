package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// fileSize has a file take several records.
const fileSize = 150_000

// round looks after the session's first process, runs a command, and moves a file.
func (w *worker) round(ctx context.Context) error {
	w.serial++
	if err := w.keep(ctx); err != nil {
		return err
	}
	id := fmt.Sprintf("round-%d", w.serial)
	want := w.mark + " " + id + "\n" + strings.Repeat("x", 20_000)
	if err := w.start(ctx, id, fmt.Sprintf("echo '%s %s'; head -c 20000 /dev/zero | tr '\\0' x", w.mark, id)); err != nil {
		return err
	}
	got, err := w.output(ctx, id, func(_ string, closed bool) bool { return closed })
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: a command printed %d bytes that begin with %.60q", errWrong, len(got), got)
	}
	path := "file://" + w.dir + "/" + w.mark
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(id+w.mark, fileSize/len(id+w.mark))))
	if _, err := w.call(ctx, "fs/writeFile", map[string]any{"path": path, "dataBase64": text}); err != nil {
		return err
	}
	v, err := w.call(ctx, "fs/readFile", map[string]any{"path": path})
	if err == nil && v.Get("dataBase64").Str() != text {
		return fmt.Errorf("%w: a file came back as %d characters of %d", errWrong, len(v.Get("dataBase64").Str()), len(text))
	}
	return err
}

// keep starts the session's first process, or looks that it is there.
func (w *worker) keep(ctx context.Context) error {
	const id = "keeper"
	if w.keeper == "" {
		// An earlier try may have come through without its answer.
		if _, err := w.call(ctx, "process/read", map[string]any{"processId": id}); err != nil {
			if err := w.start(ctx, id, "echo $$; exec sleep 3600"); err != nil {
				return err
			}
		}
		text, err := w.output(ctx, id, func(text string, _ bool) bool { return strings.HasSuffix(text, "\n") })
		w.keeper = text
		return err
	}
	got, err := w.output(ctx, id, func(text string, closed bool) bool { return true })
	if err == nil && got != w.keeper {
		return fmt.Errorf("%w: the first process printed %.60q, and now %.60q", errWrong, w.keeper, got)
	}
	return err
}

func (w *worker) start(ctx context.Context, id, script string) error {
	_, err := w.call(ctx, "process/start", map[string]any{
		"processId": id, "argv": []string{"/bin/sh", "-c", script}, "cwd": "file:///", "env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false,
	})
	return err
}

// output reads what a process prints until enough of it is there.
func (w *worker) output(ctx context.Context, id string, enough func(text string, closed bool) bool) (string, error) {
	var text strings.Builder
	after := uint64(0)
	for {
		v, err := w.call(ctx, "process/read", map[string]any{"processId": id, "afterSeq": after, "waitMs": 500})
		if err != nil {
			return "", err
		}
		chunks := v.Get("chunks")
		for i := range chunks.Len() {
			b, err := base64.StdEncoding.DecodeString(chunks.At(i).Get("chunk").Str())
			if err != nil {
				return "", fmt.Errorf("%w: %w", errWrong, err)
			}
			text.Write(b)
		}
		next, ok := v.Get("nextSeq").Uint64()
		if !ok || next == 0 {
			return "", fmt.Errorf("%w: an answer without nextSeq", errWrong)
		}
		after = next - 1
		closed := v.Get("closed").Kind == proto.True
		if enough(text.String(), closed) {
			return text.String(), nil
		}
		if closed {
			return "", fmt.Errorf("%w: process %s has ended", errWrong, id)
		}
	}
}
