//go:build !linux

package headless

import "errors"

func smallDisk(string) (path string, unmount func(), err error) {
	return "", nil, errors.New("a small file system can be mounted on Linux only")
}
