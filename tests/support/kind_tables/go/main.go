// Prints facts about the published Kubernetes types as JSON.
//
//	describe              every struct that the registered kinds reach, field by field
//	examples SEED COUNT   random objects, each as a client's protobuf and as the JSON that Go writes of it
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"strconv"

	admission "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	workloads "shoal.dev/kubernetes-1.35/api/scheduling/v1alpha1"
)

func main() {
	log.SetFlags(0)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admission.AddToScheme, admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
		authorization.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme,
		certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme,
		events.AddToScheme, networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme,
		resource.AddToScheme, scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
		metrics.AddToScheme, workloads.AddToScheme, meta.AddMetaToScheme,
	} {
		must(add(scheme))
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	switch {
	case len(os.Args) == 2 && os.Args[1] == "describe":
		must(encoder.Encode(describe(scheme)))
	case len(os.Args) == 4 && os.Args[1] == "examples":
		seed, err := strconv.ParseInt(os.Args[2], 10, 64)
		must(err)
		count, err := strconv.Atoi(os.Args[3])
		must(err)
		for _, each := range examples(scheme, seed, count) {
			must(encoder.Encode(each))
		}
	default:
		log.Fatal("usage: kindtables describe | examples SEED COUNT")
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
