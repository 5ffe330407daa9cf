package admin

import (
	"fmt"
	"strings"
)

// Role says what a caller may do. Each role may do what those before it may.
type Role uint8

// The roles.
const (
	RoleNone    Role = iota // nothing
	RoleMetrics             // the stats, /ready and /live
	RoleRead                // all that changes nothing, profiles excepted
	RoleOperate             // change log levels, runtime values, counters, health and drains; reopen logs
	RoleAdmin               // everything
)

// roleNames are the roles as settings spell them.
var roleNames = [...]string{"none", "metrics", "read", "operate", "admin"}

// String returns the name of r.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// ParseRole returns the role of a name: metrics, read, operate or admin.
func ParseRole(name string) (Role, error) {
	for r, n := range roleNames {
		if n == name && Role(r) != RoleNone {
			return Role(r), nil
		}
	}
	return RoleNone, fmt.Errorf("admin: role %q is not one of %s", name, strings.Join(roleNames[1:], ", "))
}

// needs returns the role that a caller of e must have. Nil stands for paths
// that are no endpoint.
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

// Principal is who sends a request.
type Principal struct {
	Name string // of the token, "dns:host" or the like of a certificate, "uid 1000" of a unix socket; "": unknown
	Role Role
}
