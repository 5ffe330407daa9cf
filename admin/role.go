package admin

import (
	"fmt"
	"strings"
)

// Role is a set of permissions. Each role includes the permissions of the ones before
// it.
type Role uint8

// The roles.
const (
	RoleNone    Role = iota // nothing
	RoleMetrics             // the stats, /ready and /live
	RoleRead                // everything that changes nothing, except profiles
	RoleOperate             // change log levels, runtime values, counters, health and drains; reopen logs
	RoleAdmin               // everything
)

// roleNames are the names of the roles in settings.
var roleNames = [...]string{"none", "metrics", "read", "operate", "admin"}

// String returns the name of r.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// ParseRole returns the role with the given name: metrics, read, operate or admin.
func ParseRole(name string) (Role, error) {
	for r, n := range roleNames {
		if n == name && Role(r) != RoleNone {
			return Role(r), nil
		}
	}
	return RoleNone, fmt.Errorf("admin: role %q is not one of %s", name, strings.Join(roleNames[1:], ", "))
}

// needs returns the role that e requires. A nil e stands for unknown paths.
func (e *Endpoint) needs() Role {
	switch {
	case e == nil:
		return RoleRead
	case e.Role != RoleNone:
		return e.Role
	case e.metrics:
		return RoleMetrics
	case e.Mutates:
		return RoleAdmin
	}
	return RoleRead
}

// Principal is the identity of a client.
type Principal struct {
	Name string // of the token, "dns:host" or the like of a certificate, "uid 1000" of a unix socket; "": unknown
	Role Role
}
