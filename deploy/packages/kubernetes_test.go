package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/xeipuuv/gojsonschema"
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
	"monitoring.coreos.com/v1/PodMonitor":     func() any { return new(monitoringv1.PodMonitor) },
}

// apiSchemas validates objects by the OpenAPI schemas of the Kubernetes API, as its
// server publishes them.
type apiSchemas struct {
	dir string // of client-go's copy
	all map[string]*gojsonschema.Schema
}

func newAPISchemas(t *testing.T) *apiSchemas {
	t.Helper()
	r := &release{root: "."}
	text, err := r.output("go", "mod", "download", "-json", "k8s.io/client-go")
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(text), &module); err != nil {
		t.Fatal(err)
	}
	return &apiSchemas{module.Dir + "/openapi/openapitest/testdata/", make(map[string]*gojsonschema.Schema)}
}

// errors returns the errors of an object, nil for a kind that is not part of Kubernetes.
func (s *apiSchemas) errors(t *testing.T, apiVersion, kind, document string) []gojsonschema.ResultError {
	t.Helper()
	file, name := "", ""
	switch apiVersion {
	case "v1":
		file, name = "api__v1_openapi.json", "io.k8s.api.core.v1."+kind
	case "apps/v1":
		file, name = "apis__apps__v1_openapi.json", "io.k8s.api.apps.v1."+kind
	default:
		return nil
	}
	schema := s.all[name]
	if schema == nil {
		text, err := os.ReadFile(s.dir + file)
		if err != nil {
			t.Fatal(err)
		}
		var api map[string]any
		if err := json.Unmarshal(text, &api); err != nil {
			t.Fatal(err)
		}
		schema, err = gojsonschema.NewSchema(gojsonschema.NewGoLoader(map[string]any{"$ref": "#/components/schemas/" + name, "components": api["components"]}))
		if err != nil {
			t.Fatal(err)
		}
		s.all[name] = schema
	}
	object, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(object))
	if err != nil {
		t.Fatal(err)
	}
	return result.Errors()
}

// TestAPISchemas: the schemas find what the types of the API do not.
func TestAPISchemas(t *testing.T) {
	s := newAPISchemas(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1}]}\n"
	if errs := s.errors(t, "v1", "Service", service); len(errs) > 0 {
		t.Error(errs)
	}
	for _, wrong := range []string{strings.Replace(service, "{port: 1}", "{name: a}", 1), strings.Replace(service, "port: 1", "port: a", 1)} {
		if errs := s.errors(t, "v1", "Service", wrong); len(errs) == 0 {
			t.Errorf("no error in\n%s", wrong)
		}
	}
}

// TestManifests validates the Kubernetes manifests by the schemas of the API, decodes them
// strictly into its types, and has the server validate the configurations in them.
func TestManifests(t *testing.T) {
	schemas := newAPISchemas(t)
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
			for _, e := range schemas.errors(t, head.APIVersion, head.Kind, document) {
				t.Errorf("%s: %s: %v", path, head.Kind, e)
			}
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
	for _, kind := range []string{"Deployment", "DaemonSet", "ServiceMonitor", "PodMonitor", "Pod", "Service"} {
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
