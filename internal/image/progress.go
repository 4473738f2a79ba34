package image

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"
)

// Progress hears how a build, an import or a pull goes on. Calls may come from
// several goroutines. A nil Progress is allowed wherever one is taken.
type Progress interface {
	// Step says what is done from now on.
	Step(text string)
	// Bytes says that done of total bytes of an item are there. The total is 0
	// while it is unknown.
	Bytes(item string, done, total int64)
}

type silent struct{}

func (silent) Step(string)                {}
func (silent) Bytes(string, int64, int64) {}

func orSilent(p Progress) Progress {
	if p == nil {
		return silent{}
	}
	return p
}

// Printer is a Progress that writes to a person: bars on a terminal, else one
// plain line for each step and each finished item.
type Printer struct {
	w    io.Writer
	bars *mpb.Progress // nil unless w is a terminal

	mu    sync.Mutex
	items map[string]*item
}

type item struct {
	bar   *mpb.Bar
	ended bool
}

// NewPrinter makes a Printer. Close must be called before anything else writes
// to w.
func NewPrinter(w io.Writer) *Printer {
	p := &Printer{w: w, items: map[string]*item{}}
	if f, ok := w.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		}
	}
	return p
}

// Step prints the text above the bars.
func (p *Printer) Step(text string) {
	if p.bars != nil {
		fmt.Fprintln(p.bars, text)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, text)
}

// Bytes moves the item's bar. An item is finished once done reaches its total.
func (p *Printer) Bytes(name string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.items[name]
	if it == nil {
		it = &item{}
		if p.bars != nil {
			it.bar = p.bars.AddBar(0,
				mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
				mpb.AppendDecorators(decor.Any(amount)))
		}
		p.items[name] = it
	}
	if it.ended {
		return
	}
	it.ended = total > 0 && done >= total
	switch {
	case it.bar != nil:
		it.bar.SetTotal(total, false)
		it.bar.SetCurrent(done)
		if it.ended {
			it.bar.SetTotal(-1, true)
		}
	case it.ended:
		fmt.Fprintf(p.w, "%s: %.1f\n", name, decor.SizeB1024(total))
	}
}

// amount is what stands behind a bar.
func amount(s decor.Statistics) string {
	if s.Total <= 0 {
		return fmt.Sprintf("% .1f", decor.SizeB1024(s.Current))
	}
	return fmt.Sprintf("% .1f / % .1f", decor.SizeB1024(s.Current), decor.SizeB1024(s.Total))
}

// Close ends the bars; those of unfinished items stay as they are.
func (p *Printer) Close() {
	if p.bars == nil {
		return
	}
	p.mu.Lock()
	for _, it := range p.items {
		it.bar.Abort(false)
	}
	p.mu.Unlock()
	p.bars.Wait()
}
