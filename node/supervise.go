package node

import (
	"math"

	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"

	"github.com/flake-go/flake/genserver"
)

// Supervisor is a supervisor and the gen_servers that it keeps alive.
type Supervisor struct {
	Name    string
	Servers []Server
}

// Server is a registered gen_server.
type Server struct {
	Name    string
	Handler genserver.Handler
}

// supervisor is a Supervisor as a process of Ergo.
type supervisor struct {
	gen.Supervisor
	spec     Supervisor
	registry *registry
}

// Init is called by Ergo. Restarts are not bounded: a peer that kills a server
// again and again shall not be able to end the service for all.
func (s *supervisor) Init(...etf.Term) (gen.SupervisorSpec, error) {
	spec := gen.SupervisorSpec{
		Name: s.spec.Name,
		Strategy: gen.SupervisorStrategy{
			Type:      gen.SupervisorStrategyOneForOne,
			Restart:   gen.SupervisorStrategyRestartPermanent,
			Intensity: math.MaxUint16,
			Period:    1,
		},
	}
	for _, server := range s.spec.Servers {
		spec.Children = append(spec.Children, gen.SupervisorChildSpec{
			Name: server.Name,
			Child: &genserver.Process{
				Handler: server.Handler,
				Up:      func(p gen.Process) { s.registry.add(p, inline{server.Handler}) },
				Down:    s.registry.remove,
			},
		})
	}
	return spec, nil
}
