package confine

import _ "github.com/landlock-lsm/go-landlock/landlock"
import _ "github.com/elastic/go-seccomp-bpf"
