package perigee

import "perigee.example/perigee/internal/capi"

const (
	scopeContext = 0
	scopeModel   = 1
	scopeSession = 2
)

// OptionInfo describes an option of the library.
type OptionInfo struct {
	Name, Help, Default string
	Scope               int
}

// Options lists all options that the library knows.
func Options() []OptionInfo {
	n := int(capi.Perigee_option_count())
	all := make([]OptionInfo, n)
	for i := range all {
		all[i] = OptionInfo{capi.Option_name(i), capi.Option_help(i), capi.Option_default(i), capi.Option_scope(i)}
	}
	return all
}

// split separates the options of one scope; unknown ones stay with the rest, where the library refuses them.
func split(options []Option, scope int) (of, rest []Option) {
	known := Options()
	for _, o := range options {
		found := false
		for _, k := range known {
			found = found || (k.Name == o.Name && k.Scope == scope)
		}
		if found {
			of = append(of, o)
		} else {
			rest = append(rest, o)
		}
	}
	return of, rest
}
