package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/exec-server/exec-server/internal/image"
)

type imageCmd struct {
	Build  imageBuildCmd  `cmd:"" help:"Build the default image from Debian's packages, unless it is there."`
	Import imageImportCmd `cmd:"" help:"Import an OCI or Docker archive, or a root file system, from a tar."`
	Pull   imagePullCmd   `cmd:"" help:"Pull an image from a registry."`
	Ls     imageLsCmd     `cmd:"" help:"List the images."`
	Rm     imageRmCmd     `cmd:"" help:"Remove images."`
}

// withProgress runs f with a printer on standard error, until a signal.
func withProgress(ctx context.Context, std Streams, f func(context.Context, image.Progress) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := image.NewPrinter(std.Err)
	err := f(ctx, p)
	p.Close()
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was stored")
	}
	return err
}

type imageBuildCmd struct {
	Recipe string `placeholder:"FILE" help:"Recipe to build instead of the default image's."`
	Force  bool   `help:"Build even if the image is there."`
}

// Run builds the image and prints its name.
func (b *imageBuildCmd) Run(ctx context.Context, common *Common, std Streams) error {
	recipe := image.Default()
	if b.Recipe != "" {
		text, err := os.ReadFile(b.Recipe)
		if err != nil {
			return fmt.Errorf("recipe: %w", err)
		}
		if recipe, err = image.ParseRecipe(text); err != nil {
			return fmt.Errorf("recipe %s: %w", b.Recipe, err)
		}
	}
	ctx, c, done, err := common.store(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	return withProgress(ctx, std, func(ctx context.Context, p image.Progress) error {
		build := image.Ensure
		if b.Force {
			build = image.Build
		}
		img, err := build(ctx, c, recipe, p)
		if err == nil {
			fmt.Fprintln(std.Out, img.Name())
		}
		return err
	})
}

type imageImportCmd struct {
	File string   `arg:"" help:"The tar, plain or compressed; - is standard input."`
	Name string   `placeholder:"REF" help:"Name for the image; needed for a root file system."`
	User string   `placeholder:"USER" help:"User of a root file system's image (root)."`
	Cwd  string   `placeholder:"DIR" help:"Working directory of a root file system's image (/workspace)."`
	Env  []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Environment of a root file system's image."`
}

// Run imports the file and prints the images' names.
func (i *imageImportCmd) Run(ctx context.Context, common *Common, std Streams) error {
	var r io.Reader = std.In
	if i.File != "-" {
		f, err := os.Open(i.File)
		if err != nil {
			return fmt.Errorf("import the image: %w", err)
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	ctx, c, done, err := common.store(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	return withProgress(ctx, std, func(ctx context.Context, p image.Progress) error {
		names, err := image.Import(ctx, c, r, i.Name, image.ImportOptions{User: i.User, Cwd: i.Cwd, Env: i.Env, Progress: p})
		for _, name := range names {
			fmt.Fprintln(std.Out, name)
		}
		return err
	})
}

type imagePullCmd struct {
	Ref string `arg:"" help:"The image, as in debian:12 or REGISTRY/NAME:TAG."`
}

// Run pulls the image and prints its name.
func (i *imagePullCmd) Run(ctx context.Context, common *Common, std Streams) error {
	ctx, c, done, err := common.store(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	return withProgress(ctx, std, func(ctx context.Context, p image.Progress) error {
		img, err := image.Pull(ctx, c, i.Ref, p)
		if err == nil {
			fmt.Fprintln(std.Out, img.Name())
		}
		return err
	})
}

type imageLsCmd struct{}

// Run lists the images.
func (imageLsCmd) Run(ctx context.Context, common *Common, std Streams) error {
	ctx, c, done, err := common.store(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	list, err := image.List(ctx, c)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tDIGEST\tSIZE\tCREATED\tPLATFORMS")
	for _, i := range list {
		fmt.Fprintln(w, imageRow(i))
	}
	return w.Flush()
}

func imageRow(i image.Info) string {
	return fmt.Sprintf("%s\t%s\t%d MiB\t%s\t%s", i.Name, i.Digest.Encoded()[:12], i.Size>>20, i.Created.Format(time.DateTime), strings.Join(i.Platforms, ","))
}

type imageRmCmd struct {
	Images []string `arg:"" help:"Names of images."`
	Force  bool     `help:"Remove even if environments use it."`
}

// Run removes the images.
func (i *imageRmCmd) Run(ctx context.Context, common *Common, std Streams) error {
	ctx, c, done, err := common.store(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	for _, name := range i.Images {
		if err := image.Remove(ctx, c, name, i.Force); err != nil {
			return err
		}
		fmt.Fprintln(std.Out, name)
	}
	return nil
}
