package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// kinds makes the objects that the manifests have.
var kinds = map[string]func() any{
	"v1/ConfigMap":       func() any { return new(corev1.ConfigMap) },
	"v1/Service":         func() any { return new(corev1.Service) },
	"v1/Pod":             func() any { return new(corev1.Pod) },
	"apps/v1/Deployment": func() any { return new(appsv1.Deployment) },
	"apps/v1/DaemonSet":  func() any { return new(appsv1.DaemonSet) },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return new(monitoringv1.ServiceMonitor) },
}

// TestManifests decodes the Kubernetes manifests strictly into the types of the API, and
// has the server validate the configurations in them.
func TestManifests(t *testing.T) {
	paths, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%q, %v", paths, err)
	}
	var seen []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var head struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			newObject := kinds[head.APIVersion+"/"+head.Kind]
			if newObject == nil {
				t.Fatalf("%s: unknown kind %+v", path, head)
			}
			seen = append(seen, head.Kind)
			object := newObject()
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Errorf("%s: %s: %v", path, head.Kind, err)
			}
			switch o := object.(type) {
			case *corev1.ConfigMap:
				validate(t, path, o.Data["statsd-admin.yaml"])
			case *corev1.Pod:
				args := o.Spec.InitContainers[0].Args
				validate(t, path, args[slices.Index(args, "--config-yaml")+1])
			case *appsv1.Deployment:
				checkPod(t, path, &o.Spec.Template, o.Spec.Selector.MatchLabels)
			case *appsv1.DaemonSet:
				checkPod(t, path, &o.Spec.Template, o.Spec.Selector.MatchLabels)
			}
		}
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "ServiceMonitor", "Pod", "Service"} {
		if !slices.Contains(seen, kind) {
			t.Errorf("no manifest has a %s", kind)
		}
	}
}

// checkPod checks what the API server would check of references inside an object.
func checkPod(t *testing.T, path string, pod *corev1.PodTemplateSpec, selector map[string]string) {
	t.Helper()
	for k, v := range selector {
		if pod.Labels[k] != v {
			t.Errorf("%s: the selector %s=%s does not select the pod", path, k, v)
		}
	}
	volumes := make(map[string]bool)
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: container %s mounts %s, which is no volume", path, c.Name, m.Name)
			}
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if probe != nil && !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
				t.Errorf("%s: container %s has no port %s", path, c.Name, probe.HTTPGet.Port.StrVal)
			}
		}
	}
}

// validate has the server validate a configuration.
func validate(t *testing.T, path, config string) {
	t.Helper()
	cmd := exec.Command("go", "run", "./cmd/statsd-admin", "--mode", "validate", "--config-yaml", config)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil || config == "" {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
}
