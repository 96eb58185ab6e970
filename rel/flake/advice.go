package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers"
)

// advices say, by what an error of etcd has in it, what to do. The first that fits counts.
var advices = []struct{ has, do string }{
	{"certificate signed by unknown authority", "set etcd.ca to the CA of its certificate"},
	{"failed to verify certificate", "is it etcd's? See etcd.endpoints"},
	{"invalid user ID or password", "see etcd.user and etcd.password_file"},
	{"user name is empty", "set etcd.user and etcd.password_file"},
	{"permission denied", "etcd.user needs a role that may read and write all keys that begin with %s/"},
	{"etcd at ", "is it up, and does it want TLS? See etcd.endpoints and etcd.ca"},
}

// advise has an error of etcd say what to do.
func advise(err error, cfg config.Etcd) error {
	if errors.Is(err, workers.ErrNoneFree) {
		return fmt.Errorf("%w; set etcd.wait to wait for one, or take one from its node: flake workers release NUMBER", err)
	}
	for _, a := range advices {
		if err != nil && strings.Contains(err.Error(), a.has) {
			return fmt.Errorf("%w; %s", err, strings.ReplaceAll(a.do, "%s", cfg.Prefix))
		}
	}
	return err
}
