//go:build unix

package hotrestart

import (
	"os"

	"golang.org/x/sys/unix"
)

// rights returns the control message that carries files.
func rights(fds []int) []byte { return unix.UnixRights(fds...) }

// rightsRoom is how much a control message with as many files as there may be
// takes.
func rightsRoom() int { return unix.CmsgSpace(4 * maxFiles) }

// rightsCut reports whether the flags of a received message say that files are
// missing.
func rightsCut(flags int) bool { return flags&unix.MSG_CTRUNC != 0 }

// receivedFiles returns the files that a control message carries.
func receivedFiles(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if messages[i].Header.Level != unix.SOL_SOCKET || messages[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "inherited"))
		}
	}
	return files, nil
}
