package containerd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// volumeEvery is how often it is written down how much has passed a way out, where
// the policy bounds that. So much may pass uncounted when the daemon is killed.
const volumeEvery = 10 * time.Second

// volume is what has passed the way out of a container, in bytes.
type volume struct {
	Container string `json:"container"`
	Used      int64  `json:"used"`
}

func volumeIn(dir string) string { return filepath.Join(dir, "volume.json") }

// volumeOf returns how much had passed when it was last written down. What cannot be
// read is 0: it is no policy.
func volumeOf(dir, container string) int64 {
	var v volume
	text, err := os.ReadFile(volumeIn(dir))
	if err != nil || json.Unmarshal(text, &v) != nil || v.Container != container {
		return 0
	}
	return max(0, v.Used)
}

// keepVolume writes it down, if that matters and has changed.
func (w *way) keepVolume() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	used := w.Stats().Used
	if w.Policy().Bytes == 0 || used == w.kept {
		return nil
	}
	text, err := json.Marshal(volume{w.container, used})
	if err == nil {
		err = writeFile(volumeIn(w.dir), append(text, '\n'))
	}
	if err == nil {
		w.kept = used
	}
	return err
}

// keepVolumes does so for all sandboxes, until the runtime is closed.
func (r *Runtime) keepVolumes() {
	tick := time.NewTicker(volumeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		for _, s := range r.ways() {
			if err := s.keepVolume(); err != nil {
				r.opts.Log.Warn().Err(err).Msg("what has passed a network is not written down")
			}
		}
	}
}

// ways are those of the sandboxes that are there.
func (r *Runtime) ways() (all []*way) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s != nil && s.way != nil {
			all = append(all, s.way)
		}
	}
	return all
}
