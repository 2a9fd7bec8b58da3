package ledger

import "golang.org/x/sys/unix"

// remote lists file systems whose locks or shared memory cannot be trusted
// between machines or with the host, by the magic number that statfs gives.
var remote = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xfe534d42: "SMB",
	0xff534d42: "CIFS",
	0x65735546: "a FUSE file system",
	0x01021997: "a 9p share",
	0x5346414f: "AFS",
	0x00c36400: "Ceph",
	0x73757245: "Coda",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x786f4256: "a VirtualBox share",
	0xbacbacbc: "a VMware share",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x564c:     "NCP",
}

// networkFS names the file system that dir lies on if it is one of remote.
func networkFS(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	return remote[uint32(st.Type)], nil
}
