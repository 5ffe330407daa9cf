package main

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// bundleCommand downloads a support archive.
func (p *program) bundleCommand() *command {
	var c client
	fs := c.flags("bundle", 2*time.Minute)
	cpu := fs.Duration("cpu", 0, "length of a CPU `profile` in the archive, at most 30s; 0s means none")
	return &command{
		name:      "bundle",
		arguments: "[file]",
		most:      1,
		summary:   "download a support archive, without secrets",
		details: "Downloads stats, histograms, configuration, runtime values, clusters, audit log,\n" +
			"profiles and more as a zip archive, checks its checksums, and prints its files.\n" +
			"It needs the role admin. Without a file, the server chooses the name. Existing files\n" +
			"are not replaced. The exit status is 0 if the archive is complete and\n" +
			"intact, 1 if it is not, and 2 for a wrong command line.\n",
		flags: fs,
		run: func(ctx context.Context) error {
			if *cpu < 0 || *cpu > 30*time.Second {
				return usageError{fmt.Errorf("error: --cpu %v is not in [0s, 30s]", *cpu)}
			}
			// A signal must not leave a part of an archive behind.
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			return p.bundle(ctx, &c, fs.Arg(0), *cpu)
		},
	}
}

// bundle downloads a bundle to a file. An incomplete file is removed.
func (p *program) bundle(ctx context.Context, c *client, path string, cpu time.Duration) (err error) {
	var f *os.File
	create := func() error { // before the request if the name is known
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return fmt.Errorf("error: %w", err)
		}
		return nil
	}
	if path != "" {
		if err := create(); err != nil {
			return err
		}
	}
	defer func() {
		if f == nil {
			return
		}
		if err2 := f.Close(); err == nil && err2 != nil {
			err = fmt.Errorf("error: %w", err2)
		}
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	resp, err := c.request(ctx, http.MethodPost, "/bundle?cpu="+cpu.String())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("error: POST /bundle: %s", responseError(resp))
	}
	if path == "" {
		_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
		if path = filepath.Base(params["filename"]); filepath.Ext(path) != ".zip" {
			path = "bundle.zip"
		}
		if err := create(); err != nil {
			return err
		}
	}
	n, err := io.Copy(f, resp.Body)
	if err != nil {
		return fmt.Errorf("error: %w", err)
	}
	list, err := checkBundle(f, n)
	if err != nil {
		return fmt.Errorf("error: the archive is damaged: %w", err)
	}
	return p.print(fmt.Sprintf("%s: %d bytes\n%s", oneline.Escape(path), n, list))
}

// bundleFile describes a file in the manifest.
type bundleFile struct {
	Name, SHA256, Error string
	Bytes               int64
	Truncated           bool
}

// checkBundle compares the files of a bundle with its manifest, and returns a list of
// them.
func checkBundle(r io.ReaderAt, size int64) (list string, err error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return "", err
	}
	f, err := archive.Open("manifest.json")
	if err != nil {
		return "", err
	}
	defer f.Close()
	var manifest struct{ Files []bundleFile }
	if err := json.NewDecoder(io.LimitReader(f, maxFile)).Decode(&manifest); err != nil {
		return "", fmt.Errorf("manifest.json: %w", err)
	}
	for _, x := range manifest.Files {
		if err := x.check(archive); err != nil {
			return "", fmt.Errorf("%s: %w", oneline.Escape(x.Name), err)
		}
		note := ""
		if x.Truncated {
			note = "  (truncated)"
		} else if x.Error != "" {
			note = "  (" + oneline.Escape(x.Error) + ")"
		}
		list += fmt.Sprintf("%10d  %s%s\n", x.Bytes, oneline.Escape(x.Name), note)
	}
	return list, nil
}

// check compares a file of the archive with x.
func (x *bundleFile) check(archive *zip.Reader) error {
	f, err := archive.Open(x.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, x.Bytes+1))
	if err != nil {
		return err
	}
	if n != x.Bytes || hex.EncodeToString(hash.Sum(nil)) != x.SHA256 {
		return errors.New("its checksum differs from that in the manifest")
	}
	return nil
}
