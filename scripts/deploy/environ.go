package deploy

import (
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/flake-go/flake/config"
)

// fields are what the kubelet says of a pod, as an example.
var fields = map[string]string{
	"metadata.name":      "flake-2",
	"metadata.namespace": "ids",
	"metadata.labels['apps.kubernetes.io/pod-index']": "2",
	"status.podIP": "10.0.0.7",
}

// environ returns the environment that the kubelet gives the container: a variable may
// mention those before it, as $(NAME).
func (w *workload) environ(fault func(string, ...any)) (environ []string) {
	known := []string{}
	for _, v := range w.pod.Containers[0].Env {
		value := strings.NewReplacer(known...).Replace(v.Value)
		if v.ValueFrom != nil {
			switch from := v.ValueFrom; {
			case v.Value != "":
				fault("%s has two values", v.Name)
			case from.FieldRef != nil && fields[from.FieldRef.FieldPath] != "":
				value = fields[from.FieldRef.FieldPath]
			default:
				fault("%s is of an unknown field", v.Name)
			}
		}
		if strings.Contains(value, "$(") {
			fault("%s: %s mentions what is not set before it", v.Name, value)
		}
		known = append(known, "$("+v.Name+")", value)
		environ = append(environ, v.Name+"="+value)
	}
	return environ
}

// configured checks that the node takes its configuration, listens at the ports of the
// container, and keeps its files on volumes.
func (w *workload) configured(fault func(string, ...any)) {
	flags, err := config.Environ(w.environ(fault))
	if err != nil {
		fault("environment: %w", err)
		return
	}
	var files []string
	for i, f := range flags {
		if f.Key == "node.cookie_file" { // would be read
			files = append(files, f.Value)
			flags[i].Key, flags[i].Value = "node.cookie", "of the secret"
		}
	}
	cfg, err := config.Load("", flags...)
	if err != nil {
		fault("environment: %w", err)
		return
	}
	_, host, _ := strings.Cut(cfg.Node.Name, "@")
	if want := "flake-2." + w.service + ".ids.svc.cluster.local"; w.service != "" && host != want {
		fault("node.name: the host is %s, want the pod's name, %s", host, want)
	}
	if w.service == "" && host != fields["status.podIP"] {
		fault("node.name: the host is %s, want the pod's address", host)
	}
	listens := map[string]string{"dist": cfg.Node.Listen, "http": cfg.HTTP.Listen, "epmd": ":4369"}
	if cfg.Node.EPMD == "off" {
		delete(listens, "epmd")
	}
	for _, p := range w.pod.Containers[0].Ports {
		if _, port, _ := net.SplitHostPort(listens[p.Name]); port != strconv.Itoa(int(p.ContainerPort)) {
			fault("port %s is %d, but the node listens at %q", p.Name, p.ContainerPort, listens[p.Name])
		}
		delete(listens, p.Name)
	}
	if len(listens) > 0 {
		fault("ports of the container are missing: %v", listens)
	}
	for _, file := range append(files, cfg.Flake.TimestampPath, cfg.HTTP.TokenFile) {
		if !w.onVolume(file) {
			fault("%s is on no volume", file)
		}
	}
}

// onVolume tells whether a file is on a volume that is mounted and that there is.
func (w *workload) onVolume(file string) bool {
	return slices.ContainsFunc(w.pod.Containers[0].VolumeMounts, func(m core.VolumeMount) bool {
		return m.MountPath == path.Dir(file) && (slices.Contains(w.claims, m.Name) ||
			slices.ContainsFunc(w.pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name }))
	})
}
