//go:build !unix

package hotrestart

import (
	"errors"
	"os"
)

// Messages carry no files on this system.

func rights([]int) []byte { return nil }

func rightsRoom() int { return 0 }

func rightsCut(int) bool { return false }

func receivedFiles([]byte) ([]*os.File, error) {
	return nil, errors.New("hotrestart: not available on this system")
}
